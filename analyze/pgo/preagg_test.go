package pgo

import (
	"errors"
	"slices"
	"strings"
	"testing"

	stdelf "debug/elf"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// Places of testProfile.
const (
	a10 = iota // in /bin/a, at address 0x1010
	a20
	b30 // in /lib/b.so, at address 0x30
	b40
	c50 // in a file that the view does not know
	d60 // in a file without a build ID
	kernel
	aOutside // outside of the segments of /bin/a
	a00
	a12
)

type row struct {
	tags  []string
	count uint64
	stack []ingest.LocationID // leaf first
}

var (
	idA = buildid.Make(buildid.GNU, []byte{0xaa, 1})
	idB = buildid.Make(buildid.GNU, []byte{0xbb, 2})
	idC = buildid.Make(buildid.GNU, []byte{0xcc, 3})
)

// testProfile has objects of each kind, /bin/a twice, and a view with layouts of two of them.
func testProfile(t *testing.T, rows ...row) (*ingest.Profile, store.View) {
	t.Helper()
	file := func(path string) ingest.FileRef { return ingest.FileRef{Path: path} }
	p := &ingest.Profile{Strings: []string{""}, Events: []ingest.Event{{Name: "cycles"}, {Name: "faults"}},
		Objects: []ingest.Object{{Kind: ingest.ELF, ID: idA, File: file("/bin/a")},
			{Kind: ingest.ELF, ID: idA, File: file("/old/a")}, {Kind: ingest.ELF, ID: idB, File: file("/lib/b.so")},
			{Kind: ingest.ELF, ID: idC, File: file("/bin/c")}, {Kind: ingest.ELF, File: file("/bin/d")},
			{Kind: ingest.Kernel}},
		Locations: []ingest.Location{a10: {Object: 0, Offset: 0x10}, a20: {Object: 1, Offset: 0x20},
			b30: {Object: 2, Offset: 0x30}, b40: {Object: 2, Offset: 0x40}, c50: {Object: 3, Offset: 0x50},
			d60: {Object: 4, Offset: 0x60}, kernel: {Object: 5, Offset: 1}, aOutside: {Object: 0, Offset: 0x9000},
			a00: {Object: 0, Offset: 0}, a12: {Object: 0, Offset: 0x12}},
		Callers: make([]ingest.StackID, 1), Leaves: make([]ingest.LocationID, 1)}
	for _, r := range rows {
		s := ingest.Sample{Count: r.count}
		for _, l := range slices.Backward(r.stack) {
			p.Callers, p.Leaves = append(p.Callers, s.Stack), append(p.Leaves, l)
			s.Stack = ingest.StackID(len(p.Callers) - 1)
		}
		if len(r.tags) > 0 {
			p.Strings = append(p.Strings, ingest.JoinTags(r.tags...))
			s.Tags = ingest.StringID(len(p.Strings) - 1)
		}
		p.Samples = append(p.Samples, s)
	}
	v := store.NewOverlay()
	for _, m := range []store.Manifest{
		{ID: idA, Type: uint16(stdelf.ET_EXEC), Layout: []elf.Segment{{Addr: 0x1000, FileSize: 0x1000, MemSize: 0x1000, Flags: 5}}},
		{ID: idB, Type: uint16(stdelf.ET_DYN), Layout: []elf.Segment{{FileSize: 0x1000, MemSize: 0x1000, Flags: 5}}},
	} {
		m.Kind = ingest.ELF
		if err := v.Merge(t.Context(), &store.Contribution{Manifest: m}); err != nil {
			t.Fatal(err)
		}
	}
	return p, v
}

func branch(part string, missed bool) []string {
	tags := []string{ingest.BranchTag, part, ingest.PredictionTag, ingest.Predicted}
	if missed {
		tags[3] = ingest.Mispredicted
	}
	return tags
}

func TestPreagg(t *testing.T) {
	sampled := []row{{count: 3, stack: []ingest.LocationID{a10, b30}}, {count: 4, stack: []ingest.LocationID{a20}},
		{count: 5, stack: []ingest.LocationID{b30, a10}}, {count: 6, stack: []ingest.LocationID{c50}},
		{count: 2, stack: []ingest.LocationID{d60}}, {count: 7, stack: []ingest.LocationID{kernel}}, {count: 8},
		{count: 1, stack: []ingest.LocationID{aOutside}}}
	trace, taken := branch(ingest.BranchTrace, false), branch(ingest.BranchTaken, false)
	branches := []row{{trace, 3, []ingest.LocationID{a20, a10, a20}},
		{branch(ingest.BranchTrace, true), 2, []ingest.LocationID{a20, a10, a20}},
		{taken, 4, []ingest.LocationID{a10, a20}}, {trace, 5, []ingest.LocationID{b40, b30, a10}},
		{branch(ingest.BranchTaken, true), 6, []ingest.LocationID{b30, b40}},
		{branch(ingest.BranchSampled, false), 9, []ingest.LocationID{a10}},
		{trace, 1, []ingest.LocationID{a20, b30, a10}}, // an end in another file
		{taken, 7, []ingest.LocationID{kernel, kernel}}}
	for _, tt := range []struct {
		name, object string
		rows         []row
		all          bool
		want         string
		stats        Stats
		err          error
	}{
		{name: "samples of the program with most of them", rows: sampled,
			want: "E cycles\nS 1010 3\nS 1020 4\n", stats: Stats{Samples: 7, Others: 28, NoAddress: 1}},
		{name: "a library", object: "b.so", rows: sampled,
			want: "E cycles\nS bb02:30 5\n", stats: Stats{Samples: 5, Others: 31}},
		{name: "by build ID", object: "BB02", rows: sampled,
			want: "E cycles\nS bb02:30 5\n", stats: Stats{Samples: 5, Others: 31}},
		{name: "an object without an address", object: "/bin/c", rows: sampled, err: ErrNoCounts,
			stats: Stats{Others: 30, NoAddress: 6}},
		{name: "all", all: true, rows: sampled,
			want: "E cycles\nS aa01:1010 3\nS aa01:1020 4\nS bb02:30 5\n", stats: Stats{Samples: 12, Others: 17, NoAddress: 7}},
		{name: "branches", object: "a", rows: branches,
			want: "T 1020 1010 1020 5\nB 1010 X:0 6 0\nB 1020 1010 4 2\n", stats: Stats{Traces: 15, Others: 13, NoBranches: 9}},
		{name: "branches of a library", object: "b.so", rows: branches,
			want:  "T X:0 bb02:30 bb02:40 5\nB X:0 bb02:30 1 0\nB bb02:40 bb02:30 6 6\n",
			stats: Stats{Traces: 12, Others: 25}},
		{name: "branches of all", all: true, rows: branches,
			want: "T aa01:1010 bb02:30 bb02:40 5\nT aa01:1020 aa01:1010 aa01:1020 5\n" +
				"B aa01:1010 bb02:30 1 0\nB aa01:1020 aa01:1010 4 2\nB bb02:40 bb02:30 6 6\n",
			stats: Stats{Traces: 21, Others: 7, NoBranches: 9}},
		{name: "no such object", object: "x", rows: sampled, err: ErrNoCounts},
		{name: "no samples", err: ErrNoCounts},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, v := testProfile(t, tt.rows...)
			counts := New(p, v, 0)
			object, err := All, error(nil)
			if !tt.all {
				object, err = counts.Find(tt.object)
			}
			var out strings.Builder
			var stats Stats
			if err == nil {
				stats, err = counts.preagg(&out, object)
			}
			if !errors.Is(err, tt.err) || out.String() != tt.want || stats != tt.stats {
				t.Errorf("%q, %+v, %v; want %q, %+v, %v", out.String(), stats, err, tt.want, tt.stats, tt.err)
			}
		})
	}
}

// TestOverflow: counts that do not fit are left out, counted and said, in every format's counts.
func TestOverflow(t *testing.T) {
	trace := branch(ingest.BranchTrace, false)
	p, v := testProfile(t, row{trace, maxTotal - 5, []ingest.LocationID{a12, a00, a12}},
		row{trace, 6, []ingest.LocationID{a12, a00, a12}}, row{trace, 1<<64 - 1, []ingest.LocationID{a20, a10, a20}},
		row{trace, 5, []ingest.LocationID{a12, a10, a20}})
	counts := New(p, v, 0)
	if counts.Overflow != 2 || counts.Objects[0].Counts != maxTotal {
		t.Errorf("%d left out, %d counted", counts.Overflow, counts.Objects[0].Counts)
	}
	var b strings.Builder
	stats, err := counts.preagg(&b, 0)
	want := "T 1012 1000 1012 9223372036854775802\nT 1020 1010 1012 5\n"
	if err != nil || b.String() != want || stats.Traces != maxTotal {
		t.Errorf("%q, %+v, %v, want %q", &b, stats, err, want)
	}
	if list := counts.Warnings(0, &stats); len(list) != 1 || !strings.HasPrefix(list[0].Text, "2 samples left out: the sum") {
		t.Errorf("warnings %v", list)
	}
	s := counts.sites(0, Packed)
	s.unit(testUnit())
	if list := s.heaviest(); len(list) == 0 || list[0].total > maxTotal {
		t.Errorf("functions %+v", list)
	}
}

// TestFind: a name of two objects is refused.
func TestFind(t *testing.T) {
	p, v := testProfile(t, row{count: 1, stack: []ingest.LocationID{a10}}, row{count: 1, stack: []ingest.LocationID{c50}})
	p.Objects[3].File.Path = "/opt/a"
	_, err := New(p, v, 0).Find("a")
	if want := "a is the name of /bin/a aa01 and /opt/a cc03"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestBuilds: a program that is replaced twice has counts of its own for each build, equal to those of
// that build's samples alone.
func TestBuilds(t *testing.T) {
	builds := map[buildid.ID][]row{
		idA: {{count: 3, stack: []ingest.LocationID{a10}}, {count: 4, stack: []ingest.LocationID{a20, a10}}},
		idB: {{count: 5, stack: []ingest.LocationID{b30}}, {count: 6, stack: []ingest.LocationID{b40}}},
	}
	write := func(id buildid.ID, rows ...row) string {
		p, v := testProfile(t, rows...)
		for i := range p.Objects {
			p.Objects[i].File.Path = "/bin/app"
		}
		counts := New(p, v, 0)
		if _, err := counts.Find("app"); (err != nil) != (len(rows) > 2) {
			t.Errorf("of %d rows: %v", len(rows), err)
		}
		object, err := counts.Find(id.Hex())
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if _, err := counts.preagg(&b, object); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for id, rows := range builds {
		if all, alone := write(id, slices.Concat(builds[idA], builds[idB])...), write(id, rows...); all != alone {
			t.Errorf("%s: %q of all samples, %q of its own", id.Hex(), all, alone)
		}
	}
}
