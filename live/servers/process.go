package servers

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"stockproof/live/reaper"
)

const (
	stopLimit = 10 * time.Second // for a server to end after the polite signal
	pipeLimit = 5 * time.Second  // for helpers of an ended server to let go of its log
	portTries = 5                // a free port may be taken by another before the server has it
)

// processes runs the servers as processes of this machine.
type processes struct {
	set   *Set
	found programs
	opt   Options
	base  string // the folder that holds everything
	done  []func()

	mu       sync.Mutex
	children []*child
	more     int // servers beside the first two
}

// child is one process started here.
type child struct {
	*server
	cmd    *exec.Cmd
	polite syscall.Signal
	pid    int
	done   func()
	memory int // System V segment of a PostgreSQL server, −1 when unknown
	forget func()
	used   map[ran]time.Duration // processor time by its processes, when last seen
}

func newProcesses(s *Set, found programs, opt Options) (runner, error) {
	p := &processes{set: s, found: found, opt: opt}
	p.base = filepath.Join(os.TempDir(), reaper.DirPrefix+opt.Session)
	if !filepath.IsAbs(p.base) {
		return nil, fmt.Errorf("temporary folder %q is not absolute", p.base)
	}
	// Registered before it exists: a folder that is not there is easily removed.
	done, err := s.Reaper.Dir(p.base)
	if err != nil {
		return nil, err
	}
	// Passable, not readable: the servers may run as another user.
	if err := os.Mkdir(p.base, 0o711); err != nil {
		done() // somebody else's
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	p.done = append(p.done, done)
	return p, nil
}

// folder makes a folder for one server that only its user can enter.
func (p *processes) folder(name string, who *account) (string, error) {
	dir := filepath.Join(p.base, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if who != nil {
		if err := os.Chown(dir, int(who.uid), int(who.gid)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func (p *processes) startRedis(ctx context.Context) (started, error) {
	who, err := unprivileged("redis")
	if err != nil {
		return started{}, err
	}
	dir, err := p.folder("redis", who)
	if err != nil {
		return started{}, err
	}
	return p.onFreePort(ctx, func(port int) (*child, error) {
		args := append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir}, p.opt.redisArgs()...)
		// Nothing is lost that the run would not throw away: SIGKILL is polite enough.
		return p.launch("redis", redisReady(), syscall.SIGKILL, who, dir, p.found.redisServer, args...)
	}, p.found.redisServer)
}

func (p *processes) startPostgres(ctx context.Context) (started, error) {
	who, dir, err := p.initPostgres(ctx, "postgres")
	if err != nil {
		return started{}, err
	}
	got, err := p.onFreePort(ctx, func(port int) (*child, error) {
		return p.launchPostgres(who, dir, port, p.opt)
	}, p.found.postgres)
	if err != nil {
		return got, err
	}
	return got, p.noteMemory(got.server, filepath.Join(dir, "data"))
}

// initPostgres makes the folder of a PostgreSQL server, with its data.
func (p *processes) initPostgres(ctx context.Context, name string) (who *account, dir string, err error) {
	if who, err = unprivileged("postgres"); err != nil {
		return nil, "", err
	}
	if dir, err = p.folder(name, who); err != nil {
		return nil, "", err
	}
	return who, dir, p.initdb(ctx, who, dir)
}

// initdb makes the data folder. It alone does without syncing to disk, since what
// it writes need not survive a power cut; the server syncs.
func (p *processes) initdb(ctx context.Context, who *account, dir string) error {
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(p.set.Password+"\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(secret)
	if who != nil {
		if err := os.Chown(secret, int(who.uid), int(who.gid)); err != nil {
			return err
		}
	}
	c, err := p.launch("initdb", func(string) bool { return false }, syscall.SIGTERM, who, dir, p.found.initdb,
		"-D", filepath.Join(dir, "data"), "-U", postgresUser, "--auth=scram-sha-256", "--pwfile="+secret,
		"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if err != nil {
		return err
	}
	select {
	case <-c.ended:
		if !c.cmd.ProcessState.Success() {
			return fmt.Errorf("initdb: %s: %s", c.status, strings.Join(c.log.Last(), "\n    "))
		}
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("initdb: %w", context.Cause(ctx)), c.finish())
	}
}

// onFreePort starts a server on a port that was free a moment ago, and once more
// on another when somebody was quicker.
func (p *processes) onFreePort(ctx context.Context, start func(port int) (*child, error), from string) (started, error) {
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return started{}, err
		}
		c, err := start(port)
		if err != nil {
			return started{}, err
		}
		got := started{server: c.server, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), from: from, pid: c.pid}
		err = c.awaitReady(ctx)
		if err == nil || try == portTries || ctx.Err() != nil || !c.foundTaken(port) {
			return got, err
		}
		if err := c.finish(); err != nil {
			return got, err
		}
	}
}

// Ports from firstPort up to ephemeral are nobody's near end: the kernel gives those of
// connections from 32768 on (ip_local_port_range). A server that is started again on its
// port would otherwise find, now and then, that a connection has taken it.
const (
	firstPort = 20000
	ephemeral = 32768
)

func freePort() (int, error) {
	for range 50 {
		if port := firstPort + mathrand.IntN(ephemeral-firstPort); !inUse(port) {
			return port, nil
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// foundTaken says whether the server could not have its port. Who had it, the near
// end of somebody's connection perhaps, may be gone already.
func (c *child) foundTaken(port int) bool {
	return inUse(port) || strings.Contains(strings.Join(c.log.Last(), "\n"), "ddress already in use")
}

func inUse(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return true
	}
	_ = l.Close()
	return false
}

// launch starts a program that dies with this process, registers it with the
// reaper, and watches it. The program gets a bare environment: PGDATA or PGPORT of
// the person at the keyboard must not matter.
func (p *processes) launch(name string, isReady func(string) bool, polite syscall.Signal, who *account, dir, program string, args ...string) (*child, error) {
	c := &child{server: newServer(name, isReady), polite: polite, memory: -1, used: map[ran]time.Duration{}, cmd: exec.Command(program, args...)}
	c.cmd.Dir = dir
	c.cmd.Env = []string{"PATH=" + filepath.Dir(program) + ":/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + dir}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.WaitDelay = pipeLimit
	c.cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: polite,
		Setpgid:   true, // Ctrl-C is for this program, which then ends the servers in order
	}
	if who != nil {
		c.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid, Groups: []uint32{}}
	}
	launched := make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the *thread* that started the program
		// ends, so this thread is held until the program has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := c.cmd.Start(); err != nil {
			launched <- err
			return
		}
		c.pid = c.cmd.Process.Pid
		done, err := p.set.Reaper.ProcessWith(c.pid, polite, stopLimit)
		if err != nil {
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
			launched <- err
			return
		}
		c.done = done
		launched <- nil
		err = c.cmd.Wait()
		status := c.cmd.ProcessState.String()
		if err != nil && c.cmd.ProcessState.Success() {
			status += ", " + err.Error()
		}
		c.end(status)
	}()
	if err := <-launched; err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}
	p.mu.Lock()
	p.children = append(p.children, c)
	p.mu.Unlock()
	return c, nil
}

// noteMemory registers the System V segment of a PostgreSQL server, which it leaves
// behind when it is killed outright. The seventh line of its pid file names it.
func (p *processes) noteMemory(srv *server, data string) error {
	raw, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return err
	}
	id, err := memoryID(string(raw))
	if err != nil || id < 0 {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.children {
		if c.server == srv {
			c.memory = id
			c.forget, err = p.set.Reaper.SharedMemory(id, c.pid)
		}
	}
	return err
}

// memoryID finds the segment id in a postmaster.pid file; −1 when the server uses none.
func memoryID(pidFile string) (int, error) {
	lines := strings.Split(pidFile, "\n")
	if len(lines) < 7 {
		return -1, nil
	}
	f := strings.Fields(lines[6])
	if len(f) != 2 {
		return -1, nil
	}
	id, err := strconv.Atoi(f[1])
	if err != nil || id < 0 {
		return -1, fmt.Errorf("postmaster.pid names shared memory %q", lines[6])
	}
	return id, nil
}

// finish ends the process and returns when it is gone.
func (c *child) finish() error {
	c.stopping.Store(true)
	// An error means that it has ended already, which is what is wanted.
	_ = c.cmd.Process.Signal(c.polite)
	_ = c.cmd.Process.Signal(syscall.SIGCONT) // it may have been stopped, as a fault
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	c.done()
	if c.memory < 0 {
		return nil
	}
	if err := reaper.RemoveSharedMemory(c.memory, c.pid); err != nil {
		return err
	}
	c.forget()
	return nil
}

func (p *processes) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var wg sync.WaitGroup
	errs := make([]error, len(p.children), len(p.children)+1)
	for i, c := range p.children {
		wg.Go(func() { errs[i] = c.finish() })
	}
	wg.Wait()
	// What could not be removed stays registered, so that the reaper tries as well.
	if err := reaper.RemoveDir(p.base); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, done := range p.done {
		done()
	}
	return errors.Join(errs...)
}
