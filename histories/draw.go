package histories

import (
	"io"

	"github.com/anishathalye/porcupine"
)

// Draw writes porcupine's interactive picture of the history, an HTML document.
func (c Checked) Draw(w io.Writer) error { return porcupine.Visualize(c.model, c.info, w) }
