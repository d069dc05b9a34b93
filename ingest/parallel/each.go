// Package parallel runs work on several goroutines, within a bound of memory.
package parallel

import (
	"context"
	"runtime"
	"sync"
)

// Each calls do for 0 ≤ i < n from at most workers goroutines, 0 for GOMAXPROCS, until one returns
// an error or ctx ends; the context of do ends with that. It returns the first error, or the cause
// of ctx's end, when all have returned.
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
