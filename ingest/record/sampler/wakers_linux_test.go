package sampler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/format/stackmap"
)

// TestWakers writes waits with their wakers and reads them back: addresses in the waker's stack are
// located in its process, an interrupted thread has no part, stacks of an ended part are kept, and a
// stack that was not received is lost.
func TestWakers(t *testing.T) {
	s := withoutKernel(t, Options{Event: Event{Kind: OffCPU}, Wakers: true})
	interrupts := []Range{{0xffffffff81000100, 0xffffffff81000200}}
	s.tables[kernelStack].interrupts = interrupts
	user, kernel := s.tables[userStack], s.tables[kernelStack]
	user.add(hash{1, 1}, one(statusValid, 5, 0x1))
	user.add(hash{2, 1}, one(statusIP, 0, 0x1010)) // in a file of process 1, gone in process 3
	kernel.add(hash{3, 1}, kernelFrames(0xffffffff81000010))
	kernel.add(hash{4, 1}, kernelFrames(0xffffffff81000010, 0xffffffff81000180))
	s.carried = carried{hash{5, 1}: one(statusValid, 5, 0x7)}
	none := hash{1<<64 - errFault, noStack}
	waker := func(user, kernel hash, pid, part uint32) threadKey {
		return threadKey{User: user, Kernel: kernel, PID: pid, Part: part, Mapped: 50,
			Comm: [16]byte{'w', byte('0' + pid)}}
	}
	for i, w := range []threadKey{
		{},
		waker(hash{2, 1}, hash{3, 1}, 1, 0), waker(hash{2, 1}, hash{3, 1}, 3, 0),
		waker(hash{2, 1}, hash{4, 1}, 1, 0), waker(hash{1, 1}, hash{4, 1}, 3, 0),
		waker(none, hash{3, 1}, 0, 0), waker(hash{5, 1}, none, 1, 9), waker(hash{9, 9}, hash{3, 1}, 1, 0),
	} {
		s.addCount(&countKey{User: hash{1, 1}, Kernel: none, PID: 4, Comm: [16]byte{'s'}, State: 1,
			Waker: w}, countValue{Count: 1 << i, Weight: 1})
	}
	user.flush()
	kernel.flush()
	if err := s.Explain(threePlaces{}); err != nil {
		t.Fatal(err)
	}
	if s.unplaced[Gone] != 4 {
		t.Errorf("%d samples have wakers in ended processes, want 4", s.unplaced[Gone])
	}
	if got := s.withoutStack(); got[LostRing] != 128 {
		t.Errorf("lost %v, want 128 in the ring", got)
	}
	set := readBack(t, commit(t, s))
	part := func(p stackmap.Part) (text string) {
		if p.Cause != stackmap.Present {
			return p.Cause.String()
		}
		for _, f := range set.Stack(p.Stack) {
			text += fmt.Sprintf("%d:%#x ", f.Status, f.Offset)
		}
		return strings.TrimSpace(text)
	}
	got := make(map[string]uint64) // samples by waker
	for _, x := range set.Samples {
		text := "unknown"
		if x.Waker > 0 {
			w := set.Wakers[x.Waker-1]
			text = fmt.Sprintf("%d %s | %s | %s | %v", w.PID, w.Comm, part(w.User), part(w.Kernel), w.Interrupt)
		}
		got[text] += x.Count
	}
	want := map[string]uint64{
		"unknown": 1,
		"1 w1 | 1:0x50 | 2:0xffffffff81000010 | false":                   2,
		"3 w3 | 2:0xffffffffffffff | 2:0xffffffff81000010 | false":       4,
		"0  | absent | 2:0xffffffff81000010 2:0xffffffff81000180 | true": 8 + 16,
		"0  | absent | 2:0xffffffff81000010 | true":                      32,
		"1 w1 | 1:0x7 | absent | false":                                  64,
		"1 w1 | not in the dump | 2:0xffffffff81000010 | false":          128,
	}
	if !maps.Equal(got, want) {
		t.Errorf("wakers\n%q\nwant\n%q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		t.Log(got)
	}
}
