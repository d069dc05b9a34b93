package analyze_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"symbolize/analyze"
	"symbolize/analyze/export"
	"symbolize/ingest/input"
)

// A recording of perf record is named with the program that it recorded, and printed as folded
// stacks.
func Example() {
	ctx := context.Background()
	s, err := analyze.Open(ctx, analyze.Options{With: []string{"../fixtures/objects"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	p, err := s.Load(ctx, "../fixtures/captures/fixed.data")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = export.Folded(os.Stdout, p, export.FoldedOptions{Event: p.DefaultEvent()})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// fixed;[libc.so.6];main;collatz 492462250
	// fixed;[libc.so.6];main;longest_below 5025125
}

// Errors can be tested for, and may have a hint.
func ExampleSession_Load_errors() {
	ctx := context.Background()
	s, err := analyze.Open(ctx, analyze.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	_, err = s.Load(ctx, "example_test.go")
	fmt.Println(errors.Is(err, input.ErrNotCapture))
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		fmt.Println(h.Hint())
	}
	// Output:
	// true
	// a capture is what `perf record -g` or a pprof profiler writes; `symbolize info FILE` identifies a file
}
