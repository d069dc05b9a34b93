package input

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
)

// TestReplayInOrder: samples come in order of time, as perf script prints them, though the file has
// the samples of each CPU together.
func TestReplayInOrder(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(c capture)
		want  []uint64
	}{
		{name: "one round", build: func(c capture) {
			for _, at := range []uint64{3, 5, 9, 2, 4, 9, 1} {
				c.hit(7, at, cU, 0x400010)
			}
			c.FinishedRound()
		}, want: []uint64{1, 2, 3, 4, 5, 9, 9}},
		{name: "a round that begins before the one before it ends", build: func(c capture) {
			for _, round := range [][]uint64{{3, 9, 2, 4}, {10, 12, 5, 7}, {11, 20, 13}, {}, {25, 22}} {
				for _, at := range round {
					c.hit(7, at, cU, 0x400010)
				}
				c.FinishedRound()
			}
		}, want: []uint64{2, 3, 4, 5, 7, 9, 10, 11, 12, 13, 20, 22, 25}},
		{name: "without rounds", build: func(c capture) {
			for _, at := range []uint64{8, 6, 7} {
				c.hit(7, at, cU, 0x400010)
			}
		}, want: []uint64{6, 7, 8}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCapture()
			c.lib(7, 0x400000, 0x1000, 0, "/bin/x", 0)
			tc.build(c)
			cp, err := openBytes(t, c.Bytes(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			err = cp.Replay(t.Context(), func(s *ReplaySample) error {
				got = append(got, s.Time)
				return nil
			})
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("times %d, %v; want %d", got, err, tc.want)
			}
		})
	}
}

// TestReplayCanceled: a replay ends with its context.
func TestReplayCanceled(t *testing.T) {
	c := openFixture(t, "mixed", Options{})
	if _, err := c.Profile(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Replay(ctx, func(*ReplaySample) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("replay: %v", err)
	}
}

// TestReplayMemory: a replay uses one buffer for all chunks of a file.
func TestReplayMemory(t *testing.T) {
	data := busyHost(40)
	c, err := openReader(data, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := recordsOf(c).state.Records.NumChunks(); n < 50 {
		t.Fatalf("%d chunks", n)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	samples := uint64(0)
	if err := c.Replay(t.Context(), func(*ReplaySample) error { samples++; return nil }); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; samples != p.Stats.Samples || n > 8<<20 {
		t.Errorf("%d samples of %d, %d KiB allocated", samples, p.Stats.Samples, n>>10)
	}
}
