package bundle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"symbolize/fixtures/must"
	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
)

// The stacks and counts of a test's segment: users' stacks of one frame, by name.
type testCount struct {
	stack   string // "" if none was recorded
	pid     int32
	program uint32
	samples uint64
	waker   string // the stack of the waker, in process 7, program 0
}

const (
	testKey = "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:12:16,program:28:4," +
		"waker_user_stack_id:32:4,waker_kernel_stack_id:36:4,waker_tgid:40:4,waker_comm:44:16," +
		"waker_program:60:4"
	testKeySize = 64
)

var testSamples = Samples{Event: "cpu-clock", Unit: "nanoseconds", Period: 10,
	Stacks: "dumps/stacks", KernelStacks: "dumps/kernel_stacks", Counts: "dumps/counts",
	Key: testKey, Value: "0:8"}

// addCounts adds the dumps of counts, in their order, to a writer.
func addCounts(t testing.TB, w *Writer, list []testCount) {
	t.Helper()
	var names []string
	for _, c := range list {
		if c.stack != "" && !slices.Contains(names, c.stack) {
			names = append(names, c.stack)
		}
	}
	slices.Sort(names)
	var stacks, counts [][2][]byte
	for i, name := range names {
		value := make([]byte, 2*rawdump.BuildIDFrame)
		copy(value, name)
		stacks = append(stacks, [2][]byte{binary.LittleEndian.AppendUint32(nil, uint32(i)), value})
	}
	slices.SortFunc(list, func(a, b testCount) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), strings.Compare(a.stack, b.stack))
	})
	for _, c := range list {
		key := make([]byte, testKeySize)
		put := func(key []byte, stack string, pid int32, program uint32) {
			id := int32(-14)
			if stack != "" {
				id = int32(slices.Index(names, stack))
			}
			binary.LittleEndian.PutUint32(key, uint32(id))
			binary.LittleEndian.PutUint32(key[4:], ^uint32(13))
			binary.LittleEndian.PutUint32(key[8:], uint32(pid))
			copy(key[12:], "comm")
			binary.LittleEndian.PutUint32(key[28:], program)
		}
		put(key, c.stack, c.pid, c.program)
		put(key[32:], c.waker, 7, 0)
		value := binary.LittleEndian.AppendUint64(nil, c.samples)
		counts = append(counts, [2][]byte{key, value})
	}
	for _, d := range []struct {
		name  string
		h     rawdump.Header
		pairs [][2][]byte
	}{
		{name: "dumps/stacks",
			h: rawdump.Header{Type: stackTrace, Flags: rawdump.FlagBuildID, KeySize: 4,
				ValueSize: 2 * rawdump.BuildIDFrame, Depth: 2, Packing: rawdump.Trimmed,
				Lost: map[string]uint64{"x": 1}}, pairs: stacks},
		{name: "dumps/kernel_stacks",
			h: rawdump.Header{Type: stackTrace, KeySize: 4, ValueSize: 8, Depth: 1,
				Packing: rawdump.Trimmed}},
		{name: "dumps/counts", h: rawdump.Header{Type: 1, KeySize: testKeySize, ValueSize: 8},
			pairs: counts},
	} {
		data, err := rawdump.Append(nil, d.h, d.pairs)
		if err == nil {
			err = w.Add(d.name, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// countsOf reads the counts of a bundle: "stack pid mappings [<waker's mappings]" to samples.
func countsOf(t testing.TB, b *Bundle) map[string]uint64 {
	t.Helper()
	open := func(name string) *rawdump.Reader {
		r, size, err := b.Entry(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := rawdump.Open(name, r, size)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var names []string
	d := open("dumps/stacks")
	for _, value, ok := d.Next(); ok; _, value, ok = d.Next() {
		names = append(names, string(bytes.TrimRight(value, "\x00")))
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("stacks %q", names)
	}
	out := make(map[string]uint64)
	d = open("dumps/counts")
	for key, value, ok := d.Next(); ok; key, value, ok = d.Next() {
		thread := func(key []byte) string {
			stack := "none"
			if id := int32(binary.LittleEndian.Uint32(key)); id >= 0 {
				stack = names[id]
			}
			pid := int32(binary.LittleEndian.Uint32(key[8:]))
			entry := ProgramMapsName(pid, binary.LittleEndian.Uint32(key[28:]))
			text := []byte("no mappings")
			if b.Has(entry) {
				text, _ = b.ReadEntry(entry, 1000)
			}
			return fmt.Sprintf("%s %d %s", stack, pid, text)
		}
		k := thread(key)
		if int32(binary.LittleEndian.Uint32(key[32:])) >= 0 {
			k += " <" + thread(key[32:])
		}
		if _, ok := out[k]; ok {
			t.Errorf("%s is counted twice", k)
		}
		out[k] += binary.LittleEndian.Uint64(value)
	}
	if d.Err() != nil || d.Header.Packing != rawdump.Columns {
		t.Errorf("counts: %v, packing %d", d.Err(), d.Header.Packing)
	}
	return out
}

// testPerfData is a side band with one BPF load of an id, and a list of one entry.
func testPerfData(t testing.TB, id uint32) []byte {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := perfdata.NewWriter(f, false, []perfdata.Event{{Attr: perfdata.Attr{
		Type: perfdata.AttrSoftware, Config: 9}}})
	if err != nil {
		t.Fatal(err)
	}
	w.WriteBPFEvent(&perfdata.BPFEvent{Kind: perfdata.BPFLoad, ID: id}, perfdata.SampleID{})
	w.SetFeature(perfdata.FeatureBPFBTF, []byte{1, 0, 0, 0, byte(id)})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data := must.Read(t, f.Name())
	return data
}

func testClock(n int) Clocks {
	return Clocks{Perf: uint64(n), Realtime: 1_700_000_000_000_000_000 + uint64(n)*1_000_000_000}
}

// addPart adds the entries of the n-th part of the test's recording.
func addPart(t testing.TB, w *Writer, n int) *Manifest {
	t.Helper()
	maps := fmt.Sprintf("mappings %d\n", n/3)
	for name, text := range map[string]string{"proc/7/maps": maps, "kernel/notes": fmt.Sprint(n),
		fmt.Sprintf("dumps/maps/1-x/%06d", n): "BPFDUMP\n"} {
		if err := w.Add(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Add(PerfDataName, testPerfData(t, uint32(n))); err != nil {
		t.Fatal(err)
	}
	addCounts(t, w, []testCount{{stack: "a", pid: 7, program: 0, samples: 1}, {stack: "b", pid: 8,
		program: 0, samples: 10, waker: "a"}, {pid: 7, program: 0, samples: 100},
		{stack: fmt.Sprintf("n%03d", n), pid: 9, program: 0, samples: 1000}})
	s := testSamples
	s.Files = []File{{BuildID: fmt.Sprintf("%02x", n%2), Path: "/x"}}
	return &Manifest{Begin: testClock(n), End: testClock(n + 1), Lost: map[string]uint64{"y": 2},
		Warnings: []string{"always", fmt.Sprint("in ", n)}, Samples: []Samples{s},
		Missing: []MissingProgram{{ID: uint32(100 - n), Reason: "r"}, {ID: 3}}}
}

// wantParts is the content of parts 0 to n−1 together.
func wantParts(t testing.TB, b *Bundle, n int) {
	t.Helper()
	want := make(map[string]uint64)
	for i := range n {
		want[fmt.Sprintf("b 8 no mappings <a 7 mappings %d\n", i/3)] += 10
		want[fmt.Sprintf("n%03d 9 no mappings", i)] = 1000
		want[fmt.Sprintf("a 7 mappings %d\n", i/3)]++
		want[fmt.Sprintf("none 7 mappings %d\n", i/3)] += 100
	}
	if got := countsOf(t, b); !maps.Equal(got, want) {
		t.Errorf("counts\n%v\nwant\n%v", got, want)
	}
	if notes, err := b.ReadEntry("kernel/notes", 10); string(notes) != fmt.Sprint(n-1) {
		t.Errorf("of the newest: %q, %v", notes, err)
	}
	if newest, err := b.ReadEntry("proc/7/maps", 100); string(newest) !=
		fmt.Sprintf("mappings %d\n", (n-1)/3) {
		t.Errorf("the newest mappings: %q, %v", newest, err)
	}
	m := &b.Manifest
	if m.Begin != testClock(0) || m.End != testClock(n) || m.Lost["y"] != uint64(2*n) ||
		len(m.Missing) != n+1 || m.Missing[0].ID != 3 || len(m.Samples[0].Files) != min(n, 2) {
		t.Errorf("manifest %+v", m)
	}
	if n, want := len(b.Names()), n+6+(n-1)/3; n != want {
		t.Errorf("%d entries, want %d: %q", n, want, b.Names())
	}
	r, size, err := b.Entry(PerfDataName)
	if err != nil {
		t.Fatal(err)
	}
	f, err := perfdata.Open("perf.data", r, size)
	if err != nil {
		t.Fatal(err)
	}
	loads := uint32(0)
	for records := f.AllRecords(); records.Next(); loads++ {
		var e perfdata.BPFEvent
		if err := f.BPFEvent(records.Record(), &e); err != nil || e.ID != loads {
			t.Errorf("record %d: %+v, %v", loads, e, err)
		}
	}
	list, err := f.FeatureBytes(perfdata.FeatureBPFBTF, 1000)
	if loads != uint32(n) || err != nil || len(list) != 4+n || list[0] != byte(n) {
		t.Errorf("%d loads, list %v, %v", loads, list, err)
	}
}

// TestFlush: the flushed file is a bundle at any time, of all parts till then; Commit puts a
// bundle in its place that is as compact as one that was written at once.
func TestFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	const parts = 40 // more than are merged at a time
	for n := range parts {
		m := addPart(t, w, n)
		if n == parts-1 {
			err = w.Commit(m)
		} else {
			err = w.Flush(m)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n%10 > 0 && n < parts-1 {
			continue
		}
		b, err := OpenFile(path)
		if err != nil || len(b.Warnings) > 0 {
			t.Fatal(err, b.Warnings)
		}
		wantParts(t, b, n+1)
		last := b.Manifest.Warnings[len(b.Manifest.Warnings)-1]
		if cut := strings.Contains(last, "cut off: the bundle is complete to 2023-11-14T22:"); cut != (n <
			parts-1) {
			t.Errorf("part %d: the last warning is %q", n, last)
		}
		b.Close()
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("it left %v", left)
	}
	data, err := os.ReadFile(path)
	if err != nil || files.PackingOf(data) != files.Zstd {
		t.Errorf("not the form that all bundles have: %v", err)
	}
}

// TestAbortFlushed: the flushed part stays where the rest is given up, and is whole.
func TestAbortFlushed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(addPart(t, w, 0)); err != nil || w.Flushed() == 0 {
		t.Fatal(err)
	}
	w.Add("kernel/kallsyms", nil)
	w.Abort()
	b, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	wantParts(t, b, 1)
}

// flushedFile is an unfinished bundle of some parts, and where each ends.
func flushedFile(t testing.TB, parts int) (data []byte, ends []int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for n := range parts {
		if err := w.Flush(addPart(t, w, n)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(w.Flushed()))
	}
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return data, ends
}

// TestFlushCut cuts an unfinished bundle at every byte: it has the parts whole till then.
func TestFlushCut(t *testing.T) {
	data, ends := flushedFile(t, 3)
	for n := range len(data) {
		whole := 0
		for whole < len(ends) && ends[whole] <= n {
			whole++
		}
		if !slices.Contains(ends, n) && n%31 != 0 && whole > 0 {
			continue // merging is slow
		}
		b, err := open(t, data[:n])
		if whole == 0 {
			if err == nil {
				t.Fatalf("%d bytes: a bundle without a part", n)
			}
			continue
		}
		if err != nil || len(b.Warnings) > 0 {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if b.Manifest.End != testClock(whole) {
			t.Fatalf("%d bytes: %d parts of %d", n, b.Manifest.End.Perf, whole)
		}
	}
}

// TestFlushDamaged: damage to a part leaves the others whole, and is reported.
func TestFlushDamaged(t *testing.T) {
	data, ends := flushedFile(t, 3)
	data[(ends[0]+ends[1])/2] ^= 1
	b, err := open(t, data)
	if err != nil || len(b.Warnings) != 1 ||
		!strings.Contains(b.Warnings[0].Error(), "left out") {
		t.Fatal(err, b.Warnings)
	}
	if got := countsOf(t, b); got["b 8 no mappings <a 7 mappings 0\n"] != 20 {
		t.Errorf("counts %v", got)
	}
	if !Detect(bytes.NewReader(data), int64(len(data))) || !IsBundle(data[:64]) {
		t.Error("not recognised")
	}
}

// sealed returns a segment with these bytes in it.
func sealed(packed []byte) []byte {
	sum := sha256.Sum256(packed)
	return append(segmentHeader(int64(len(packed)), sum[:]), packed...)
}

// FuzzUnfinished reads segments with right heads and any content, packed or still to be packed.
func FuzzUnfinished(f *testing.F) {
	data, ends := flushedFile(f, 2)
	list, _ := segments("", bytes.NewReader(data), int64(len(data)))
	var tars [2][]byte
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	for i := range tars {
		packed := data[list[i].at:ends[i]]
		if tars[i], err = unpack.DecodeAll(packed, nil); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(false, tars[0], tars[1])
	f.Add(true, data[list[0].at:ends[0]], data[list[1].at:ends[1]])
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, isPacked bool, a, b []byte) {
		var file []byte
		for _, part := range [][]byte{a, b} {
			if !isPacked {
				// The manifest has a frame of its own, by which a bundle is recognised.
				head := min(len(part), 512)
				part = pack.EncodeAll(part[head:], pack.EncodeAll(part[:head], nil))
			}
			file = append(file, sealed(part)...)
		}
		x, err := Open("fuzz", bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		defer x.Close()
		for _, name := range x.Names() {
			if _, err := x.ReadEntry(name, 1<<20); err != nil && !errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
		}
	})
}

// TestFlushKernel: a segment has facts about the kernel only if they differ from the last ones
// flushed; the bundle has the last ones.
func TestFlushKernel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.bundle")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for i, x := range []struct{ symbols, want string }{
		{symbols: "a", want: "a"}, {symbols: "a"}, {symbols: "b", want: "b"}, {symbols: "b"},
		{symbols: "a", want: "a"}, {symbols: "a"},
	} {
		err := cmp.Or(w.Add(KallsymsName, []byte(x.symbols)), w.Add("bpf/programs.json", []byte("{}")),
			w.Flush(&Manifest{}))
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		list, _ := segments(path, f, w.Flushed())
		b, err := openSegment(path, f, list[i])
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		got, _ := b.ReadEntry(KallsymsName, 10)
		if string(got) != x.want || len(b.Names()) != 1+len(x.want) {
			t.Errorf("segment %d: %q, want %q; entries %q", i, got, x.want, b.Names())
		}
	}
	if err := w.Commit(&Manifest{}); err != nil {
		t.Fatal(err)
	}
	b, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := b.ReadEntry(KallsymsName, 10); err != nil || string(got) != "a" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestMergedMappings: the mappings that one program has in the parts of a recording are one list,
// which names what each part's addresses need; another program under its process ID has its own.
func TestMergedMappings(t *testing.T) {
	const (
		vdso  = "7fff0000-7fff2000 r-xp 00000000 00:00 0 [vdso]\n"
		other = "7ffe0000-7ffe2000 r-xp 00000000 00:00 0 [vdso]\n"
		heap  = "5000-6000 rw-p 00000000 00:00 0 [heap]\n"
		app   = "1000-2000 r-xp 00000000 08:01 7 /srv/app/bin/app\n"
		code  = "9000-a000 rwxp 00000000 00:00 0\n"
		grown = "00009000-0000b000 r-xp 00000000 00:00 0 \n" // as Layout writes it
		file  = "9000-a000 r-xp 00000000 08:01 8 /srv/app/lib/plugin.so\n"
	)
	for _, tt := range []struct {
		name     string
		parts    []string // mappings in each part
		programs []string // the merged mappings, by number
		of       []int    // the program of each part
	}{
		{name: "equal", parts: []string{app + vdso, app + vdso}, programs: []string{app + vdso}, of: []int{0, 0}},
		{name: "data differs", parts: []string{app + vdso, app + heap + vdso},
			programs: []string{app + heap + vdso}, of: []int{0, 0}},
		{name: "later code", parts: []string{app + vdso, app + code + vdso},
			programs: []string{app + code + vdso}, of: []int{0, 0}},
		{name: "removed code", parts: []string{app + code + vdso, app + vdso},
			programs: []string{app + vdso + code}, of: []int{0, 0}},
		{name: "grown code", parts: []string{app + code + vdso, app + vdso,
			app + "9000-b000 rwxp 00000000 00:00 0\n" + vdso},
			programs: []string{app + "9000-b000 rwxp 00000000 00:00 0\n" + vdso}, of: []int{0, 0, 0}},
		{name: "shrunk code", parts: []string{app + "9000-b000 rwxp 00000000 00:00 0\n" + vdso, app + code + vdso},
			programs: []string{app + code + vdso + grown}, of: []int{0, 0}},
		{name: "replaced code", parts: []string{app + code + vdso, app + file + vdso},
			programs: []string{app + file + vdso, app + code + vdso}, of: []int{1, 0}},
		{name: "replaced and back", parts: []string{app + code + vdso, app + file + vdso, app + heap + code + vdso},
			programs: []string{app + heap + code + vdso, app + file + vdso}, of: []int{0, 1, 0}},
		{name: "another program", parts: []string{app + vdso, app + code + other},
			programs: []string{app + code + other, app + vdso}, of: []int{1, 0}},
		{name: "unknown program", parts: []string{app, app + code}, programs: []string{app + code, app},
			of: []int{1, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "capture.data")
			w, err := Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Abort()
			for n, text := range tt.parts {
				if err := w.Add(MapsName(7), []byte(text)); err != nil {
					t.Fatal(err)
				}
				addCounts(t, w, []testCount{{stack: fmt.Sprint("part", n), pid: 7, samples: 1}})
				m := &Manifest{Begin: testClock(n), End: testClock(n + 1), Samples: []Samples{testSamples}}
				if n < len(tt.parts)-1 {
					err = w.Flush(m)
				} else {
					err = w.Commit(m)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			b, err := OpenFile(path)
			if err != nil || len(b.Warnings) > 0 {
				t.Fatal(err, b.Warnings)
			}
			defer b.Close()
			var programs []string
			for n := uint32(0); b.Has(ProgramMapsName(7, n)); n++ {
				text, err := b.ReadEntry(ProgramMapsName(7, n), 1000)
				if err != nil {
					t.Fatal(err)
				}
				programs = append(programs, string(text))
			}
			if !slices.Equal(programs, tt.programs) {
				t.Errorf("mappings\n%q\nwant\n%q", programs, tt.programs)
			}
			got := countsOf(t, b)
			for n, program := range tt.of {
				if key := fmt.Sprintf("part%d 7 %s", n, tt.programs[program]); got[key] != 1 {
					t.Errorf("no %q in %v", key, got)
				}
			}
		})
	}
}
