package symtab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

func rng1(start, end addr.Addr) []addr.Range { return []addr.Range{{Start: start, End: end}} }

// one is a function of a file with one line.
func one(name string, start, end addr.Addr, line uint32) testFunc {
	return testFunc{name: name, file: "/a.c", line: 1, ranges: rng1(start, end),
		lines: []testLine{{addr: start, file: "/a.c", line: line, col: 0}}}
}

// TestAddFunction covers the traps in debug information, each with the frames at each address where
// they change.
func TestAddFunction(t *testing.T) {
	inline := func(name string, parent int32, line uint32, ranges ...addr.Range) testInline {
		return testInline{name: name, file: "/i.h", line: 5, parent: parent, callFile: "/a.c",
			callLine: line, ranges: ranges}
	}
	with := func(f testFunc, inlines ...testInline) testFunc {
		f.inlines = inlines
		return f
	}
	rows := func(f testFunc, lines ...testLine) testFunc {
		f.lines = lines
		return f
	}
	ranges := func(f testFunc, ranges ...addr.Range) testFunc {
		f.ranges = ranges
		return f
	}
	tests := []struct {
		name string
		in   []testFunc
		want string
		lost Losses
	}{
		{name: "copies: more lines", in: []testFunc{
			one("f", 10, 30, 7),
			rows(one("f", 10, 30, 0), testLine{10, "/a.c", 8, 0}, testLine{20, "/a.c", 9, 0}),
			one("f", 10, 30, 6),
		}, want: "10 f /a.c:8|20 f /a.c:9", lost: Losses{Copies: 2}},
		{name: "copies: the first of equals",
			in:   []testFunc{one("f", 10, 30, 7), one("f", 10, 30, 8)},
			want: "10 f /a.c:7", lost: Losses{Copies: 1}},
		{name: "aliases: as symbols", in: []testFunc{one("__f", 10, 30, 7), one("f", 10, 30, 8)},
			want: "10 f /a.c:8", lost: Losses{}},
		{name: "line 0", in: []testFunc{rows(one("f", 10, 30, 0), testLine{10, "/a.c", 3, 0},
			testLine{20, "/a.c", 0, 0}, testLine{25, "/a.c", 4, 0})},
			want: "10 f /a.c:3|20 f /a.c:0|25 f /a.c:4", lost: Losses{}},
		{name: "end of sequence",
			in: []testFunc{rows(one("f", 10, 30, 0), testLine{5, "/a.c", 3, 0},
				testLine{20, "", 0, 0}, testLine{25, "/a.c", 4, 0})},
			want: "10 f /a.c:3|20 f :0|25 f /a.c:4", lost: Losses{}},
		{name: "no line at the start",
			in:   []testFunc{rows(one("f", 10, 30, 0), testLine{20, "/a.c", 4, 0})},
			want: "10 f :0|20 f /a.c:4", lost: Losses{}},
		{name: "rows out of order, the last at an address counts",
			in: []testFunc{rows(one("f", 10, 30, 0),
				testLine{20, "/a.c", 4, 0}, testLine{10, "/a.c", 3, 0}, testLine{20, "/a.c", 5, 0})},
			want: "10 f /a.c:3|20 f /a.c:5", lost: Losses{}},
		{name: "several ranges",
			in: []testFunc{ranges(one("f", 10, 0, 7), addr.Range{Start: 50, End: 60},
				addr.Range{Start: 10, End: 20}, addr.Range{Start: 30, End: 30})},
			want: "10 f /a.c:7|50 f /a.c:7", lost: Losses{}},
		{name: "inlined call in both ranges", in: []testFunc{with(ranges(one("f", 10, 0, 7),
			addr.Range{Start: 50, End: 60}, addr.Range{Start: 10, End: 20}), inline("i", -1, 2,
			addr.Range{Start: 55, End: 60}, addr.Range{Start: 10, End: 12}))},
			want: "10 i /a.c:7 f /a.c:2|12 f /a.c:7|50 f /a.c:7|55 i /a.c:7 f /a.c:2",
			lost: Losses{}},
		{name: "outside its parent", in: []testFunc{with(one("f", 10, 50, 7),
			inline("i", -1, 2, addr.Range{Start: 20, End: 30}),
			inline("j", 0, 3, addr.Range{Start: 25, End: 40}),
			inline("k", -1, 4, addr.Range{Start: 45, End: 60}))},
			want: "10 f /a.c:7|20 i /a.c:7 f /a.c:2|25 j /a.c:7 i /a.c:3 f /a.c:2|30 f /a.c:7|" +
				"45 k /a.c:7 f /a.c:4", lost: Losses{Outside: 2}},
		{name: "overlapping: the deepest, then the last", in: []testFunc{with(one("f", 10, 50, 7),
			inline("i", -1, 2, addr.Range{Start: 10, End: 30}),
			inline("j", 0, 3, addr.Range{Start: 20, End: 30}),
			inline("k", -1, 4, addr.Range{Start: 15, End: 40}))},
			want: "10 i /a.c:7 f /a.c:2|15 k /a.c:7 f /a.c:4|20 j /a.c:7 i /a.c:3 f /a.c:2|" +
				"30 k /a.c:7 f /a.c:4|40 f /a.c:7", lost: Losses{}},
		{name: "not in pre-order", in: []testFunc{with(one("f", 10, 50, 7),
			inline("i", -1, 2, addr.Range{Start: 10, End: 20}),
			inline("j", -1, 3, addr.Range{Start: 20, End: 30}),
			inline("k", 0, 4, addr.Range{Start: 10, End: 20}),
			inline("l", 9, 4, addr.Range{Start: 10, End: 20}))},
			want: "10 i /a.c:7 f /a.c:2|20 j /a.c:7 f /a.c:3|30 f /a.c:7",
			lost: Losses{Disorder: 2}},
		{name: "nameless call", in: []testFunc{with(one("f", 10, 20, 7),
			inline("", -1, 2, addr.Range{Start: 10, End: 15}))},
			want: "10  /a.c:7 f /a.c:2|15 f /a.c:7", lost: Losses{}},
		{name: "lines without a function fill gaps only", in: []testFunc{
			one("f", 20, 30, 7), one("", 10, 50, 8), one("g", 40, 60, 9)},
			want: "10  /a.c:8|20 f /a.c:7|30  /a.c:8|40 g /a.c:9", lost: Losses{}},
		{name: "functions overlap", in: []testFunc{
			with(rows(one("f", 10, 60, 0), testLine{10, "/a.c", 1, 0}, testLine{45, "/a.c", 2, 0}),
				inline("i", -1, 3, addr.Range{Start: 12, End: 14}),
				inline("j", 0, 4, addr.Range{Start: 12, End: 13}),
				inline("k", -1, 5, addr.Range{Start: 25, End: 50}),
				inline("l", 2, 6, addr.Range{Start: 48, End: 50})),
			one("g", 20, 40, 9)},
			want: "10 f /a.c:1|12 j /a.c:1 i /a.c:4 f /a.c:3|13 i /a.c:1 f /a.c:3|14 f /a.c:1|20 g /a.c:9|" +
				"40 k /a.c:1 f /a.c:5|45 k /a.c:2 f /a.c:5|48 l /a.c:2 k /a.c:6 f /a.c:5|50 f /a.c:2",
			lost: Losses{}},
		{name: "no code", in: []testFunc{one("f", 10, 10, 7), one("g", 20, 15, 7)},
			lost: Losses{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBuilder(Options{})
			for i := range tt.in {
				tt.in[i].add(b)
			}
			if got := b.Losses(); got != tt.lost {
				t.Errorf("lost %+v, want %+v", got, tt.lost)
			}
			e := b.Encode()
			if got := shortText(t, open(t, e)); got != tt.want {
				t.Errorf("\ngot  %s\nwant %s", got, tt.want)
			}
			if got := b.Losses(); got != tt.lost {
				t.Errorf("after Encode: lost %+v, want %+v", got, tt.lost)
			}
			if b.Len() != 0 {
				t.Errorf("%d functions are left in the builder", b.Len())
			}
		})
	}
}

// shortText is debugText in one line, without columns and declarations.
func shortText(t testing.TB, tab *Table) string {
	lines := strings.Split(debugText(t, tab), "\n")
	for i, l := range lines {
		var out []string
		for _, f := range strings.Split(l, " < ") {
			f, _, _ = strings.Cut(f, " (")
			out = append(out, strings.TrimSuffix(f, ":0"))
		}
		lines[i] = strings.Join(out, " ")
	}
	return strings.Join(lines, "|")
}

func TestDeclarations(t *testing.T) {
	f := one("f", 10, 20, 7)
	f.inlines = []testInline{{name: "i", file: "/i.h", line: 5, parent: -1, callFile: "/a.c",
		callLine: 8, callCol: 3, ranges: rng1(12, 14)}}
	f.lines[0].col = 9
	for _, columns := range []bool{false, true} {
		tab := open(t, encodeDebug(t, Options{Columns: columns}, []testFunc{f}))
		want := "i /a.c:7:0 (/i.h:5) < f /a.c:8:0 (/a.c:1)"
		if columns {
			want = "i /a.c:7:9 (/i.h:5) < f /a.c:8:3 (/a.c:1)"
		}
		hit, frames, err := tab.LookupFrames(13, make([]Frame, 0, 4))
		if got := showFrames(t, tab, frames); err != nil || got != want || !hit.OK || hit.Start != 10 {
			t.Errorf("columns %v: got %s, %+v, %v; want %s", columns, got, hit, err, want)
		}
		if hit, frames, err := tab.LookupFrames(9, nil); err != nil || hit.OK || frames != nil {
			t.Errorf("outside: %+v, %v, %v", hit, frames, err)
		}
		if lined, ok := tab.HasDebug(); !ok || lined != 10 {
			t.Errorf("%d bytes with lines, %v", lined, ok)
		}
		if tab.NumFiles() != 2 || tab.NumNames() != 2 {
			t.Errorf("%d files, %d names", tab.NumFiles(), tab.NumNames())
		}
		if _, err := tab.File(2); err == nil {
			t.Error("file 2 of 2: no error")
		}
		if _, err := tab.Name(2); err == nil {
			t.Error("name 2 of 2: no error")
		}
	}
}

func TestFramesOfNames(t *testing.T) {
	tab := open(t, encode(t, Options{}, Func{10, 10, "f", 0}, Func{30, 10, "g", Unsized}))
	var got []string
	err := tab.JoinFrames([]addr.Addr{5, 10, 19, 25, 35, 50}, func(i int, h Hit, frames []Frame) {
		got = append(got, fmt.Sprintf("%d %d %s", i, h.Start, showFrames(t, tab, frames)))
	})
	want := []string{"1 10 f :0:0 (:0)", "2 10 f :0:0 (:0)", "4 30 g :0:0 (:0)"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if lined, ok := tab.HasDebug(); ok || lined != 0 || tab.NumFiles() != 0 {
		t.Error("a table of names says that it has lines")
	}
}

// TestOversized has a function like one in ceph-osd: 28,624 inlined calls, 47 deep.
func TestOversized(t *testing.T) {
	f := testFunc{name: "big", file: "/a.c", line: 1, ranges: rng1(1000, 1000+600_000)}
	path := []int32{NoParent}
	for i := range int32(28_624) {
		if len(path) > 47 {
			path = path[:1]
		}
		at := 1000 + addr.Addr(i)*20
		f.inlines = append(f.inlines, testInline{
			name: fmt.Sprint("i", i%999), file: "/i.h", line: uint32(i % 999),
			parent: path[len(path)-1], callFile: "/i.h", callLine: uint32(i),
			ranges: rng1(at, 1000+addr.Addr(i-i%47+47)*20),
		})
		path = append(path, i)
		f.lines = append(f.lines, testLine{at, "/i.h", uint32(i * 7 % 1000), 0})
	}
	small := one("small", 700_000, 700_010, 4)
	e := encodeDebug(t, Options{InlineSize: -1}, []testFunc{one("first", 10, 20, 1), f, small})
	tab := open(t, e)
	for _, a := range []addr.Addr{15, 1000, 300_000, 570_000, 600_000, 700_005} {
		_, frames, err := tab.LookupFrames(a, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := f.frames(a, false)
		if !in(f.ranges, a) {
			want = map[bool]string{true: "small /a.c:4:0 (/a.c:1)", false: "first /a.c:1:0 (/a.c:1)"}[a > 20]
		}
		if got := showFrames(t, tab, frames); got != want {
			t.Errorf("%d\ngot  %s\nwant %s", a, got, want)
		}
	}
	if tab.h.scopes < 28_000 || len(e.Chunks) != 2 {
		t.Errorf("%d calls in %d chunks", tab.h.scopes, len(e.Chunks))
	}
}

// TestTooLarge has more than a function may have: the name stays, and neighbours do.
func TestTooLarge(t *testing.T) {
	b := NewBuilder(Options{})
	file := b.File([]byte("/a.c"))
	f := DebugFunc{Sub: b.Sub(Subprogram{Name: []byte("huge")}), Ranges: rng1(0, 2*MaxSegments+10)}
	for i := range MaxSegments + 1 {
		f.Lines = append(f.Lines, Line{addr.Addr(2 * i), file, uint32(1 + i%2), 0})
	}
	b.AddFunction(&f)
	deep := DebugFunc{Sub: b.Sub(Subprogram{Name: []byte("deep")}), Ranges: rng1(1<<20, 1<<20+10)}
	for i := range MaxDepth + 5 {
		in := Inline{Sub: deep.Sub, Parent: int32(i) - 1, Ranges: deep.Ranges}
		deep.Inlines = append(deep.Inlines, in)
	}
	b.AddFunction(&deep)
	if got := b.Losses(); got != (Losses{Large: 1, Disorder: 5}) {
		t.Errorf("lost %+v", got)
	}
	e := b.Encode()
	tab := open(t, e)
	_, frames, err := tab.LookupFrames(7, nil)
	if err != nil || showFrames(t, tab, frames) != "huge :0:0 (:0)" {
		t.Errorf("huge: %v, %v", frames, err)
	}
	if _, frames, err := tab.LookupFrames(1<<20, nil); err != nil || len(frames) != MaxDepth+1 {
		t.Errorf("deep: %d frames, %v", len(frames), err)
	}
}

func TestDebugSameBytesWhateverTheOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	funcs, _ := randomDebug(rng, 300)
	opts := Options{ChunkSize: 2000, InlineSize: -1}
	first := encodeDebug(t, opts, funcs)
	for range 2 {
		rng.Shuffle(len(funcs), func(i, j int) { funcs[i], funcs[j] = funcs[j], funcs[i] })
		e := encodeDebug(t, opts, funcs)
		if !slices.Equal(e.Header, first.Header) || e.Digest != first.Digest ||
			!slices.EqualFunc(e.Chunks, first.Chunks, slices.Equal) ||
			!slices.EqualFunc(e.Strings, first.Strings, slices.Equal) {
			t.Fatal("bytes differ")
		}
	}
	other := encodeDebug(t, Options{ChunkSize: 300, StringSize: 100}, funcs)
	if other.Digest != first.Digest {
		t.Error("the digest depends on where blocks are cut")
	}
	change := map[string]func(f *testFunc){
		"line":      func(f *testFunc) { f.lines[len(f.lines)/2].line++ },
		"file":      func(f *testFunc) { f.lines[len(f.lines)/2].file = "/other.c" },
		"start":     func(f *testFunc) { f.line++ },
		"call site": func(f *testFunc) { f.inlines[0].callLine++ },
		"call name": func(f *testFunc) { f.inlines[0].name = "other" },
	}
	f := one("zz", 1<<20, 1<<20+100, 4)
	f.inlines = []testInline{{
		name: "i", file: "/i.h", line: 5, parent: -1, ranges: rng1(1<<20, 1<<20+50),
	}}
	base := encodeDebug(t, opts, append(slices.Clone(funcs), f)).Digest
	for what, do := range change {
		g := f
		g.lines, g.inlines = slices.Clone(f.lines), slices.Clone(f.inlines)
		do(&g)
		if encodeDebug(t, opts, append(slices.Clone(funcs), g)).Digest == base {
			t.Errorf("the digest does not see a changed %s", what)
		}
	}
}

// TestDebugDamageStaysLocal damages one chunk and the files: the rest stays readable.
func TestDebugDamageStaysLocal(t *testing.T) {
	e := damageDebug(t, -1)
	whole := open(t, e)
	var addrs []addr.Addr
	for _, c := range whole.h.chunks {
		addrs = append(addrs, addr.Addr(c.start))
	}
	e.Chunks[1] = nil
	e.Strings[len(e.Strings)-1] = nil
	tab, err := Open(e.Header, e)
	if err != nil {
		t.Fatal(err)
	}
	var seen []int
	err = tab.JoinFrames(addrs, func(i int, _ Hit, _ []Frame) { seen = append(seen, i) })
	if err == nil || len(seen) != len(addrs)-1 || slices.Contains(seen, 1) {
		t.Errorf("%d of %d addresses answered, %v", len(seen), len(addrs), err)
	}
	if _, err := tab.File(FileID(tab.NumFiles() - 1)); err == nil {
		t.Error("no error for a lost file")
	}
	if _, err := tab.Name(0); err != nil {
		t.Errorf("name: %v", err)
	}
}
