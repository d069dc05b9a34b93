package sampler

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"
)

// TestNumberUsed numbers the stacks in counts by their callers, and reports all others as
// absent.
func TestNumberUsed(t *testing.T) {
	tables, c := twoTables(t), newCounts()
	x := tables[kernelStack]
	for i, frames := range [][]uint64{{7, 5, 9}, {1, 5}, {3, 5, 9}, {2, 5, 9}, {5, 9}} {
		x.add(hash{uint64(i), 1}, kernelFrames(frames...))
	}
	for i := range uint64(7) { // 5 is on its way, 6 too; 3 is not counted
		if i != 3 {
			c.add(tables, &countKey{User: hashOf(nil), Kernel: hash{i, 1}}, [2]uint64{}, countValue{Count: 1})
		}
	}
	n, err := x.numberUsed(c.used(x))
	if err != nil || !slices.Equal(n.order, []int32{1, 4, 2, 0}) {
		t.Fatalf("order %v, %v", n.order, err)
	}
	for id, want := range map[int32]int32{0: 3, 1: 0, 2: 2, 3: 4, 4: 1, 5: 4, 6: 4, 99: 4, noID: 4,
		-14: -14} {
		if got := n.of(id); got != want {
			t.Errorf("number of %d is %d, want %d", id, got, want)
		}
	}
	nums := [2]numbering{kernelStack: n}
	if got := c.renumbered(&nums); got.total() != 6 || len(got.of) != 5 { // 5 and 6 are one
		t.Errorf("%d samples under %d keys", got.total(), len(got.of))
	}
	if used := c.used(tables[userStack]); slices.Contains(used, true) {
		t.Errorf("users' stacks %v", used)
	}
	x.file.Close()
	if _, err := x.numberUsed(c.used(x)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("stacks that cannot be read: %v", err)
	}
}

// TestHashIn: the bytes of frames have the hash of their words.
func TestHashIn(t *testing.T) {
	if got, want := hashIn(0, kernelFrames(1, 1<<40, 3)), hashOf([]uint64{1, 1 << 40, 3}); got != want {
		t.Errorf("%x, want %x", got, want)
	}
	if hashIn(0, nil) != hashOf(nil) || bytes.Equal(kernelFrames(1), kernelFrames(2)) {
		t.Error("an empty stack has another hash")
	}
}
