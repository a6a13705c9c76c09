package live

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"

	"stockproof/schemes"
)

// overlap runs the job that brings the counter in line with the orders. It reads at
// the placement, and its first command to Redis, which writes, waits until the
// placement's client is done.
func (f *serverFault) overlap(ctx context.Context) error {
	env := f.now()
	if f.sham {
		f.doubt("the job was over before the client went on")
		return f.reconcile(ctx, env)
	}
	own := redis.NewClient(env.Redis.Options())
	h := &held{has: make(chan struct{}), write: make(chan struct{})}
	own.AddHook(h)
	env.Redis = own
	f.held, f.reload = h, make(chan error, 1)
	go func() {
		defer own.Close()
		f.reload <- f.reconcile(ctx, env)
	}()
	select {
	case <-h.has:
	case err := <-f.reload: // it ended without writing
		f.reload <- err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// awaitOverlap lets the job write, what it had read before.
func (f *serverFault) awaitOverlap(ctx context.Context) error {
	select {
	case <-f.held.has:
	default:
		f.doubt("the job wrote nothing")
		f.held = nil
		return <-f.reload
	}
	close(f.held.write)
	f.held = nil
	select {
	case err := <-f.reload:
		if err == nil {
			f.prove("the job read before the client went on, and wrote after it")
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// held stops a client before its first command.
type held struct {
	has   chan struct{} // closed: it has come to it
	write chan struct{} // closed: it may go on
}

func (h *held) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *held) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h.pass(ctx); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (h *held) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return next(ctx, cmds) }
}

func (h *held) pass(ctx context.Context) error {
	select {
	case <-h.has:
	default:
		close(h.has)
	}
	select {
	case <-h.write:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reconciles says whether a scheme has such a job.
func reconciles(e schemes.Entry) bool {
	_, ok := e.Scheme.(schemes.Reconciler)
	return ok
}
