package pprof_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/buildid"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/must"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/input/pprof"
)

// foreign makes a file in the form of other profilers.
type foreign struct{ prof profile.Profile }

func newForeign() *foreign {
	f := &foreign{}
	f.prof.SampleType = []*profile.ValueType{{Type: "samples", Unit: "count"},
		{Type: "cpu", Unit: "nanoseconds"}}
	return f
}

func (f *foreign) mapping(m profile.Mapping) *profile.Mapping {
	m.ID = uint64(len(f.prof.Mapping) + 1)
	f.prof.Mapping = append(f.prof.Mapping, &m)
	return &m
}

func (f *foreign) location(m *profile.Mapping, address uint64, names ...string) *profile.Location {
	l := &profile.Location{ID: uint64(len(f.prof.Location) + 1), Mapping: m, Address: address}
	for _, name := range names {
		fn := &profile.Function{ID: uint64(len(f.prof.Function) + 1), Name: name}
		f.prof.Function = append(f.prof.Function, fn)
		l.Line = append(l.Line, profile.Line{Function: fn, Line: 5})
	}
	f.prof.Location = append(f.prof.Location, l)
	return l
}

func (f *foreign) sample(locs ...*profile.Location) *profile.Sample {
	s := &profile.Sample{Location: locs, Value: []int64{1, 10}}
	f.prof.Sample = append(f.prof.Sample, s)
	return s
}

func (f *foreign) bytes(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := f.prof.WriteUncompressed(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestReadMappings: the object of a mapping of any profiler, and the Offsets of its
// addresses.
func TestReadMappings(t *testing.T) {
	const hexID = "0102030405060708090a0b0c0d0e0f1011121314"
	tests := []struct {
		name    string
		mapping profile.Mapping
		address uint64
		kind    ingest.ObjectKind
		path    string
		ref     string
		offset  addr.Offset
	}{
		{name: "PIE at run time",
			mapping: profile.Mapping{Start: 0x55d0c0001000, Limit: 0x55d0c0009000,
				Offset: 0x1000, File: "/bin/x", BuildID: hexID},
			address: 0x55d0c0001234, kind: ingest.ELF, path: "/bin/x", offset: 0x1234},
		{name: "ET_EXEC",
			mapping: profile.Mapping{Start: 0x400000, Limit: 0x500000, File: "/bin/go"},
			address: 0x401000,
			kind:    ingest.ELF, path: "/bin/go", offset: 0x1000},
		{name: "deleted",
			mapping: profile.Mapping{Start: 0x400000, Limit: 0x500000, File: "/bin/go (deleted)"},
			address: 0x401000, kind: ingest.ELF, path: "/bin/go", offset: 0x1000},
		{name: "kernel of perf_data_converter", mapping: profile.Mapping{Start: 0xffffffff9a000000,
			Limit:  0xffffffff9b000000,
			Offset: 0xffffffff9a000000, File: "[kernel.kallsyms]_stext", BuildID: hexID},
			address: 0xffffffff9a001000, kind: ingest.Kernel, path: "[kernel.kallsyms]",
			ref: "_stext", offset: 0x1000},
		{name: "kernel mapped a page before its symbol",
			mapping: profile.Mapping{Start: 0xffffffff9a000000,
				Limit:  0xffffffff9b000000,
				Offset: 0xffffffff9a000198, File: "[kernel.kallsyms]_stext"},
			address: 0xffffffff9a001198, kind: ingest.Kernel, path: "[kernel.kallsyms]",
			ref: "_stext", offset: 0x1000},
		{name: "kernel", mapping: profile.Mapping{Start: 0xffffffff9a000000, Limit: ^uint64(0),
			File: "[kernel.kallsyms]"},
			address: 0xffffffff9a000010, kind: ingest.Kernel, path: "[kernel.kallsyms]",
			offset: 0x10},
		{name: "vmlinux", mapping: profile.Mapping{Start: 0xffffffff9a000000, Limit: ^uint64(0),
			File: "/usr/lib/debug/boot/vmlinux-6.1"},
			address: 0xffffffff9a000010, kind: ingest.Kernel,
			path: "/usr/lib/debug/boot/vmlinux-6.1", offset: 0x10},
		{name: "module",
			mapping: profile.Mapping{Start: 0xffffffffc0400000, Limit: 0xffffffffc0500000,
				File: "[ext4]"},
			address: 0xffffffffc0400010, kind: ingest.Module, path: "[ext4]", offset: 0x10},
		{name: "module by file",
			mapping: profile.Mapping{Start: 0xffffffffc0400000, Limit: 0xffffffffc0500000,
				File: "/lib/modules/6.1/ext4.ko.xz"},
			address: 0xffffffffc0400010, kind: ingest.Module, path: "/lib/modules/6.1/ext4.ko.xz",
			offset: 0x10},
		{name: "vdso",
			mapping: profile.Mapping{Start: 0x7ffd0000, Limit: 0x7ffd2000, File: "[vdso]"},
			address: 0x7ffd0700,
			kind:    ingest.VDSO, path: "[vdso]", offset: 0x700},
		{name: "BPF",
			mapping: profile.Mapping{Start: 0xffffffffc0008000, Limit: 0xffffffffc0009000,
				File: "[bpf_prog_6deef7357e7b4530_x]"},
			address: 0xffffffffc0008010, kind: ingest.JIT, path: "bpf_prog_6deef7357e7b4530_x",
			offset: 0x10},
		{name: "anonymous",
			mapping: profile.Mapping{Start: 0x7f0000, Limit: 0x7f2000, File: "//anon"},
			address: 0x7f1000,
			kind:    ingest.Anonymous, path: "//anon", offset: 0},
		{name: "perf map",
			mapping: profile.Mapping{Start: 0x7f0000, Limit: 0x7f2000, Offset: 0x7f0000,
				File: "/tmp/perf-12.map"},
			address: 0x7f1234, kind: ingest.PerfMap, path: "/tmp/perf-12.map", offset: 0x7f1234},
		{name: "vsyscall",
			mapping: profile.Mapping{Start: 0xffffffffff600000, Limit: 0xffffffffff601000,
				File: "[vsyscall]"},
			address: 0xffffffffff600400, kind: ingest.ELF, path: "[vsyscall]", offset: 0x400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newForeign()
			f.sample(f.location(f.mapping(tt.mapping), tt.address))
			p := read(t, f.bytes(t))
			o := p.Objects[0]
			if o.Kind != tt.kind || o.File.Path != tt.path || o.RefSymbol != tt.ref {
				t.Errorf("object %+v", o)
			}
			if got := p.Locations[0].Offset; got != tt.offset {
				t.Errorf("offset %#x, want %#x", uint64(got), uint64(tt.offset))
			}
			if o.ID.Hex() != tt.mapping.BuildID {
				t.Errorf("build ID %s", o.ID)
			}
			if p.Names != nil {
				t.Error("names from nowhere")
			}
		})
	}
}

// TestReadOddities: legal and unusual files.
func TestReadOddities(t *testing.T) {
	t.Run("no mapping, no addresses", func(t *testing.T) {
		f := newForeign()
		a, b := f.location(nil, 0, "Main.run"), f.location(nil, 0, "Main.main")
		f.sample(a, b)
		p := read(t, f.bytes(t))
		var names []string
		for _, l := range p.Stack(nil, p.Samples[0].Stack) {
			names = append(names, p.Names.Functions[p.Names.At(l)[0].Func].SystemName)
		}
		if got := strings.Join(names, " < "); got != "Main.run < Main.main" {
			t.Errorf("stack %q", got)
		}
		back := parse(t, write(t, p, pprof.WriteOptions{}))
		if len(back.Mapping) != 0 ||
			back.Sample[0].Location[0].Line[0].Function.Name != "Main.run" {
			t.Errorf("written again: %v", back)
		}
	})
	t.Run("symbolized and bare copies of one place", func(t *testing.T) {
		f := newForeign()
		m := f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/x"})
		f.sample(f.location(m, 0x1100), f.location(m, 0x1100, "work"), f.location(m, 0x1101))
		p := read(t, f.bytes(t))
		if len(p.Locations) != 2 || len(p.Names.At(0)) != 1 ||
			p.Names.Reasons[1] != ingest.NoBuildID {
			t.Errorf("locations %v, names %+v", p.Locations, p.Names)
		}
	})
	t.Run("one function in two objects", func(t *testing.T) {
		f := newForeign()
		one, two := f.location(f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x9000,
			File: "/bin/x"}), 0x1100, "work"),
			f.location(f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/y"}),
				0x1100)
		two.Line = one.Line
		f.sample(one, two)
		if p := read(t, f.bytes(t)); len(p.Names.Functions) != 2 ||
			p.Names.Functions[0].Object == p.Names.Functions[1].Object {
			t.Errorf("functions %+v", p.Names.Functions)
		}
	})
	t.Run("segments of one file", func(t *testing.T) {
		f := newForeign()
		one := f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x2000, Offset: 0x1000,
			File: "/bin/x"})
		two := f.mapping(profile.Mapping{Start: 0x8000, Limit: 0x9000, Offset: 0x4000,
			File: "/bin/x"})
		f.sample(f.location(two, 0x8001), f.location(one, 0x1001))
		p := read(t, f.bytes(t))
		want := []ingest.SegmentRef{{Offset: 0x1000, Len: 0x1000}, {Offset: 0x4000, Len: 0x1000}}
		if len(p.Objects) != 1 || !slices.Equal(p.Objects[0].Segments, want) {
			t.Errorf("objects %+v", p.Objects)
		}
		if got := fmt.Sprint(p.Locations); got != "[{0 4097} {0 16385}]" {
			t.Errorf("locations %s", got)
		}
	})
	t.Run("labels", func(t *testing.T) {
		f := newForeign()
		m := f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/x"})
		l := f.location(m, 0x1100)
		s := f.sample(l)
		s.Label = map[string][]string{"thread_comm": {"worker"}, "request": {"a"}}
		s.NumLabel = map[string][]int64{"pid": {12}, "tid": {13}, "bytes": {7}}
		f.sample(l).Label = map[string][]string{"comm": {"swapper"}, "thread_comm": {"no"}}
		p := read(t, f.bytes(t))
		var got []string
		for _, s := range p.Samples {
			got = append(got, fmt.Sprintf("%s %d %d", p.Strings[s.Comm], s.PID, s.TID))
		}
		if text := strings.Join(got, ", "); text != "swapper 0 0, worker 12 13" {
			t.Errorf("samples %s", text)
		}
		if w := p.Stats.Warnings; len(w) != 1 || !strings.HasSuffix(w[0].Text,
			"labels not kept: bytes, request, thread_comm") {
			t.Errorf("warnings %+v", w)
		}
	})
	t.Run("negative values", func(t *testing.T) {
		f := newForeign()
		m := f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/x"})
		f.sample(f.location(m, 0x1100)).Value = []int64{-1, -10}
		f.sample(f.location(m, 0x1200))
		p := read(t, f.bytes(t))
		if len(p.Samples) != 1 || len(p.Stats.Warnings) != 1 {
			t.Errorf("%d samples, warnings %+v", len(p.Samples), p.Stats.Warnings)
		}
	})
	t.Run("single columns", func(t *testing.T) {
		f := newForeign()
		f.prof.SampleType = []*profile.ValueType{{Type: "goroutine", Unit: "count"},
			{Type: "other", Unit: "count"}}
		m := f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/x"})
		f.sample(f.location(m, 0x1100))
		p := read(t, f.bytes(t))
		if len(p.Events) != 2 || p.Samples[1].Weight != 10 || p.Samples[1].Count != 10 {
			t.Errorf("events %+v, samples %+v", p.Events, p.Samples)
		}
		if back := parse(t, write(t, p, pprof.WriteOptions{})); headOf(back) != headOf(parse(t,
			f.bytes(t))) {
			t.Errorf("head %s", headOf(back))
		}
	})
	t.Run("unsymbolized with empty names", func(t *testing.T) {
		f := newForeign()
		m := f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/x",
			BuildID: "0102"})
		f.sample(f.location(m, 0x1100, ""))
		if p := read(t, f.bytes(t)); p.Names != nil {
			t.Errorf("names %+v", p.Names)
		}
	})
}

// TestReadFilter: filters work as on any capture.
func TestReadFilter(t *testing.T) {
	data := write(t, everyKind(), pprof.WriteOptions{})
	count := func(opts pprof.ReadOptions) (n uint64) {
		opts.Keep.PID = true
		p, err := pprof.Read("x", data, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Samples {
			n += s.Count
		}
		return n
	}
	for _, tt := range []struct {
		opts pprof.ReadOptions
		want uint64
	}{
		{opts: pprof.ReadOptions{}, want: 19}, {opts: pprof.ReadOptions{Event: "page-faults"},
			want: 1},
		{opts: pprof.ReadOptions{Event: "none"}, want: 0},
		{opts: pprof.ReadOptions{Comms: []string{"swapper", "java"}}, want: 11},
		{opts: pprof.ReadOptions{PIDs: []int32{7}}, want: 4},
		{opts: pprof.ReadOptions{PIDs: []int32{0}}, want: 10},
	} {
		if got := count(tt.opts); got != tt.want {
			t.Errorf("%+v: %d samples, want %d", tt.opts, got, tt.want)
		}
	}
	p, err := pprof.Read("x", data, pprof.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(p.Samples, func(s ingest.Sample) bool { return s.PID != -1 }); i >= 0 {
		t.Errorf("a pid without Keep.PID: %+v", p.Samples[i])
	}
}

// TestReadBad: files that are no profile are an error with the reason.
func TestReadBad(t *testing.T) {
	good := write(t, everyKind(), pprof.WriteOptions{})
	var zeros bytes.Buffer
	z := gzip.NewWriter(&zeros)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	for name, data := range map[string][]byte{
		"empty": nil, "text": []byte("hello, world\n"), "gzip of nothing": must.Gzip(t, nil),
		"gzip cut":  good[:len(good)/2],
		"gzip head": {0x1f, 0x8b}, "zeros": zeros.Bytes(), "no sample types": {0x48, 1},
		"dangling location": {0x0a, 0, 0x32, 0, 0x12, 3, 0x0a, 1, 9},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pprof.Read("some/file", data, pprof.ReadOptions{})
			var de *decode.Error
			if !errors.As(err, &de) || de.Name != "some/file" {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestReadLimits: a small file cannot make a large one in memory.
func TestReadLimits(t *testing.T) {
	bomb := must.Gzip(t, make([]byte, 1<<20))
	if _, err := pprof.UnzipForTest("x", bomb, 1<<16); err == nil {
		t.Error("a gzip bomb is unpacked")
	}
	if out, err := pprof.UnzipForTest("x", bomb, 1<<20); err != nil || len(out) != 1<<20 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	// Empty messages cost most per byte of the file.
	for name, message := range map[string][]byte{
		"locations": {0x22, 0}, "functions": {0x2a, 0}, "strings": {0x32, 0},
		"lines": {0x22, 4, 0x22, 0, 0x22, 0},
	} {
		const n = 1000
		need := pprof.MemoryForTest(bytes.Repeat(message, n))
		data := append([]byte{0x0a, 0, 0x32, 0}, bytes.Repeat(message, n)...)
		used := allocated(func() { _, _ = profile.ParseUncompressed(data) })
		if need < used/2 {
			t.Errorf("%s: %d bytes are estimated, %d used", name, need, used)
		}
	}
}

// TestSamplesInPlace: samples are decoded one by one, and need no memory besides the stacks.
func TestSamplesInPlace(t *testing.T) {
	const n = 10_000
	data := append([]byte{0x0a, 0, 0x32, 0}, bytes.Repeat([]byte{0x12, 6, 0x10, 1, 0x1a, 0, 0x1a, 0},
		n)...)
	var err error
	used := allocated(func() { _, err = pprof.Read("x", data, pprof.ReadOptions{}) })
	if err != nil || used > 256*n { // 1,000 by google/pprof
		t.Errorf("%d bytes for a file of %d, %v", used, len(data), err)
	}
}

// sameSamples compares the samples of a file with google/pprof's decoder.
func sameSamples(t *testing.T, data []byte) {
	t.Helper()
	want, err := profile.ParseUncompressed(data)
	if err == nil {
		err = want.CheckValid()
	}
	if err == nil && len(want.SampleType) == 0 {
		err = errors.New("no sample types")
	}
	if _, ours := pprof.Read("x", data, pprof.ReadOptions{}); (ours == nil) != (err == nil) {
		t.Fatalf("%v, by google/pprof %v", ours, err)
	}
	if err != nil {
		return
	}
	got, err := pprof.SamplesForTest(data, len(want.SampleType))
	if err != nil || len(got) != len(want.Sample) {
		t.Fatalf("%d samples of %d, %v", len(got), len(want.Sample), err)
	}
	for i, s := range want.Sample {
		g := &got[i]
		var ids []uint64
		for _, l := range s.Location {
			ids = append(ids, l.ID)
		}
		if !slices.Equal(g.Locations, ids) || !slices.Equal(g.Values, s.Value) ||
			!maps.EqualFunc(g.Texts, s.Label, slices.Equal) ||
			!maps.EqualFunc(g.Numbers, s.NumLabel, slices.Equal) {
			t.Fatalf("sample %d: %+v, by google/pprof %+v", i, g, s)
		}
	}
}

// TestSamplesEqual: samples equal google/pprof's, packed or not, with labels of each kind; profiles
// that it refuses are refused.
func TestSamplesEqual(t *testing.T) {
	odd := newForeign()
	s := odd.sample(odd.location(nil, 0, "a"), odd.location(nil, 0, "b"))
	s.Label = map[string][]string{"comm": {"x", "y"}, "thread": {""}}
	s.NumLabel = map[string][]int64{"pid": {7}, "comm": {1}, "bytes": {-1, 0}}
	s.NumUnit = map[string][]string{"bytes": {"bytes", "bytes"}}
	size := profilebuild.Size{Objects: 3, Functions: 9, Locations: 50, Stacks: 70, Depth: 9}
	files := map[string][]byte{"labels": odd.bytes(t),
		"every kind": write(t, everyKind(), pprof.WriteOptions{}),
		"random":     write(t, profilebuild.Random(1, size), pprof.WriteOptions{})}
	for name, b := range files {
		data, err := pprof.UnzipForTest("x", b, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { sameSamples(t, data) })
	}
	head := []byte{0x0a, 0, 0x32, 0, 0x32, 1, 'k', 0x22, 2, 8, 5} // one type, a string, location 5
	for name, sample := range map[string][]byte{
		"not packed": {8, 5, 16, 3}, "packed": {10, 2, 5, 5, 18, 1, 3}, "no value": {8, 5},
		"two values": {16, 1, 16, 1}, "no such location": {8, 6, 16, 1},
		"value of 64 bits": {17, 1, 0, 0, 0, 0, 0, 0, 0}, "cut number": {16, 0x80},
		"label": {16, 1, 26, 4, 8, 1, 24, 9}, "label of a text": {16, 1, 26, 4, 8, 1, 16, 1},
		"label of nothing": {16, 1, 26, 2, 8, 1}, "no such string": {16, 1, 26, 4, 8, 2, 24, 9},
		"label that is a number": {16, 1, 24, 1}, "unknown field": {16, 1, 0x20, 1},
		"cut label": {16, 1, 26, 9, 8}, "label with a unit": {16, 1, 26, 4, 8, 1, 32, 1},
	} {
		t.Run(name, func(t *testing.T) {
			sameSamples(t, slices.Concat(head, []byte{0x12, byte(len(sample))}, sample))
		})
	}
}

// allocated is how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestTruncated: every prefix of a file gives a result or an error.
func TestTruncated(t *testing.T) {
	data, err := pprof.UnzipForTest("x", write(t, everyKind(), pprof.WriteOptions{}), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		p, err := pprof.Read("x", data[:n], pprof.ReadOptions{})
		if err == nil {
			write(t, p, pprof.WriteOptions{})
		}
	}
}

// FuzzRead: any input gives a profile that can be written, or an error; the output reads and writes
// the same again.
func FuzzRead(f *testing.F) {
	for _, p := range []*ingest.Profile{everyKind(),
		profilebuild.Random(1, profilebuild.Size{Objects: 3, Functions: 5, Locations: 20,
			Stacks: 20, Depth: 4})} {
		data, err := pprof.UnzipForTest("x", write(f, p, pprof.WriteOptions{}), 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	odd := newForeign()
	odd.sample(odd.location(nil, 0, "a"), odd.location(nil, 0, "b", "c"))
	f.Add(odd.bytes(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 || len(data) > 2 && data[0] == 0x1f {
			return
		}
		sameSamples(t, data)
		p, err := pprof.Read("fuzz", data,
			pprof.ReadOptions{Keep: ingest.Keep{PID: true, TID: true, CPU: true}})
		if err != nil {
			return
		}
		checkProfile(t, p)
		first := write(t, read(t, write(t, p, pprof.WriteOptions{})), pprof.WriteOptions{})
		second := write(t, read(t, first), pprof.WriteOptions{})
		if !bytes.Equal(first, second) {
			t.Errorf("not stable:\n%s", golden.FirstDifference(parse(t, first).String(),
				parse(t, second).String()))
		}
	})
}

// checkProfile checks the order that ingest.Profile documents.
func checkProfile(t *testing.T, p *ingest.Profile) {
	t.Helper()
	for i, l := range p.Locations {
		if int(l.Object) >= len(p.Objects) {
			t.Fatalf("location %d is in object %d of %d", i, l.Object, len(p.Objects))
		}
		if i > 0 && (l.Object < p.Locations[i-1].Object ||
			l.Object == p.Locations[i-1].Object && l.Offset <= p.Locations[i-1].Offset) {
			t.Fatalf("location %d: %+v after %+v", i, l, p.Locations[i-1])
		}
	}
	for i, s := range p.Samples {
		if int(s.Event) >= len(p.Events) || int(s.Comm) >= len(p.Strings) ||
			int(s.Stack) >= len(p.Callers) {
			t.Fatalf("sample %d: %+v", i, s)
		}
		for _, l := range p.Stack(nil, s.Stack) {
			if int(l) >= len(p.Locations) {
				t.Fatalf("sample %d has location %d", i, l)
			}
		}
	}
	if p.Names != nil && (len(p.Names.FrameEnds) != len(p.Locations) ||
		len(p.Names.Reasons) != len(p.Locations)) {
		t.Fatal("names are not parallel to the locations")
	}
}

// TestIDs: build IDs in a file, and their decoding.
func TestIDs(t *testing.T) {
	for _, tt := range []struct {
		id   buildid.ID
		want string
	}{
		{id: buildid.New([]byte{1, 2, 0xab}), want: "0102ab"},
		{id: buildid.Padded([]byte{1, 2, 0, 0}), want: "0102"},
		{id: buildid.Make(buildid.Content, []byte{1, 2})},
	} {
		b := profilebuild.New(profilebuild.Clock())
		o := b.Object(ingest.Object{ID: tt.id, File: ingest.FileRef{Path: "/bin/x"}})
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
			Stack: []profilebuild.Place{{Object: o, Offset: 1}}})
		if got := parse(t, write(t, b.Profile(),
			pprof.WriteOptions{})).Mapping[0].BuildID; got != tt.want {
			t.Errorf("%s is written as %q, want %q", tt.id, got, tt.want)
		}
	}
}

// TestLinkedAddresses: addresses of ELF files, in a mapping at 0 or outside of theirs, stay what they
// are when the profile is written and read again.
func TestLinkedAddresses(t *testing.T) {
	f := newForeign()
	zero := f.mapping(profile.Mapping{File: "/srv/app/x", BuildID: id(1).Hex()})
	moved := f.mapping(profile.Mapping{Start: 0x555555556000, Limit: 0x555555559000, Offset: 0x1000,
		File: "/srv/app/y", BuildID: id(2).Hex()})
	f.sample(f.location(zero, 0x2640), f.location(moved, 0x3640), f.location(moved, 0x555555556010))
	want := map[string]addr.Offset{"/srv/app/x 0": 0x2640, "/srv/app/y 0": 0x3640, "/srv/app/y ": 0x1010}
	p := read(t, f.bytes(t))
	for range 2 {
		for _, l := range p.Locations {
			o := &p.Objects[l.Object]
			if off, ok := want[o.File.Path+" "+o.RefSymbol]; !ok || off != l.Offset {
				t.Errorf("%s, reference symbol %q: %#x", o.File.Path, o.RefSymbol, uint64(l.Offset))
			}
		}
		if len(p.Locations) != len(want) {
			t.Errorf("%d locations", len(p.Locations))
		}
		p = read(t, write(t, p, pprof.WriteOptions{}))
	}
}

// TestRemapped: memory in the place of a file's code is read as it was written.
func TestRemapped(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	o := b.Object(ingest.Object{Kind: ingest.Anonymous, Reason: ingest.TextRemapped,
		File: ingest.FileRef{Path: ingest.RemappedPath("/usr/bin/node")}})
	at := profilebuild.Place{Object: o}
	b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1, Stack: []profilebuild.Place{at}})
	b.Unresolved(at, ingest.TextRemapped)
	var out bytes.Buffer
	if err := pprof.Write(&out, b.Profile(), pprof.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err := pprof.Read("x", out.Bytes(), pprof.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := &p.Objects[p.Locations[0].Object]
	if len(p.Locations) != 1 || got.Kind != ingest.Anonymous || got.Reason != ingest.TextRemapped ||
		ingest.ShortName(got) != "anon:node" {
		t.Errorf("%+v of %+v", p.Locations, p.Objects)
	}
}
