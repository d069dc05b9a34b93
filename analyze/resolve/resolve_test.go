package resolve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/symtab"
)

func id(b byte) buildid.ID { return buildid.New(bytes.Repeat([]byte{b}, 20)) }

// table builds a symbol table of functions [start, start+size).
func table(t testing.TB, funcs ...symtab.Func) *symtab.Encoded {
	t.Helper()
	b := symtab.NewBuilder(symtab.Options{})
	for _, f := range funcs {
		b.Add(f)
	}
	return b.Encode()
}

func function(name string, start addr.Addr, size uint64) symtab.Func {
	return symtab.Func{Name: name, Start: start, Size: size}
}

// contribute puts an object with tables into an overlay.
func contribute(t testing.TB, o *store.Overlay, m store.Manifest,
	tables map[store.SourceKind]*symtab.Encoded) {
	t.Helper()
	c := store.Contribution{Manifest: m}
	for _, kind := range []store.SourceKind{store.DWARF, store.Symtab, store.Dynsym, store.Kallsyms,
		store.PLT, store.EhFrame} {
		if e := tables[kind]; e != nil {
			c.Sources = append(c.Sources, store.NewSource{
				Info: store.SourceInfo{Kind: kind, Producer: 1, Path: "/x"}, Table: e})
		}
	}
	if err := o.Merge(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
}

// pie is the layout of a usual PIE: file offsets are not addresses.
var pie = []elf.Segment{
	{Offset: 0, Addr: 0, FileSize: 0x1000, MemSize: 0x1000, Flags: 4},
	{Offset: 0x1000, Addr: 0x401000, FileSize: 0x3000, MemSize: 0x3000, Flags: 5},
	{Offset: 0x3800, Addr: 0x405800, FileSize: 0x1000, MemSize: 0x9000, Flags: 6},
}

// one makes a profile with one object and a location at each offset.
func one(o ingest.Object, offsets ...addr.Offset) *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock())
	h := b.Object(o)
	for _, off := range offsets {
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
			Stack: []profilebuild.Place{{Object: h, Offset: off}}})
	}
	return b.Profile()
}

// text prints the answers: "name+0xOFF" or a reason, by location.
func text(p *ingest.Profile) string {
	var words []string
	for l := range p.Locations {
		frames := p.Names.At(ingest.LocationID(l))
		if len(frames) == 0 {
			words = append(words, p.Names.Reasons[l].String())
			continue
		}
		word := ""
		for _, f := range frames {
			word += p.Names.Functions[f.Func].SystemName + "+"
		}
		words = append(words, fmt.Sprintf("%s%#x", word, p.Names.SymOff[l]))
	}
	return strings.Join(words, ", ")
}

func resolve(t testing.TB, p *ingest.Profile, v store.View) {
	t.Helper()
	if err := Resolve(t.Context(), p, v, Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: pie},
		map[store.SourceKind]*symtab.Encoded{
			store.Symtab: table(t, function("main", 0x401100, 0x100), function("tail", 0x403fff, 1)),
			store.Dynsym: table(t, function("wrong", 0x401000, 0x1000)),
			store.PLT:    table(t, function("puts@plt", 0x402800, 0x10)),
		})
	contribute(t, o, store.Manifest{ID: id(2), Kind: ingest.ELF}, map[store.SourceKind]*symtab.Encoded{
		store.Symtab: table(t, function("main", 0x1000, 0x100))})
	contribute(t, o, store.Manifest{ID: id(3), Kind: ingest.Kernel,
		RefSyms: []store.RefSymbol{{Name: ingest.LinkedAddresses, Addr: 1<<64 - 0xc0008000},
			{Name: "_stext", Addr: 0x198}}},
		map[store.SourceKind]*symtab.Encoded{store.Kallsyms: table(t, function("_text", 0, 0x198),
			function("schedule", 0x1000, 0x100))})
	contribute(t, o, store.Manifest{ID: id(4), Kind: ingest.Module},
		map[store.SourceKind]*symtab.Encoded{store.Symtab: table(t,
			function("ext4_read", 0x40, 0x40))})
	contribute(t, o, store.Manifest{ID: id(5), Kind: ingest.ELF, Layout: pie}, nil)
	contribute(t, o, store.Manifest{ID: buildid.New([]byte{7, 7}), Kind: ingest.ELF, Layout: pie}, nil)
	contribute(t, o, store.Manifest{ID: buildid.New([]byte{7, 7, 0}), Kind: ingest.ELF, Layout: pie},
		nil)
	contribute(t, o, store.Manifest{ID: id(6), Kind: ingest.Kernel, VDSO: []buildid.ID{id(1)}}, nil)
	if err := o.PutDir("/bin", store.DirRows{{Name: "replaced", ID: id(1)},
		{Name: "same", ID: id(99)}, {Name: "text"}}); err != nil {
		t.Fatal(err)
	}
	file := func(i buildid.ID, path string) ingest.Object {
		return ingest.Object{ID: i, File: ingest.FileRef{Path: path}}
	}
	kernel := func(ref string) ingest.Object {
		return ingest.Object{Kind: ingest.Kernel, ID: id(3), RefSymbol: ref,
			File: ingest.FileRef{Path: "[kernel.kallsyms]"}}
	}
	tests := []struct {
		name    string
		object  ingest.Object
		offsets []addr.Offset
		want    string
	}{
		{name: "sources in layers", object: file(id(1), "/bin/a"),
			offsets: []addr.Offset{0x10ff, 0x1100, 0x11ff, 0x1200,
				0x2800, 0x3000, 0x3fff},
			want: "wrong+0xff, main+0x0, main+0xff, wrong+0x200, puts@plt+0x0, stripped, tail+0x0"},
		{name: "executable segment first", object: file(id(1), "/bin/a"),
			offsets: []addr.Offset{0x3fff, 0x4000},
			want:    "tail+0x0, stripped"},
		{name: "outside", object: file(id(1), "/bin/a"),
			offsets: []addr.Offset{0x4800, 1 << 40, ^addr.Offset(0)},
			want:    "outside the object, outside the object, outside the object"},
		{name: "layout unknown", object: file(id(2), "/bin/b"), offsets: []addr.Offset{0x1000},
			want: "layout unknown"},
		{name: "no source", object: file(id(5), "/bin/b"), offsets: []addr.Offset{0x1000},
			want: "stripped"},
		{name: "not indexed", object: file(id(99), "/bin/c"), offsets: []addr.Offset{0x1000},
			want: "not indexed"},
		{name: "replaced", object: file(id(98), "/bin/replaced"), offsets: []addr.Offset{0x1000},
			want: "build ID mismatch"},
		{name: "known by path, tables gone", object: file(id(99), "/bin/same"),
			offsets: []addr.Offset{0x1000},
			want:    "not indexed"},
		{name: "no build ID", object: file(buildid.ID{}, "/bin/replaced"),
			offsets: []addr.Offset{0x1000}, want: "no build ID"},
		{name: "padded, ambiguous", object: file(buildid.Padded([]byte{7, 7, 0, 0}), "/bin/c"),
			offsets: []addr.Offset{0x1000}, want: "ambiguous"},
		{name: "padded, found",
			object:  file(buildid.Padded(append(bytes.Repeat([]byte{1}, 20), 0)), "/bin/c"),
			offsets: []addr.Offset{0x1100}, want: "main+0x0"},
		{name: "kernel by _text", object: kernel("_text"),
			offsets: []addr.Offset{0x10, 0x1010, 0x2000},
			want:    "_text+0x10, schedule+0x10, stripped"},
		{name: "kernel by _stext", object: kernel("_stext"),
			offsets: []addr.Offset{0x1010 - 0x198}, want: "schedule+0x10"},
		{name: "kernel by linked addresses", object: kernel(ingest.LinkedAddresses),
			offsets: []addr.Offset{0xc0009010},
			want:    "schedule+0x10"},
		{name: "kernel before its symbol", object: kernel("_stext"),
			offsets: []addr.Offset{addr.Offset(^uint64(0x187))},
			want:    "_text+0x10"},
		{name: "kernel of a pprof file", object: kernel(""), offsets: []addr.Offset{0x1010},
			want: "schedule+0x10"},
		{name: "kernel by an unknown symbol", object: kernel("_sinittext"),
			offsets: []addr.Offset{0x1010},
			want:    "layout unknown"},
		{name: "kernel of which only the vdso is known",
			object: ingest.Object{Kind: ingest.Kernel, ID: id(6),
				RefSymbol: "_text"}, offsets: []addr.Offset{0x10}, want: "not indexed"},
		{name: "module", object: ingest.Object{Kind: ingest.Module, ID: id(4),
			File: ingest.FileRef{Path: "[ext4]"}}, offsets: []addr.Offset{0x3f, 0x40},
			want: "stripped, ext4_read+0x0"},
		{name: "BPF names itself", object: ingest.Object{Kind: ingest.JIT, Symbol: "bpf_prog_1_x",
			File: ingest.FileRef{Path: "bpf_prog_1_x"}},
			offsets: []addr.Offset{0, 0x10}, want: "bpf_prog_1_x+0x0, bpf_prog_1_x+0x10"},
		{name: "BPF without a name", object: ingest.Object{Kind: ingest.JIT},
			offsets: []addr.Offset{1},
			want:    "image not captured"},
		{name: "reason of the object", object: ingest.Object{ID: id(1), Kind: ingest.Kernel,
			Reason: ingest.KernelHidden}, offsets: []addr.Offset{1}, want: "kernel hidden"},
		{name: "unmapped", object: ingest.Object{Kind: ingest.Unmapped},
			offsets: []addr.Offset{0},
			want:    "unmapped"},
		{name: "anonymous", object: ingest.Object{Kind: ingest.Anonymous},
			offsets: []addr.Offset{0}, want: "anonymous memory"},
		{name: "guest", object: ingest.Object{Kind: ingest.Guest}, offsets: []addr.Offset{0},
			want: "guest code"},
		{name: "hypervisor", object: ingest.Object{Kind: ingest.Hypervisor},
			offsets: []addr.Offset{0}, want: "hypervisor code"},
		{name: "no stack", object: ingest.Object{Kind: ingest.NoStack}, offsets: []addr.Offset{0},
			want: "stack not unwound"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := one(tt.object, tt.offsets...)
			resolve(t, p, o)
			if got := text(p); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			checkNames(t, p)
			if tt.want == ingest.Mismatch.String() && p.Names.Found[0] != id(1) {
				t.Errorf("found %v", p.Names.Found)
			}
		})
	}
}

// checkNames checks the invariants of Names.
func checkNames(t *testing.T, p *ingest.Profile) {
	t.Helper()
	n := p.Names
	if !slices.IsSortedFunc(n.Functions, func(a, b ingest.Function) int {
		if a.Object != b.Object {
			return int(a.Object) - int(b.Object)
		}
		return strings.Compare(a.SystemName+"\x00"+a.File, b.SystemName+"\x00"+b.File)
	}) {
		t.Errorf("functions are not sorted: %+v", n.Functions)
	}
	for i := 1; i < len(n.Functions); i++ {
		if n.Functions[i] == n.Functions[i-1] {
			t.Errorf("function twice: %+v", n.Functions[i])
		}
	}
	for l := range p.Locations {
		if named := len(n.At(ingest.LocationID(l))) > 0; named != (n.Reasons[l] == ingest.ReasonNone) {
			t.Errorf("location %d: %d frames and reason %s", l, len(n.At(ingest.LocationID(l))),
				n.Reasons[l])
		}
	}
}

// TestResolveSegmentsOutOfOrder: addresses need not ascend with file offsets.
func TestResolveSegmentsOutOfOrder(t *testing.T) {
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: []elf.Segment{
		{Offset: 0x1000, Addr: 0x900000, FileSize: 0x1000, MemSize: 0x1000, Flags: 5},
		{Offset: 0x2000, Addr: 0x400000, FileSize: 0x1000, MemSize: 0x1000, Flags: 5},
	}}, map[store.SourceKind]*symtab.Encoded{
		store.Symtab: table(t, function("high", 0x900000, 0x1000),
			function("low", 0x400000, 0x1000))})
	p := one(ingest.Object{ID: id(1)}, 0x1000, 0x1fff, 0x2000, 0x2fff)
	resolve(t, p, o)
	if got := text(p); got != "high+0x0, high+0xfff, low+0x0, low+0xfff" {
		t.Error(got)
	}
}

// TestResolveKeepsNames: names of a pprof file stay, the rest is tried again.
func TestResolveKeepsNames(t *testing.T) {
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: pie},
		map[store.SourceKind]*symtab.Encoded{store.Symtab: table(t,
			function("ours", 0x401000, 0x1000))})
	b := profilebuild.New(profilebuild.Clock())
	h := b.Object(ingest.Object{ID: id(1), File: ingest.FileRef{Path: "/bin/x"}})
	first, second := profilebuild.Place{Object: h, Offset: 0x1010},
		profilebuild.Place{Object: h, Offset: 0x1020}
	b.Row(profilebuild.Row{Count: 1, Weight: 1, Stack: []profilebuild.Place{first, second}})
	b.Name(first, 0, profilebuild.Frame{Name: "inlined", Inlined: true},
		profilebuild.Frame{Name: "theirs"})
	b.Unresolved(second, ingest.Mismatch)
	p := b.Profile()
	resolve(t, p, o)
	if got := text(p); got != "inlined+theirs+0x0, ours+0x20" {
		t.Error(got)
	}
	checkNames(t, p)
	resolve(t, p, o)
	if got := text(p); got != "inlined+theirs+0x0, ours+0x20" {
		t.Error("again:", got)
	}
}

// many makes an overlay and a profile large enough for many shards.
func many(t testing.TB, objects, functions, locations int) (*store.Overlay, *ingest.Profile) {
	t.Helper()
	o := store.NewOverlay()
	b := profilebuild.New(profilebuild.Clock())
	for i := range objects {
		n := functions / objects
		if i == 0 {
			n = functions / 2
		}
		var funcs []symtab.Func
		for k := range n {
			funcs = append(funcs, function(fmt.Sprintf("_ZN4lib%d8functionEi%d", i, k*7919%n),
				addr.Addr(0x1000+k*64), 60))
		}
		size := uint64(n*64 + 0x1000)
		contribute(t, o, store.Manifest{ID: id(byte(i + 1)), Kind: ingest.ELF, Layout: []elf.Segment{
			{Offset: 0x1000, Addr: 0x1000, FileSize: size, MemSize: size, Flags: 5}}},
			map[store.SourceKind]*symtab.Encoded{store.Symtab: table(t, funcs...)})
		h := b.Object(ingest.Object{ID: id(byte(i + 1)),
			File: ingest.FileRef{Path: fmt.Sprintf("/lib/%d", i)}})
		places := locations / objects
		if i == 0 {
			places = locations / 2
		}
		for k := range places {
			const each = 15 // locations in one function, as in the reference recording
			off := addr.Offset(0x1000 + (k/each)*n/(places/each+1)*64 + k%each*4)
			b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
				Stack: []profilebuild.Place{{Object: h, Offset: off}}})
		}
	}
	return o, b.Profile()
}

// TestResolveDeterministic: any number of workers gives the same Names, and each is the result of a
// single look-up.
func TestResolveDeterministic(t *testing.T) {
	o, p := many(t, 5, 5000, 40_000)
	var want *ingest.Names
	for _, workers := range []int{1, 2, 7} {
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
	checkNames(t, p)
	for l := 0; l < len(p.Locations); l += 97 {
		loc := p.Locations[l]
		ms, err := o.Find(p.Objects[loc.Object].ID)
		if err != nil {
			t.Fatal(err)
		}
		tab, err := o.Open(ms[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		var one [1]symtab.Hit
		if err := tab.Join([]addr.Addr{addr.Addr(loc.Offset)}, one[:]); err != nil {
			t.Fatal(err)
		}
		hit := one[0]
		frames := p.Names.At(ingest.LocationID(l))
		if hit.OK != (len(frames) == 1) {
			t.Fatalf("location %d: hit %v, %d frames", l, hit.OK, len(frames))
		}
		if !hit.OK {
			continue
		}
		name, err := tab.Name(hit.Name)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Names.Functions[frames[0].Func].SystemName; got != name ||
			p.Names.SymOff[l] != uint64(loc.Offset)-uint64(hit.Start) {
			t.Fatalf("location %d: %s+%#x, want %s at %#x", l, got, p.Names.SymOff[l], name,
				hit.Start)
		}
	}
}

// broken is a view with tables, or objects, that cannot be read.
type broken struct {
	store.View
	find, open bool
}

var errBroken = errors.New("bad\x1b[31m bytes")

func (b broken) Find(i buildid.ID) ([]*store.Manifest, error) {
	if b.find {
		return nil, errBroken
	}
	return b.View.Find(i)
}

func (b broken) Open(m *store.Manifest, i int) (*symtab.Table, error) {
	if b.open && m.Sources[i].Kind == store.Symtab {
		return nil, errBroken
	}
	return b.View.Open(m, i)
}

// TestResolveDamaged: a table that cannot be read is reported, and the sources behind it
// still name.
func TestResolveDamaged(t *testing.T) {
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: pie},
		map[store.SourceKind]*symtab.Encoded{
			store.Symtab: table(t, function("main", 0x401100, 0x100)),
			store.Dynsym: table(t, function("dyn", 0x401000, 0x180))})
	for _, tt := range []struct {
		view broken
		want string
	}{
		{view: broken{View: o, open: true}, want: "dyn+0x100, table damaged"},
		{view: broken{View: o, find: true}, want: "table damaged, table damaged"},
	} {
		p := one(ingest.Object{ID: id(1), File: ingest.FileRef{Path: "/bin/x"}}, 0x1100, 0x1190)
		resolve(t, p, tt.view)
		if got := text(p); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
		w := p.Names.Warnings
		if len(w) != 1 || !w[0].Partial || !strings.Contains(w[0].Text, "x: ") ||
			strings.Contains(w[0].Text, "\x1b") {
			t.Errorf("warnings %+v", w)
		}
	}
}

// TestResolveCancelled: a cancelled context ends it, without half a result.
func TestResolveCancelled(t *testing.T) {
	o, p := many(t, 2, 100, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Resolve(ctx, p, o, Options{}); !errors.Is(err, context.Canceled) || p.Names != nil {
		t.Errorf("error %v, names %v", err, p.Names != nil)
	}
}

func TestResolveNothing(t *testing.T) {
	p := &ingest.Profile{}
	resolve(t, p, store.NewOverlay())
	if p.Names == nil {
		t.Error("no names")
	}
}

// TestLayout: facts of the store in pprof output.
func TestLayout(t *testing.T) {
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: pie}, nil)
	contribute(t, o, store.Manifest{ID: id(3), Kind: ingest.Kernel,
		RefSyms: []store.RefSymbol{{Name: "_stext", Addr: 0x198}}}, nil)
	contribute(t, o, store.Manifest{ID: id(4), Kind: ingest.Module,
		Sections: []elf.PlacedSection{{Name: ".text", Size: 0x5000},
			{Name: ".init.text", Addr: elf.InitBase, Size: 9}}}, nil)
	p := &ingest.Profile{Objects: []ingest.Object{
		{ID: id(1)}, {ID: id(9)}, {}, {Kind: ingest.Kernel, ID: id(3), RefSymbol: "_stext"},
		{Kind: ingest.Module, ID: id(4)}}}
	opts := Layout(o, p)
	var got []string
	for i := range p.Objects {
		shift, ok := opts.RefShift(ingest.ObjectID(i))
		got = append(got, fmt.Sprintf("%v %d %v", opts.Layout(ingest.ObjectID(i)), shift, ok &&
			p.Objects[i].Kind == ingest.Kernel))
	}
	want := []string{"[{4096 12288}] 0 false", "[] 0 false", "[] 0 false", "[] 408 true",
		"[{0 20480}] 0 false"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// BenchmarkResolve counts 16 bytes for each location.
func BenchmarkResolve(b *testing.B) {
	o, p := many(b, 98, 184_000, 111_110)
	b.SetBytes(16 * int64(len(p.Locations)))
	b.ReportAllocs()
	for b.Loop() {
		p.Names = nil
		resolve(b, p, o)
	}
	b.ReportMetric(float64(len(p.Locations))*float64(b.N)/b.Elapsed().Seconds(), "locations/s")
}

// TestResolveParts: the parts of a function that LLVM laid out by basic blocks are one function.
func TestResolveParts(t *testing.T) {
	o := store.NewOverlay()
	contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: pie},
		map[store.SourceKind]*symtab.Encoded{store.Symtab: table(t,
			function("hot", 0x401000, 0x10), function("hot.__part.1", 0x401100, 0x10),
			function("hot.__part.12", 0x401200, 0x10), function("hot.cold", 0x401300, 0x10),
			function("_Z3fooi.__part.2", 0x401400, 0x10), function("a.__part.x", 0x401500, 0x10),
			function("b.__part.", 0x401600, 0x10), function(".__part.1", 0x401700, 0x10))})
	p := one(ingest.Object{ID: id(1), File: ingest.FileRef{Path: "/bin/a"}}, 0x1001, 0x1102, 0x1203,
		0x1304, 0x1405, 0x1506, 0x1607, 0x1708)
	resolve(t, p, o)
	const want = "hot+0x1, hot+0x2, hot+0x3, hot.cold+0x4, _Z3fooi+0x5, a.__part.x+0x6, " +
		"b.__part.+0x7, .__part.1+0x8"
	if got := text(p); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := len(p.Names.Functions); got != 6 {
		t.Errorf("%d functions: %v", got, p.Names.Functions)
	}
}
