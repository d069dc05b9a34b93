package cli

import (
	"context"
	"time"
)

// grace is the time in which a command may publish its work and close the store after an interrupt.
// The next run repeats unpublished work.
const grace = 10 * time.Second

// endOverdue ends the process if a command does not return in time after ctx is cancelled. The
// command calls stop when it returns.
func (a *App) endOverdue(ctx context.Context, grace time.Duration) (stop func()) {
	if a.Env.Exit == nil {
		return func() {}
	}
	returned := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		select {
		case <-returned:
		case <-time.After(grace):
			a.Print("error", "interrupted, and ended in the middle of the work")
			a.Env.Exit(Interrupted)
		}
	})
	return func() {
		cancel()
		close(returned)
	}
}
