package input

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"symbolize/ingest/sideband"
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

// TestSampleQueue: with rounds as perf makes them every sample comes once and in order, and
// no more than two rounds are kept.
func TestSampleQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var q sampleQueue
	var got, all []queuedSample
	emit := func(s queuedSample) error {
		got = append(got, s)
		return nil
	}
	const perRound = 400
	for round := range uint64(50) {
		for cpu := range uint64(4) { // read one after the other, each a little later
			at := round * 1000
			for range perRound / 4 {
				at += rng.Uint64N(10)
				s := queuedSample{time: at + cpu*40, at: sideband.Position(len(all)), size: 8}
				all = append(all, s)
				q.add(s)
			}
		}
		if err := q.round(emit); err != nil {
			t.Fatal(err)
		}
		if len(q.pending) > 2*perRound {
			t.Fatalf("%d samples are kept", len(q.pending))
		}
	}
	if err := q.rest(emit); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b queuedSample) int { return cmp.Compare(a.time, b.time) })
	if !reflect.DeepEqual(got, all) {
		t.Error("the samples are not those that came, in order of time")
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
