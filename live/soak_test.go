package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

func soakConfig(t *testing.T) SoakConfig {
	e, err := schemes.ByName("lock")
	require.NoError(t, err)
	return SoakConfig{Entry: e, Retries: "off", Clients: 8, PerSale: 50, Duration: time.Second, Rate: 100,
		Kinds: SoakKinds(), FaultRate: 0.2, RestockRate: 0.1, Stock: 10, MaxQty: 3, Seed: 42}
}

// plans are all plans of two sales.
func plans(c SoakConfig) (all []Planned) {
	for sale := range 2 {
		for client := range c.Clients {
			all = append(all, c.Plan(sale, client, 4)...)
		}
	}
	return all
}

func TestTheSameSeedPlansTheSameAndAnotherDoesNot(t *testing.T) {
	c := soakConfig(t)
	require.Equal(t, plans(c), plans(c))
	other := c
	other.Seed++
	require.NotEqual(t, plans(c), plans(other))
	require.NotEqual(t, c.Plan(0, 0, 4), c.Plan(1, 0, 4), "sales differ")
	require.NotEqual(t, c.Plan(0, 0, 4), c.Plan(0, 1, 4), "clients differ")
}

// One setting does not change what another draws, or a soak could not be made
// smaller without becoming another one.
func TestMoreClientsOrFewerFaultsPlanTheSameOperations(t *testing.T) {
	c := soakConfig(t)
	more := c
	more.Clients, more.Rate = 16, 200 // each client as often as before
	require.Equal(t, c.Plan(1, 3, 4), more.Plan(1, 3, 4))
	calm := c
	calm.FaultRate = 0
	for i, p := range plans(calm) {
		require.Equal(t, plans(c)[i].Call, p.Call)
		require.Equal(t, faults.None, p.Fault)
	}
}

func TestAPlanHasEveryKindOfFaultAtEveryStepAsOftenAsAsked(t *testing.T) {
	c := soakConfig(t)
	kinds, at, hit, restocks := map[faults.Kind]int{}, map[int]int{}, 0, 0
	all := plans(c)
	for _, p := range all {
		if p.Call.Op == model.Restock {
			restocks++
		}
		require.Contains(t, []int64{1, 2, 3}, p.Call.Qty)
		require.GreaterOrEqual(t, p.At, time.Duration(0))
		if p.Fault == faults.None {
			require.Zero(t, p.Step)
			continue
		}
		hit++
		kinds[p.Fault]++
		at[p.Step]++
		switch p.Fault {
		case faults.ClientPause:
			require.Greater(t, p.Pause, shortLease)
		case faults.ClientPauseShort:
			require.Less(t, p.Pause, shortLease)
		default:
			require.Zero(t, p.Pause)
		}
	}
	require.Len(t, kinds, len(SoakKinds()), kinds)
	require.Len(t, at, 4, at)
	// The seed is fixed, so these are no chances: 800 operations, 0.2 and 0.1.
	require.InDelta(t, 160, hit, 40)
	require.InDelta(t, 80, restocks, 30)
	require.Empty(t, SoakConfig{}.Kinds)
}

func TestASoakThatMakesNoSenseIsRefused(t *testing.T) {
	for what, spoil := range map[string]func(*SoakConfig){
		"no clients":         func(c *SoakConfig) { c.Clients = 0 },
		"too many clients":   func(c *SoakConfig) { c.Clients = maxSoakClients + 1 },
		"no time":            func(c *SoakConfig) { c.Duration = 0 },
		"a rate above one":   func(c *SoakConfig) { c.FaultRate = 1.1 },
		"a fault not drawn":  func(c *SoakConfig) { c.Kinds = []faults.Kind{faults.StoreLoses} },
		"a negative restock": func(c *SoakConfig) { c.RestockRate = -1 },
	} {
		c := soakConfig(t)
		require.NoError(t, c.check())
		spoil(&c)
		require.Error(t, c.check(), what)
	}
}
