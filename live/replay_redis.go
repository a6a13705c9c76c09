package live

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"stockproof/faults/schedule"
)

// Loss is a way for Redis to lose writes that it had acknowledged.
type Loss string

// needsOwnRedis says whether a schedule does something to Redis that no other
// run may see.
func needsOwnRedis(s *schedule.Schedule) bool {
	for i := range s.Steps {
		if s.Steps[i].Kind == schedule.Loses || s.Steps[i].Kind == schedule.Flush {
			return true
		}
	}
	return false
}

type ownRedis struct{ client *redis.Client }

func (o *ownRedis) addr() string                           { return "" }
func (o *ownRedis) loaded(context.Context, []string) error { return nil }
func (o *ownRedis) before(context.Context) error           { return nil }
func (o *ownRedis) after(context.Context) error            { return nil }
func (o *ownRedis) close()                                 {}
func (w *World) startOwnRedis(context.Context, Loss) (*ownRedis, error) {
	return nil, errors.New("not yet")
}
func (r *replay) lose(context.Context, int) error { return errors.New("not yet") }
