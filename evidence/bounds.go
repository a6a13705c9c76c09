package evidence

// Bounds says what the verdicts rest on.
type Bounds struct {
	Worlds  []string     `json:"worlds"`
	Explore *worldBounds `json:"explore,omitempty"`
	Live    *worldBounds `json:"live,omitempty"`
	// Confirmed is what became of explore's witnesses on real servers.
	Confirmed *Confirmed `json:"confirmed,omitempty"`
	// Unconfirmed says why none was replayed there.
	Unconfirmed string   `json:"unconfirmed,omitempty"`
	Assumptions []string `json:"assumptions"`
	// Differences tells of subjects that did not make the same steps in all their
	// fault-free runs.
	Differences []string `json:"differences,omitempty"`
	// Incomplete says why the cells are not all that was asked for.
	Incomplete string `json:"incomplete,omitempty"`
	// Shard says which part of what was asked this is; nil for all of it.
	Shard *Shard `json:"shard,omitempty"`
}

type worldBounds struct {
	Clients   Clients `json:"clients"`
	MaxFaults int     `json:"max_faults"` // in one execution or run
	Stock     []int64 `json:"stock"`      // units
	// Engine of explore, or backend and versions of live.
	Engine   string   `json:"engine,omitempty"`
	Backend  string   `json:"backend,omitempty"`
	Versions []string `json:"versions,omitempty"`
}

// AddExplore says what verdicts of the explore world rest on.
func (b *Bounds) AddExplore(e ExploreBounds) {
	b.Worlds = append(b.Worlds, "explore")
	b.Explore = &worldBounds{Clients: Clients(e.Clients), MaxFaults: e.MaxFaults, Stock: e.Stock, Engine: e.Engine}
	b.Assumptions = append(b.Assumptions,
		"explore: every interleaving of steps and every placement of the fault within the bounds, one SKU, no more",
		"explore: a command takes no time; time passes only when no live client can run, so without a pause a command is much faster than any lease",
		"explore: redis-failover, redis-freeze and redis-restart(aof-everysec) with two of the clients, unless their number was asked for",
		"explore: lease 300 ms, patience 100 ms, retry 100 ms; go-redis retries without its random backoff",
		"explore: Redis executes commands one at a time; PostgreSQL is the documented SQL subset at READ COMMITTED",
	)
}

// AddSubjects says what verdicts about programs of others rest on.
func (b *Bounds) AddSubjects() {
	b.Assumptions = append(b.Assumptions,
		"subjects: steps are those of three fault-free runs after one that is not looked at; a place that a later run does not come to is inconclusive",
		"subjects: client library retries are the subject's own and stand under default",
		"subjects: a process that was not hit by a fault serves the next run too",
	)
}

// AddAny says what verdicts for any number of clients rest on.
func (b *Bounds) AddAny(e ExploreBounds) {
	e.Clients = int(AnyNumber)
	b.AddExplore(e)
	b.Assumptions = append(b.Assumptions,
		"any number of clients: buyers come in any number, clients that restock as often as the workload has them",
		"any number of clients: two histories of a client's code that no test of two events tells apart are one state of it",
	)
}
