package main

import (
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// bar shows progress on standard error when that is a terminal, else nothing.
type bar struct {
	writer  progress.Writer // nil when nothing is shown
	tracker progress.Tracker
	done    chan struct{} // closed when the last picture is drawn
}

// newBar counts up to steps; 0 means that nobody knows how many there are.
func newBar(cmd *cobra.Command, steps int) *bar {
	b := &bar{tracker: progress.Tracker{Total: int64(steps), RemoveOnCompletion: true}}
	f, ok := cmd.ErrOrStderr().(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return b
	}
	b.writer, b.done = progress.NewWriter(), make(chan struct{})
	b.writer.SetOutputWriter(f)
	b.writer.SetUpdateFrequency(200 * time.Millisecond)
	b.writer.SetTrackerPosition(progress.PositionRight)
	b.writer.SetTrackerLength(30)
	b.writer.Style().Visibility.Percentage = steps > 0
	b.writer.AppendTracker(&b.tracker)
	go func() {
		defer close(b.done)
		b.writer.Render()
	}()
	return b
}

// Describe says what is going on.
func (b *bar) Describe(what string) { b.tracker.UpdateMessage(what) }

// Add says that n more steps are done.
func (b *bar) Add(n int) { b.tracker.Increment(int64(n)) }

// Tell says something that stays when the bar is gone.
func (b *bar) Tell(what string) {
	if b.writer != nil {
		b.writer.Log("%s", what)
	}
}

// Close removes the bar.
func (b *bar) Close() {
	if b.writer == nil {
		return
	}
	b.tracker.MarkAsDone()
	b.writer.Stop()
	<-b.done
}
