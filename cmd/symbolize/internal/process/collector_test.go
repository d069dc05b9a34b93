package process

import (
	"runtime"
	"testing"
)

func TestPercentFor(t *testing.T) {
	const mb = 1 << 20
	for _, test := range []struct {
		name  string
		live  uint64
		asked int
		most  uint64
		want  int
	}{
		{name: "before the first collection", live: 0, asked: 40, want: heapFloor / (4 * mb) * 100},
		{name: "more is asked for", live: 0, asked: 1000, want: 1000},
		{name: "a tiny heap", live: 100, asked: 40, want: mostPercent},
		{name: "half of the floor", live: heapFloor / 2, asked: 40, want: 100},
		{name: "shortly below the floor", live: heapFloor - mb, asked: 40, want: 40},
		{name: "at the floor", live: heapFloor, asked: 40, want: 40},
		{name: "a large heap", live: 200 * mb, asked: 40, want: 40},
		{name: "below the most", live: 60 * mb, asked: 40, most: 32 * mb, want: 40},
		{name: "the most", live: 200 * mb, asked: 40, most: 32 * mb, want: 15},
		{name: "a very large heap", live: 20000 * mb, asked: 40, most: 32 * mb, want: leastPercent},
	} {
		if got := percentFor(test.live, &Growth{test.asked, test.most}); got != test.want {
			t.Errorf("%s: %d %%, want %d", test.name, got, test.want)
		}
	}
}

// collections counts the collections of a function that makes the given garbage.
func collections(bytes int) uint32 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range bytes >> 16 {
		garbage = make([]byte, 1<<16)
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

var garbage []byte

// TestSmallHeap makes 64 MB of garbage in a heap of next to nothing: at 40 % without a floor that
// is some 40 collections.
func TestSmallHeap(t *testing.T) {
	SetGC(func(string) string { return "" }, FoldGC)
	if n := collections(64 << 20); n == 0 || n > 16 {
		t.Errorf("%d collections, want 1 to 16", n)
	}
}
