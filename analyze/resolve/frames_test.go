package resolve

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/symtab"
)

// debugTable builds a table of debug information:
//
//	0x401100-0x401180  _ZN4workE, declared work.cc:10
//	  0x401120-0x401160  helper inlined at work.cc:12, declared work.h:3
//	    0x401130-0x401140  leaf inlined at work.h:5, declared leaf.h:1
//	0x401200-0x401240  split: first half of its lines from table.inc
//	0x401300-0x401310  asm.S lines without a function
//	0x401400-0x401440  far, after a label without a size
func debugTable(t testing.TB) *symtab.Encoded {
	t.Helper()
	b := symtab.NewBuilder(symtab.Options{Columns: true})
	file := func(s string) symtab.FileRef { return b.File([]byte(s)) }
	sub := func(name, declFile string, line uint32) symtab.SubRef {
		return b.Sub(symtab.Subprogram{Name: []byte(name), File: file(declFile), Line: line})
	}
	span := func(from, to addr.Addr) []addr.Range { return []addr.Range{{Start: from, End: to}} }
	b.AddFunction(&symtab.DebugFunc{
		Sub: sub("_ZN4workE", "/src/work.cc", 10), Ranges: span(0x401100, 0x401180),
		Inlines: []symtab.Inline{
			{Sub: sub("helper", "/src/work.h", 3), Parent: symtab.NoParent,
				CallFile: file("/src/work.cc"), CallLine: 12, CallColumn: 7,
				Ranges: span(0x401120, 0x401160)},
			{Sub: sub("leaf", "/src/leaf.h", 1), Parent: 0, CallFile: file("/src/work.h"),
				CallLine: 5, Ranges: span(0x401130, 0x401140)},
		},
		Lines: []symtab.Line{{Addr: 0x401100, File: file("/src/work.cc"), Line: 11, Column: 3},
			{Addr: 0x401120, File: file("/src/work.h"), Line: 4},
			{Addr: 0x401130, File: file("/src/leaf.h"), Line: 2, Column: 9},
			{Addr: 0x401140, File: file("/src/work.h"), Line: 6},
			{Addr: 0x401160, File: file("/src/work.cc"), Line: 14}},
	})
	b.AddFunction(&symtab.DebugFunc{
		Sub: sub("split", "/src/split.c", 20), Ranges: span(0x401200, 0x401240),
		Lines: []symtab.Line{{Addr: 0x401200, File: file("/src/table.inc"), Line: 5},
			{Addr: 0x401220, File: file("/src/split.c"), Line: 22}},
	})
	b.AddFunction(&symtab.DebugFunc{Ranges: span(0x401300, 0x401310),
		Lines: []symtab.Line{{Addr: 0x401300, File: file("/src/asm.S"), Line: 1}}})
	b.AddFunction(&symtab.DebugFunc{Sub: sub("far", "/src/far.c", 1),
		Ranges: span(0x401400, 0x401440),
		Lines:  []symtab.Line{{Addr: 0x401400, File: file("/src/far.c"), Line: 2}}})
	return b.Encode()
}

// debugOverlay holds one object with the debug table and symbols.
func debugOverlay(t testing.TB) *store.Overlay {
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: pie},
		map[store.SourceKind]*symtab.Encoded{
			store.DWARF: debugTable(t),
			store.Symtab: table(t, function("__GI_work.cold", 0x401110, 0x70),
				function("split", 0x401200, 0x40),
				symtab.Func{Name: "label", Start: 0x401380, Size: 0x100, Flags: symtab.Unsized}),
			store.PLT: table(t, function("never@plt", 0x401100, 0x400)),
		})
	return o
}

// frames prints each location's frames: "name file:line:column@start".
func frames(p *ingest.Profile) []string {
	var out []string
	for l := range p.Locations {
		var words []string
		for _, f := range p.Names.At(ingest.LocationID(l)) {
			fn := &p.Names.Functions[f.Func]
			word := fmt.Sprintf("%s %s:%d:%d@%d", fn.SystemName, fn.File, f.Line, f.Column,
				fn.StartLine)
			if f.Inlined {
				word = "(" + word + ")"
			}
			words = append(words, word)
		}
		if len(words) == 0 {
			words = []string{p.Names.Reasons[l].String()}
		}
		out = append(out, fmt.Sprintf("%s +%#x", strings.Join(words, " "), p.Names.SymOff[l]))
	}
	return out
}

// TestResolveFrames: lines and inlined calls, and the physical function's name by each policy.
func TestResolveFrames(t *testing.T) {
	o := debugOverlay(t)
	offsets := []addr.Offset{0x1100, 0x1110, 0x1125, 0x1135, 0x1200, 0x1230, 0x1305, 0x1390, 0x1410,
		0x1500}
	for _, tt := range []struct {
		name string
		opts Options
		want []string
	}{
		{name: "symbols", opts: Options{}, want: []string{
			"_ZN4workE /src/work.cc:11:3@10 +0x0",
			"__GI_work.cold /src/work.cc:11:3@10 +0x0",
			"(helper /src/work.h:4:0@3) __GI_work.cold /src/work.cc:12:7@10 +0x15",
			"(leaf /src/leaf.h:2:9@1) (helper /src/work.h:5:0@3) " +
				"__GI_work.cold /src/work.cc:12:7@10 +0x25",
			"split /src/table.inc:5:0@0 +0x0",
			"split /src/split.c:22:0@20 +0x30",
			"never@plt /src/asm.S:1:0@0 +0x205",
			"label :0:0@0 +0x10",
			"far /src/far.c:2:0@1 +0x10",
			"stripped +0x0",
		}},
		{name: "dwarf", opts: Options{Names: DWARFNames}, want: []string{
			"_ZN4workE /src/work.cc:11:3@10 +0x0",
			"_ZN4workE /src/work.cc:11:3@10 +0x10",
			"(helper /src/work.h:4:0@3) _ZN4workE /src/work.cc:12:7@10 +0x25",
			"(leaf /src/leaf.h:2:9@1) (helper /src/work.h:5:0@3) " +
				"_ZN4workE /src/work.cc:12:7@10 +0x35",
			"split /src/table.inc:5:0@0 +0x0",
			"split /src/split.c:22:0@20 +0x30",
			"never@plt /src/asm.S:1:0@0 +0x205",
			"label :0:0@0 +0x10",
			"far /src/far.c:2:0@1 +0x10",
			"stripped +0x0",
		}},
		{name: "no inlines", opts: Options{NoInlines: true}, want: []string{
			"_ZN4workE /src/work.cc:11:3@10 +0x0",
			"__GI_work.cold /src/work.cc:11:3@10 +0x0",
			"__GI_work.cold /src/work.cc:12:7@10 +0x15",
			"__GI_work.cold /src/work.cc:12:7@10 +0x25",
			"split /src/table.inc:5:0@0 +0x0",
			"split /src/split.c:22:0@20 +0x30",
			"never@plt /src/asm.S:1:0@0 +0x205",
			"label :0:0@0 +0x10",
			"far /src/far.c:2:0@1 +0x10",
			"stripped +0x0",
		}},
	} {
		p := one(ingest.Object{ID: id(1), File: ingest.FileRef{Path: "/bin/x"}}, offsets...)
		if err := Resolve(t.Context(), p, o, tt.opts); err != nil {
			t.Fatal(err)
		}
		if got := frames(p); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, strings.Join(got, "\n     "),
				strings.Join(tt.want, "\n     "))
		}
		checkNames(t, p)
	}
}

// TestResolveFramesDeterministic: however shards fall to workers, the same Names.
func TestResolveFramesDeterministic(t *testing.T) {
	o := debugOverlay(t)
	b := profilebuild.New(profilebuild.Clock())
	for i := range 3 {
		h := b.Object(ingest.Object{ID: id(1), File: ingest.FileRef{Path: fmt.Sprint("/bin/", i)}})
		for k := range 3 * shardSize {
			b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
				Stack: []profilebuild.Place{{Object: h, Offset: addr.Offset(0x1000 + k)}}})
		}
	}
	p := b.Profile()
	var want *ingest.Names
	for _, workers := range []int{1, 2, 5} {
		p.Names = nil
		if err := Resolve(t.Context(), p, o, Options{Workers: workers}); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = p.Names
		} else if !reflect.DeepEqual(want, p.Names) {
			t.Fatalf("%d workers give other names", workers)
		}
	}
}

// TestPprofHasLines: lines, files, columns and start lines reach a pprof file and come back from
// it.
func TestPprofHasLines(t *testing.T) {
	o := debugOverlay(t)
	p := one(ingest.Object{ID: id(1), File: ingest.FileRef{Path: "/bin/x"}}, 0x1135, 0x1200)
	if err := Resolve(t.Context(), p, o, Options{}); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := pprof.Write(&file, p, Layout(o, p)); err != nil {
		t.Fatal(err)
	}
	back := readPprof(t, file.Bytes())
	for l := range p.Names.SymOff { // which a pprof file does not hold
		p.Names.SymOff[l], back.Names.SymOff[l] = 0, 0
	}
	if got, want := frames(back), frames(p); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	prof := parsePprof(t, file.Bytes())
	m := prof.Mapping[0]
	if !m.HasFunctions || !m.HasFilenames || !m.HasLineNumbers || !m.HasInlineFrames {
		t.Errorf("mapping %+v", m)
	}
}

// TestFinder: each source's answer is kept, for callers that choose by other rules.
func TestFinder(t *testing.T) {
	o := debugOverlay(t)
	ms, err := o.Find(id(1))
	if err != nil {
		t.Fatal(err)
	}
	f := NewFinder(o, ms[0])
	for range 2 { // texts and places do not leak from one batch to the next
		f.Join([]addr.Addr{0x401135, 0x401135, 0x401305, 0x409000})
		p := f.Place(1)
		if f.Text(p.Symbol) != "__GI_work.cold" || p.SymbolStart != 0x401110 ||
			p.FuncStart != 0x401100 || p.DebugKind != store.DWARF || p.SymbolKind != store.Symtab {
			t.Errorf("place %+v, symbol %s", p, f.Text(p.Symbol))
		}
		list := f.Frames(p)
		if len(list) != 3 || f.Text(list[2].Name) != "_ZN4workE" ||
			f.Text(list[0].DeclFile) != "/src/leaf.h" || list[0].DeclLine != 1 {
			t.Errorf("frames %+v", list)
		}
		if list := f.Frames(f.Place(2)); len(list) != 1 || list[0].Name != 0 ||
			f.Text(list[0].File) != "/src/asm.S" {
			t.Errorf("lines without a function: %+v", list)
		}
		if name, _ := f.Function(f.Place(3), SymbolNames); name != 0 || len(f.Frames(f.Place(3))) != 0 {
			t.Errorf("outside: %s", f.Text(name))
		}
		if len(f.Errors()) != 0 {
			t.Error(f.Errors())
		}
	}
	f = NewFinder(broken{View: o, open: true}, ms[0])
	f.Join([]addr.Addr{0x401135})
	if len(f.Errors()) != 1 || !strings.HasPrefix(f.Errors()[0].Error(), ms[0].Sources[1].Kind.String()) ||
		len(f.Frames(f.Place(0))) != 3 {
		t.Errorf("errors %v, %d frames", f.Errors(), len(f.Frames(f.Place(0))))
	}
}

func TestParseNamePolicy(t *testing.T) {
	for i, word := range NamePolicies {
		if got, err := ParseNamePolicy(word); err != nil || got != NamePolicy(i) {
			t.Errorf("%s: %d, %v", word, got, err)
		}
	}
	if _, err := ParseNamePolicy("elf"); err == nil {
		t.Error("elf is a policy")
	}
}

// BenchmarkResolveFrames is BenchmarkResolve with lines and one inlined call at each
// location.
func BenchmarkResolveFrames(b *testing.B) {
	b.ReportAllocs()
	o, p := manyFrames(b, 98, 184_000, 111_110)
	b.SetBytes(16 * int64(len(p.Locations)))
	for b.Loop() {
		p.Names = nil
		resolve(b, p, o)
	}
	b.ReportMetric(float64(len(p.Locations))*float64(b.N)/b.Elapsed().Seconds(), "locations/s")
}

// manyFrames is many with debug information for each function.
func manyFrames(t testing.TB, objects, functions, locations int) (*store.Overlay,
	*ingest.Profile) {
	o, p := many(t, objects, functions, locations)
	for i := range objects {
		ms, err := o.Find(id(byte(i + 1)))
		if err != nil {
			t.Fatal(err)
		}
		names, err := o.Open(ms[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		b := symtab.NewBuilder(symtab.Options{})
		n := uint32(0)
		for f, err := range names.All() {
			if err != nil {
				t.Fatal(err)
			}
			n++
			b.AddFunction(debugOf(b, &f, n))
		}
		e := b.Encode()
		contribute(t, o, store.Manifest{ID: ms[0].ID, Kind: ingest.ELF},
			map[store.SourceKind]*symtab.Encoded{store.DWARF: e})
	}
	return o, p
}

// debugOf makes up lines, and a call that was inlined, for a function.
func debugOf(b *symtab.Builder, f *symtab.Func, n uint32) *symtab.DebugFunc {
	file := b.File(fmt.Appendf(nil, "/src/dir/file%d.cc", n/64))
	inner := b.Sub(symtab.Subprogram{Name: fmt.Appendf(nil, "inline%d", n%512), File: file, Line: n})
	d := &symtab.DebugFunc{
		Sub:    b.Sub(symtab.Subprogram{Linkage: []byte(f.Name), File: file, Line: n}),
		Ranges: []addr.Range{{Start: f.Start, End: f.Start + addr.Addr(f.Size)}},
		Inlines: []symtab.Inline{{Sub: inner, Parent: symtab.NoParent, CallFile: file, CallLine: n + 1,
			Ranges: []addr.Range{{Start: f.Start + 4, End: f.Start + 60}}}},
	}
	for k := range addr.Addr(f.Size / 6) {
		d.Lines = append(d.Lines, symtab.Line{Addr: f.Start + 6*k, File: file,
			Line: n + uint32(k*7%11)})
	}
	return d
}

// noStrings is a view of one table with blocks of strings that cannot be read.
type noStrings struct {
	store.View
	table *symtab.Encoded
}

func (n noStrings) Open(*store.Manifest, int) (*symtab.Table, error) {
	return symtab.Open(n.table.Header, n)
}

func (n noStrings) Block(kind symtab.BlockKind, i int) ([]byte, error) {
	if kind == symtab.Strings {
		return nil, errBroken
	}
	return n.table.Block(kind, i)
}

// TestFinderWithoutStrings: names that cannot be read are none, and reported.
func TestFinderWithoutStrings(t *testing.T) {
	b := symtab.NewBuilder(symtab.Options{})
	for n := range uint32(20_000) {
		f := function(fmt.Sprintf("function%d", n), addr.Addr(n*64), 60)
		b.AddFunction(debugOf(b, &f, n))
	}
	e := b.Encode()
	if len(e.Strings) == 0 {
		t.Fatal("the table has no blocks of its own")
	}
	for _, kind := range []store.SourceKind{store.DWARF, store.Symtab} {
		o := store.NewOverlay()
		contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: []elf.Segment{
			{FileSize: 1 << 30, MemSize: 1 << 30, Flags: 5}}},
			map[store.SourceKind]*symtab.Encoded{kind: e})
		ms, err := o.Find(id(1))
		if err != nil {
			t.Fatal(err)
		}
		f := NewFinder(noStrings{o, e}, ms[0])
		for range 2 {
			f.Join([]addr.Addr{8, 64 * 7})
			for i := range 2 {
				p := f.Place(i)
				if name, _ := f.Function(p, SymbolNames); name != 0 {
					t.Errorf("%s: a name: %q", kind, f.Text(name))
				}
				for _, fr := range f.Frames(p) {
					if fr.Name != 0 || fr.File != 0 || fr.DeclFile != 0 {
						t.Errorf("%s: frame %+v", kind, fr)
					}
				}
			}
			if len(f.Errors()) != 1 {
				t.Errorf("%s: errors %v", kind, f.Errors())
			}
		}
		p := one(ingest.Object{ID: id(1), File: ingest.FileRef{Path: "/bin/x"}}, 0x1100)
		resolve(t, p, noStrings{o, e})
		if p.Names.Reasons[0] != ingest.TableDamaged || len(p.Names.At(0)) != 0 {
			t.Errorf("%s: reason %s", kind, p.Names.Reasons[0])
		}
	}
}

// TestBareNames: a function that has no linkage name in debug information has the mangled name of
// its own symbol, and of no other.
func TestBareNames(t *testing.T) {
	b := symtab.NewBuilder(symtab.Options{})
	var symbols []symtab.Func
	for i, c := range []struct{ linkage, name, symbol string }{
		{name: "run", symbol: "_ZN12_GLOBAL__N_13runEv"},
		{name: "run", symbol: "_RNvC1a3run"},
		{linkage: "_Z3runv", name: "run", symbol: "_Z3runv.cold"},
		{name: "run", symbol: "__GI_run"},
		{name: "_ZN1a3runEv", symbol: "_ZN1b3runEv"},
	} {
		at := addr.Addr(0x1000 + 0x100*i)
		b.AddFunction(&symtab.DebugFunc{
			Sub:    b.Sub(symtab.Subprogram{Linkage: []byte(c.linkage), Name: []byte(c.name)}),
			Ranges: []addr.Range{{Start: at, End: at + 0x80}}})
		symbols = append(symbols, function(c.symbol, at, 0x80))
	}
	// A function within another's symbol.
	b.AddFunction(&symtab.DebugFunc{Sub: b.Sub(symtab.Subprogram{Name: []byte("inner")}),
		Ranges: []addr.Range{{Start: 0x2010, End: 0x2020}}})
	symbols = append(symbols, function("_Z5outerv", 0x2000, 0x80))
	debug := b.Encode()
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF}, map[store.SourceKind]*symtab.Encoded{
		store.DWARF: debug, store.Symtab: table(t, symbols...)})
	found, err := o.Find(id(1))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	f := NewFinder(o, found[0])
	f.Join([]addr.Addr{0x1004, 0x1104, 0x1204, 0x1304, 0x1404, 0x2014})
	var got []string
	for i := range 6 {
		name, start := f.Function(f.Place(i), DWARFNames)
		got = append(got, fmt.Sprintf("%s %#x", f.Text(name), start))
	}
	want := []string{"_ZN12_GLOBAL__N_13runEv 0x1000", "_RNvC1a3run 0x1100", "_Z3runv 0x1200",
		"run 0x1300", "_ZN1a3runEv 0x1400", "inner 0x2010"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
