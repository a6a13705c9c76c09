package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     dbVersionRetry{},
		Summary:    "db-version, begun again from the read when somebody else was first, three attempts in all",
		Stores:     Stores{SQL: true},
		Guarantees: dbVersionRetryGuarantees,
		Wider:      true,
	})
}

// versionAttempts is how often db-version-retry tries.
const versionAttempts = 3

// dbVersionRetry is the optimistic lock with bounded retry. Every attempt reads
// anew, outside of the transaction that it then begins: in one snapshot a retry
// would find the old version for ever.
type dbVersionRetry struct{ dbVersion }

func (dbVersionRetry) Name() string { return "db-version-retry" }

// Deduct is Busy only when each attempt met somebody who was faster.
func (s dbVersionRetry) Deduct(ctx context.Context, env Env, req Request) (outcome model.Outcome, err error) {
	for range versionAttempts {
		if outcome, err = s.dbVersion.Deduct(ctx, env, req); outcome != model.Busy {
			break
		}
	}
	return outcome, err
}
