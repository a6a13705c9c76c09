package stockproof_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/live"
	"stockproof/model"
	"stockproof/schemes"
)

// probeless sells, but never answers the probe.
var probeless = mutant{"never answers a probe", "lua-string",
	func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
		if req.Buyer == "probe" {
			<-ctx.Done()
			return model.Unknown, ctx.Err()
		}
		return base.Deduct(ctx, env, req)
	}}

func init() {
	schemes.Register(schemes.Entry{Scheme: probeless, Stores: schemes.Stores{Redis: true}, Hidden: true})
}

func TestAProbeThatIsCutOffIsAnErrorAndNoVerdict(t *testing.T) {
	world := liveWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := world.Run(ctx, live.Case{Entry: entry(t, probeless.Name()), Workload: workload(t, "unit"), Retries: "off", Placement: inTurn})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
