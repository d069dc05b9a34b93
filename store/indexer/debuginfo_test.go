package indexer

import (
	stdelf "debug/elf"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/dwarfbuild"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// Tags and attributes of DWARF that the tests build with.
const (
	tagInlined  = 0x1d
	tagUnit     = 0x11
	tagFunction = 0x2e
	tagPartial  = 0x3c
	tagSkeleton = 0x4a

	atName, atStmtList, atLowPC, atHighPC = 0x03, 0x10, 0x11, 0x12
	atLanguage, atCompDir, atInline       = 0x13, 0x1b, 0x20
	atOrigin, atRanges, atCallFile        = 0x31, 0x55, 0x58
	atCallLine, atLinkage                 = 0x59, 0x6e
	atAddrBase, atDWOName                 = 0x73, 0x76

	langC11 = 0x1d
	text    = elfbuild.TextAddr
)

func attr(at, form uint16, v any) dwarfbuild.Attr {
	return dwarfbuild.Attr{Attr: at, Form: form, Val: v}
}

func named(name string) dwarfbuild.Attr { return attr(atName, dwarfbuild.FormString, name) }

// function is an entry with code at start; more attributes may follow.
func function(start, size uint64, attrs ...dwarfbuild.Attr) *dwarfbuild.DIE {
	return dwarfbuild.D(tagFunction, append([]dwarfbuild.Attr{
		attr(atLowPC, dwarfbuild.FormAddr, start), attr(atHighPC, dwarfbuild.FormData4, size),
	}, attrs...)...)
}

// program is debug information with all that an indexer has to carry over: outer with
// an inlined call, split in two parts, filling, and code that is in no function. base
// is the address of its code.
func program(base uint64) *dwarfbuild.Builder {
	b := &dwarfbuild.Builder{}
	line := b.Line(dwarfbuild.LineTable{
		Version: 5, Dirs: []string{"/src", "inc"},
		Files: []dwarfbuild.LineFile{{Name: "a.c"}, {Name: "a.c"}, {Name: "b.h", Dir: 1}},
		Program: func(p *dwarfbuild.Prog) {
			p.Set(base).File(1).Row(0, 0) // 1
			p.File(2).Row(0x10, 9)        // b.h:10
			p.File(1).Row(8, -8)          // a.c:2
			p.Row(0x38, 18)               // at 0x50: 20
			p.Row(0x30, 10)               // at 0x80: 30
			p.Row(0x20, 10)               // at 0xa0: 40, of no function
			p.Row(0x10, 1)                // at 0xb0: 41
			p.End(0x10)
		},
	})
	lists := b.Section(".debug_rnglists")
	lists.U32(0).U16(5).U8(8, 0).U32(0)
	at := uint64(len(lists.B))
	lists.U8(7).U64(base + 0x80).ULEB(0x10) // DW_RLE_start_length
	lists.U8(7).U64(base + 0x50).ULEB(0x10).U8(0)
	inner := dwarfbuild.D(tagFunction, named("inner"), attr(atInline, dwarfbuild.FormData1, 1))
	root := dwarfbuild.D(tagUnit, named("a.c"), attr(atCompDir, dwarfbuild.FormString, "/src"),
		attr(atLanguage, dwarfbuild.FormUdata, langC11), attr(atStmtList, dwarfbuild.FormSecOffset, line))
	root.Add(inner, function(base, 0x40, named("outer"),
		attr(atLinkage, dwarfbuild.FormString, "_Z5outerv")).Add(
		dwarfbuild.D(tagInlined, attr(atOrigin, dwarfbuild.FormRef4, inner),
			attr(atLowPC, dwarfbuild.FormAddr, base+0x10), attr(atHighPC, dwarfbuild.FormData4, 8),
			attr(atCallFile, dwarfbuild.FormUdata, 1), attr(atCallLine, dwarfbuild.FormUdata, 5))),
		dwarfbuild.D(tagFunction, named("split"), attr(atRanges, dwarfbuild.FormSecOffset, at)))
	b.Units = []*dwarfbuild.Unit{{Version: 5, Root: root}}
	return b
}

// programWant is the frames of program, by distance from base.
var programWant = map[uint64]string{
	0x00: "_Z5outerv /src/a.c:1", 0x0f: "_Z5outerv /src/a.c:1",
	0x10: "inner /src/inc/b.h:10 < _Z5outerv /src/a.c:5",
	0x17: "inner /src/inc/b.h:10 < _Z5outerv /src/a.c:5",
	0x18: "_Z5outerv /src/a.c:2", 0x3f: "_Z5outerv /src/a.c:2",
	0x40: "", 0x4f: "",
	0x50: "split /src/a.c:20", 0x5f: "split /src/a.c:20", 0x60: "",
	0x80: "split /src/a.c:30", 0x8f: "split /src/a.c:30", 0x90: "",
	0xa0: "? /src/a.c:40", 0xaf: "? /src/a.c:40", 0xb0: "? /src/a.c:41", 0xbf: "? /src/a.c:41",
	0xc0: "",
}

// withSections adds DWARF sections to a file.
func withSections(f *elfbuild.File, secs map[string][]byte) *elfbuild.File {
	for _, name := range slices.Sorted(maps.Keys(secs)) {
		f = f.With(elfbuild.Section{Name: name, Data: secs[name]})
	}
	return f
}

const debugID = "debug-id-of-20-bytes"

// programFile is a library with program's debug information.
func programFile() *elfbuild.File {
	return withSections(elfbuild.Lib([]byte(debugID), 0x1000,
		elfbuild.Func{Name: "outer_symbol", Offset: 0, Size: 0x40}), program(text).Sections())
}

// frames looks an address up in an object's first table of debug information: "name file:line < …",
// innermost first.
func (m *memory) frames(t testing.TB, id buildid.ID, kind store.SourceKind, a uint64) string {
	t.Helper()
	o := m.object(t, id)
	i := slices.IndexFunc(o.Sources, func(s store.SourceInfo) bool { return s.Kind == kind })
	if i < 0 {
		return "no table"
	}
	table, err := m.Open(o, i)
	if err != nil {
		t.Fatal(err)
	}
	hit, frames, err := lookupOne(table, addr.Addr(a))
	if err != nil {
		t.Fatal(err)
	}
	if !hit.OK {
		return ""
	}
	var out []string
	for _, f := range frames {
		name, file := "?", "?"
		if f.Name != symtab.NoName {
			name, _ = table.Name(f.Name)
		}
		if f.File != symtab.NoFile {
			file, _ = table.File(f.File)
		}
		out = append(out, fmt.Sprintf("%s %s:%d", name, file, f.Line))
	}
	return strings.Join(out, " < ")
}

func (m *memory) wantFrames(t testing.TB, id buildid.ID, base uint64, want map[uint64]string) {
	t.Helper()
	for _, off := range slices.Sorted(maps.Keys(want)) {
		if got := m.frames(t, id, store.DWARF, base+off); got != want[off] {
			t.Errorf("at %#x: got %q, want %q", off, got, want[off])
		}
	}
}

func TestDebugInformation(t *testing.T) {
	root, m, id := realDir(t), newMemory(), buildid.New([]byte(debugID))
	must.Write(t, filepath.Join(root, "lib.so"), programFile().Bytes())
	sum := m.index(t, Options{}, root)
	if len(sum.Problems) != 0 || sum.Sources["dwarf"] != 1 || sum.Sources["symtab"] != 1 {
		t.Errorf("summary %+v", sum)
	}
	m.wantFrames(t, id, text, programWant)
	if names := m.names(t, id, store.Symtab); len(names) != 1 || names[0] != "outer_symbol" {
		t.Errorf(".symtab has %q", names)
	}
	if o := m.object(t, id); o.Quality() != store.DWARF || o.Sources[0].Producer != Producer {
		t.Errorf("sources %+v", o.Sources)
	}
}

// TestRecordedLines has a program as gcc made it, DWARF 5 in a debug file. The expected
// frames were read off llvm-symbolizer.
func TestRecordedLines(t *testing.T) {
	m, id := newMemory(), mixedID(t)
	m.index(t, Options{}, filepath.Join(objectsDir, "bin"))
	m.wantFrames(t, id, 0, map[uint64]string{
		0xb29: "next_random /srv/app/src/mixed.c:23",
		0xbb2: "work_in_libc /srv/app/src/mixed.c:40",
		0xd44: "main /srv/app/src/mixed.c:81",
		0xda2: "atof /usr/include/x86_64-linux-gnu/bits/stdlib-float.h:27 < " +
			"main /srv/app/src/mixed.c:82",
		0xae0: "", // crtbegin.o has no debug information
	})
}

// TestKernelLines has addresses of a kernel: they count from _text.
func TestKernelLines(t *testing.T) {
	const base, start = 0xffffffff81000000, 0xffffffff81000100
	root, m := realDir(t), newMemory()
	code := stdelf.SHF_ALLOC | stdelf.SHF_EXECINSTR
	sections := []section{
		{name: ".note.gnu.build-id", kind: stdelf.SHT_NOTE, flags: stdelf.SHF_ALLOC,
			addr: base - 0x1000, data: note(kernelID)},
		{name: ".text", kind: stdelf.SHT_PROGBITS, flags: code, addr: base,
			data: make([]byte, 0x1000)},
		{name: ".init.text", kind: stdelf.SHT_PROGBITS, flags: code, addr: base + 0x10000,
			data: make([]byte, 64)},
		{name: "__ksymtab", kind: stdelf.SHT_PROGBITS, flags: stdelf.SHF_ALLOC,
			addr: base + 0x2000, data: make([]byte, 64)},
		{name: "__ksymtab_strings", kind: stdelf.SHT_PROGBITS, flags: stdelf.SHF_ALLOC,
			addr: base + 0x3000, data: make([]byte, 64)},
	}
	secs := program(start).Sections()
	for _, name := range slices.Sorted(maps.Keys(secs)) {
		sections = append(sections, section{name: name, kind: stdelf.SHT_PROGBITS, data: secs[name]})
	}
	// Relocations of --emit-relocs have been applied; rubbish there must not matter.
	sections = append(sections, section{name: ".rela.debug_info", kind: stdelf.SHT_RELA,
		data: slices.Repeat([]byte{0x55}, 240)})
	must.Write(t, filepath.Join(root, "vmlinux"), image(stdelf.ET_EXEC, sections, []symbol{
		{name: "_text", section: 2, value: base, size: 0, kind: stdelf.STT_NOTYPE}, {name: "outer_symbol",
			section: 2, value: start, size: 0x40, kind: stdelf.STT_FUNC},
	}))
	if sum := m.index(t, Options{}, root); sum.Kernels != 1 || len(sum.Problems) != 0 {
		t.Fatalf("summary %+v", sum)
	}
	m.wantFrames(t, buildid.New([]byte(kernelID)), 0x100, programWant)
}

// TestModuleLines has sections that all begin at 0 and get their addresses by
// relocations: .init.text is elsewhere than .text.
func TestModuleLines(t *testing.T) {
	root, m := realDir(t), newMemory()
	b := program(0)
	secs := b.Sections()
	f := elfbuild.Module([]byte(debugID), 0x1000,
		elfbuild.Func{Name: "outer", Offset: 0x200, Size: 0x40})
	f = withSections(f, secs)
	// Every place with an address of the code is one that base would change.
	moved := program(0x1122334455667700).Sections()
	for _, name := range slices.Sorted(maps.Keys(secs)) {
		var relocs []elfbuild.Reloc
		for i := 0; i+8 <= len(secs[name]); i++ {
			if d := diff(secs[name][i:], moved[name][i:]); d == 0x1122334455667700 {
				add := le64(secs[name][i:])
				relocs = append(relocs, elfbuild.Reloc{Offset: uint64(i), Symbol: 1,
					Type: uint32(stdelf.R_X86_64_64), Addend: add})
				copy(f.Sections[slices.IndexFunc(f.Sections, func(s elfbuild.Section) bool {
					return s.Name == name
				})].Data[i:], "\xff\xff\xff\xff\xff\xff\xff\xff")
				i += 7
			}
		}
		if len(relocs) == 0 {
			continue
		}
		at := slices.IndexFunc(f.Sections, func(s elfbuild.Section) bool { return s.Name == name })
		f = f.With(elfbuild.Section{Name: ".rela" + name, Type: stdelf.SHT_RELA, Link: ".symtab",
			Info: uint32(at + 1), EntSize: 24, Data: f.Rela(true, relocs...)})
	}
	must.Write(t, filepath.Join(root, "x.ko"), f.Bytes())
	if sum := m.index(t, Options{}, root); sum.Modules != 1 || len(sum.Problems) != 0 {
		t.Fatalf("summary %+v", sum)
	}
	id := buildid.New([]byte(debugID))
	start := m.object(t, id).Sections[0].Addr
	m.wantFrames(t, id, uint64(start)+0x200, programWant)
}

func le64(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

func diff(a, b []byte) uint64 { return le64(b) - le64(a) }

// TestHostileDebugInformation damages debug information in many ways: names stay, the
// loss is reported, and the next run does not read the file again.
func TestHostileDebugInformation(t *testing.T) {
	root, id := realDir(t), buildid.New([]byte(debugID))
	path := filepath.Join(root, "lib.so")
	secs := program(text).Sections()
	names := slices.Sorted(maps.Keys(secs))
	reported := 0
	for i := range 300 {
		bad := maps.Clone(secs)
		name := names[i%len(names)]
		b := slices.Clone(bad[name])
		switch at := (i * 7919) % len(b); i % 3 {
		case 0:
			b = b[:at]
		case 1:
			b[at] ^= byte(1 << (i % 8))
		default:
			b[at] = 0xff
		}
		bad[name] = b
		m := newMemory()
		must.Write(t, path, withSections(elfbuild.Lib([]byte(debugID), 0x1000,
			elfbuild.Func{Name: "outer_symbol", Size: 0x40}), bad).Bytes())
		sum := m.index(t, Options{}, root)
		if got := m.names(t, id, store.Symtab); len(got) != 1 {
			t.Fatalf("damage %d to %s: .symtab has %q", i, name, got)
		}
		if len(sum.Problems) > 0 {
			reported++
			if sum.Skipped[SkipIncomplete] != 1 || !strings.Contains(sum.Problems[0].Error(), incomplete) {
				t.Errorf("damage %d to %s: skipped %v, problems %v", i, name, sum.Skipped, sum.Problems)
			}
			for _, s := range m.object(t, id).Sources {
				if s.Kind == store.DWARF && s.Producer != partialProducer {
					t.Errorf("a damaged table has producer %d", s.Producer)
				}
			}
		}
	}
	if reported < 60 {
		t.Errorf("only %d of 300 damages were reported", reported)
	}
}

// TestOverlappingFunctions has every function claim all lines: 5,000 times 5,000. Names
// stay; the lines of most are left out, and that is reported.
func TestOverlappingFunctions(t *testing.T) {
	root, m := realDir(t), newMemory()
	const n = 5000
	b := &dwarfbuild.Builder{}
	line := b.Line(dwarfbuild.LineTable{Version: 5, Dirs: []string{"/src"},
		Files: []dwarfbuild.LineFile{{Name: "a.c"}},
		Program: func(p *dwarfbuild.Prog) {
			p.Set(text).File(0)
			for i := range n {
				p.Row(1, int64(i%2*2-1)+1)
			}
			p.End(1)
		}})
	unit := dwarfbuild.D(tagUnit, named("a.c"), attr(atStmtList, dwarfbuild.FormSecOffset, line))
	for i := range n {
		unit.Add(function(text, n, named(fmt.Sprint("f", i))))
	}
	b.Units = []*dwarfbuild.Unit{{Version: 5, Root: unit}}
	must.Write(t, filepath.Join(root, "lib.so"),
		withSections(elfbuild.Lib([]byte(debugID), 0x2000), b.Sections()).Bytes())
	sum := m.index(t, Options{}, root)
	if len(sum.Problems) != 1 || !strings.Contains(sum.Problems[0].Error(), "overlap too often") {
		t.Errorf("problems %v", sum.Problems)
	}
	if names := m.names(t, buildid.New([]byte(debugID)), store.DWARF); len(names) == 0 {
		t.Error("no names")
	}
}

// TestDamageIsCountedAgain: the second run reports the same as the first.
func TestDamageIsCountedAgain(t *testing.T) {
	root, m := realDir(t), newMemory()
	secs := program(text).Sections()
	secs[".debug_info"] = secs[".debug_info"][:40]
	must.Write(t, filepath.Join(root, "lib.so"), withSections(elfbuild.Lib([]byte(debugID), 0x1000,
		elfbuild.Func{Name: "outer_symbol", Size: 0x40}), secs).Bytes())
	settle()
	first := m.index(t, Options{}, root)
	again := m.again(t, Options{}, root)
	if first.Skipped[SkipIncomplete] != 1 || again.Skipped[SkipIncomplete] != 1 ||
		problems(first, root) != problems(again, root) {
		t.Errorf("first %v %v, then %v %v", first.Skipped, first.Problems, again.Skipped, again.Problems)
	}
}

// TestDebugMemory gives many files with debug information less memory than one needs.
func TestDebugMemory(t *testing.T) {
	root, m := realDir(t), newMemory()
	for i := range 20 {
		f := withSections(elfbuild.Lib([]byte(fmt.Sprintf("debug-id-of-%02d-bytes", i)), 0x1000),
			program(text).Sections())
		must.Write(t, filepath.Join(root, fmt.Sprint(i)), f.Bytes())
	}
	sum := m.index(t, Options{Workers: 4, MaxMemory: 1}, root)
	if sum.Sources["dwarf"] != 20 || len(sum.Problems) != 0 {
		t.Errorf("summary %+v", sum)
	}
}

// TestReassignedCalls has strict DWARF 2: a function in two parts are two functions, and the
// inlined calls of both parts are with the first.
func TestReassignedCalls(t *testing.T) {
	root, m := realDir(t), newMemory()
	b := &dwarfbuild.Builder{}
	ranges := b.Section(".debug_ranges")
	ranges.U64(text + 0x10).U64(text + 0x18).U64(text + 0x84).U64(text + 0x88).U64(0).U64(0)
	inner := dwarfbuild.D(tagFunction, named("inner"), attr(atInline, dwarfbuild.FormData1, 1))
	deeper := dwarfbuild.D(tagFunction, named("deeper"), attr(atInline, dwarfbuild.FormData1, 1))
	b.Units = []*dwarfbuild.Unit{{Version: 2, Root: dwarfbuild.D(tagUnit, named("a.c")).Add(
		inner, deeper,
		function(text, 0x40, named("hot")).Add(
			dwarfbuild.D(tagInlined, attr(atOrigin, dwarfbuild.FormRef4, inner),
				attr(atRanges, dwarfbuild.FormData4, 0), attr(atCallLine, dwarfbuild.FormUdata, 5)).Add(
				dwarfbuild.D(tagInlined, attr(atOrigin, dwarfbuild.FormRef4, deeper),
					attr(atRanges, dwarfbuild.FormData4, 0)))),
		dwarfbuild.D(tagFunction, named("cold"), attr(atLowPC, dwarfbuild.FormAddr, uint64(text+0x80)),
			attr(atHighPC, dwarfbuild.FormAddr, uint64(text+0x90))),
		function(text+0xa0, 0x10, named("other")),
	)}}
	f := b.Units[0].Root.Children[2]
	f.Attrs[1] = attr(atHighPC, dwarfbuild.FormAddr, uint64(text+0x40))
	b.Units[0].Root.Children[4].Attrs[1] = attr(atHighPC, dwarfbuild.FormAddr, uint64(text+0xb0))
	must.Write(t, filepath.Join(root, "lib.so"),
		withSections(elfbuild.Lib([]byte(debugID), 0x1000), b.Sections()).Bytes())
	if sum := m.index(t, Options{}, root); len(sum.Problems) != 0 {
		t.Errorf("problems %v", sum.Problems)
	}
	m.wantFrames(t, buildid.New([]byte(debugID)), text, map[uint64]string{
		0x00: "hot ?:0", 0x10: "deeper ?:0 < inner ?:0 < hot ?:5", 0x18: "hot ?:0",
		0x80: "cold ?:0", 0x84: "deeper ?:0 < inner ?:0 < cold ?:5", 0x88: "cold ?:0", 0xa0: "other ?:0",
	})
}

// TestNarrowCallers has callers that do not cover the calls inlined into them, or nothing at all:
// strict DWARF 2 as gcc and clang write it, and what Go 1.14 has in DWARF 4.
func TestNarrowCallers(t *testing.T) {
	addr := func(at uint16, off uint64) dwarfbuild.Attr {
		return attr(at, dwarfbuild.FormAddr, text+off)
	}
	a := dwarfbuild.D(tagFunction, named("a"), attr(atInline, dwarfbuild.FormData1, 1))
	b := dwarfbuild.D(tagFunction, named("b"), attr(atInline, dwarfbuild.FormData1, 1))
	call := func(of *dwarfbuild.DIE, attrs ...dwarfbuild.Attr) *dwarfbuild.DIE {
		return dwarfbuild.D(tagInlined, append(attrs, attr(atOrigin, dwarfbuild.FormRef4, of))...)
	}
	at := func(of *dwarfbuild.DIE, from, to uint64) *dwarfbuild.DIE {
		return call(of, addr(atLowPC, from), addr(atHighPC, to))
	}
	for _, version := range []uint16{2, 4} {
		t.Run(fmt.Sprintf("DWARF %d", version), func(t *testing.T) {
			root, m := realDir(t), newMemory()
			db := &dwarfbuild.Builder{Units: []*dwarfbuild.Unit{{Version: version,
				Root: dwarfbuild.D(tagUnit, named("a.c")).Add(a, b,
					dwarfbuild.D(tagFunction, named("f"), addr(atLowPC, 0), addr(atHighPC, 0x80)).Add(
						at(a, 0x10, 0x14).Add(at(b, 0x20, 0x24)),
						call(a).Add(at(b, 0x30, 0x34)),
						at(a, 0x40, 0x48).Add(at(b, 0x44, 0x4c).Add(at(a, 0x4e, 0x50))),
						at(a, 0x60, 0x64).Add(at(b, 0x7c, 0x84))))}}}
			must.Write(t, filepath.Join(root, "lib.so"),
				withSections(elfbuild.Lib([]byte(debugID), 0x1000), db.Sections()).Bytes())
			m.index(t, Options{}, root)
			m.wantFrames(t, buildid.New([]byte(debugID)), text, map[uint64]string{
				0x10: "a ?:0 < f ?:0", 0x14: "f ?:0", 0x20: "b ?:0 < a ?:0 < f ?:0", 0x24: "f ?:0",
				0x30: "b ?:0 < a ?:0 < f ?:0",
				0x40: "a ?:0 < f ?:0", 0x44: "b ?:0 < a ?:0 < f ?:0", 0x48: "b ?:0 < a ?:0 < f ?:0",
				0x4c: "f ?:0", 0x4e: "a ?:0 < b ?:0 < a ?:0 < f ?:0",
				0x60: "a ?:0 < f ?:0", 0x7c: "b ?:0 < a ?:0 < f ?:0", 0x80: "",
			})
		})
	}
}

// TestModuleEmptyRangeAtZero has a range list of DWARF 4 with an empty first range at the start of
// the code: relocated to 0 it would be the end of the list.
func TestModuleEmptyRangeAtZero(t *testing.T) {
	root, m, id := realDir(t), newMemory(), buildid.New([]byte(debugID))
	db := &dwarfbuild.Builder{}
	db.Section(".debug_ranges").U64(0).U64(0).U64(0).U64(0).U64(0).U64(0)
	a := dwarfbuild.D(tagFunction, named("a"), attr(atInline, dwarfbuild.FormData1, 1))
	db.Units = []*dwarfbuild.Unit{{Version: 4, Root: dwarfbuild.D(tagUnit, named("a.c")).Add(a,
		function(0, 0x40, named("f")).Add(dwarfbuild.D(tagInlined,
			attr(atRanges, dwarfbuild.FormSecOffset, 0), attr(atOrigin, dwarfbuild.FormRef4, a))))}}
	secs := db.Sections()
	f := withSections(elfbuild.Module([]byte(debugID), 0x1000,
		elfbuild.Func{Name: "f", Offset: 0, Size: 0x40}), secs)
	reloc := func(off, to uint64) elfbuild.Reloc {
		return elfbuild.Reloc{Offset: off, Symbol: 1, Type: uint32(stdelf.R_X86_64_64), Addend: to}
	}
	lowPC := uint64(strings.Index(string(secs[".debug_info"]), "\x00\x00\x00\x00\x00\x00\x00\x00\x40"))
	for name, relocs := range map[string][]elfbuild.Reloc{
		".debug_ranges": {reloc(0, 0), reloc(8, 0), reloc(16, 8), reloc(24, 16)},
		".debug_info":   {reloc(lowPC, 0)},
	} {
		at := slices.IndexFunc(f.Sections, func(s elfbuild.Section) bool { return s.Name == name })
		f = f.With(elfbuild.Section{Name: ".rela" + name, Type: stdelf.SHT_RELA, Link: ".symtab",
			Info: uint32(at + 1), EntSize: 24, Data: f.Rela(true, relocs...)})
	}
	must.Write(t, filepath.Join(root, "x.ko"), f.Bytes())
	if sum := m.index(t, Options{}, root); len(sum.Problems) != 0 {
		t.Errorf("problems %v", sum.Problems)
	}
	start := uint64(m.object(t, id).Sections[0].Addr)
	m.wantFrames(t, id, start, map[uint64]string{0: "f ?:0", 8: "a ?:0 < f ?:0", 16: "f ?:0"})
}
