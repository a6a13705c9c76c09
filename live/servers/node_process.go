package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"stockproof/live/halt"
)

// processNodes is a group of Redis programs as processes of this machine.
type processNodes struct {
	p    *processes
	who  *account
	list []*processNode
}

type processNode struct {
	dir   string
	conf  nodeConf
	port  int
	child *child
}

func (p *processes) hostNodes(ctx context.Context, ports []int, confs []nodeConf) (nodeHost, error) {
	who, err := unprivileged("redis")
	if err != nil {
		return nil, err
	}
	h := &processNodes{p: p, who: who}
	for i, conf := range confs {
		p.mu.Lock()
		p.more++
		name := fmt.Sprintf("redis-%d", p.more)
		p.mu.Unlock()
		dir, err := p.folder(name, who)
		if err != nil {
			return h, err
		}
		n := &processNode{dir: dir, conf: conf, port: ports[i]}
		h.list = append(h.list, n)
		if err := h.configure(n); err != nil {
			return h, err
		}
		if err := h.launch(n); err != nil {
			return h, err
		}
	}
	for _, n := range h.list {
		if err := n.child.awaitReady(ctx); err != nil {
			return h, err
		}
	}
	return h, nil
}

// configure writes the file that the program is started with; a sentinel and a
// member of a cluster keep notes beside it.
func (h *processNodes) configure(n *processNode) error {
	file := filepath.Join(n.dir, "redis.conf")
	lines := append([]string{fmt.Sprintf("port %d", n.port), "bind 127.0.0.1", "dir " + n.dir}, n.conf.lines...)
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	if h.who == nil {
		return nil
	}
	return os.Chown(file, int(h.who.uid), int(h.who.gid))
}

func (h *processNodes) launch(n *processNode) (err error) {
	args, ready := []string{filepath.Join(n.dir, "redis.conf")}, redisReady()
	if n.conf.sentinel {
		args, ready = append(args, "--sentinel"), sentinelReady()
	}
	// Nothing is lost that the run would not throw away: SIGKILL is polite enough.
	n.child, err = h.p.launch("redis", ready, syscall.SIGKILL, h.who, n.dir, h.p.found.redisServer, args...)
	return err
}

func (h *processNodes) turn(ctx context.Context, at int, kill bool, script string, start bool) error {
	n := h.list[at]
	if kill {
		if err := h.p.end(n.child); err != nil {
			return err
		}
	}
	if err := h.p.runIn(ctx, n.dir, h.who, script); err != nil || !start {
		return err
	}
	for try := 1; ; try++ {
		if err := h.launch(n); err != nil {
			return err
		}
		err := n.child.awaitReady(ctx)
		if err == nil || try == portTries || ctx.Err() != nil || !n.child.foundTaken(n.port) {
			return err
		}
		if err := h.p.end(n.child); err != nil {
			return err
		}
	}
}

func (h *processNodes) freeze(_ context.Context, at int) error {
	return halt.Stop(h.list[at].child.cmd.Process)
}

func (h *processNodes) thaw(_ context.Context, at int) error {
	return halt.Continue(h.list[at].child.cmd.Process)
}

func (h *processNodes) stop(context.Context) error {
	var errs []error
	for _, n := range h.list {
		errs = append(errs, h.p.end(n.child))
	}
	return errors.Join(errs...)
}

// runIn runs a script of the POSIX shell in a server's folder, as its user.
func (p *processes) runIn(ctx context.Context, dir string, who *account, script string) error {
	if script == ":" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir = dir
	if who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.uid, Gid: who.gid, Groups: []uint32{}}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return nil
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
