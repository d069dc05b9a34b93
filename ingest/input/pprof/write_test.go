package pprof_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	runtimepprof "runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"symbolize/buildid"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/texts"
)

func id(b byte) buildid.ID { return buildid.New(bytes.Repeat([]byte{b}, 20)) }

func write(t testing.TB, p *ingest.Profile, opts pprof.WriteOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := pprof.Write(&out, p, opts); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(t testing.TB, data []byte) *ingest.Profile {
	t.Helper()
	p, err := pprof.Read("test.pb.gz", data,
		pprof.ReadOptions{Keep: ingest.Keep{PID: true, TID: true, CPU: true}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parse decodes our output with the library.
func parse(t testing.TB, data []byte) *profile.Profile {
	t.Helper()
	prof, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	return prof
}

func everyKind() *ingest.Profile { return profilebuild.EveryKind() }

// TestGolden shows the file as the library prints it.
func TestGolden(t *testing.T) {
	shift := func(ingest.ObjectID) (addr.Offset, bool) { return 0x198, true }
	for name, opts := range map[string]pprof.WriteOptions{
		"everykind.txt": {},
		"layout.txt": {
			Layout: func(ingest.ObjectID) []pprof.Segment {
				return []pprof.Segment{{Offset: 0x1040, Size: 0x3000}}
			},
			RefShift: shift, Demangle: strings.ToUpper, Comments: []string{"one more"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, write(t, everyKind(), opts))
			at := time.Unix(0, p.TimeNanos) // String prints it in the local zone
			got := strings.Replace(p.String(), at.String(), at.UTC().String(), 1)
			golden.Compare(t, filepath.Join("pprof", name), []byte(got))
		})
	}
}

// rowText formats one sample, so that files and Profiles can be compared independently of
// their numbering.
func rowText(labels string, stack []string, values []int64) string {
	return fmt.Sprintf("%s | %s | %v", labels, strings.Join(stack, " < "), values)
}

// wantRows lists the samples that a file must have, derived from the Profile.
func wantRows(p *ingest.Profile, events int) []string {
	type key struct{ labels, stack string }
	values := make(map[key][]int64)
	for _, s := range p.Samples {
		labels := ""
		if s.Comm != 0 {
			labels += "comm=" + texts.Printable(p.Strings[s.Comm]) + " "
		}
		if s.PID > 0 {
			labels += fmt.Sprintf("pid=%d ", s.PID)
		}
		var stack []string
		for _, l := range p.Stack(nil, s.Stack) {
			loc := p.Locations[l]
			o := &p.Objects[loc.Object]
			var names []string
			for _, f := range p.Names.At(l) {
				fn := p.Names.Functions[f.Func]
				names = append(names, fmt.Sprintf("%s:%s:%d:%d", fn.SystemName, fn.File,
					fn.StartLine, f.Line))
			}
			if len(names) == 0 {
				names = []string{pprof.UnresolvedPrefix + p.Names.Reasons[l].String() + "::0:0"}
			}
			stack = append(stack, fmt.Sprintf("%s+%#x %s", strings.Trim(o.File.Path, "[]"),
				uint64(loc.Offset), strings.Join(names, ",")))
		}
		k := key{labels, strings.Join(stack, " < ")}
		if values[k] == nil {
			values[k] = make([]int64, 2*events)
		}
		values[k][2*s.Event] += int64(s.Count)
		values[k][2*s.Event+1] += int64(s.Weight)
	}
	var rows []string
	for k, v := range values {
		rows = append(rows, rowText(k.labels, []string{k.stack}, v))
	}
	slices.Sort(rows)
	return rows
}

// gotRows lists the samples of a file the same way, by the library.
func gotRows(prof *profile.Profile) []string {
	var rows []string
	for _, s := range prof.Sample {
		labels := ""
		for _, v := range s.Label["comm"] {
			labels += "comm=" + v + " "
		}
		for _, v := range s.NumLabel["pid"] {
			labels += fmt.Sprintf("pid=%d ", v)
		}
		var stack []string
		for _, l := range s.Location {
			var names []string
			for _, ln := range l.Line {
				names = append(names, fmt.Sprintf("%s:%s:%d:%d", ln.Function.SystemName,
					ln.Function.Filename, ln.Function.StartLine, ln.Line))
			}
			file := strings.TrimSuffix(strings.TrimSuffix(l.Mapping.File, "_stext"), "_text")
			off := l.Address - l.Mapping.Start + l.Mapping.Offset
			stack = append(stack, fmt.Sprintf("%s+%#x %s", strings.Trim(file, "[]"), off,
				strings.Join(names, ",")))
		}
		rows = append(rows, rowText(labels, []string{strings.Join(stack, " < ")}, s.Value))
	}
	slices.Sort(rows)
	return rows
}

// TestWriteAgainstLibrary compares every sample with google/pprof's decoding, in small profiles and
// one of real size.
func TestWriteAgainstLibrary(t *testing.T) {
	profiles := map[string]*ingest.Profile{
		"every kind": everyKind(),
		"random": profilebuild.Random(7, profilebuild.Size{Objects: 20, Functions: 300,
			Locations: 3000, Stacks: 4000, Depth: 9}),
	}
	for name, p := range profiles {
		t.Run(name, func(t *testing.T) {
			prof := parse(t, write(t, p, pprof.WriteOptions{}))
			want, got := wantRows(p, len(p.Events)), gotRows(prof)
			if !slices.Equal(want, got) {
				for i := range min(len(want), len(got)) {
					if want[i] != got[i] {
						t.Fatalf("sample %d:\n got %s\nwant %s", i, got[i], want[i])
					}
				}
				t.Fatalf("%d samples, want %d", len(got), len(want))
			}
			if len(prof.Location) != len(p.Locations) {
				t.Errorf("%d locations, want %d", len(prof.Location), len(p.Locations))
			}
		})
	}
}

// TestRoundTrip: write, read, write gives the same bytes, with names and without.
func TestRoundTrip(t *testing.T) {
	profiles := map[string]*ingest.Profile{"every kind": everyKind()}
	for seed := range uint64(8) {
		profiles[fmt.Sprint("random ", seed)] = profilebuild.Random(seed,
			profilebuild.Size{Objects: 5 + int(seed)*3, Functions: 50, Locations: 400, Stacks: 500,
				Depth: 6})
	}
	bare := profilebuild.Random(99, profilebuild.Size{Objects: 9, Functions: 50, Locations: 400,
		Stacks: 500, Depth: 6})
	bare.Names = nil
	profiles["without names"] = bare
	for name, p := range profiles {
		t.Run(name, func(t *testing.T) {
			first := write(t, p, pprof.WriteOptions{})
			second := write(t, read(t, first), pprof.WriteOptions{})
			if !bytes.Equal(first, second) {
				t.Errorf("differs:\n%s", golden.FirstDifference(parse(t, first).String(),
					parse(t, second).String()))
			}
		})
	}
}

// TestDeterministic: equal profiles give equal bytes.
func TestDeterministic(t *testing.T) {
	size := profilebuild.Size{Objects: 12, Functions: 100, Locations: 2000, Stacks: 3000, Depth: 8}
	first := write(t, profilebuild.Random(5, size), pprof.WriteOptions{})
	for range 3 {
		if !bytes.Equal(first, write(t, profilebuild.Random(5, size), pprof.WriteOptions{})) {
			t.Fatal("two writings differ")
		}
	}
}

// TestObjects: objects survive a round trip.
func TestObjects(t *testing.T) {
	p := everyKind()
	back := read(t, write(t, p, pprof.WriteOptions{}))
	if len(back.Objects) != len(p.Objects) {
		t.Fatalf("%d objects, want %d", len(back.Objects), len(p.Objects))
	}
	for i := range p.Objects {
		want, got := p.Objects[i], back.Objects[i]
		if got.Kind != want.Kind || got.ID.Compare(want.ID) != 0 ||
			got.File.Path != want.File.Path ||
			got.RefSymbol != want.RefSymbol || got.Symbol != want.Symbol || got.PID != want.PID ||
			got.Reason != want.Reason {
			t.Errorf("object %d:\n got %+v\nwant %+v", i, got, want)
		}
	}
	if !slices.Equal(back.Locations, p.Locations) {
		t.Errorf("locations:\n got %v\nwant %v", back.Locations, p.Locations)
	}
	if !slices.Equal(back.Names.Reasons, p.Names.Reasons) {
		t.Errorf("reasons:\n got %v\nwant %v", back.Names.Reasons, p.Names.Reasons)
	}
	if !slices.Equal(back.Names.Functions, p.Names.Functions) ||
		!slices.Equal(back.Names.Frames, p.Names.Frames) {
		t.Errorf("functions:\n got %v\nwant %v", back.Names.Functions, p.Names.Functions)
	}
	if m := back.Meta; m.MainProgram != p.Meta.MainProgram || m.Command != p.Meta.Command ||
		m.Recorder != p.Meta.Recorder ||
		m.StartNanos != p.Meta.StartNanos || m.Duration != p.Meta.Duration {
		t.Errorf("meta: %+v", m)
	}
}

// hugeLimit is the end of the address space.
const hugeLimit = "huge"

// TestMapping: addresses of mappings and locations, by kind and layout.
func TestMapping(t *testing.T) {
	const base = 0 // the common base of an object's offsets
	tests := []struct {
		name    string
		object  ingest.Object
		layout  []pprof.Segment
		offsets []addr.Offset
		want    []string // "start limit offset: address…"
	}{
		{name: "PIE", object: ingest.Object{},
			layout:  []pprof.Segment{{Offset: 0x1000, Size: 0x1f35}},
			offsets: []addr.Offset{0x1040, 0x2f00},
			want: []string{fmt.Sprintf("%x %x 1000: %x %x", base+0x1000, base+0x3000, base+0x1040,
				base+0x2f00)}},
		{name: "p_offset not page aligned", object: ingest.Object{},
			layout: []pprof.Segment{{Offset: 0x1f60,
				Size: 0x100}}, offsets: []addr.Offset{0x1f70},
			want: []string{fmt.Sprintf("%x %x 1000: %x", base+0x1000, base+0x3000, base+0x1f70)}},
		{name: "two executable segments", object: ingest.Object{},
			layout: []pprof.Segment{{Offset: 0x8000,
				Size: 0x1000}, {Offset: 0x1000, Size: 0x1000}},
			offsets: []addr.Offset{0x1001, 0x8fff},
			want: []string{fmt.Sprintf("%x %x 1000: %x", base+0x1000, base+0x2000, base+0x1001),
				fmt.Sprintf("%x %x 8000: %x", base+0x8000, base+0x9000, base+0x8fff)}},
		{name: "segment without samples left out", object: ingest.Object{},
			layout:  []pprof.Segment{{Offset: 0x8000, Size: 0x1000}, {Offset: 0x1000, Size: 0x1000}},
			offsets: []addr.Offset{0x8001},
			want: []string{fmt.Sprintf("%x %x 8000: %x", base+0x8000, base+0x9000,
				base+0x8001)}},
		{name: "observed",
			object:  ingest.Object{Segments: []ingest.SegmentRef{{Offset: 0x26000, Len: 0x155000}}},
			offsets: []addr.Offset{0x27000},
			want:    []string{fmt.Sprintf("%x %x 26000: %x", base+0x26000, base+0x17b000, base+0x27000)}},
		{name: "observed twice, once cut short",
			object: ingest.Object{Segments: []ingest.SegmentRef{{Offset: 0x1000, Len: 0x1000},
				{Offset: 0x1000, Len: 0x4000}}}, offsets: []addr.Offset{0x1800, 0x4800},
			want: []string{fmt.Sprintf("%x %x 1000: %x %x", base+0x1000, base+0x5000, base+0x1800,
				base+0x4800)}},
		{name: "nothing known", object: ingest.Object{}, offsets: []addr.Offset{0x1800, 0x9800},
			want: []string{fmt.Sprintf("%x %x 1000: %x %x", base+0x1000, base+0xa000, base+0x1800,
				base+0x9800)}},
		{name: "before, between and behind", object: ingest.Object{},
			layout:  []pprof.Segment{{Offset: 0x4000, Size: 0x1000}, {Offset: 0x8000, Size: 0x1000}},
			offsets: []addr.Offset{0x10, 0x4010, 0x5010, 0x6010, 0xa010},
			want: []string{fmt.Sprintf("%x %x 0: %x", base, base+0x1000, base+0x10),
				fmt.Sprintf("%x %x 4000: %x", base+0x4000, base+0x5000, base+0x4010),
				fmt.Sprintf("%x %x 5000: %x %x", base+0x5000, base+0x7000, base+0x5010,
					base+0x6010),
				fmt.Sprintf("%x %x a000: %x", base+0xa000, base+0xb000, base+0xa010)}},
		{name: "hostile layout", object: ingest.Object{},
			layout: []pprof.Segment{{Offset: 1 << 63, Size: 1 << 63},
				{Offset: ^addr.Offset(0), Size: 9}, {Offset: 0x1000, Size: ^uint64(0)}},
			offsets: []addr.Offset{0x1001}, want: []string{"1000 " + hugeLimit + " 1000: 1001"}},
		{name: "kernel", object: ingest.Object{Kind: ingest.Kernel, RefSymbol: "_text",
			File: ingest.FileRef{Path: "[kernel.kallsyms]"}},
			offsets: []addr.Offset{0x10},
			want:    []string{"ffffffff81000000 ffffffffc0000000 0: ffffffff81000010"}},
		{name: "module",
			object:  ingest.Object{Kind: ingest.Module, File: ingest.FileRef{Path: "[ext4]"}},
			offsets: []addr.Offset{0x1010},
			want: []string{fmt.Sprintf("%x %x 0: %x", base, base+0x2000,
				base+0x1010)}},
		{name: "jit", object: ingest.Object{Kind: ingest.JIT, Length: 0x1234,
			File: ingest.FileRef{Path: "bpf_prog_1"}},
			offsets: []addr.Offset{0x10},
			want: []string{fmt.Sprintf("%x %x 0: %x", base, base+0x2000,
				base+0x10)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.object.File.Path == "" {
				tt.object.File.Path = "/bin/x"
			}
			b := profilebuild.New(profilebuild.Clock())
			o := b.Object(tt.object)
			for _, off := range tt.offsets {
				b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
					Stack: []profilebuild.Place{{Object: o, Offset: off}}})
			}
			prof := parse(t, write(t, b.Profile(), pprof.WriteOptions{
				Layout: func(ingest.ObjectID) []pprof.Segment { return tt.layout }}))
			var got []string
			for _, m := range prof.Mapping {
				base := m.Start - m.Offset
				if base == pprof.KernelForTest {
					base = 0
				} else if base < pprof.BaseForTest || base%4096 != 0 || base>>47 != 0 {
					t.Errorf("base %#x", base)
				}
				text := fmt.Sprintf("%x %x %x:", m.Start-base, m.Limit-base, m.Offset)
				if m.Limit > 1<<62 && base != 0 {
					text = fmt.Sprintf("%x %s %x:", m.Start-base, hugeLimit, m.Offset)
				}
				for _, l := range prof.Location {
					if l.Mapping == m {
						text += fmt.Sprintf(" %x", l.Address-base)
					}
				}
				got = append(got, text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestKernelShift: with the store's help all kernels count from _text.
func TestKernelShift(t *testing.T) {
	prof := parse(t, write(t, everyKind(), pprof.WriteOptions{
		RefShift: func(ingest.ObjectID) (addr.Offset, bool) { return 0x198, true }}))
	for _, m := range prof.Mapping {
		if m.BuildID == id(4).Hex() && m.File != "[kernel.kallsyms]_text" {
			t.Errorf("kernel mapping %q", m.File)
		}
	}
	at := slices.IndexFunc(prof.Location, func(l *profile.Location) bool {
		return l.Line[0].Function.SystemName == "do_syscall_64"
	})
	if got := prof.Location[at].Address; got != pprof.KernelForTest+0x1198 {
		t.Errorf("kernel address %#x", got)
	}
}

// TestPlaces: objects do not overlap, and have the same addresses in all files.
func TestPlaces(t *testing.T) {
	size := profilebuild.Size{Objects: 60, Functions: 120, Locations: 600, Stacks: 600, Depth: 5}
	p := profilebuild.Random(4, size)
	prof := parse(t, write(t, p, pprof.WriteOptions{}))
	for i, a := range prof.Mapping {
		for _, b := range prof.Mapping[:i] {
			if a.Start < b.Limit && b.Start < a.Limit {
				t.Errorf("%v lies upon %v", a, b)
			}
		}
	}
	starts := make(map[string]uint64)
	for _, m := range prof.Mapping {
		starts[m.BuildID] = m.Start - m.Offset
	}
	p.Objects[40].ID = id(9) // another set of objects
	for _, m := range parse(t, write(t, p, pprof.WriteOptions{})).Mapping {
		if want, ok := starts[m.BuildID]; ok && m.Start-m.Offset != want {
			t.Errorf("%s: %#x in one file, %#x in another", m.File, want, m.Start)
		}
	}
}

// TestMerge: two files of one program merge to one mapping and location.
func TestMerge(t *testing.T) {
	one := parse(t, write(t, everyKind(), pprof.WriteOptions{}))
	two := parse(t, write(t, everyKind(), pprof.WriteOptions{}))
	merged, err := profile.Merge([]*profile.Profile{one, two})
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Mapping) != len(one.Mapping) || len(merged.Location) != len(one.Location) {
		t.Errorf("merged: %d mappings, %d locations; one has %d and %d", len(merged.Mapping),
			len(merged.Location), len(one.Mapping), len(one.Location))
	}
}

// TestColumns: how events become sample types, and back.
func TestColumns(t *testing.T) {
	ev := func(name, unit string) ingest.Event { return ingest.Event{Name: name, Unit: unit} }
	tests := []struct {
		name   string
		events []ingest.Event
		want   string
	}{
		{name: "clock", events: []ingest.Event{ev("cpu-clock:pppH", "nanoseconds")},
			want: "samples/count cpu/nanoseconds"},
		{name: "cycles", events: []ingest.Event{ev("cycles", "count")},
			want: "samples/count cycles/count"},
		{name: "clock and faults", events: []ingest.Event{ev("cpu-clock", "nanoseconds"),
			ev("page-faults", "count")},
			want: "samples/count cpu/nanoseconds page-faults_samples/count page-faults/count"},
		{name: "two clocks", events: []ingest.Event{ev("cpu-clock", "nanoseconds"),
			ev("task-clock", "nanoseconds")},
			want: "cpu-clock_samples/count cpu-clock/nanoseconds task-clock_samples/count task-clock/nanoseconds"},
		{name: "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := profilebuild.New(tt.events...)
			o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/x"}})
			for i := range tt.events {
				b.Row(profilebuild.Row{Event: i, PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 5,
					Stack: []profilebuild.Place{{Object: o, Offset: 1}}})
			}
			data := write(t, b.Profile(), pprof.WriteOptions{})
			prof := parse(t, data)
			var got []string
			for _, st := range prof.SampleType {
				got = append(got, st.Type+"/"+st.Unit)
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			if len(tt.events) == 0 {
				return
			}
			if len(prof.Sample) != 1 {
				t.Errorf("%d samples for one stack", len(prof.Sample))
			}
			if back := read(t, data); len(back.Events) != len(tt.events) {
				t.Errorf("events come back as %+v", back.Events)
			}
		})
	}
}

// TestText: strings are valid UTF-8 without control characters.
func TestText(t *testing.T) {
	prof := parse(t, write(t, everyKind(),
		pprof.WriteOptions{Demangle: func(string) string { return "x\x00\xff\u202ey" }}))
	for _, f := range prof.Function {
		if f.Name != texts.Printable(f.Name) {
			t.Errorf("function %q", f.Name)
		}
	}
	for _, s := range prof.Sample {
		if c := s.Label["comm"][0]; strings.ContainsAny(c, "\x1b") {
			t.Errorf("comm %q", c)
		}
	}
}

type failingWriter struct{ after int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.after -= len(b); w.after < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// TestWriteFails: a write error is returned, at any position.
func TestWriteFails(t *testing.T) {
	p := profilebuild.Random(3, profilebuild.Size{Objects: 12, Functions: 200, Locations: 9000,
		Stacks: 20000, Depth: 12})
	size := len(write(t, p, pprof.WriteOptions{}))
	for after := 0; after < size; after += size / 7 {
		if err := pprof.Write(&failingWriter{after}, p, pprof.WriteOptions{}); err == nil {
			t.Errorf("no error after %d bytes", after)
		}
	}
	p.Names.FrameEnds = p.Names.FrameEnds[1:]
	if err := pprof.Write(io.Discard, p, pprof.WriteOptions{}); err == nil {
		t.Error("names of other locations are accepted")
	}
}

// TestReadGoHeap reads a profile of another writer: Go's own.
func TestReadGoHeap(t *testing.T) {
	var raw bytes.Buffer
	if err := runtimepprof.Lookup("heap").WriteTo(&raw, 0); err != nil {
		t.Fatal(err)
	}
	p := read(t, raw.Bytes())
	var events []string
	for _, e := range p.Events {
		events = append(events, e.CountColumn+"/"+e.Name+"/"+e.Unit)
	}
	want := "alloc_objects/alloc_space/bytes inuse_objects/inuse_space/bytes"
	if got := strings.Join(events, " "); got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	theirs, ours := parse(t, raw.Bytes()), parse(t, write(t, p, pprof.WriteOptions{}))
	if got, want := sums(ours), sums(theirs); !slices.Equal(got, want) {
		t.Errorf("sums %v, want %v", got, want)
	}
	if got, want := headOf(ours), headOf(theirs); got != want {
		t.Errorf("head %s, want %s", got, want)
	}
	if got, want := functionsOf(ours), functionsOf(theirs); !slices.Equal(got, want) {
		t.Errorf("functions\n got %q\nwant %q", got, want)
	}
}

func headOf(p *profile.Profile) string {
	text := fmt.Sprint(*p.PeriodType, p.Period, p.DefaultSampleType)
	for _, st := range p.SampleType {
		text += fmt.Sprintf(" %s/%s", st.Type, st.Unit)
	}
	return text
}

func sums(p *profile.Profile) []int64 {
	out := make([]int64, len(p.SampleType))
	for _, s := range p.Sample {
		for i, v := range s.Value {
			out[i] += v
		}
	}
	return out
}

// functionsOf lists the functions that samples with a value refer to.
func functionsOf(p *profile.Profile) []string {
	set := make(map[string]bool)
	for _, s := range p.Sample {
		if !slices.ContainsFunc(s.Value, func(v int64) bool { return v != 0 }) {
			continue
		}
		for _, l := range s.Location {
			for _, ln := range l.Line {
				set[ln.Function.SystemName] = true
			}
		}
	}
	var out []string
	for name := range set {
		out = append(out, name)
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
