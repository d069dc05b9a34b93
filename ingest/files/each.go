package files

import (
	"context"
	"runtime"
	"sync"
)

// Each calls do for 0 ≤ i < n from at most workers goroutines (0: GOMAXPROCS). An error of do, or
// the end of ctx, cancels the context of all calls. Each returns when every call has returned, with
// the first error or the cause of ctx.
func Each(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
