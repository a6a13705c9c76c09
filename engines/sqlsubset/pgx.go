//go:build !nolive

package sqlsubset

import "github.com/jackc/pgx/v5"

// What pgx answers when a transaction does not end as asked, so that schemes may
// compare with its errors.
var (
	errTxCommitRollback = pgx.ErrTxCommitRollback
	errTxClosed         = pgx.ErrTxClosed
)
