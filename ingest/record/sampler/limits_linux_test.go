package sampler

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
)

// TestTableLimit: stacks beyond the bound are reported as such, and known ones still found.
func TestTableLimit(t *testing.T) {
	tables, c := twoTables(t), newCounts()
	x := tables[userStack]
	x.limit = 2
	for i := range uint64(4) {
		x.add(hash{i + 1, 1}, userFrames(2))
	}
	if x.count != 2 || x.id(hash{2, 1}) != 1 || x.id(hash{3, 1}) != noID {
		t.Errorf("%d stacks, ids %d and %d", x.count, x.id(hash{2, 1}), x.id(hash{3, 1}))
	}
	if x.received(noID) || x.isBare(noID) {
		t.Error("the id of all further stacks is one of a stack")
	}
	for i := range uint64(4) {
		c.add(tables, &countKey{User: hash{i + 1, 1}, Kernel: hashOf(nil)}, [2]uint64{}, countValue{Count: 10})
	}
	if ring, limit := c.withoutStack(tables); ring != 0 || limit != 20 {
		t.Errorf("%d and %d samples without a stack, want 0 and 20", ring, limit)
	}
}

// TestCountsLimit: samples beyond the limit of keys or comms are refused; existing keys still
// count.
func TestCountsLimit(t *testing.T) {
	tables, c := twoTables(t), newCounts()
	c.limit = 3
	key := func(pid uint32, comm byte) *countKey {
		return &countKey{User: hashOf(nil), Kernel: hashOf(nil), PID: pid, Comm: [16]byte{comm}}
	}
	for pid := range uint32(5) {
		c.add(tables, key(pid, 'a'), [2]uint64{}, countValue{1, 5})
	}
	c.add(tables, key(0, 'a'), [2]uint64{}, countValue{7, 5})
	if c.refused != 2 || c.total() != 10 || len(c.of) != 3 {
		t.Errorf("%d refused, %d counted under %d keys", c.refused, c.total(), len(c.of))
	}
	for comm := range byte(10) {
		c.add(tables, key(9, comm), [2]uint64{}, countValue{1, 5})
	}
	if len(c.names) > c.limit || c.refused != 12 {
		t.Errorf("%d comms, %d refused", len(c.names), c.refused)
	}
}

// TestSorted: dumps have one order for counts in any order.
func TestSorted(t *testing.T) {
	var want []tally
	for run := range 3 {
		tables, c := twoTables(t), newCounts()
		tables[userStack].add(hash{1, 1}, userFrames(1))
		for i := range 64 {
			i = (i*(2*run+1) + run) % 64 // each of 64 once
			key := countKey{User: hash{1, 1}, Kernel: hashOf(nil), PID: uint32(i / 8)}
			if i%3 == 0 {
				key.User = hashOf(nil)
			}
			copy(key.Comm[:], fmt.Sprint("comm", i%8))
			c.add(tables, &key, [2]uint64{}, countValue{Count: 1})
		}
		list := c.sorted()
		for i := range list {
			list[i].comm = uint32(c.names[list[i].comm][4]) // its number depends on the order
		}
		if want == nil {
			want = list
		}
		if len(list) != 64 || !slices.Equal(list, want) {
			t.Fatalf("run %d: %v, before %v", run, list, want)
		}
	}
}

// TestTableFile: stacks that cannot be written are counted as not received, earlier ones are kept;
// a stack that cannot be read back is an error.
func TestTableFile(t *testing.T) {
	tables, c := twoTables(t), newCounts()
	x := tables[kernelStack]
	large := make([]byte, Depth*kernelFrame)
	x.add(hash{1, 1}, large)
	x.flush()
	x.file.Close() // as good as a full disk
	for i := range uint64(1000) {
		x.add(hash{i + 2, 2}, large)
	}
	x.flush()
	if !errors.Is(x.err, os.ErrClosed) || len(x.ids) < 1000 {
		t.Fatalf("error %v, %d stacks known", x.err, len(x.ids))
	}
	if x.received(x.id(hash{500, 2})) || x.received(x.id(hash{1001, 2})) {
		t.Error("a stack is there that was not written")
	}
	if got := x.count; got != 0 { // of a closed file nothing is readable
		t.Errorf("%d stacks", got)
	}
	c.add(tables, &countKey{User: hashOf(nil), Kernel: hash{500, 2}}, [2]uint64{}, countValue{Count: 3})
	s := &Sampler{Part: &Part{tables: tables, counts: c}}
	if got := s.withoutStack(); got[LostFile] != 3 || len(got) != 1 {
		t.Errorf("lost %v", got)
	}
}

// fullFile is a file that accepts a limited number of bytes.
func fullFile(t *testing.T, x *table, limit int) {
	t.Helper()
	x.buf = bufio.NewWriterSize(&limited{x.file, limit}, 4096)
}

type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(l.left, len(b))
	l.left -= n
	n, err := l.w.Write(b[:n])
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

// TestTableFull keeps the stacks that fit on a full disk.
func TestTableFull(t *testing.T) {
	x := twoTables(t)[kernelStack]
	fullFile(t, x, 10_000)
	one := make([]byte, 1000)
	for i := range uint64(64) {
		x.add(hash{i + 1, 1}, append(one, byte(i+1), 0, 0, 0, 0, 0, 0, 0))
	}
	x.flush()
	if x.count != 9 || !errors.Is(x.err, syscall.ENOSPC) { // 9 of 1008 bytes
		t.Errorf("%d stacks, %v", x.count, x.err)
	}
	buf := make([]byte, Depth*kernelFrame)
	for id := range int32(9) {
		if b, err := x.read(id, buf); err != nil || b[1000] != byte(id+1) {
			t.Errorf("stack %d: %v", id, err)
		}
	}
	var b bytes.Buffer
	n, err := x.numberUsed(allUsed(x))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.writeStacks(&b, &n, kernelDump, 0, nil); err != nil {
		t.Error(err)
	}
	if err := x.file.Truncate(10); err != nil {
		t.Fatal(err)
	}
	x.buf, x.err = bufio.NewWriter(x.file), nil
	if _, err := x.numberUsed(allUsed(x)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("frames that are gone: %v", err)
	}
	if err := x.writeStacks(&b, &n, kernelDump, 0, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("frames that are gone: %v", err)
	}
}

// TestNoPlace has no table where temporary files cannot be.
func TestNoPlace(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/nowhere")
	if x, err := newTable(userStack, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("table %v, %v", x, err)
	}
}

func TestSizes(t *testing.T) {
	if got := (mapSizes{}).orDefault(); got != (mapSizes{1 << 16, 1 << 16, 1 << 16, 8 << 20}) {
		t.Errorf("sizes %+v", got)
	}
	if got := (mapSizes{counts: 8, ring: 4096}).orDefault(); got.counts != 8 || got.ring != 4096 ||
		got.seen == 0 || got.threads == 0 {
		t.Errorf("sizes %+v", got)
	}
}
