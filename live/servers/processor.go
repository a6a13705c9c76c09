package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	tcexec "github.com/testcontainers/testcontainers-go/exec"
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

// usage prints what a container's control group has used: usage_usec of version 2,
// nanoseconds of version 1. The daemon would tell as well, after a second each time.
const usage = `cat /sys/fs/cgroup/cpu.stat 2>/dev/null || cat /sys/fs/cgroup/cpuacct/cpuacct.usage`

func (c *containers) processorTime(ctx context.Context, srv *server) (time.Duration, error) {
	c.mu.Lock()
	ctr := c.made[srv]
	c.mu.Unlock()
	code, out, err := ctr.Exec(ctx, []string{"sh", "-c", usage}, tcexec.Multiplexed())
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(out)
	if err != nil || code != 0 {
		return 0, errors.Join(err, fmt.Errorf("exit status %d: %q", code, text))
	}
	return usedOf(string(text))
}

// usedOf reads what usage prints.
func usedOf(text string) (time.Duration, error) {
	unit, number := time.Nanosecond, strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "usage_usec "); ok {
		unit = time.Microsecond
		number, _, _ = strings.Cut(rest, "\n")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no processor time", text)
	}
	return time.Duration(n) * unit, nil
}
