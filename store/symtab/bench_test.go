package symtab

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"symbolize/ingest/addr"
)

// likeC makes n functions as in a C++ library: aligned, of varied sizes, with names that share
// prefixes.
func likeC(n int) []Func {
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"Reader", "parse", "Impl", "string", "vector", "update", "detail", "apply"}
	funcs := make([]Func, n)
	at := uint64(0x1000)
	for i := range funcs {
		size := 8 + rng.Uint64N(600)
		w := func() string { return words[rng.IntN(len(words))] }
		name := fmt.Sprintf("_ZN7library%d%s%s%dEv%d", i/50, w(), w(), i, rng.IntN(9))
		funcs[i] = Func{addr.Addr(at), size, name, 0}
		at += (size + 15) &^ 15
	}
	return funcs
}

func BenchmarkEncode(b *testing.B) {
	funcs := likeC(20_000)
	bl := NewBuilder(Options{})
	b.ReportAllocs()
	var e *Encoded
	for b.Loop() {
		bl.Reset()
		for _, f := range funcs {
			bl.Add(f)
		}
		e = bl.Encode()
	}
	b.SetBytes(rawSize(b, e))
	b.ReportMetric(float64(e.Size())/float64(e.Funcs), "bytes/function")
}

// rawSize returns the bytes of the blocks of a table before compression.
func rawSize(tb testing.TB, e *Encoded) (n int64) {
	tb.Helper()
	h, err := parseHeader(e.Header)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range h.chunks {
		n += int64(h.chunks[i].block.raw)
	}
	for i := range h.texts() {
		n += int64(h.text(i).block.raw)
	}
	return n
}

func benchTable(b *testing.B, n int) (*Table, *Encoded) {
	e := encode(b, Options{}, likeC(n)...)
	tab, err := Open(e.Header, e)
	if err != nil {
		b.Fatal(err)
	}
	return tab, e
}

// BenchmarkJoin is the batch: 100,000 sorted addresses, 100,000 functions.
func BenchmarkJoin(b *testing.B) {
	tab, _ := benchTable(b, 100_000)
	rng := rand.New(rand.NewPCG(1, 3))
	r := tab.Range()
	addrs := make([]addr.Addr, 100_000)
	for i := range addrs {
		addrs[i] = r.Start + addr.Addr(rng.Uint64N(uint64(r.End-r.Start)))
	}
	slices.Sort(addrs)
	hits := make([]Hit, len(addrs))
	b.SetBytes(int64(len(addrs)) * 8)
	b.ReportAllocs()
	for b.Loop() {
		if err := tab.Join(addrs, hits); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNames(b *testing.B) {
	tab, e := benchTable(b, 100_000)
	b.SetBytes(rawSize(b, e))
	b.ReportAllocs()
	for b.Loop() {
		for i := range tab.NumNames() {
			if _, err := tab.nameBytes(NameID(i)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	tab, e := benchTable(b, 100_000)
	b.SetBytes(rawSize(b, e))
	for b.Loop() {
		if _, err := tab.Digest(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	_, e := benchTable(b, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(e.Header, e); err != nil {
			b.Fatal(err)
		}
	}
}

// debugLikeC adds n functions as of optimized C++ to a Builder: a dozen inlined calls, nested, of a
// few thousand small functions, and thirty lines each.
func debugLikeC(b *Builder, n int) {
	rng := rand.New(rand.NewPCG(1, 4))
	var files []FileRef
	for i := range 300 {
		files = append(files, b.File(fmt.Appendf(nil, "/usr/src/library/dir%d/file%d.h", i%20, i)))
	}
	var subs []SubRef
	for i := range 3000 {
		name := fmt.Appendf(nil, "_ZNSt6detail%d6vectorI%dE7inlinedEv", i%50, i)
		s := Subprogram{Linkage: name, File: files[i%300], Line: uint32(i * 7 % 900)}
		subs = append(subs, b.Sub(s))
	}
	var f DebugFunc
	for i, c := range likeC(n) {
		end := c.Start + addr.Addr(c.Size)
		file := files[i/50%300]
		f = DebugFunc{
			Sub:     b.Sub(Subprogram{Linkage: []byte(c.Name), File: file, Line: uint32(i % 50 * 40)}),
			Ranges:  []addr.Range{{Start: c.Start, End: end}},
			Inlines: f.Inlines[:0], Lines: f.Lines[:0],
		}
		outer, parent := f.Ranges[0], NoParent
		for k := range int32(12) {
			if k%4 == 0 || outer.End-outer.Start < 8 {
				outer, parent = f.Ranges[0], NoParent
			}
			start := outer.Start + addr.Addr(rng.Uint64N(uint64(outer.End-outer.Start)))
			outer = addr.Range{Start: start, End: start + (outer.End-start+1)/2}
			f.Inlines = append(f.Inlines, Inline{
				Sub: subs[(i/9*13+int(k)*31)%3000], Parent: parent, CallFile: file,
				CallLine: uint32(i%50*40) + uint32(k), Ranges: []addr.Range{outer},
			})
			parent = k
		}
		for a := c.Start; a < end; a += addr.Addr(1 + rng.IntN(16)) {
			f.Lines = append(f.Lines, Line{a, file, uint32(i%50*40 + rng.IntN(30)), 0})
		}
		b.AddFunction(&f)
	}
}

// BenchmarkEncodeDebug encodes a table with debug information, including the computation of
// segments. Bytes are the bytes of the table before compression.
func BenchmarkEncodeDebug(b *testing.B) {
	b.ReportAllocs()
	bl := NewBuilder(Options{})
	var e *Encoded
	for b.Loop() {
		debugLikeC(bl, 10_000)
		e = bl.Encode()
	}
	b.SetBytes(rawSize(b, e))
	b.ReportMetric(float64(e.Size())/float64(open(b, e).h.segments), "bytes/segment")
}

// BenchmarkJoinFrames is BenchmarkJoin with lines and inlined calls.
func BenchmarkJoinFrames(b *testing.B) {
	bl := NewBuilder(Options{})
	debugLikeC(bl, 30_000)
	e := bl.Encode()
	benchFrames(b, e)
}

// candidates makes n candidates in no order; three of four have an address of their own.
func candidates(n int) []candidate {
	rng := rand.New(rand.NewPCG(4, 5))
	cands := make([]candidate, n)
	for i, k := range rng.Perm(n) {
		cands[i] = candidate{start: uint64(k-k%4/3) << 4, size: 1, seq: uint32(i),
			name: fmt.Sprintf("f%d", k), flags: Flags(k % 2)}
	}
	return cands
}

// TestSortCandidates compares the order with a sort of the candidates themselves.
func TestSortCandidates(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 13, 1000} {
		got, want := candidates(n), candidates(n)
		sortCandidates(got)
		slices.SortFunc(want, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(x.start, y.start), compareAlias(&x, &y))
		})
		if !slices.Equal(got, want) {
			t.Errorf("%d candidates are in another order", n)
		}
	}
}

// BenchmarkSort sorts the symbols of a large library.
func BenchmarkSort(b *testing.B) {
	all := candidates(100_000)
	cands := make([]candidate, len(all))
	b.SetBytes(int64(len(all)) * int64(unsafe.Sizeof(all[0])))
	for b.Loop() {
		copy(cands, all)
		sortCandidates(cands)
	}
}
