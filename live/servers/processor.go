package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/shirou/gopsutil/v4/process"
)

// PostgresTime is the processor time that the set's PostgreSQL has used, all of its
// processes together; it never goes back. On the process backend, what a server
// process used after the call before the one in which it had ended is not in it. It
// counts in steps of the kernel's clock tick, 10 ms as a rule, per process.
func (s *Set) PostgresTime(ctx context.Context) (time.Duration, error) {
	t, err := s.host.processorTime(ctx, s.pg)
	if err != nil {
		return 0, fmt.Errorf("processor time of postgres: %w", err)
	}
	return t, nil
}

// ran is one process that was looked at; a number alone may be another's by now.
type ran struct {
	pid   int32
	since int64
}

func (p *processes) processorTime(ctx context.Context, srv *server) (total time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.children {
		if c.server != srv {
			continue
		}
		parent, err := process.NewProcessWithContext(ctx, int32(c.pid))
		if err != nil {
			return 0, errors.Join(err, srv.died())
		}
		all, err := parent.ChildrenWithContext(ctx)
		if err != nil {
			return 0, err
		}
		for _, one := range append(all, parent) {
			since, err := one.CreateTimeWithContext(ctx)
			if err != nil {
				continue // it has ended, and counts with what it had when last seen
			}
			if used, err := one.TimesWithContext(ctx); err == nil {
				c.used[ran{one.Pid, since}] = time.Duration((used.User + used.System) * float64(time.Second))
			}
		}
		for _, used := range c.used {
			total += used
		}
	}
	return total, nil
}

// The daemon reads it from the container's control group.
func (c *containers) processorTime(ctx context.Context, srv *server) (time.Duration, error) {
	c.mu.Lock()
	id := c.ids[srv]
	c.mu.Unlock()
	got, err := c.docker.ContainerStats(ctx, id, client.ContainerStatsOptions{})
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()
	var stats container.StatsResponse
	if err := json.NewDecoder(got.Body).Decode(&stats); err != nil {
		return 0, err
	}
	used := time.Duration(stats.CPUStats.CPUUsage.TotalUsage)
	if used == 0 {
		return 0, errors.New("the daemon does not tell")
	}
	return used, nil
}
