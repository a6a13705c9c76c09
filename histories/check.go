package histories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"

	"stockproof/model"
)

// Verdict is what the checkers say of a history.
type Verdict = model.Ruling

// The verdicts of a check.
const (
	Linearizable    = model.Legal
	NonLinearizable = model.Illegal
	// Undecided: the work or the time allowed was used up. It is never a pass.
	Undecided = model.Undecided
)

// Checked is a checked history, from which a picture can be made.
type Checked struct {
	Verdict   Verdict
	Exact     model.Judgement // the stock checker's
	Porcupine Verdict         // Undecided when it had not enough time, empty when it was not asked
	history   History
	model     porcupine.Model
	info      porcupine.LinearizationInfo
}

// ErrDisagree is an internal error: two checkers decided the same history
// differently, or one cannot prove what it says. No verdict of this program can
// be trusted until it is understood.
var ErrDisagree = errors.New("internal error: the checkers disagree")

// Check asks the exact checker, and beside it porcupine for at most timeout,
// whether the history is linearizable for the stock model. What one of them
// decides is the verdict; that they differ is ErrDisagree, and then the
// history is saved in the folder save, or among the temporary files.
func Check(h History, timeout time.Duration, save string) (Checked, error) {
	c := CheckExactly(h, model.Limits{Order: true})
	m, ops := model.PorcupineModel(h.Initial, h.Ops)
	result, info := porcupine.CheckOperationsVerbose(m, ops, timeout)
	c.model, c.info, c.Porcupine = m, info, Undecided
	switch result {
	case porcupine.Ok:
		c.Porcupine = Linearizable
	case porcupine.Illegal:
		c.Porcupine = NonLinearizable
	}
	return c, c.settle(save)
}

// CheckExactly asks only the exact checker.
func CheckExactly(h History, limits model.Limits) Checked {
	j := model.Judge(h.Initial, h.Ops, limits)
	return Checked{Verdict: j.Ruling, Exact: j, history: h}
}

// settle makes one verdict of two, and confirms a linearization.
func (c *Checked) settle(save string) error {
	why := error(nil)
	decided := c.Porcupine == Linearizable || c.Porcupine == NonLinearizable
	switch {
	case c.Verdict == Linearizable && c.Exact.Order != nil:
		why = model.Confirm(c.history.Initial, c.history.Ops, c.Exact.Order)
	case c.Verdict == Undecided && decided:
		c.Verdict = c.Porcupine
	}
	if decided && c.Porcupine != c.Verdict {
		why = fmt.Errorf("porcupine says %s, the stock checker %s", c.Porcupine, c.Exact.Ruling)
	}
	if why == nil {
		return nil
	}
	path, err := c.history.save(save)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrDisagree, why), err)
	}
	return fmt.Errorf("%w: %w; the history is saved in %s", ErrDisagree, why, path)
}

// save writes the history where nothing else is.
func (h History) save(dir string) (string, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	f, err := os.CreateTemp(dir, "disagreement-*.jsonl")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(h.Encode(f), f.Close())
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
		detail := "no sequential order explains the answers"
		if r := c.Exact.Refutation; r != nil {
			detail = model.Explain(c.history.Initial, c.history.Ops, *r)
		}
		return model.Finding{Property: model.NonLinearizable, Evaluated: true, Broken: true, Amount: 1, Detail: detail}
	}
	return model.Finding{Property: model.NonLinearizable, Detail: "neither checker decided within its limits"}
}
