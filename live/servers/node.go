package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Node is one Redis program beside that of a set, for who wants to kill it,
// freeze it, and have it come back with less than it had. It is not watched:
// Set.Alive and Set.Died say nothing of it. Set.Close ends it like everything
// else.
type Node struct {
	// Addr is 127.0.0.1:port, the same for clients and for other nodes, also after
	// a restart.
	Addr string

	host nodeHost
	at   int // in its host
}

// nodeHost is what a backend does for a group of nodes that reach each other.
type nodeHost interface {
	// turn kills a node (SIGKILL), runs a script of the POSIX shell in its data
	// folder, and starts it again, in one visit: each takes a docker daemon a
	// while. Either end may be left out.
	turn(ctx context.Context, at int, kill bool, script string, start bool) error
	// freeze stops every thread of a node and returns when they stand still;
	// thaw lets them go on.
	freeze(ctx context.Context, at int) error
	thaw(ctx context.Context, at int) error
	stop(ctx context.Context) error
}

// nodeConf is what one program of a group is started with.
type nodeConf struct {
	lines    []string // of its redis.conf, without port, bind and dir
	sentinel bool
}

// confLines makes lines of a redis.conf from pairs of arguments --name value.
func confLines(args []string) (lines []string) {
	for i := 0; i+1 < len(args); i += 2 {
		lines = append(lines, strings.TrimPrefix(args[i], "--")+" "+strconv.Quote(args[i+1]))
	}
	return lines
}

// startNodes starts a group of Redis programs on the set's backend and waits
// until each answers. conf is told the ports of all of them, since they name each
// other. A port that somebody else takes meanwhile costs another try.
func (s *Set) startNodes(ctx context.Context, what string, n int, conf func(ports []int, i int) nodeConf) (nodes []*Node, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("%s did not start within %v", what, startLimit))
	defer cancel()
	for try := 1; ; try++ {
		ports, err := freePorts(n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		confs := make([]nodeConf, n)
		for i := range confs {
			confs[i] = conf(ports, i)
		}
		host, err := s.host.hostNodes(ctx, ports, confs)
		nodes = nil
		for i, port := range ports {
			nodes = append(nodes, &Node{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), host: host, at: i})
		}
		for _, node := range nodes {
			if err == nil {
				err = node.answers(ctx)
			}
		}
		if err == nil {
			return nodes, nil
		}
		if host != nil {
			err = errors.Join(err, closeNodes(nodes))
		}
		taken := strings.Contains(err.Error(), "ddress already in use") || strings.Contains(err.Error(), "port is already allocated")
		if try == portTries || ctx.Err() != nil || !taken {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
}

func freePorts(n int) (ports []int, err error) {
	seen := map[int]bool{}
	for len(ports) < n {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		if !seen[port] {
			seen[port] = true
			ports = append(ports, port)
		}
	}
	return ports, nil
}

// closeNodes ends a group.
func closeNodes(nodes []*Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return nodes[0].host.stop(ctx)
}

// Restart kills the program with SIGKILL, runs a script of the POSIX shell in its
// data folder, starts it again on the same address with what the folder then
// holds, and waits until it answers. The others of its group live on.
func (n *Node) Restart(ctx context.Context, script string) error {
	if err := n.host.turn(ctx, n.at, true, script, true); err != nil {
		return fmt.Errorf("restart redis: %w", err)
	}
	return n.answers(ctx)
}

// Kill ends the program with SIGKILL and returns when it is gone.
func (n *Node) Kill(ctx context.Context) error {
	if err := n.host.turn(ctx, n.at, true, ":", false); err != nil {
		return fmt.Errorf("kill redis: %w", err)
	}
	return nil
}

// Start starts it again after Kill, with what its folder holds.
func (n *Node) Start(ctx context.Context) error {
	if err := n.host.turn(ctx, n.at, false, ":", true); err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	return n.answers(ctx)
}

// Freeze stops every thread of the program with SIGSTOP and returns when they
// stand still. The kernel goes on accepting connections and keeping what clients
// send. CLIENT PAUSE is no freeze: the server reads on, and drops the commands of
// clients that leave.
func (n *Node) Freeze(ctx context.Context) error {
	if err := n.host.freeze(ctx, n.at); err != nil {
		return fmt.Errorf("freeze redis: %w", err)
	}
	return nil
}

// Thaw lets it go on, and waits until it answers.
func (n *Node) Thaw(ctx context.Context) error {
	if err := n.host.thaw(ctx, n.at); err != nil {
		return fmt.Errorf("thaw redis: %w", err)
	}
	return n.answers(ctx)
}

// answers waits until the program answers.
func (n *Node) answers(ctx context.Context) error {
	return n.ask(ctx, func(c *redis.Client) error { return c.Ping(ctx).Err() })
}

// ask asks until there is no error.
func (n *Node) ask(ctx context.Context, question func(*redis.Client) error) error {
	c := redis.NewClient(&redis.Options{Addr: n.Addr, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	return until(ctx, func() error { return question(c) })
}

// until asks until there is no error.
func until(ctx context.Context, question func() error) error {
	for {
		err := question()
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
