package servers

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	tcexec "github.com/testcontainers/testcontainers-go/exec"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// nodesScript runs each redis-server again and again in one container, so that
// its address stays: the file go says when. NODE0, NODE1, … are their
// redis.conf, MODE0, … what follows it on the command line.
const nodesScript = `serve() {
if [ -x /usr/local/bin/docker-entrypoint.sh ]; then exec /usr/local/bin/docker-entrypoint.sh redis-server "$@"
else exec setpriv --reuid=redis --regid=redis --clear-groups redis-server "$@"; fi
}
i=0
while [ "$i" -lt "$NODES" ]; do
mkdir -p "/data/$i"
eval "printf '%s\n' \"\$NODE$i\"" > "/data/$i/redis.conf"
i=$((i + 1))
done
chown -R redis:redis /data
i=0
while [ "$i" -lt "$NODES" ]; do
eval "mode=\$MODE$i"
(
cd "/data/$i"
while :; do
(serve "/data/$i/redis.conf" $mode)
: > down
until [ -e go ]; do sleep 0.01; done
rm -f go down
done
) &
i=$((i + 1))
done
wait`

// containerNodes is a group of Redis programs in one container. Their ports are
// the same inside and outside, so that an address which one of them hands out is
// good for everybody.
type containerNodes struct{ ctr testcontainers.Container }

func (c *containers) hostNodes(ctx context.Context, ports []int, confs []nodeConf) (nodeHost, error) {
	env := map[string]string{"NODES": strconv.Itoa(len(confs))}
	for i, conf := range confs {
		lines := append([]string{
			fmt.Sprintf("port %d", ports[i]), "bind 0.0.0.0", "protected-mode no",
			fmt.Sprintf("dir /data/%d", i), fmt.Sprintf("pidfile /data/%d/redis.pid", i),
		}, conf.lines...)
		env[fmt.Sprintf("NODE%d", i)] = strings.Join(lines, "\n")
		env[fmt.Sprintf("MODE%d", i)] = ""
		if conf.sentinel {
			env[fmt.Sprintf("MODE%d", i)] = "--sentinel"
		}
	}
	ctr, err := c.another(ctx, c.found.redis, nodesScript, nil, env, ports, "/data")
	if ctr == nil {
		return nil, err
	}
	return &containerNodes{ctr}, err
}

// another starts one more container, with a script as its program, arguments for it, and ports
// that are the same inside and outside. The container comes with an error too.
func (c *containers) another(ctx context.Context, image, script string, args []string, env map[string]string, ports []int, volume string) (testcontainers.Container, error) {
	labels := map[string]string{Label: c.opt.Session}
	var exposed []string
	for _, p := range ports {
		exposed = append(exposed, fmt.Sprintf("%d/tcp", p))
	}
	req := testcontainers.ContainerRequest{
		Image: image, Labels: labels, ExposedPorts: exposed, Env: env, Entrypoint: []string{"sh", "-c", script, "sh"}, Cmd: args,
		HostConfigModifier: func(h *container.HostConfig) {
			h.Mounts = []mount.Mount{{Type: mount.TypeVolume, Target: volume, VolumeOptions: &mount.VolumeOptions{Labels: labels}}}
			h.PortBindings = network.PortMap{}
			for i, p := range exposed {
				h.PortBindings[network.MustParsePort(p)] = []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(ports[i])}}
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
	return ctr, ctr.Start(ctx)
}

// visit runs a script in a container as root.
func visit(ctx context.Context, ctr testcontainers.Container, script string) error {
	status, out, err := ctr.Exec(ctx, []string{"sh", "-ec", script}, tcexec.Multiplexed())
	if err != nil {
		return err
	}
	if status != 0 {
		text, _ := io.ReadAll(io.LimitReader(out, 500))
		return fmt.Errorf("%s: exit status %d: %s", script, status, text)
	}
	return nil
}

func (h *containerNodes) turn(ctx context.Context, at int, kill bool, script string, start bool) error {
	full := fmt.Sprintf("cd /data/%d; ", at)
	if kill {
		full += `kill -9 "$(cat redis.pid)"; until [ -e down ]; do sleep 0.01; done; `
	}
	full += script
	if start {
		full += "; : > go"
	}
	return visit(ctx, h.ctr, full)
}

func (h *containerNodes) freeze(ctx context.Context, at int) error {
	return visit(ctx, h.ctr, fmt.Sprintf(`p=$(cat /data/%d/redis.pid); kill -STOP "$p"
until ! grep -h '^State:' /proc/"$p"/task/*/status | grep -qv 'T (stopped)'; do sleep 0.01; done`, at))
}

func (h *containerNodes) thaw(ctx context.Context, at int) error {
	return visit(ctx, h.ctr, fmt.Sprintf(`kill -CONT "$(cat /data/%d/redis.pid)"`, at))
}

func (h *containerNodes) stop(ctx context.Context) error {
	return testcontainers.TerminateContainer(h.ctr, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
}
