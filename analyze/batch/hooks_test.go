package batch

import "testing"

// TestHooksOfTwoRuns: the hooks of a run may wait for another run of the process.
func TestHooksOfTwoRuns(t *testing.T) {
	called := 0
	inner := &Hooks{Done: func() { called++ }}
	outer := &Hooks{Done: inner.done}
	outer.done()
	var none *Hooks
	none.done()
	if called != 1 {
		t.Errorf("the inner hook was called %d times", called)
	}
}
