package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"

	"stockproof/live/reaper"
)

// The start commands serve both kinds of image: an official one brings an entry
// script that sets up the data folder and gives up root, the local one is a plain
// Debian where that is done here.
const (
	redisScript = `set -e
if [ -x /usr/local/bin/docker-entrypoint.sh ]; then exec /usr/local/bin/docker-entrypoint.sh redis-server "$@"; fi
chown redis:redis /data
exec setpriv --reuid=redis --regid=redis --clear-groups redis-server "$@"`

	postgresScript = `set -e
if [ -x /usr/local/bin/docker-entrypoint.sh ]; then exec /usr/local/bin/docker-entrypoint.sh postgres "$@"; fi
for bin in /usr/lib/postgresql/*/bin; do PATH=$bin:$PATH; done
chown postgres:postgres "$PGDATA" && chmod 700 "$PGDATA"
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
if [ ! -s "$PGDATA/PG_VERSION" ]; then
umask 077
printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password && chown postgres:postgres /tmp/password
as initdb -U "$POSTGRES_USER" --auth=scram-sha-256 --pwfile=/tmp/password --encoding=UTF8 --locale=C --no-sync --no-instructions
rm /tmp/password
echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
fi
unset POSTGRES_PASSWORD
exec setpriv --reuid=postgres --regid=postgres --clear-groups postgres -c unix_socket_directories= "$@"`
)

// containers runs the servers through testcontainers-go.
type containers struct {
	set   *Set
	found images
	opt   Options
	label string
	done  func()

	docker *client.Client
	ctx    context.Context // ends with stop; the watchers live in it
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	servers []*server
	made    map[*server]testcontainers.Container
	unsure  bool // a creation was broken off: the daemon may still be at it
}

func newContainers(s *Set, found images, opt Options) (runner, error) {
	c := &containers{set: s, found: found, opt: opt, label: Label + "=" + opt.Session, made: map[*server]testcontainers.Container{}}
	docker, err := client.New(client.FromEnv, client.WithHost(found.host))
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	c.docker = docker
	// Before anything is created, so that a half-made container is found too.
	if c.done, err = s.Reaper.Containers(found.host, c.label); err != nil {
		_ = docker.Close()
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

func (c *containers) startRedis(ctx context.Context) (started, error) {
	return c.run(ctx, "redis", redisReady(), testcontainers.ContainerRequest{
		Image:        c.found.redis,
		Entrypoint:   []string{"sh", "-c", redisScript, "redis-server"},
		Cmd:          append([]string{"--bind", "0.0.0.0", "--protected-mode", "no", "--dir", "/data"}, c.opt.redisArgs()...),
		ExposedPorts: []string{"6379/tcp"},
	}, "/data")
}

func (c *containers) startPostgres(ctx context.Context) (started, error) {
	return c.run(ctx, "postgres", postgresReady(), testcontainers.ContainerRequest{
		Image:        c.found.postgres,
		Entrypoint:   []string{"sh", "-c", postgresScript, "postgres"},
		Cmd:          append([]string{"-c", "listen_addresses=*"}, c.opt.postgresArgs()...),
		ExposedPorts: []string{"5432/tcp"},
		Env:          c.postgresEnv(),
	}, postgresData)
}

func (c *containers) postgresEnv() map[string]string {
	return map[string]string{
		"POSTGRES_USER": postgresUser, "POSTGRES_PASSWORD": c.set.Password, "POSTGRES_DB": postgresDB,
		"POSTGRES_INITDB_ARGS":      "--auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync",
		"POSTGRES_HOST_AUTH_METHOD": "scram-sha-256",
		"PGDATA":                    postgresData,
	}
}

// postgresData is where the official image (up to release 17) declares its volume;
// ours is mounted in its place, so that no volume without our label comes to be.
const postgresData = "/var/lib/postgresql/data"

// run creates and starts one container. Its data lies on a volume with our label: on
// the container's own layered file system a sync to disk would be another thing.
func (c *containers) run(ctx context.Context, name string, isReady func(string) bool, req testcontainers.ContainerRequest, volume string) (started, error) {
	labels := map[string]string{Label: c.opt.Session}
	req.Labels = labels
	port := network.MustParsePort(req.ExposedPorts[0])
	req.HostConfigModifier = func(h *container.HostConfig) {
		h.Mounts = []mount.Mount{{Type: mount.TypeVolume, Target: volume, VolumeOptions: &mount.VolumeOptions{Labels: labels}}}
		h.PortBindings = network.PortMap{port: {{HostIP: netip.MustParseAddr("127.0.0.1")}}}
		h.CapDrop = []string{"NET_RAW"}
	}
	srv := newServer(name, isReady)
	ctr, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: req, Started: false, Logger: tclog.NewNoopLogger(),
	})
	if err != nil {
		c.mu.Lock()
		c.unsure = true
		c.mu.Unlock()
		return started{}, err // a half-made container has our label
	}
	if err := ctr.Start(ctx); err != nil {
		return started{}, err
	}
	got := started{server: srv, from: req.Image}
	c.mu.Lock()
	c.servers = append(c.servers, srv)
	c.made[srv] = ctr
	c.mu.Unlock()
	if err := c.watch(srv, ctr.GetContainerID()); err != nil {
		return got, err
	}
	if err := srv.awaitReady(ctx); err != nil {
		return got, err
	}
	mapped, err := ctr.MappedPort(ctx, port.String())
	if err != nil {
		return got, err
	}
	got.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(int(mapped.Num())))
	return got, nil
}

// watch follows the container's log and its end.
func (c *containers) watch(srv *server, id string) error {
	logs, err := c.docker.ContainerLogs(c.ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	if err != nil {
		srv.end("its log cannot be read")
		return fmt.Errorf("docker: read log: %w", err)
	}
	c.wg.Go(func() {
		defer logs.Close()
		// The log ends when the container does; then its status is known.
		_, logErr := stdcopy.StdCopy(srv.log, srv.log, logs)
		wait := c.docker.ContainerWait(c.ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case r := <-wait.Result:
			srv.end(fmt.Sprintf("exit status %d", r.StatusCode))
		case err := <-wait.Error:
			switch {
			case errdefs.IsNotFound(err):
				srv.end("its container was removed")
			default:
				srv.end(fmt.Sprintf("the docker daemon cannot be asked about it: %v", errors.Join(err, logErr)))
			}
		}
	})
	return nil
}

func (c *containers) stop() error {
	// Not the context of the start: that one may be over.
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	err := c.removeAll(ctx)
	c.cancel()
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, srv := range c.servers {
		srv.end("removed")
	}
	_ = c.docker.Close()
	if err == nil && !c.unsure {
		c.done() // otherwise the reaper looks as well, and for longer
	}
	return err
}

// removeAll removes what carries our label until nothing does.
func (c *containers) removeAll(ctx context.Context) error {
	for {
		if _, err := reaper.RemoveContainers(ctx, c.found.host, c.label); err != nil {
			return err
		}
		left, volumes, err := reaper.ContainersLeft(ctx, c.found.host, c.label)
		if err != nil {
			return err
		}
		if len(left)+len(volumes) == 0 {
			return nil
		}
	}
}
