// Package clients runs each client of a sale as an operating-system process of
// its own: the same binary started again. So a crash is a real SIGKILL and a
// stop of all its goroutines is a real SIGSTOP.
package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"stockproof/live/halt"
	"stockproof/live/reaper"
	"stockproof/live/role"
	"stockproof/model"
	"stockproof/schemes"
)

// Setup tells a client process which scheme to serve and where its servers
// are. The addresses are those of the client's own proxies.
type Setup struct {
	Scheme    string         `json:"scheme"`
	Client    string         `json:"client"` // unique in the run: the lock holder id
	RedisAddr string         `json:"redis_addr,omitempty"`
	DSN       string         `json:"dsn,omitempty"`
	Retries   string         `json:"retries"` // "off" or "default"
	Times     schemes.Config `json:"times"`
	// Patience is how long the client waits for an answer of Redis; 0: go-redis's
	// own 3 s.
	Patience time.Duration `json:"patience,omitempty"`
	// Pool is the most connections that the client opens to either server; 0: the
	// libraries' own.
	Pool int `json:"pool,omitempty"`
}

// Operation is what a client is told to do.
type Operation struct {
	Op      model.Op `json:"op"`
	SKU     string   `json:"sku"`
	Qty     int64    `json:"qty"`
	Request string   `json:"request"`
	Buyer   string   `json:"buyer"`
}

// Answer is what the scheme answered in the client process.
type Answer struct {
	Outcome model.Outcome `json:"outcome"`
	Value   int64         `json:"value"`
	Err     string        `json:"err,omitempty"` // why, in words; also with a sure outcome
}

type order struct {
	Setup *Setup     `json:"setup,omitempty"`
	Op    *Operation `json:"op,omitempty"`
}

// ErrGone: the process ended before it answered.
var ErrGone = errors.New("the client process is gone")

// Process is one client process. It runs one operation at a time.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	answer *bufio.Reader
	gone   chan struct{} // closed when the process was waited for
	state  error         // why it ended; valid after gone
	done   func()        // takes it off the reaper's list
	once   sync.Once
}

const roleName = "client"

func init() { role.Register(roleName, serve) }

// Start starts a client process; the reaper ends it should this process die.
func Start(r *reaper.Reaper) (*Process, error) {
	cmd, err := role.Command(roleName)
	if err != nil {
		return nil, fmt.Errorf("start client: %w", err)
	}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start client: %w", err)
	}
	// Not StdoutPipe: Wait would close it under a reader that still has an
	// answer to take.
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start client: %w", err)
	}
	cmd.Stdout = childOut
	// A group of its own: Ctrl-C is the parent's to handle, in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		out.Close()
		childOut.Close()
		return nil, fmt.Errorf("start client: %w", err)
	}
	childOut.Close()
	p := &Process{cmd: cmd, stdin: stdin, answer: bufio.NewReader(out), gone: make(chan struct{})}
	p.done, err = r.Process(cmd.Process.Pid)
	go func() {
		p.state = cmd.Wait()
		close(p.gone)
	}()
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("start client: %w", err)
	}
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Gone is closed when the process has ended.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Err says how it ended; nil while it has not.
func (p *Process) Err() error {
	select {
	case <-p.gone:
		return fmt.Errorf("%w: %v", ErrGone, p.cmd.ProcessState)
	default:
		return nil
	}
}

// Configure prepares the process for the next run.
func (p *Process) Configure(ctx context.Context, s Setup) error {
	a, err := p.ask(ctx, order{Setup: &s})
	if err != nil {
		return fmt.Errorf("configure client: %w", err)
	}
	if a.Err != "" {
		return fmt.Errorf("configure client: %s", a.Err)
	}
	return nil
}

// Run has the process run one operation. The error is ErrGone when it died
// meanwhile: the operation's outcome is then unknown.
func (p *Process) Run(ctx context.Context, op Operation) (Answer, error) {
	return p.ask(ctx, order{Op: &op})
}

func (p *Process) ask(ctx context.Context, o order) (Answer, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return Answer{}, err
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		return Answer{}, fmt.Errorf("%w: %v", ErrGone, err)
	}
	// The read below ends when the process does, so ending the process is how
	// a cancelled context ends it.
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	reply, err := p.answer.ReadBytes('\n')
	if err != nil {
		if ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		return Answer{}, fmt.Errorf("%w: %v", ErrGone, err)
	}
	var a Answer
	if err := json.Unmarshal(reply, &a); err != nil {
		return Answer{}, fmt.Errorf("answer of client %d: %w", p.PID(), err)
	}
	return a, nil
}

// Kill ends the process with SIGKILL and waits until it is gone. It works on a
// stopped process too, and may be called more than once.
func (p *Process) Kill() {
	p.once.Do(func() {
		// The error is that it is gone already.
		_ = p.cmd.Process.Kill()
		<-p.gone
		p.stdin.Close()
		if p.done != nil {
			p.done()
		}
	})
	<-p.gone
}

// Stop stops every thread of the process and returns when the kernel has said
// that they stand still.
func (p *Process) Stop() error { return halt.Stop(p.cmd.Process) }

// Continue lets a stopped process go on.
func (p *Process) Continue() error { return halt.Continue(p.cmd.Process) }
