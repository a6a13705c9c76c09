// Package faults names what can go wrong, where it can be placed, and which
// sales it is placed in.
package faults

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is the stable identifier of a fault.
type Kind string

// Client and wire faults. A placement says at which step of which client.
const (
	None             Kind = "none"
	ClientCrash      Kind = "client-crash"
	ClientPause      Kind = "client-pause"
	ClientPauseShort Kind = "client-pause-short"
	RequestLost      Kind = "request-lost"
	ReplyLost        Kind = "reply-lost"
	RequestDelayed   Kind = "request-delayed"
	DuplicateRequest Kind = "duplicate-request"
	CommitReplyLost  Kind = "commit-reply-lost"
	// Server faults.
	StoreLoses      Kind = "store-loses"
	ScriptFlush     Kind = "script-flush"
	RedisRestart    Kind = "redis-restart"
	RedisFailover   Kind = "redis-failover"
	RedisFreeze     Kind = "redis-freeze"
	KeyEvicted      Kind = "key-evicted"
	KeyExpired      Kind = "key-expired"
	PostgresRestart Kind = "postgres-restart"
	// Faults of those who run the sale.
	StockReloaded    Kind = "stock-reloaded"
	ReconcileOverlap Kind = "reconcile-overlap"
)

// Info describes a kind.
type Info struct {
	ID      Kind
	Summary string
	Explore bool // explore places it
	Live    bool // live places it
}

var kinds = []Info{
	{None, "nothing goes wrong; only the order of steps varies", true, true},
	{ClientCrash, "the client process is killed after a step", true, true},
	{ClientPause, "all goroutines of the client stop after a step, for longer than any lease", true, true},
	{ClientPauseShort, "all goroutines of the client stop after a step, for less than its lease (schemes that have one)", false, true},
	{RequestLost, "the connection breaks before the server sees the step", true, true},
	{ReplyLost, "the server executes the step, the connection breaks before the client sees the reply", true, true},
	{RequestDelayed, "the client sees an error, the server executes the step at any later moment", true, false},
	{DuplicateRequest, "the same request id is submitted a second time", true, false},
	{CommitReplyLost, "reply-lost on a COMMIT", true, true},
	{StoreLoses, "Redis comes back without its last acknowledged writes (failover, restart)", true, false},
	{ScriptFlush, "Redis forgets its loaded scripts", true, true},
	{RedisRestart, "Redis dies and comes back with what its persistence kept: nothing, a snapshot, the append-only file with or without its tail", true, true},
	{RedisFailover, "a replica that lacks the last writes becomes the primary, with and without WAIT", true, true},
	{RedisFreeze, "Redis stands still: clients give up, and the commands it has buffered run later", true, true},
	{KeyEvicted, "Redis drops a key to free memory", true, true},
	{KeyExpired, "the key of the stock reaches the end of a time to live", true, true},
	{PostgresRestart, "PostgreSQL dies and comes back, with or without its last commits (synchronous_commit)", true, true},
	{StockReloaded, "the preload runs again during the sale", true, true},
	{ReconcileOverlap, "a reconciliation job reads and then writes while the sale goes on", true, true},
}

// Kinds lists every kind.
func Kinds() []Info { return append([]Info(nil), kinds...) }

// PlacedLive says whether the live world places a kind.
func PlacedLive(kind Kind) bool {
	return slices.ContainsFunc(kinds, func(k Info) bool { return k.ID == kind && k.Live })
}

// Within keeps of some kinds those that others have too, in their order.
func Within(some, others []Kind) (both []Kind) {
	for _, k := range some {
		if slices.Contains(others, k) {
			both = append(both, k)
		}
	}
	return both
}

// HitsServer says whether a fault is one of a server, or of those who run it.
func HitsServer(kind Kind) bool {
	switch kind {
	case StoreLoses, ScriptFlush, RedisRestart, RedisFailover, RedisFreeze, KeyEvicted, KeyExpired, PostgresRestart, StockReloaded, ReconcileOverlap:
		return true
	}
	return false
}

// UnknownKindError names a fault that does not exist and those that do.
type UnknownKindError struct{ Name string }

func (e *UnknownKindError) Error() string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k.ID))
	}
	return fmt.Sprintf("unknown fault %q; there are %s", e.Name, strings.Join(names, ", "))
}

// ParseKind finds a kind by its identifier; the error is an *UnknownKindError.
func ParseKind(name string) (Kind, error) {
	for _, k := range kinds {
		if string(k.ID) == name {
			return k.ID, nil
		}
	}
	return "", &UnknownKindError{Name: name}
}
