package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// Redis is one more Redis server beside that of a set, for who wants to kill it
// and have it come back with less than it had. It is not watched: Set.Alive and
// Set.Died say nothing of it. Set.Close ends it like everything else.
type Redis struct {
	// Addr is 127.0.0.1:port, also after Start.
	Addr string
	// Replica is the address of its replica, empty when it has none.
	Replica string

	host redisHost
}

// RedisOptions adapts a Redis.
type RedisOptions struct {
	// Persistence as in Options.
	Persistence Persistence
	// Replica: a second server follows it.
	Replica bool
}

// redisArgs lets a replica follow at once: by default a server waits for more of
// them first.
func (o RedisOptions) redisArgs() []string {
	return append(Options{Persistence: o.Persistence}.redisArgs(), "--repl-diskless-sync-delay", "0")
}

// redisHost is what a backend does for a Redis.
type redisHost interface {
	restart(ctx context.Context, script string) error
	stop(ctx context.Context) error
}

// StartRedis starts another Redis on the set's backend and waits until it answers.
func (s *Set) StartRedis(ctx context.Context, opt RedisOptions) (*Redis, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("another redis did not start within %v", startLimit))
	defer cancel()
	r := &Redis{}
	var err error
	switch host := s.host.(type) {
	case *processes:
		r.host, err = host.anotherRedis(ctx, r, opt)
	case *containers:
		r.host, err = host.anotherRedis(ctx, r, opt)
	}
	if err == nil {
		err = r.answers(ctx)
	}
	if err != nil && r.host != nil {
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("another redis: %w", err)
	}
	return r, nil
}

// Restart kills the server with SIGKILL, runs a script of the POSIX shell in its
// data folder, starts it again on the same address with what the folder then
// holds, and waits until it answers. Its replica lives on.
func (r *Redis) Restart(ctx context.Context, script string) error {
	if err := r.host.restart(ctx, script); err != nil {
		return fmt.Errorf("restart redis: %w", err)
	}
	return ask(ctx, r.Addr, func(c *redis.Client) error { return c.Ping(ctx).Err() })
}

// Close ends the server and its replica.
func (r *Redis) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return r.host.stop(ctx)
}

// answers waits until the servers answer, the replica as one whose link is up.
func (r *Redis) answers(ctx context.Context) error {
	if err := ask(ctx, r.Addr, func(c *redis.Client) error { return c.Ping(ctx).Err() }); err != nil || r.Replica == "" {
		return err
	}
	return ask(ctx, r.Replica, func(c *redis.Client) error {
		info, err := c.InfoMap(ctx, "replication").Result()
		if err == nil && info["Replication"]["master_link_status"] != "up" {
			err = fmt.Errorf("its link is %s", info["Replication"]["master_link_status"])
		}
		return err
	})
}

// ask asks until there is no error.
func ask(ctx context.Context, addr string, question func(*redis.Client) error) error {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer c.Close()
	for {
		err := question(c)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// redisProcess is a Redis as a process of this machine.
type redisProcess struct {
	p       *processes
	who     *account
	dir     string
	args    []string
	port    int
	child   *child
	replica *child
}

func (p *processes) anotherRedis(ctx context.Context, r *Redis, opt RedisOptions) (redisHost, error) {
	who, err := unprivileged("redis")
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.more++
	name := fmt.Sprintf("redis-%d", p.more)
	p.mu.Unlock()
	dir, err := p.folder(name, who)
	if err != nil {
		return nil, err
	}
	h := &redisProcess{p: p, who: who, dir: dir, args: opt.redisArgs()}
	got, err := p.onFreePort(ctx, func(port int) (c *child, err error) {
		h.port = port
		c, err = h.launch(port, dir, h.args)
		h.child = c
		return c, err
	}, p.found.redisServer)
	if err != nil {
		return h, err
	}
	if r.Addr = got.addr; !opt.Replica {
		return h, nil
	}
	if dir, err = p.folder(name+"-replica", who); err != nil {
		return h, err
	}
	got, err = p.onFreePort(ctx, func(port int) (c *child, err error) {
		c, err = h.launch(port, dir, append(Options{}.redisArgs(), "--replicaof", "127.0.0.1", strconv.Itoa(h.port)))
		h.replica = c
		return c, err
	}, p.found.redisServer)
	r.Replica = got.addr
	return h, err
}

func (h *redisProcess) launch(port int, dir string, args []string) (*child, error) {
	args = append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir}, args...)
	return h.p.launch("redis", redisReady(), syscall.SIGKILL, h.who, dir, h.p.found.redisServer, args...)
}

func (h *redisProcess) restart(ctx context.Context, script string) error {
	if err := h.p.end(h.child); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir = h.dir
	if h.who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: h.who.uid, Gid: h.who.gid, Groups: []uint32{}}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, out)
	}
	for try := 1; ; try++ {
		c, err := h.launch(h.port, h.dir, h.args)
		if err != nil {
			return err
		}
		h.child = c
		if err = c.awaitReady(ctx); err == nil || try == portTries || ctx.Err() != nil || !c.foundTaken(h.port) {
			return err
		}
		if err := h.p.end(c); err != nil {
			return err
		}
	}
}

func (h *redisProcess) stop(context.Context) error {
	return errors.Join(h.p.end(h.child), h.p.end(h.replica))
}

// end ends one process, which may be nil or ended, and forgets it.
func (p *processes) end(c *child) error {
	if c == nil {
		return nil
	}
	p.mu.Lock()
	mine := false
	for i := range p.children {
		if p.children[i] == c {
			p.children, mine = append(p.children[:i:i], p.children[i+1:]...), true
			break
		}
	}
	p.mu.Unlock()
	if !mine {
		return nil
	}
	return c.finish()
}

// anotherScript runs redis-server again and again in one container, so that its
// address stays: the file go says when. The replica, if any, lives beside it.
const anotherScript = `cd /data
serve() {
if [ -x /usr/local/bin/docker-entrypoint.sh ]; then /usr/local/bin/docker-entrypoint.sh redis-server "$@"
else setpriv --reuid=redis --regid=redis --clear-groups redis-server "$@"; fi
}
mkdir -p replica; chown redis:redis /data /data/replica
if [ -n "$REPLICA" ]; then serve --bind 0.0.0.0 --protected-mode no --port 6380 --dir /data/replica --save '' --replicaof 127.0.0.1 6379 & fi
while :; do
serve "$@"
: > down
until [ -e go ]; do sleep 0.01; done
rm -f go down
done`

// redisContainer is a Redis in a container.
type redisContainer struct{ ctr testcontainers.Container }

func (c *containers) anotherRedis(ctx context.Context, r *Redis, opt RedisOptions) (redisHost, error) {
	labels := map[string]string{Label: c.opt.Session}
	ports := []string{"6379/tcp"}
	env := map[string]string{}
	if opt.Replica {
		ports, env["REPLICA"] = append(ports, "6380/tcp"), "yes"
	}
	req := testcontainers.ContainerRequest{
		Image: c.found.redis, Labels: labels, ExposedPorts: ports, Env: env,
		Entrypoint: []string{"sh", "-c", anotherScript, "redis-server"},
		Cmd: append([]string{"--bind", "0.0.0.0", "--protected-mode", "no", "--dir", "/data", "--pidfile", "/data/redis.pid"},
			opt.redisArgs()...),
		HostConfigModifier: func(h *container.HostConfig) {
			h.Mounts = []mount.Mount{{Type: mount.TypeVolume, Target: "/data", VolumeOptions: &mount.VolumeOptions{Labels: labels}}}
			h.PortBindings = network.PortMap{}
			for _, p := range ports {
				h.PortBindings[network.MustParsePort(p)] = []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1")}}
			}
			h.CapDrop = []string{"NET_RAW"}
		},
	}
	ctr, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Logger: tclog.NewNoopLogger()})
	if err != nil {
		c.mu.Lock()
		c.unsure = true // a half-made container has our label
		c.mu.Unlock()
		return nil, err
	}
	h := &redisContainer{ctr}
	if err := ctr.Start(ctx); err != nil {
		return h, err
	}
	for i, into := range []*string{&r.Addr, &r.Replica}[:len(ports)] {
		mapped, err := ctr.MappedPort(ctx, ports[i])
		if err != nil {
			return h, err
		}
		*into = net.JoinHostPort("127.0.0.1", strconv.Itoa(int(mapped.Num())))
	}
	return h, nil
}

// restart does everything in one visit: each takes the daemon a while.
func (h *redisContainer) restart(ctx context.Context, script string) error {
	script = `cd /data; kill -9 "$(cat redis.pid)"; until [ -e down ]; do sleep 0.01; done; ` + script + `; : > go`
	status, out, err := h.ctr.Exec(ctx, []string{"sh", "-ec", script})
	if err != nil {
		return err
	}
	if status != 0 {
		text := make([]byte, 500)
		n, _ := out.Read(text)
		return fmt.Errorf("%s: exit status %d: %q", script, status, text[:n])
	}
	return nil
}

func (h *redisContainer) stop(ctx context.Context) error {
	return testcontainers.TerminateContainer(h.ctr, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
}
