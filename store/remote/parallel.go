package remote

import (
	"context"
	"sync"
)

// parallel calls do for 0 ≤ i < n from jobs goroutines, until one returns an error.
func parallel(ctx context.Context, jobs, n int, do func(ctx context.Context, i int) error) error {
	if jobs <= 0 {
		jobs = DefaultJobs
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	next := 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	var all sync.WaitGroup
	for range min(jobs, n) {
		all.Go(func() {
			for i := take(); i < n && ctx.Err() == nil; i = take() {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// room bounds the memory of tables that are under way.
type room struct {
	mu   sync.Mutex
	wait *sync.Cond
	left int64
	size int64
}

func newRoom(size int64) *room {
	r := &room{left: size, size: size}
	r.wait = sync.NewCond(&r.mu)
	return r
}

// take waits until n bytes are free, all of them for more than there are, and returns the function
// that gives them back.
func (r *room) take(n int64) (give func()) {
	n = min(n, r.size)
	r.mu.Lock()
	for r.left < n {
		r.wait.Wait()
	}
	r.left -= n
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		r.left += n
		r.mu.Unlock()
		r.wait.Broadcast()
	}
}
