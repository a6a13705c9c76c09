package cost

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"stockproof/evidence"
	live "stockproof/live/servers"
	"stockproof/schemes"
)

// Options say what is measured.
type Options struct {
	Schemes     []string
	Experiments []string      // see Experiments; empty: all
	Connections []int         // of the closed loop
	Futile      []float64     // shares of requests that find nothing, of the closed loop
	Rates       []float64     // offered by the open loop, as a share of what the closed loop reached
	Duration    time.Duration // about, of one repetition of one line
	Repetitions int
	Backend     live.Backend
	Progress    func(done, of int, what string) // may be nil
}

// Experiments lists what can be varied.
func Experiments() []string {
	return []string{"closed-loop", "open-loop", "skus", "script-length", "aof", "settings", "driver"}
}

// DefaultSchemes are one of each idea.
func DefaultSchemes() []string {
	return []string{"hincrby", "lua-hash", "lua-string", "lock", "lua-lock", "db-version", "sql-conditional", "journal-first", "sql-first"}
}

// Defaults measure every experiment, briefly.
func Defaults() Options {
	return Options{
		Schemes: DefaultSchemes(), Experiments: Experiments(), Connections: []int{1, 8, 32, 128}, Futile: []float64{0, 0.5, 0.99},
		Rates: []float64{0.3, 0.6, 0.9, 1.2}, Duration: 250 * time.Millisecond, Repetitions: 5,
	}
}

// line is one line of the cost table before it is measured.
type line struct {
	cost  evidence.Cost
	entry schemes.Entry
	times schemes.Config
	aof   live.Persistence // empty: the set's own Redis
	share float64          // of the rate that the closed loop reached; 0: closed loop
	raw   bool             // redis-benchmark measures it
	// bystander: somebody else uses the same Redis meanwhile.
	bystander bool
}

// pilot says which lines share a first estimate of their rate.
func (l line) pilot() string {
	settings := maps.Clone(l.cost.Settings)
	delete(settings, "by") // who sends is no other load
	return fmt.Sprint(l.cost.Scheme, settings, l.cost.SKUs, l.cost.Connections)
}

// hot is where an open loop, the articles, and the disk are compared: enough
// connections that the server is busy.
const hot = 32

// plan lists what the options ask for.
func (o Options) plan() (lines []line, err error) {
	wants := func(experiment string) bool { return slices.Contains(o.Experiments, experiment) }
	var entries []schemes.Entry
	for _, name := range o.Schemes {
		e, err := schemes.ByName(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	add := func(e schemes.Entry, c evidence.Cost, also func(*line)) {
		if c.SKUs == 0 {
			c.SKUs = 1
		}
		c.Scheme = e.Scheme.Name()
		l := line{cost: c, entry: e}
		if also != nil {
			also(&l)
		}
		lines = append(lines, l)
	}
	for _, e := range entries {
		if wants("closed-loop") {
			for _, n := range o.Connections {
				for _, futile := range o.Futile {
					add(e, evidence.Cost{Experiment: "closed-loop", Connections: n, Futile: futile}, nil)
				}
			}
		}
		if wants("open-loop") {
			for _, share := range o.Rates {
				add(e, evidence.Cost{Experiment: "open-loop", Connections: hot}, func(l *line) { l.share = share })
			}
		}
		if wants("skus") {
			add(e, evidence.Cost{Experiment: "skus", Connections: hot, SKUs: 1000}, nil)
		}
		if _, leases := e.Scheme.(schemes.Leaser); leases && wants("settings") {
			for _, n := range []int{hot, 4 * hot} {
				add(e, evidence.Cost{Experiment: "settings", Connections: n, Settings: map[string]string{"wait_ms": "500", "lease_ms": "10000", "retry_ms": "100"}},
					func(l *line) {
						l.times = schemes.Config{Wait: 500 * time.Millisecond, Lease: 10 * time.Second, Retry: 100 * time.Millisecond}
					})
			}
		}
		if e.Stores.Redis && wants("aof") {
			for _, p := range []live.Persistence{live.AOFEverySec, live.AOFAlways} {
				add(e, evidence.Cost{Experiment: "aof", Connections: hot, Settings: map[string]string{"aof": string(p)}}, func(l *line) { l.aof = p })
			}
		}
	}
	if wants("script-length") {
		for _, ms := range []string{"0", "1", "5"} {
			add(slow(ms), evidence.Cost{Experiment: "script-length", Connections: 8, Settings: map[string]string{"script_ms": ms}}, func(l *line) { l.bystander = true })
		}
	}
	if wants("driver") {
		for _, n := range o.Connections {
			add(slow("0"), evidence.Cost{Experiment: "driver", Connections: n, Settings: map[string]string{"by": "go-redis"}}, nil)
			add(newRaw(), evidence.Cost{Experiment: "driver", Connections: n, Settings: map[string]string{"by": "no library"}}, nil)
			add(slow("0"), evidence.Cost{Experiment: "driver", Connections: n, Settings: map[string]string{"by": "redis-benchmark"}}, func(l *line) { l.raw = true })
		}
	}
	return lines, nil
}
