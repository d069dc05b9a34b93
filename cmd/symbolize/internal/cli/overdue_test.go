package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// TestEndOverdue interrupts a command that returns and one that hangs.
func TestEndOverdue(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		var stderr bytes.Buffer
		codes := make(chan int, 1)
		a := &App{Env: &Env{Stderr: &stderr, Exit: func(code int) { codes <- code }}}
		ctx, cancel := context.WithCancel(t.Context())
		wait := time.Hour
		if hangs {
			wait = 0
		}
		stop := a.endOverdue(ctx, wait)
		cancel()
		if hangs {
			if code := <-codes; code != Interrupted ||
				!strings.HasPrefix(stderr.String(), "symbolize: error: interrupted, ") {
				t.Errorf("status %d, %q", code, stderr.String())
			}
		}
		stop()
		if len(codes) > 0 {
			t.Error("a command that has returned is ended")
		}
	}
}
