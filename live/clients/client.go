package clients

import (
	"context"

	"stockproof/live/reaper"
)

// Client is a process that serves the operations of one client of a sale.
type Client interface {
	// Run has it run one operation. The error is ErrGone when it ended meanwhile:
	// the operation's outcome is then unknown.
	Run(context.Context, Operation) (Answer, error)
	// Kill ends it with SIGKILL and returns when it is gone. It works on a stopped
	// one too, and may be called more than once.
	Kill()
	// Stop stops it and returns when it stands still; Continue lets it go on.
	Stop() error
	Continue() error
	// Gone is closed when it has ended, and Err says how.
	Gone() <-chan struct{}
	Err() error
}

// Launcher is a scheme that is served by a program of its own, not by this
// binary. Its clients have their settings from the start and keep them.
type Launcher interface {
	Launch(context.Context, *reaper.Reaper, Setup) (Client, error)
	// Alive is an error when the program that serves everything else of it, past
	// the proxies, has ended.
	Alive() error
}
