package files

import (
	"context"
	"sync"
)

// Budget bounds the memory of concurrent work: a semaphore weighted by estimated bytes. A small
// request may overtake a larger one that waits.
type Budget struct {
	mu    sync.Mutex
	cond  *sync.Cond
	total int64
	free  int64
}

// NewBudget returns a Budget of a number of bytes.
func NewBudget(total int64) *Budget {
	b := &Budget{total: total, free: total}
	b.cond = sync.NewCond(&b.mu)
	return b
}

// Acquire waits until n bytes are free and reserves them; n is cut to the total, so that oversized
// work runs alone. It returns the amount for Release, or the error of ctx.
func (b *Budget) Acquire(ctx context.Context, n int64) (int64, error) {
	n = min(max(n, 0), b.total)
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.cond.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.free < n {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		b.cond.Wait()
	}
	b.free -= n
	return n, nil
}

// Release frees n bytes, as returned by Acquire.
func (b *Budget) Release(n int64) {
	b.mu.Lock()
	b.free += n
	b.mu.Unlock()
	b.cond.Broadcast()
}
