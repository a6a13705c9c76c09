package sqlsubset

// Mutants are the ways to break the engine on purpose, by what they break.
var Mutants = map[string]mutant{
	"a failed re-check gives the row lock back":         mutDropLock,
	"WHERE is not evaluated again after a wait":         mutNoRecheck,
	"rows are chosen again after a wait":                mutReselect,
	"waiters go on in the order of their numbers":       mutOneWaiter,
	"a failed statement keeps its locks until ROLLBACK": mutKeepLocks,
	"INSERT does not wait for an uncommitted key":       mutInsertNoWait,
	"only a circle's members are cancelled":             mutNoQueue,
	"a snapshot shows uncommitted rows":                 mutDirtyRead,
}

// Break makes a DB behave as a mutant; its clones inherit it.
func (db *DB) Break(m mutant) { db.mut = m }

// BlindKey is a mutant that only a comparison of keys can convict.
const BlindKey = mutBlindKey
