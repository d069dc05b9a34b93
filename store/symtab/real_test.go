package symtab

import (
	"cmp"
	stdelf "debug/elf"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
)

// converter hands a unit of ingest/object/dwarf to a Builder.
type converter struct {
	b     *Builder
	files []FileRef
	subs  []SubRef
	seqs  []dwarf.Sequence
	lines []Line
	calls []Inline
	path  []byte
}

// file returns the reference of file i of the unit, which is made known first.
func (c *converter) file(i uint32) FileRef {
	if i == dwarf.NoFile || int(i) >= len(c.files) {
		return 0
	}
	return c.files[i]
}

func (c *converter) sub(i int32) SubRef {
	if i == dwarf.NoSub {
		return 0
	}
	return c.subs[i]
}

func (c *converter) unit(u *dwarf.Unit) {
	c.files, c.subs = c.files[:0], c.subs[:0]
	for _, f := range u.Files {
		c.path = dwarf.AppendPath(c.path[:0], f)
		c.files = append(c.files, c.b.File(c.path))
	}
	for i := range u.Subs {
		s := &u.Subs[i]
		c.subs = append(c.subs, c.b.Sub(Subprogram{
			Linkage: s.Linkage, Name: s.Name, File: c.file(s.DeclFile), Line: s.DeclLine,
		}))
	}
	c.seqs = append(c.seqs[:0], u.Sequences...)
	slices.SortStableFunc(c.seqs, func(a, b dwarf.Sequence) int {
		return cmp.Compare(a.Start, b.Start)
	})
	for i := range u.Functions {
		f := &u.Functions[i]
		c.calls = c.calls[:0]
		for k := range f.Inlines {
			in := &f.Inlines[k]
			c.calls = append(c.calls, Inline{
				Sub: c.sub(in.Sub), Parent: in.Parent, CallFile: c.file(in.CallFile),
				CallLine: in.CallLine, CallColumn: in.CallColumn, Ranges: in.Ranges,
			})
		}
		c.lines = c.lines[:0]
		slices.SortFunc(f.Ranges, func(a, b addr.Range) int { return cmp.Compare(a.Start, b.Start) })
		for _, r := range f.Ranges {
			c.rows(r)
		}
		c.b.AddFunction(&DebugFunc{
			Sub: c.sub(f.Sub), Ranges: f.Ranges, Inlines: c.calls, Lines: c.lines,
		})
	}
	c.bare(u)
}

// rows appends the rows that cover a range.
func (c *converter) rows(r addr.Range) {
	at := r.Start
	i, _ := slices.BinarySearchFunc(c.seqs, r.Start, func(s dwarf.Sequence, a addr.Addr) int {
		if s.End <= a {
			return -1
		}
		return 1
	})
	for ; i < len(c.seqs) && c.seqs[i].Start < r.End; i++ {
		s := &c.seqs[i]
		if s.End <= at {
			continue
		}
		k, found := slices.BinarySearchFunc(s.Rows, at, func(r dwarf.Row, a addr.Addr) int {
			return cmp.Compare(r.Addr, a)
		})
		if !found && k > 0 {
			k--
		}
		for ; k < len(s.Rows) && s.Rows[k].Addr < r.End; k++ {
			row := &s.Rows[k]
			c.lines = append(c.lines, Line{max(row.Addr, at), c.file(row.File), row.Line, row.Column})
		}
		at = s.End
		c.lines = append(c.lines, Line{Addr: at})
	}
}

// bare adds the lines of sequences in which the unit has no function.
func (c *converter) bare(u *dwarf.Unit) {
	for i := range c.seqs {
		s := &c.seqs[i]
		covered := slices.ContainsFunc(u.Functions, func(f dwarf.Function) bool {
			return slices.ContainsFunc(f.Ranges, func(r addr.Range) bool {
				return r.Start < s.End && s.Start < r.End
			})
		})
		if covered {
			continue
		}
		c.lines = c.lines[:0]
		c.rows(s.Range)
		c.b.AddFunction(&DebugFunc{Ranges: []addr.Range{s.Range}, Lines: c.lines})
	}
}

// realTable makes the table of a debug file.
func realTable(t testing.TB, path string, opts Options) (*Encoded, Losses) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	elf, err := stdelf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	var raw []dwarf.RawSection
	var text []addr.Range
	for _, s := range elf.Sections {
		raw = append(raw, dwarf.RawSection{
			Name: s.Name, Offset: s.Offset, Size: s.FileSize,
			Compressed: s.Flags&stdelf.SHF_COMPRESSED != 0,
		})
		if s.Flags&stdelf.SHF_EXECINSTR != 0 && s.Size > 0 {
			text = append(text, addr.Range{Start: addr.Addr(s.Addr), End: addr.Addr(s.Addr + s.Size)})
		}
	}
	l := dwarf.Load(f, raw, dwarf.LoadOptions{Name: path, Class64: elf.Class == stdelf.ELFCLASS64,
		BigEndian: elf.ByteOrder.String() == "BigEndian", Workers: 2})
	defer l.Close()
	d := dwarf.New(l.Sections, dwarf.Options{Name: path, Text: text, Release: l.Release})
	b := NewBuilder(opts)
	c := converter{b: b}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	err = d.Walk(t.Context(), 2, func(u *dwarf.Unit) error {
		c.unit(u)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	walked := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	began = time.Now()
	e := b.Encode()
	t.Logf("%s: walked in %v, encoded in %v; the builder held %d MiB", filepath.Base(path), walked,
		time.Since(began), (int64(after.HeapAlloc)-int64(before.HeapAlloc))>>20)
	return e, b.Losses()
}

// realFiles are the debug files that the environment names, as a list of paths.
func realFiles(t testing.TB) []string {
	list := filepath.SplitList(os.Getenv("SYMBOLIZE_DEBUG_FILES"))
	if len(list) == 0 {
		t.Skip("needs debug files: set SYMBOLIZE_DEBUG_FILES to their paths")
	}
	return list
}

func TestRealFiles(t *testing.T) {
	for _, path := range realFiles(t) {
		e, losses := realTable(t, path, Options{})
		h := open(t, e).h
		t.Logf("%d functions, %d calls, %d segments, %d of %d KiB lined", e.Funcs, h.scopes,
			h.segments, h.lined>>10, e.Named>>10)
		t.Logf("%d KiB, %d KiB raw, %d chunks; %+v", e.Size()>>10, rawSize(t, e)>>10, len(e.Chunks), losses)
		sizes(t, e)
	}
}

// sizes logs the bytes of each part of a table.
func sizes(t testing.TB, e *Encoded) {
	tab, err := Open(e.Header, e)
	if err != nil {
		t.Fatal(err)
	}
	var cols [numColumns][]byte
	var ranges []byte
	for i := range tab.h.chunks {
		if err := tab.openChunk(i, &tab.debug); err != nil {
			t.Fatal(err)
		}
		for k := range cols {
			cols[k] = append(cols[k], tab.debug.cols[k]...)
		}
		ranges = append(ranges, tab.cur.gaps...)
		ranges = append(ranges, tab.cur.sizes...)
	}
	names := [numColumns]string{
		"files", "sub names", "sub files", "sub lines", "range subs", "range calls", "range segs",
		"ups", "call subs", "call files", "call lines", "call columns",
		"lengths", "seg calls", "seg files", "seg lines", "seg columns",
	}
	for k := range cols {
		stored, _ := Pack(append(cols[k], 0))
		t.Logf("  %-12s %8d raw %8d packed", names[k], len(cols[k]), len(stored))
	}
	stored, _ := Pack(append(ranges, 0))
	t.Logf("  %-12s %8d raw %8d packed", "ranges", len(ranges), len(stored))
	for i := 0; i < tab.h.texts(); {
		kind, n := "names", len(tab.h.strings)-len(tab.h.extra)
		if i >= len(tab.h.strings) {
			kind, n = "files", tab.h.texts()
		} else if i >= n {
			kind, n = "extra", len(tab.h.strings)
		}
		raw, packed := 0, 0
		for ; i < n; i++ {
			raw += int(tab.h.text(i).block.raw)
			packed += int(tab.h.text(i).block.stored)
		}
		t.Logf("  %-12s %8d raw %8d packed", kind, raw, packed)
	}
}

// BenchmarkRealJoin is the join of 100,000 sorted random addresses, with frames.
func BenchmarkRealJoin(b *testing.B) {
	for _, path := range realFiles(b) {
		b.Run(filepath.Base(path), func(b *testing.B) {
			e, _ := realTable(b, path, Options{})
			benchFrames(b, e)
		})
	}
}

// benchFrames joins 100,000 random addresses of random functions.
func benchFrames(b *testing.B, e *Encoded) {
	tab, err := Open(e.Header, e)
	if err != nil {
		b.Fatal(err)
	}
	var funcs []addr.Range
	for p, err := range tab.Pieces() {
		if err != nil {
			b.Fatal(err)
		}
		funcs = append(funcs, p.Range)
	}
	rng := rand.New(rand.NewPCG(1, 3))
	addrs := make([]addr.Addr, 100_000)
	for i := range addrs {
		r := funcs[rng.IntN(len(funcs))]
		addrs[i] = r.Start + addr.Addr(rng.Uint64N(uint64(r.End-r.Start)))
	}
	slices.Sort(addrs)
	frames := 0
	cpu := cpuTime()
	b.SetBytes(rawSize(b, e))
	b.ReportAllocs()
	for b.Loop() {
		frames = 0
		err := tab.JoinFrames(addrs, func(_ int, _ Hit, f []Frame) { frames += len(f) })
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(addrs)), "ns/address")
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/float64(len(addrs)), "cpu-ns/address")
	b.ReportMetric(float64(frames), "frames")
}
