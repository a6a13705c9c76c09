package live

import (
	"context"
	"fmt"
	"time"

	"stockproof/live/subject"
)

// OpenSubject starts a program of others as a scheme; its stores are this world's.
// The caller closes it before the world.
func (w *World) OpenSubject(ctx context.Context, o subject.Options) (*subject.Scheme, error) {
	return subject.Open(ctx, w.Servers.Reaper, w.stores(o))
}

// CheckSubject tries every rule of the protocol on a program; see subject.Check.
func (w *World) CheckSubject(ctx context.Context, o subject.Options, timeout time.Duration, told func(subject.Result)) ([]subject.Result, error) {
	return subject.Check(ctx, w.Servers.Reaper, subject.CheckOptions{
		Options: w.stores(o), Env: w.direct, Timeout: timeout, SKU: fmt.Sprintf("%s-check%d", w.prefix, w.runs.Add(1)),
		DBAddr: w.Servers.PostgresAddr, DSNAt: w.Servers.PostgresDSNAt,
	}, told)
}

func (w *World) stores(o subject.Options) subject.Options {
	o.RedisAddr, o.DatabaseURL = w.Servers.RedisAddr, w.Servers.PostgresDSN("")
	return o
}
