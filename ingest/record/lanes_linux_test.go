package record

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// TestLanes: jobs of a key run in their order, a job that hangs holds up its key alone, and
// is reported.
func TestLanes(t *testing.T) {
	l := newLanes[string](2)
	if left := l.wait(time.Hour); left != nil {
		t.Errorf("%q are left of nothing", left)
	}
	hung, done := make(chan struct{}), make(chan struct{})
	l.run("hung", func() { <-hung })
	var order []int
	var others atomic.Int32
	for i := range 100 {
		l.run("a", func() { order = append(order, i) })
		l.run("hung", func() {})
		for _, key := range []string{"b", "c", "d"} {
			l.run(key, func() { others.Add(1) })
		}
	}
	l.run("e", func() { close(done) }) // the last key to wait for a lane
	<-done
	left := l.wait(0)
	for ; !slices.Equal(left, []string{"hung"}); left = l.wait(time.Millisecond) {
		if !slices.Contains(left, "hung") {
			t.Fatalf("left: %q", left)
		}
	}
	close(hung)
	if left = l.wait(time.Hour); len(left) != 0 || others.Load() != 300 || len(order) != 100 ||
		!slices.IsSorted(order) || l.running != 0 {
		t.Errorf("left %q, %d jobs of others, order %d, %d run", left, others.Load(), order, l.running)
	}
}
