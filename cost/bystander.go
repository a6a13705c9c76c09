package cost

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/redis/go-redis/v9"
)

// bystander is a client that has nothing to do with a sale on the same Redis: it
// reads a key of its own every millisecond while a load lasts. While it waits for an
// answer it cannot ask again; what it would then have waited is counted too (the
// correction of HdrHistogram for coordinated omission).
type bystander struct {
	client  *redis.Client
	latency *hdrhistogram.Histogram // nanoseconds
	cancel  context.CancelFunc
	running sync.WaitGroup
	err     error
}

const (
	bystanderKey = "stockproof:bystander"
	bystanderGap = time.Millisecond // from request to request
)

// standBy starts one, which has its connection when this returns.
func standBy(ctx context.Context, addr string) (*bystander, error) {
	b := &bystander{client: redisAt(addr), latency: newHistogram()}
	if err := b.client.Set(ctx, bystanderKey, 1, 0).Err(); err != nil {
		return nil, errors.Join(err, b.client.Close())
	}
	ctx, b.cancel = context.WithCancel(ctx)
	b.running.Go(func() {
		tick := time.NewTicker(bystanderGap)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			began := time.Now()
			err := b.client.Get(ctx, bystanderKey).Err()
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				b.err = err
				return
			}
			took := min(max(int64(time.Since(began)), shortest), longest)
			if b.err = b.latency.RecordCorrectedValue(took, int64(bystanderGap)); b.err != nil {
				return
			}
		}
	})
	return b, nil
}

// stop ends it, and says what kept it from reading, if anything did.
func (b *bystander) stop() error {
	b.cancel()
	b.running.Wait()
	err := errors.Join(b.err, b.client.Close())
	if err == nil && b.latency.TotalCount() == 0 {
		err = errors.New("the client that stands by had no answer while the load lasted")
	}
	return err
}
