// Package sqlsubset is PostgreSQL for the explore world: a documented SQL
// subset (see docs/sql-subset.md), an engine that behaves as PostgreSQL does at
// READ COMMITTED, and a database/sql driver whose every statement is one step.
//
// The engine is a state machine, not a server: it has no clock, no goroutines
// and no randomness. Where a real server has a choice — which waiter goes
// first, which member of a deadlock is cancelled — the choice is offered to the
// caller. DB.Clone and DB.Key make it fit for state search.
//
// What the engine promises is checked against a real server, schedule by
// schedule, in fidelity_test.go.
//
// # Why a parser of our own
//
// The real grammar is to be had in Go: pg_query_go wraps libpg_query but needs
// cgo, go-pgquery runs the same library in a WebAssembly runtime (several
// megabytes, milliseconds to start), and the pure-Go ports of gram.y are young
// and large. All of them accept everything PostgreSQL accepts, so an engine for
// a subset must then walk hundreds of node types and refuse every field that it
// does not honour; one field overlooked is a clause silently ignored, the worst
// defect a verifier can have. A recursive-descent parser of the subset refuses
// by construction whatever it was not written for, and says what it met.
package sqlsubset
