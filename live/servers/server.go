package servers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"stockproof/live/tail"
)

var errEndedOnPurpose = errors.New("ended on purpose before it was ready")

// server is one running server, watched until it ends.
type server struct {
	name string // redis or postgres
	log  *tail.Log

	stopping atomic.Bool // set before it is ended on purpose
	endOnce  sync.Once
	ended    chan struct{} // closed when it has ended
	status   string        // how; to be read after ended is closed
}

func newServer(name string, isReady func(string) bool) *server {
	return &server{name: name, log: tail.New(isReady), ended: make(chan struct{})}
}

// end records that the server has ended.
func (s *server) end(status string) {
	s.endOnce.Do(func() {
		s.status = status
		close(s.ended)
	})
}

// died describes an end nobody asked for, or returns nil.
func (s *server) died() error {
	select {
	case <-s.ended:
		if s.stopping.Load() {
			return nil
		}
		return &DiedError{Server: s.name, Status: s.status, Log: s.log.Last()}
	default:
		return nil
	}
}

// awaitReady waits for the line in the log that means ready.
func (s *server) awaitReady(ctx context.Context) error {
	select {
	case <-s.log.Ready():
		return nil
	case <-s.ended:
		if err := s.died(); err != nil {
			return err
		}
		return errEndedOnPurpose // it must not pass for ready
	case <-ctx.Done():
		return fmt.Errorf("not ready: %w; log: %q", context.Cause(ctx), s.log.Last())
	}
}
