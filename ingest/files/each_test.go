package files

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func TestBudgetHoldsItsBound(t *testing.T) {
	b := NewBudget(100)
	var used, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			n, err := b.Acquire(t.Context(), int64(i*7)) // some want more than there is
			if err != nil {
				t.Error(err)
			}
			now := used.Add(n)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			used.Add(-n)
			b.Release(n)
		})
	}
	wg.Wait()
	if most.Load() > 100 || b.free != 100 {
		t.Errorf("at most %d in use, %d free at the end", most.Load(), b.free)
	}
}

func TestBudgetGivesUpWithContext(t *testing.T) {
	b := NewBudget(10)
	if _, err := b.Acquire(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() {
		_, err := b.Acquire(ctx, 1)
		errs <- err
	}()
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEach(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name       string
		workers, n int
		fails      int // the i that fails, -1 for none
	}{
		{name: "none", workers: 3, n: 0, fails: -1},
		{name: "more workers than work", workers: 9, n: 2, fails: -1},
		{name: "as many as processors", n: 100, fails: -1},
		{name: "the first fails", workers: 1, n: 100, fails: 0},
		{name: "one fails", workers: 3, n: 100, fails: 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var called atomic.Int64
			err := Each(t.Context(), tt.workers, tt.n, func(ctx context.Context, i int) error {
				called.Add(1)
				switch {
				case i == tt.fails:
					return failed
				case tt.fails >= 0 && i > tt.fails:
					<-ctx.Done() // ends with the error
				}
				return nil
			})
			if tt.fails < 0 && (err != nil || called.Load() != int64(tt.n)) {
				t.Errorf("%d calls, %v", called.Load(), err)
			}
			if tt.fails >= 0 && (!errors.Is(err, failed) || called.Load() > int64(tt.fails+tt.workers)) {
				t.Errorf("%d calls, %v", called.Load(), err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Each(ctx, 2, 5, func(context.Context, int) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
