package histories

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"

	"stockproof/model"
)

// Verdict is what porcupine says of a history.
type Verdict string

// The verdicts of a check.
const (
	Linearizable    Verdict = "linearizable"
	NonLinearizable Verdict = "non-linearizable"
	// Undecided: the time was over. It is never a pass.
	Undecided Verdict = "undecided"
)

// Checked is a checked history, from which a picture can be made.
type Checked struct {
	Verdict Verdict
	model   porcupine.Model
	info    porcupine.LinearizationInfo
}

// Check asks porcupine for at most timeout whether the history is linearizable
// for the stock model.
func Check(h History, timeout time.Duration) Checked {
	m, ops := model.PorcupineModel(h.Initial, h.Ops)
	result, info := porcupine.CheckOperationsVerbose(m, ops, timeout)
	c := Checked{model: m, info: info, Verdict: Undecided}
	switch result {
	case porcupine.Ok:
		c.Verdict = Linearizable
	case porcupine.Illegal:
		c.Verdict = NonLinearizable
	}
	return c
}

// Picture writes porcupine's interactive picture of the history, an HTML file.
func (c Checked) Picture(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := porcupine.VisualizePath(c.model, c.info, path); err != nil {
		return fmt.Errorf("picture %s: %w", path, err)
	}
	return nil
}

// Finding puts the verdict among the properties.
func (c Checked) Finding() model.Finding {
	switch c.Verdict {
	case Linearizable:
		return model.Finding{Property: model.NonLinearizable, Evaluated: true}
	case NonLinearizable:
		return model.Finding{Property: model.NonLinearizable, Evaluated: true, Broken: true, Amount: 1,
			Detail: "no sequential order explains the answers"}
	}
	return model.Finding{Property: model.NonLinearizable, Detail: "porcupine did not decide in the time given"}
}
