package explore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
)

// A check says in words what is wrong with a search, or nothing.
type check func(t *testing.T, m mutant) string

// mutated searches with a mutant; an error is a conviction too: the search
// checks itself when it tells a witness.
func mutated(t *testing.T, m mutant, cfg Config) (*Result, error) {
	cfg.mutant = m
	return newLab(t).Run(t.Context(), cfg)
}

// shows is the check of the known matrix for one row.
func shows(scheme string, fault faults.Kind, wl, retries, want string) check {
	return func(t *testing.T, m mutant) string {
		r, err := mutated(t, m, one(t, scheme, fault, wl, retries))
		if err != nil {
			return err.Error()
		}
		if got := only(letters(r), "TNOLPX"); got != want {
			return fmt.Sprintf("%s %s %s %s shows %s, known is %s", scheme, fault, wl, retries, got, want)
		}
		return ""
	}
}

// fires is the check that every placement made its difference.
func fires(scheme string, fault faults.Kind) check {
	return func(t *testing.T, m mutant) string {
		r, err := mutated(t, m, one(t, scheme, fault, "unit", "off"))
		if err != nil {
			return err.Error()
		}
		if r.PlacementsEnumerated != r.PlacementsFired {
			return fmt.Sprintf("%s %s: %d of %d placements fired", scheme, fault, r.PlacementsFired, r.PlacementsEnumerated)
		}
		return ""
	}
}

// symmetrical is the check that symmetry changes nothing.
func symmetrical(scheme string, fault faults.Kind, wl string) check {
	return func(t *testing.T, m mutant) string {
		cfg := one(t, scheme, fault, wl, "off")
		with, err := mutated(t, m, cfg)
		if err != nil {
			return err.Error()
		}
		cfg.NoSymmetry = true
		plain, err := mutated(t, m, cfg)
		if err != nil {
			return err.Error()
		}
		return agree(with, plain)
	}
}

// counts is the check of a number of executions worked out by hand.
func counts(scheme string, fault faults.Kind, wl string, want int64) check {
	return func(t *testing.T, m mutant) string {
		r, err := mutated(t, m, one(t, scheme, fault, wl, "off"))
		if err != nil {
			return err.Error()
		}
		if r.Executions == nil || r.Executions.Int64() != want {
			return fmt.Sprintf("%s %s %s: %v executions, by hand %d", scheme, fault, wl, r.Executions, want)
		}
		return ""
	}
}

// A search that leaves something out must be convicted. The sound search passes
// every check.
func TestASearchBrokenOnPurposeIsConvicted(t *testing.T) {
	for _, c := range []struct {
		mutant mutant
		what   string
		check  check
	}{
		{pauseForgotten, "pause", shows("lock", faults.ClientPause, "unit", "off", "OTNX")},
		{pauseForgotten, "pause fires", fires("lock", faults.ClientPause)},
		{delayForgotten, "delay", shows("lock", faults.RequestDelayed, "unit", "off", "TNLX")},
		{delayForgotten, "delay fires", fires("hincrby", faults.RequestDelayed)},
		{tokensKept, "names", symmetrical("lock", faults.ClientPause, "unit")},
		{budgetForgotten, "budget", symmetrical("hincrby", faults.ReplyLost, "mixed")},
		{jumpTooEarly, "time", shows("lock", faults.None, "unit", "off", "")},
		{messagesLost, "messages", unsoldOnlyAfterFaults},
		{crashBefore, "crash", shows("lua-hash", faults.ClientCrash, "unit", "off", "L")},
		{orderForgotten, "order", shows("hincrby", faults.None, "restock", "off", "TX")},
		{lossKept, "loss", shows("lua-hash", faults.StoreLoses, "unit", "off", "OPX")},
		{touchForgotten, "watched keys", shows("watch-multi", faults.None, "unit", "off", "")},
		{sessionLeft, "connections", shows("watch-multi", faults.ReplyLost, "unit", "off", "L")},
		{firstOnly, "executions", symmetrical("hincrby", faults.None, "unit")},
		// 3 choices of who sells, then 6 interleavings of two steps each.
		{firstOnly, "executions by hand", counts("hincrby", faults.None, "unit", 18)},
	} {
		t.Run(c.what, func(t *testing.T) {
			require.Empty(t, c.check(t, sound), "the sound search")
			verdict := c.check(t, c.mutant)
			require.NotEmpty(t, verdict, "the broken search was not convicted")
			t.Log(verdict)
		})
	}
}

// unsoldOnlyAfterFaults: with unlock messages a waiter gets the lock as soon as
// it is free, so without a fault nobody is answered busy while units are left.
func unsoldOnlyAfterFaults(t *testing.T, m mutant) string {
	cfg := one(t, "lock", faults.None, "unit", "off")
	cfg.Stock = 3
	r, err := mutated(t, m, cfg)
	if err != nil {
		return err.Error()
	}
	if letters(r) != "" {
		return "lock without a fault shows " + letters(r)
	}
	return ""
}
