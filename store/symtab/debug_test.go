package symtab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

// testFunc is a function in the form that the oracle reads: names and paths, not
// references.
type testFunc struct {
	name    string
	file    string
	line    uint32
	ranges  []addr.Range
	inlines []testInline
	lines   []testLine
}

type testInline struct {
	name     string
	file     string
	line     uint32
	parent   int32
	callFile string
	callLine uint32
	callCol  uint32
	ranges   []addr.Range
}

type testLine struct {
	addr      addr.Addr
	file      string
	line, col uint32
}

// add adds the function to a builder as an indexer does.
func (f *testFunc) add(b *Builder) {
	sub := func(name, file string, line uint32) SubRef {
		s := Subprogram{Linkage: []byte(name), Name: []byte("short"), File: b.File([]byte(file))}
		s.Line = line
		if len(name)%2 == 0 { // C has no linkage names
			s.Linkage, s.Name = nil, s.Linkage
		}
		return b.Sub(s)
	}
	d := DebugFunc{Ranges: f.ranges}
	if f.name != "" {
		d.Sub = sub(f.name, f.file, f.line)
	}
	for _, in := range f.inlines {
		d.Inlines = append(d.Inlines, Inline{
			Sub: sub(in.name, in.file, in.line), Parent: in.parent, CallFile: b.File([]byte(in.callFile)),
			CallLine: in.callLine, CallColumn: in.callCol, Ranges: in.ranges,
		})
	}
	for _, l := range f.lines {
		d.Lines = append(d.Lines, Line{l.addr, b.File([]byte(l.file)), l.line, l.col})
	}
	b.AddFunction(&d)
}

func in(ranges []addr.Range, a addr.Addr) bool {
	return slices.ContainsFunc(ranges, func(r addr.Range) bool { return a >= r.Start && a < r.End })
}

// depth returns the nesting of call i, 0 if it does not cover the address: it and all enclosing
// calls must.
func (f *testFunc) depth(i int32, a addr.Addr) int {
	n := 0
	for ; i >= 0; i = f.inlines[i].parent {
		if !in(f.inlines[i].ranges, a) {
			return 0
		}
		n++
	}
	return n
}

// frames is the oracle: the frames at an address by definition.
func (f *testFunc) frames(a addr.Addr, columns bool) string {
	best, depth := int32(-1), 0
	for i := range f.inlines {
		if d := f.depth(int32(i), a); d > 0 && d >= depth {
			best, depth = int32(i), d
		}
	}
	file, line, col := "", uint32(0), uint32(0)
	at := addr.Addr(0)
	for _, l := range f.lines {
		if l.addr <= a && l.addr >= at {
			at, file, line, col = l.addr, l.file, l.line, l.col
		}
	}
	var out []string
	frame := func(name, declFile string, declLine uint32) {
		if !columns {
			col = 0
		}
		out = append(out, fmt.Sprintf("%s %s:%d:%d (%s:%d)", name, file, line, col, declFile, declLine))
	}
	for i := best; i >= 0; i = f.inlines[i].parent {
		in := &f.inlines[i]
		if in.name == "" {
			frame("", "", 0)
		} else {
			frame(in.name, in.file, in.line)
		}
		file, line, col = in.callFile, in.callLine, in.callCol
	}
	if f.name == "" {
		frame("", "", 0)
	} else {
		frame(f.name, f.file, f.line)
	}
	return strings.Join(out, " < ")
}

// showFrames prints frames as the oracle does.
func showFrames(t testing.TB, tab *Table, frames []Frame) string {
	name := func(n NameID) string {
		if n == NoName {
			return ""
		}
		s, err := tab.Name(n)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	file := func(n FileID) string {
		if n == NoFile {
			return ""
		}
		s, err := tab.File(n)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var out []string
	for _, f := range frames {
		out = append(out, fmt.Sprintf("%s %s:%d:%d (%s:%d)", name(f.Name), file(f.File), f.Line, f.Column,
			file(f.DeclFile), f.DeclLine))
	}
	return strings.Join(out, " < ")
}

// debugText returns the frames of a small table at each address where they change.
func debugText(t testing.TB, tab *Table) string {
	t.Helper()
	var addrs []addr.Addr
	r := tab.Range()
	for a := r.Start; a < min(r.End, r.Start+1<<16); a++ {
		addrs = append(addrs, a)
	}
	var out []string
	last, next := "", 0
	err := tab.JoinFrames(addrs, func(i int, _ Hit, frames []Frame) {
		if s := showFrames(t, tab, frames); s != last || i != next {
			out = append(out, fmt.Sprintf("%d %s", addrs[i], s))
			last = s
		}
		next = i + 1
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

// randomRanges makes a few ranges, mostly inside outer.
func randomRanges(rng *rand.Rand, outer addr.Range) []addr.Range {
	var out []addr.Range
	size := uint64(outer.End - outer.Start)
	for range 1 + rng.IntN(3) {
		start := outer.Start + addr.Addr(rng.Uint64N(size))
		r := addr.Range{Start: start, End: start + addr.Addr(rng.Uint64N(1+size/2))}
		out = append(out, r)
	}
	return out
}

// randomDebug makes functions with inlined calls that overlap, stick out, and come in several
// ranges; they do not overlap each other.
func randomDebug(rng *rand.Rand, n int) (funcs []testFunc, end addr.Addr) {
	at := addr.Addr(rng.IntN(100))
	file := func() string {
		if rng.IntN(8) == 0 {
			return ""
		}
		return fmt.Sprintf("/src/dir%d/f%d.c", rng.IntN(3), rng.IntN(9))
	}
	for i := range n {
		f := testFunc{name: fmt.Sprintf("fn%d", i), file: file(), line: rng.Uint32N(500)}
		if rng.IntN(9) == 0 {
			f.name = ""
		}
		for range 1 + rng.IntN(2) {
			at += addr.Addr(1 + rng.IntN(20))
			r := addr.Range{Start: at, End: at + addr.Addr(1+rng.IntN(300))}
			f.ranges = append(f.ranges, r)
			at = r.End
		}
		whole := addr.Range{Start: f.ranges[0].Start, End: at}
		path := []int32{NoParent}
		for k := range int32(rng.IntN(12)) {
			path = path[:1+rng.IntN(len(path))]
			p := path[len(path)-1]
			outer := whole
			if p >= 0 {
				if r := f.inlines[p].ranges[0]; r.End > r.Start {
					outer = r
				}
			}
			name := fmt.Sprintf("fn%d", rng.IntN(2*n))
			if rng.IntN(15) == 0 {
				name = ""
			}
			f.inlines = append(f.inlines, testInline{
				name: name, file: "/inl.h", line: rng.Uint32N(9), parent: p, callFile: file(),
				callLine: rng.Uint32N(1 << rng.IntN(32)), callCol: rng.Uint32N(80),
				ranges: randomRanges(rng, outer),
			})
			path = append(path, k)
		}
		for a := whole.Start - addr.Addr(rng.IntN(3)); a < whole.End; a += addr.Addr(rng.IntN(30)) {
			f.lines = append(f.lines, testLine{a, file(), rng.Uint32N(1 << rng.IntN(32)), rng.Uint32N(3)})
		}
		funcs = append(funcs, f)
	}
	return funcs, at
}

func encodeDebug(t testing.TB, opts Options, funcs []testFunc) *Encoded {
	t.Helper()
	b := NewBuilder(opts)
	for i := range funcs {
		funcs[i].add(b)
	}
	return b.Encode()
}

func TestFramesAgainstOracle(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 2))
		funcs, end := randomDebug(rng, 1+rng.IntN(40))
		opts := Options{ChunkSize: 1 << (4 + rng.IntN(10)), StringSize: 1 << (3 + rng.IntN(8))}
		opts.Columns = seed%2 == 0
		if rng.IntN(2) == 0 {
			opts.InlineSize = -1
		}
		tab := open(t, encodeDebug(t, opts, funcs))
		var addrs []addr.Addr
		for a := addr.Addr(0); a < end+10; a += addr.Addr(1 + rng.IntN(1+int(seed%7))) {
			addrs = append(addrs, a)
		}
		got := make([]string, len(addrs))
		err := tab.JoinFrames(addrs, func(i int, h Hit, frames []Frame) {
			if !h.OK || addrs[i] < h.Start || uint64(addrs[i]-h.Start) >= h.Size {
				t.Fatalf("seed %d: %#x: hit %+v", seed, addrs[i], h)
			}
			got[i] = showFrames(t, tab, frames)
			clear(frames)
		})
		if err != nil {
			t.Fatal(err)
		}
		hits := make([]Hit, len(addrs))
		if err := tab.Join(addrs, hits); err != nil {
			t.Fatal(err)
		}
		for i, a := range addrs {
			want, named := "", false
			for k := range funcs {
				if in(funcs[k].ranges, a) {
					want, named = funcs[k].frames(a, opts.Columns), funcs[k].name != ""
				}
			}
			if got[i] != want || hits[i].OK != named {
				t.Fatalf("seed %d: %#x\ngot  %s\nwant %s\njoin %+v", seed, a, got[i], want, hits[i])
			}
		}
	}
}
