package subject

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"stockproof/live/clients"
	"stockproof/live/reaper"
	"stockproof/live/tail"
	"stockproof/model"
)

// DefaultStart is how long a subject may take until its hello.
const DefaultStart = 30 * time.Second

// mostDue is how many answers may be due at once: only the conformance check asks
// for more than one.
const mostDue = 2

// markName is the variable by which all processes of a subject are known.
const markName = "STOCKPROOF_SUBJECT"

// StartError says that a subject did not come to its hello.
type StartError struct {
	Command string
	Err     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("subject %q did not start: %v", e.Command, e.Err)
}
func (e *StartError) Unwrap() error { return e.Err }

// launch says how a process is started.
type launch struct {
	command     string
	redisURL    string // empty: it has none
	databaseURL string
	client      string // unique name of the process
	lease       time.Duration
	wait        time.Duration
	retry       time.Duration // 0: the subject's own
	start       time.Duration // limit of the time until its hello
}

// environment is the one of this process with the stores of the run. What the
// environment says about other stores must not reach the subject.
func (l launch) environment(mark string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "REDIS_URL=") || strings.HasPrefix(v, "DATABASE_URL=") || strings.HasPrefix(v, "STOCKPROOF_")
	})
	set := func(name, value string) {
		if value != "" && value != "0" {
			env = append(env, name+"="+value)
		}
	}
	set("REDIS_URL", l.redisURL)
	set("DATABASE_URL", l.databaseURL)
	set("STOCKPROOF_CLIENT", l.client)
	set("STOCKPROOF_LEASE_MS", strconv.FormatInt(l.lease.Milliseconds(), 10))
	set("STOCKPROOF_WAIT_MS", strconv.FormatInt(l.wait.Milliseconds(), 10))
	set("STOCKPROOF_RETRY_MS", strconv.FormatInt(l.retry.Milliseconds(), 10))
	return append(env, mark)
}

// Process is a subject: a program and whatever it starts. It runs one operation
// at a time, and is a clients.Client.
type Process struct {
	hello  Hello
	cmd    *exec.Cmd
	family *reaper.Family
	done   func() // takes it off the reaper's list
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	log    *tail.Log
	logged chan struct{} // closed when standard error has ended

	lines  chan []byte   // those that were asked for
	ended  chan struct{} // closed when no further line will come
	gone   chan struct{} // closed when the program has ended
	closed sync.Once

	mu     sync.Mutex
	due    int   // lines that are expected
	broken error // the rule it broke by a line that was not
	asking sync.Mutex
	id     int64
}

// start starts a process and reads its hello. The error is a *StartError.
func start(ctx context.Context, r *reaper.Reaper, l launch) (p *Process, err error) {
	defer func() {
		if err != nil {
			if p != nil {
				p.Kill()
			}
			p, err = nil, &StartError{l.command, err}
		}
	}()
	// The shell is that of "sh -c" anywhere else: quotes and variables work as usual.
	cmd := exec.Command("/bin/sh", "-c", l.command)
	mark := markName + "=" + rand.Text()
	cmd.Env = l.environment(mark)
	// A group of its own: Ctrl-C is the parent's to handle, in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p = &Process{cmd: cmd, log: tail.New(nil), lines: make(chan []byte, mostDue), due: 1,
		ended: make(chan struct{}), gone: make(chan struct{}), logged: make(chan struct{})}
	// Pipes of our own: Wait shall return with the program, also when a child of
	// it that lives on has them open.
	theirs, err := p.pipes()
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		close(p.gone)
		return p, err
	}
	p.family, p.done, err = r.Family(cmd.Process.Pid, mark)
	if err != nil {
		_ = cmd.Process.Kill() // it has run for no time and started nothing
	}
	go func() {
		_ = cmd.Wait() // the state says how it ended
		close(p.gone)
	}()
	if err != nil {
		return p, err
	}
	go p.read()
	limit := l.start
	if limit == 0 {
		limit = DefaultStart
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no hello after %s", limit))
	defer cancel()
	line, err := p.await(ctx)
	if err != nil {
		return p, err
	}
	p.hello, err = parseHello(line)
	return p, err
}

// pipes connects the program; it answers the ends that are the child's.
func (p *Process) pipes() (theirs []*os.File, err error) {
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	logR, logW := pipe()
	if err != nil {
		for _, f := range []*os.File{inR, inW, outR, outW} {
			if f != nil {
				f.Close()
			}
		}
		return nil, err
	}
	p.stdin, p.stdout, p.stderr = inW, outR, logR
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inR, outW, logW
	go func() {
		// Read to the end, so that a subject that says much does not stand still;
		// of what it says the last lines are kept.
		_, _ = io.Copy(p.log, logR)
		close(p.logged)
	}()
	return []*os.File{inR, outW, logW}, nil
}

// read takes the lines of the subject. One that nobody asked for ends it: what
// it says after that could be taken for an answer.
func (p *Process) read() {
	defer close(p.ended)
	in := bufio.NewReaderSize(p.stdout, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return // a torn last line is that of a program that was ended
		}
		p.mu.Lock()
		switch {
		case err != nil:
			p.broken = broken(line[:maxText+1], "a line is longer than %d bytes", maxLine)
		case p.due == 0:
			p.broken = broken(line[:len(line)-1], "a line that nobody asked for")
		}
		bad := p.broken != nil
		p.due--
		p.mu.Unlock()
		if bad {
			_ = p.family.Kill() // what is left is ended again, and reported, by Kill
			return
		}
		p.lines <- slices.Clone(line[:len(line)-1])
	}
}

// await waits for the line that is due.
func (p *Process) await(ctx context.Context) ([]byte, error) {
	select {
	case line := <-p.lines:
		return line, nil
	case <-p.ended:
	case <-p.gone:
	case <-ctx.Done():
		p.Kill()
		return nil, p.withLog(context.Cause(ctx))
	}
	// The last thing it said counts, and how it ended is worth a moment.
	over := time.After(drain)
	for _, end := range []chan struct{}{p.ended, p.gone, p.logged} {
		select {
		case <-end:
		case <-over:
		}
	}
	select {
	case line := <-p.lines:
		return line, nil
	default:
		return nil, p.Err()
	}
}

// drain is how long the pipes of a program that has ended are still read: a child
// of it that lives on may hold them open.
const drain = time.Second

// Err says how it ended: the rule it broke, or ErrGone with how it died and what
// it said last on standard error.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	state := "it closed its standard output"
	select {
	case <-p.gone:
		if p.cmd.ProcessState != nil {
			state = p.cmd.ProcessState.String()
		}
	default:
	}
	return p.withLog(fmt.Errorf("%w: %s", clients.ErrGone, state))
}

// withLog adds what the subject said last on standard error.
func (p *Process) withLog(err error) error {
	lines := p.log.Last()
	if len(lines) == 0 {
		return err
	}
	return fmt.Errorf("%w; the last it said: %s", err, strings.Join(lines[max(0, len(lines)-shownLines):], " / "))
}

const shownLines = 5

// ask sends one request and waits for its answer.
func (p *Process) ask(ctx context.Context, req request) (answer, error) {
	all, err := p.askAll(ctx, req)
	if err != nil {
		return answer{}, err
	}
	return all[0], nil
}

// askAll sends requests, at most mostDue, and then waits for their answers.
func (p *Process) askAll(ctx context.Context, reqs ...request) (answers []answer, err error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	if err := p.send(reqs); err != nil {
		return nil, err
	}
	for _, req := range reqs {
		line, err := p.await(ctx)
		if err != nil {
			return nil, err
		}
		a, err := parseAnswer(line, req)
		if err != nil {
			p.spoil(err)
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// spoil remembers that it broke a rule: what it says after that means nothing.
func (p *Process) spoil(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		p.broken = err
	}
}

// send writes requests in one piece; their answers are due then.
func (p *Process) send(reqs []request) error {
	var lines []byte
	for i := range reqs {
		p.id++
		reqs[i].ID = p.id
		line, err := json.Marshal(reqs[i])
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	p.mu.Lock()
	bad := p.broken
	p.due += len(reqs)
	p.mu.Unlock()
	if bad != nil {
		return bad
	}
	// Far less than a pipe holds, so this does not wait for a subject that does not
	// read. An error is that it has ended, which who waits for the answer is told.
	_, _ = p.stdin.Write(lines)
	return nil
}

// Run implements clients.Client.
func (p *Process) Run(ctx context.Context, op clients.Operation) (clients.Answer, error) {
	req := request{Op: op.Op, SKU: op.SKU, Qty: op.Qty, Request: op.Request, Buyer: op.Buyer}
	if op.Op == model.Read {
		req = request{Op: op.Op, SKU: op.SKU}
	}
	a, err := p.ask(ctx, req)
	return a.Answer, err
}

// Kill implements clients.Client. Everything the subject started is ended with it.
func (p *Process) Kill() {
	p.closed.Do(func() {
		if p.family != nil {
			if err := p.family.Kill(); err != nil {
				fmt.Fprintf(os.Stderr, "stockproof: end subject: %v\n", err)
			} else {
				p.done()
			}
		}
		<-p.gone
		for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
			if f != nil {
				f.Close() // ends who reads it, whoever else has the pipe open
			}
		}
	})
	<-p.gone
}

// Stop implements clients.Client.
func (p *Process) Stop() error { return p.family.Stop() }

// Continue implements clients.Client.
func (p *Process) Continue() error { return p.family.Continue() }

// Gone implements clients.Client.
func (p *Process) Gone() <-chan struct{} { return p.gone }
