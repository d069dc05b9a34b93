package sampler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"symbolize/ingest/format/rawdump"
)

func TestParseEvent(t *testing.T) {
	for _, c := range []struct {
		text string
		want Event
		bad  bool
	}{
		{text: "cpu-clock"},
		{text: "sched:sched_switch", want: Event{Kind: Tracepoint, Group: "sched", Name: "sched_switch"}},
		{text: "uprobe:/lib/libc.so.6:malloc",
			want: Event{Kind: Uprobe, Path: "/lib/libc.so.6", Function: "malloc"}},
		{text: "uprobe:/with:colon/a:f", want: Event{Kind: Uprobe, Path: "/with:colon/a", Function: "f"}},
		{text: "", bad: true},
		{text: "cycles", bad: true},
		{text: "sched:", bad: true},
		{text: ":name", bad: true},
		{text: "a:b:c", bad: true},
		{text: "../a:b", bad: true},
		{text: "uprobe:", bad: true},
		{text: "uprobe:/a", bad: true},
		{text: "uprobe:/a:", bad: true},
	} {
		got, err := ParseEvent(c.text)
		if got != c.want || (err != nil) != c.bad || c.bad && !errors.Is(err, ErrEvent) {
			t.Errorf("ParseEvent(%q) = %+v, %v", c.text, got, err)
		}
		if !c.bad && got.String() != c.text {
			t.Errorf("%q is printed as %q", c.text, got)
		}
	}
}

// TestHash has hashes differ where stacks do, be it in length alone.
func TestHash(t *testing.T) {
	seen := map[hash][]uint64{}
	add := func(w ...uint64) {
		h := hashOf(w)
		if old, ok := seen[h]; ok && !slices.Equal(old, w) {
			t.Errorf("%x and %x have one hash", old, w)
		}
		seen[h] = w
	}
	add()
	for n := range 4 {
		add(make([]uint64, n)...)
	}
	for bit := range 64 {
		add(1 << bit)
		add(0, 1<<bit)
		add(1<<bit, 0)
		add(1<<bit, 1<<bit)
	}
	for a := range uint64(64) {
		for b := range uint64(64) {
			add(a, b, 7)
		}
	}
}

func appendRecord(h hash, kind, length, pid uint32, frames []byte) []byte {
	o := binary.NativeEndian
	b := o.AppendUint64(o.AppendUint64(nil, h[0]), h[1])
	for _, v := range []uint32{kind, length, pid, 0} {
		b = o.AppendUint32(b, v)
	}
	return append(b, frames...)
}

// TestRecordCut reads every prefix of a record.
func TestRecordCut(t *testing.T) {
	frames := bytes.Repeat([]byte{7}, 2*userFrame)
	b := appendRecord(hash{1, 2}, userStack, uint32(len(frames)), 9, frames)
	for n := range len(b) {
		if _, ok := parseRecord(b[:n]); ok {
			t.Errorf("%d of %d bytes are a record", n, len(b))
		}
	}
	r, ok := parseRecord(append(b, 0, 0, 0, 0)) // the ring may give more than was put in
	if !ok || r.hash != (hash{1, 2}) || r.pid != 9 || !bytes.Equal(r.frames, frames) {
		t.Errorf("record %+v, %v", r, ok)
	}
	if _, ok := parseRecord(appendRecord(hash{}, 0, 1<<31, 0, frames)); ok {
		t.Error("a length beyond the record is taken")
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(hash{1, 2}, userStack, userFrame, 9, make([]byte, userFrame)))
	f.Add(appendRecord(hash{1, 2}, kernelStack, ^uint32(0), 9, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := parseRecord(b); ok && len(r.frames) > len(b)-recordHead {
			t.Fatalf("%d bytes of frames in a record of %d", len(r.frames), len(b))
		}
	})
}

// userFrames makes frames of status 1 (VALID), or 2 (IP) at the given places.
func userFrames(status ...uint32) (b []byte) {
	for i, s := range status {
		f := make([]byte, userFrame)
		binary.NativeEndian.PutUint32(f, s)
		binary.NativeEndian.PutUint64(f[24:], uint64(i+1))
		b = append(b, f...)
	}
	return b
}

func twoTables(t *testing.T) (tables [2]*table) {
	t.Helper()
	for i := range tables {
		var err error
		if tables[i], err = newTable(uint32(i), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tables[i].close)
	}
	return tables
}

func TestTable(t *testing.T) {
	x := twoTables(t)[userStack]
	valid, bare := userFrames(1, 1), userFrames(1, 2, 1)
	if x.add(hash{1, 1}, valid) || !x.add(hash{2, 2}, bare) || !x.add(hash{2, 2}, bare) {
		t.Error("bare addresses are not told from build IDs")
	}
	if id := x.id(hash{3, 3}); id != 2 || x.received(id) || x.isBare(id) {
		t.Errorf("a stack that is on its way has id %d", id)
	}
	for _, errno := range []int32{-14, -12, -1} {
		if id := x.id(hash{uint64(int64(errno)), noStack}); id != errno || !x.received(id) {
			t.Errorf("errno %d has id %d", errno, id)
		}
	}
	if id := x.id(hashOf(nil)); id != -errFault {
		t.Errorf("an empty stack has id %d", id)
	}
	if x.count != 2 || x.deep != 3 {
		t.Errorf("%d stacks, the deepest of %d", x.count, x.deep)
	}
	if x.flush(); x.err != nil {
		t.Fatal(x.err)
	}
	buf := make([]byte, Depth*userFrame)
	for id, want := range [][]byte{valid, bare} {
		if got, err := x.read(int32(id), buf); err != nil || !bytes.Equal(got, want) {
			t.Errorf("stack %d is %x, %v", id, got, err)
		}
	}
}

// allUsed has all stacks of a table written.
func allUsed(x *table) []bool { return slices.Repeat([]bool{true}, len(x.kept)) }

// TestCountsLost counts samples without a stack by cause, and adds up equal ones.
func TestCountsLost(t *testing.T) {
	tables, c := twoTables(t), newCounts()
	tables[userStack].add(hash{1, 1}, userFrames(2))
	kernel := hash{uint64(0xfffffffffffffff2), noStack} // −14
	here := countKey{User: hash{1, 1}, Kernel: kernel, PID: 5, Comm: [16]byte{'a'}}
	gone := countKey{User: hash{9, 9}, Kernel: kernel, PID: 5}
	c.add(tables, &here, [2]uint64{}, countValue{2, 20})
	c.add(tables, &here, [2]uint64{}, countValue{3, 30})
	if id, _ := c.add(tables, &gone, [2]uint64{}, countValue{7, 0}); tables[userStack].received(id) {
		t.Error("a stack that never came is there")
	}
	if ring, limit := c.withoutStack(tables); ring != 7 || limit != 0 {
		t.Errorf("%d and %d samples without a stack, want 7 and 0", ring, limit)
	}
	if list := c.sorted(); len(list) != 2 || *c.of[list[1]] != (countValue{5, 50}) {
		t.Errorf("counts %+v", c.of)
	}
}

// TestDumps writes dumps and reads them with package bundle.
func TestDumps(t *testing.T) {
	tables, c := twoTables(t), newCounts()
	tables[userStack].add(hash{1, 1}, userFrames(1))
	tables[userStack].add(hash{2, 2}, userFrames(1, 1, 2))
	key := countKey{User: hash{2, 2}, Kernel: hashOf(nil), PID: 77, Comm: [16]byte{'s', 'h'}}
	c.add(tables, &key, [2]uint64{}, countValue{4, 400})

	nums := [2]numbering{}
	for i, x := range tables {
		var err error
		if nums[i], err = x.numberUsed(allUsed(x)); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := tables[userStack].writeStacks(&b, &nums[userStack], userDump, 12, nil); err != nil {
		t.Fatal(err)
	}
	d, err := rawdump.Open("stacks", bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if h := d.Header; h.Depth != 3 || h.ValueSize != 3*userFrame || h.Entries != 2 ||
		h.Flags != rawdump.FlagBuildID || h.Type != typeStackTrace || h.Time != 12 {
		t.Errorf("header of stacks %+v", h)
	}
	padded := append(userFrames(1), make([]byte, 2*userFrame)...)
	for i, want := range [][]byte{padded, userFrames(1, 1, 2)} {
		k, v, ok := d.Next()
		if !ok || binary.NativeEndian.Uint32(k) != uint32(i) || !bytes.Equal(v, want) {
			t.Errorf("stack %d: %x %x %v", i, k, v, ok)
		}
	}

	b.Reset()
	lost := map[string]uint64{LostRing: 3}
	if c = c.renumbered(&nums); len(c.of) != 1 {
		t.Errorf("counts %+v", c.of)
	}
	if err := c.write(&b, 12, lost, rawdump.Columns, dumpThread); err != nil {
		t.Fatal(err)
	}
	if d, err = rawdump.Open("counts", bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
		t.Fatal(err)
	}
	o := binary.NativeEndian
	k, v, ok := d.Next()
	if !ok || o.Uint32(k) != 1 || int32(o.Uint32(k[4:])) != -errFault || o.Uint32(k[8:]) != 77 ||
		string(k[12:14]) != "sh" || o.Uint64(v) != 4 || o.Uint64(v[8:]) != 400 ||
		!maps.Equal(d.Header.Lost, lost) {
		t.Errorf("counts: %x %x %v, header %+v", k, v, ok, d.Header)
	}
}
