//go:build nolive

package sqlsubset

import "errors"

// A build without the live world leaves pgx out, a quarter of a minute of
// compiling on two cores; none of the schemes in it compares with these errors.
var (
	errTxCommitRollback = errors.New("commit unexpectedly resulted in rollback")
	errTxClosed         = errors.New("tx is closed")
)
