package schemes

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

// maxQuantity is the largest quantity a request may have. Lua counts in doubles,
// which hold every integer up to 2^53: a script would compare and deduct another
// number than the one asked for. A larger stock is no problem: it only rounds to
// something that is also at least 2^53.
const maxQuantity = 1 << 53

// ErrQuantity refuses a request before anything is sent. A negative quantity
// would pass every "enough left?" check and add stock.
var ErrQuantity = errors.New("quantity must be from 1 to 2^53")

// ErrNoStock: the SKU has no usable counter (never loaded, evicted, expired).
// It is not the same as sold out.
var ErrNoStock = errors.New("no stock counter for this sku")

// CheckQuantity is nil for a quantity that a request may have.
func CheckQuantity(req Request) error {
	if req.Qty < 1 || req.Qty > maxQuantity {
		return fmt.Errorf("%w, got %d", ErrQuantity, req.Qty)
	}
	return nil
}

// afterRedis classifies the error of a command that writes.
//
//   - An error reply means the server refused the command as a whole (our
//     scripts do every check that can fail before their first write): Failed.
//   - A dial error means that nothing was sent: Failed.
//   - A pool that had no connection to give has sent nothing either: Failed.
//   - All three only without the client library's own retries: with them the error
//     is that of the last attempt, and an earlier one, whose reply was lost, may
//     have been executed (a server that comes back says LOADING or READONLY).
//   - Anything else (EOF, reset, timeout, cancelled context) leaves open
//     whether the server executed, or will still execute, the command.
func afterRedis(env Env, err error) model.Outcome {
	if env.Redis.Options().MaxRetries != 0 {
		return model.Unknown
	}
	var reply redis.Error
	if errors.As(err, &reply) && !errors.Is(err, redis.Nil) {
		return model.Failed
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return model.Failed
	}
	return model.Unknown
}

// afterCommit classifies the error of a COMMIT, or of a statement that
// commits by itself.
//
//   - A SQLSTATE is the server's word that the transaction was rolled back,
//     except the classes that a dying server sends (08, 57, 58, XX), which do
//     not say on which side of the commit record it died.
//   - SafeToRetry is pgx's word that no byte was sent.
//   - Anything else leaves it open.
func afterCommit(err error) model.Outcome {
	var state *pgconn.PgError
	if errors.As(err, &state) {
		switch {
		case len(state.Code) != 5:
			return model.Unknown
		case strings.Contains("08 57 58 XX", state.Code[:2]):
			return model.Unknown
		}
		return model.Failed
	}
	if pgconn.SafeToRetry(err) {
		return model.Failed
	}
	return model.Unknown
}
