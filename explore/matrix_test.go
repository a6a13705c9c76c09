package explore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
)

// known is the matrix that was known before this suite existed: 3 clients, at
// most one fault. T transient negative, N permanent negative, O oversold, L
// units lost, P phantom units, X not linearizable. A counter below zero at rest
// is X as well since every history ends with a read of it.
var known = []struct {
	schemes string
	retries string
	fault   faults.Kind
	want    string
	mixed   string // what only the workload with quantities above one adds
}{
	{"hincrby", "off", faults.None, "T", "X"},
	{"hincrby", "off", faults.ClientCrash, "TNLX", ""},
	{"hincrby", "off", faults.RequestLost, "TNLX", ""},
	{"hincrby", "off", faults.ReplyLost, "TNLX", ""},
	{"hincrby", "default", faults.ReplyLost, "OTNLPX", ""},
	{"lua-hash lua-string", "off", faults.None, "", ""},
	{"lua-hash lua-string", "off", faults.ClientCrash, "L", ""},
	{"lua-hash lua-string", "off", faults.RequestLost, "", ""},
	{"lua-hash lua-string", "off", faults.ReplyLost, "L", ""},
	{"lua-hash lua-string", "off", faults.StoreLoses, "OPX", ""},
	{"lua-hash lua-string", "default", faults.ReplyLost, "LX", ""},
	{"lock lock-watchdog", "off", faults.None, "", ""},
	{"lock lock-watchdog", "off", faults.ClientCrash, "L", ""},
	{"lock lock-watchdog", "off", faults.ClientPause, "OTNX", ""},
	{"lock lock-watchdog", "off", faults.RequestDelayed, "TNLX", ""},
	{"lock-set", "off", faults.None, "", ""},
	{"lock-set", "off", faults.ClientPause, "OPX", ""},
	{"naive", "off", faults.None, "OTNX", ""},
	{"naive-set", "off", faults.None, "OPX", ""},
}

// only keeps the letters the known matrix speaks of.
func only(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(keep, r) {
			return r
		}
		return -1
	}, s)
}

func TestTheKnownMatrixComesOut(t *testing.T) {
	lab := newLab(t)
	for _, k := range known {
		for _, scheme := range strings.Fields(k.schemes) {
			t.Run(strings.Join([]string{scheme, k.retries, string(k.fault)}, "/"), func(t *testing.T) {
				unit := search(t, lab, one(t, scheme, k.fault, "unit", k.retries))
				require.True(t, unit.Exhaustive, unit.Why)
				require.Equal(t, k.want, only(letters(unit), "TNOLPX"), "unit")
				require.Equal(t, unit.PlacementsEnumerated, unit.PlacementsFired)
				if k.fault != faults.None && !(strings.HasPrefix(scheme, "lua") && k.fault == faults.ClientPause) {
					require.NotZero(t, unit.PlacementsFired)
				}
				mixed := search(t, lab, one(t, scheme, k.fault, "mixed", k.retries))
				require.True(t, mixed.Exhaustive, mixed.Why)
				for _, l := range k.want + k.mixed {
					require.Contains(t, letters(mixed), string(l), "mixed")
				}
				require.Empty(t, strings.Trim(only(letters(mixed), "TNOLPX"), k.want+k.mixed), "mixed shows no more")
			})
		}
	}
}

// A lock that writes a computed value oversells and nobody who watches for
// negative stock can see it.
func TestALockThatWritesAComputedValueIsNeverNegative(t *testing.T) {
	lab := newLab(t)
	for _, wl := range []string{"unit", "mixed", "restock"} {
		r := search(t, lab, one(t, "lock-set", faults.ClientPause, wl, "off"))
		require.Contains(t, letters(r), "O", wl)
		require.NotContains(t, letters(r), "T", wl)
		require.NotContains(t, letters(r), "N", wl)
	}
}

// The one line on the lock: without a pause, a delay or a loss of data it does
// not oversell, whatever two other faults hit four clients.
func TestTheLockDoesNotOversellWithoutPauseDelayOrLoss(t *testing.T) {
	lab := newLab(t)
	cfg := Config{Entry: entry(t, "lock"), Workload: workload(t, "unit"), Clients: 4, MaxFaults: 2,
		Faults: []faults.Kind{faults.ClientCrash, faults.RequestLost, faults.ReplyLost, faults.ScriptFlush}}
	r := search(t, lab, cfg)
	require.True(t, r.Exhaustive, r.Why)
	require.Equal(t, "L", only(letters(r), "TNOLPX"))
	t.Logf("lock, 4 clients, 2 faults: no oversell in %v executions (%d states, %d transitions, %d placements)",
		r.Executions, r.States, r.Transitions, r.PlacementsFired)
}
