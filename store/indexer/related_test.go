package indexer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	stdelf "debug/elf"

	"symbolize/buildid"
	"symbolize/fixtures/dwarfbuild"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/store"
)

const altID = "dwz-id-of-twenty-byt"

// debugFile is an ELF file with nothing but a build ID and debug information, as dwz
// makes it.
func debugFile(id string, secs map[string][]byte) []byte {
	f := &elfbuild.File{Type: stdelf.ET_REL}
	f.Sections = []elfbuild.Section{{Name: ".note.gnu.build-id", Type: stdelf.SHT_NOTE,
		Flags: stdelf.SHF_ALLOC, Align: 4, Data: f.BuildIDNote([]byte(id))}}
	return withSections(f, secs).Bytes()
}

// dwzPair is a library with an inlined function that is described in the file that link names.
func dwzPair(link string) (lib, alt []byte) {
	shared := dwarfbuild.D(tagFunction, named("shared"), attr(atInline, dwarfbuild.FormData1, 1))
	ab := &dwarfbuild.Builder{Units: []*dwarfbuild.Unit{{Version: 4,
		Root: dwarfbuild.D(tagPartial).Add(shared)}}}
	user := ab.Str(".debug_str", "user")
	alt = debugFile(altID, ab.Sections())
	b := program(text)
	root := b.Units[0].Root
	root.Add(function(text+0x100, 0x20, attr(atName, dwarfbuild.FormGNUStrpAlt, user)).Add(
		dwarfbuild.D(tagInlined, attr(atOrigin, dwarfbuild.FormGNURefAlt, shared.Offset),
			attr(atLowPC, dwarfbuild.FormAddr, uint64(text+0x108)),
			attr(atHighPC, dwarfbuild.FormData4, 8))))
	f := elfbuild.Lib([]byte(debugID), 0x1000, elfbuild.Func{Name: "outer_symbol", Size: 0x40})
	return withSections(f, b.Sections()).With(f.AltLink(link, []byte(altID))).Bytes(), alt
}

func TestSupplementaryFile(t *testing.T) {
	id := buildid.New([]byte(debugID))
	const inlined = "shared ?:0 < user ?:0"
	tests := []struct{ name, link, place string }{
		{name: "beside, relative", link: "../common/alt.debug", place: "common/alt.debug"},
		{name: "absolute", link: "ROOT/elsewhere/alt", place: "elsewhere/alt"},
		{name: "by build ID", link: "/nowhere/alt",
			place: fmt.Sprintf("debug/.build-id/%x/%x.debug", altID[:1], altID[1:])},
		{name: "another root's .dwz", link: "/usr/lib/debug/.dwz/x86/alt",
			place: "debug/.dwz/x86/alt"},
		{name: "an unpacked package", link: "/usr/lib/debug/.dwz/x86/alt", place: "usr/lib/debug/.dwz/x86/alt"},
		{name: "beside, absolute", link: "/nowhere/alt", place: "app/alt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, m := realDir(t), newMemory()
			opts := Options{DebugRoots: []string{filepath.Join(root, "debug")}}
			lib, alt := dwzPair(strings.ReplaceAll(tt.link, "ROOT", root))
			app, place := filepath.Join(root, "app/lib.so"), filepath.Join(root, tt.place)
			must.Write(t, app, lib)

			// First there is none, then one of another build ID, then the right one.
			for _, wrong := range [][]byte{nil, debugFile("another-id-of-20-byt", nil)} {
				if wrong != nil {
					must.Write(t, place, wrong)
				}
				settle()
				sum := m.index(t, opts, app)
				if sum.Skipped[SkipIncomplete] != 1 || len(sum.Problems) != 1 ||
					!strings.Contains(sum.Problems[0].Error(), "dwz") {
					t.Fatalf("skipped %v, problems %v", sum.Skipped, sum.Problems)
				}
				m.wantFrames(t, id, text, programWant) // the readable part is
				if got := m.frames(t, id, store.DWARF, text+0x108); strings.Contains(got, "shared") {
					t.Errorf("named %s without the file that has the name", got)
				}
				m.again(t, opts, app)
			}
			must.Write(t, place, alt)
			settle()
			if sum := m.index(t, opts, app); len(sum.Problems) != 0 {
				t.Errorf("problems %v", sum.Problems)
			}
			m.wantFrames(t, id, text, programWant)
			if got := m.frames(t, id, store.DWARF, text+0x108); got != inlined {
				t.Errorf("inlined call: %q", got)
			}
			m.again(t, opts, app)

			// Had it been there from the start, the first table were the same.
			fresh := newMemory()
			fresh.index(t, opts, app)
			if a, b := m.object(t, id).Sources[0], fresh.object(t, id).Sources[0]; a.Digest != b.Digest {
				t.Errorf("another table wins where an incomplete one was before")
			}
		})
	}
}

// TestSupplementaryFileOfTrees: the file is in another directory that is indexed, or it is indexed
// itself.
func TestSupplementaryFileOfTrees(t *testing.T) {
	const link = "/usr/lib/debug/.dwz/x86/alt"
	byID := fmt.Sprintf(".build-id/%x/%x.debug", altID[:1], altID[1:])
	for _, tt := range []struct{ name, place, path string }{
		{name: "a package", place: "b" + link, path: "b"},
		{name: "debug files", place: "b/.dwz/x86/alt", path: "b"},
		{name: "by build ID", place: "b/usr/lib/debug/" + byID, path: "b"},
		{name: "debug files by build ID", place: "b/" + byID, path: "b"},
		{name: "itself", place: "b/alt", path: "b/alt"},
	} {
		root, m := realDir(t), newMemory()
		lib, alt := dwzPair(link)
		must.Write(t, filepath.Join(root, "a/lib.so"), lib)
		must.Write(t, filepath.Join(root, tt.place), alt)
		sum := m.index(t, Options{}, filepath.Join(root, "a"), filepath.Join(root, tt.path))
		if sum.Skipped[SkipIncomplete] != 0 {
			t.Errorf("%s: %v", tt.name, sum.Problems)
		}
		m.wantFrames(t, buildid.New([]byte(debugID)), text, programWant)
	}
}

// TestNewDebugRoot: a file that lacks its debug file, or a part of it, is read again with a debug
// root that was not searched before, and only then.
func TestNewDebugRoot(t *testing.T) {
	root := realDir(t)
	t.Chdir(root)
	lib, alt := dwzPair("/nowhere/alt")
	stripped := elfbuild.Lib([]byte("stripped-id-of-20-by"), 0x1000).Bytes()
	must.Write(t, filepath.Join(root, "app/lib.so"), lib)
	must.Write(t, filepath.Join(root, "app/stripped.so"), stripped)
	must.Write(t, filepath.Join(root, "app/old.so"), elfbuild.Lib(nil, 0x1000).Bytes())
	must.Write(t, filepath.Join(root, fmt.Sprintf("more/.build-id/%x/%x.debug", altID[:1], altID[1:])), alt)
	settle()
	m := newMemory()
	for i, step := range []struct {
		roots            []string
		read, incomplete uint64
	}{
		{roots: []string{"none"}, read: 3, incomplete: 1},
		{roots: []string{"none"}, incomplete: 1},
		{roots: []string{}, incomplete: 1},
		{roots: []string{"none", "more"}, read: 2},
		{roots: []string{"none", filepath.Join(root, "more")}},
		{roots: []string{"more"}},
	} {
		sum := m.index(t, Options{DebugRoots: step.roots}, filepath.Join(root, "app"))
		if sum.Read != step.read || sum.Skipped[SkipIncomplete] != step.incomplete {
			t.Errorf("run %d: %d read, %v", i, sum.Read, sum.Skipped)
		}
		for _, p := range sum.Problems {
			if i == 0 && !strings.Contains(p.Hint, "--debug-root") {
				t.Errorf("run %d: %v, hint %q", i, p, p.Hint)
			}
		}
	}
}

// TestDebugSup has the link of DWARF 5, as dwz -5 writes it.
func TestDebugSup(t *testing.T) {
	sup := func(supplementary byte, name, sum string) elfbuild.Section {
		b := &dwarfbuild.Buf{}
		b.U16(5).U8(supplementary).Str(name).ULEB(uint64(len(sum)))
		return elfbuild.Section{Name: ".debug_sup", Data: append(b.B, sum...)}
	}
	shared := dwarfbuild.D(tagFunction, named("shared"))
	ab := &dwarfbuild.Builder{Units: []*dwarfbuild.Unit{{Version: 5, Kind: 3,
		Root: dwarfbuild.D(tagPartial).Add(shared)}}}
	alt := withSections(&elfbuild.File{Type: stdelf.ET_REL}, ab.Sections())
	b := &dwarfbuild.Builder{Units: []*dwarfbuild.Unit{{Version: 5,
		Root: dwarfbuild.D(tagUnit, named("a.c")).Add(
			function(text, 0x20, attr(atOrigin, dwarfbuild.FormRefSup4, shared.Offset)))}}}
	lib := withSections(elfbuild.Lib([]byte(debugID), 0x1000), b.Sections())
	root, id := realDir(t), buildid.New([]byte(debugID))
	app := filepath.Join(root, "lib.so")
	must.Write(t, app, lib.With(sup(0, "common", altID)).Bytes())
	for sum, want := range map[string]string{altID: "shared ?:0", "another-sum-of-20-byt": ""} {
		must.Write(t, filepath.Join(root, "common"), alt.With(sup(1, "", sum)).Bytes())
		m := newMemory()
		s := m.index(t, Options{}, app)
		got := ""
		if m.object(t, id).Quality() == store.DWARF {
			got = m.frames(t, id, store.DWARF, text)
		}
		if got != want || (want == "") != (len(s.Problems) > 0) {
			t.Errorf("checksum %s: %q, problems %v", sum, got, s.Problems)
		}
	}
	for n := range sup(0, "common", altID).Data { // every prefix is none
		cut := sup(0, "common", altID)
		cut.Data = cut.Data[:n]
		must.Write(t, app, lib.With(cut).Bytes())
		newMemory().index(t, Options{}, app)
	}
}

// TestSupplementaryOfDebugFile has the debug file of a stripped program miss its dwz
// file: the program's row knows.
func TestSupplementaryOfDebugFile(t *testing.T) {
	root, m, id := realDir(t), newMemory(), buildid.New([]byte(debugID))
	opts := Options{DebugRoots: []string{filepath.Join(root, "debug")}}
	app, debug := filepath.Join(root, "lib.so"), buildid.DebugPaths(id, opts.DebugRoots)[0]
	lib, alt := dwzPair("../../.dwz/alt")
	must.Write(t, debug, lib)
	must.Write(t, app, elfbuild.Lib([]byte(debugID), 0x1000).Stripped().Bytes())
	settle()
	if sum := m.index(t, opts, app); sum.Skipped[SkipIncomplete] != 1 {
		t.Errorf("skipped %v, problems %v", sum.Skipped, sum.Problems)
	}
	m.again(t, opts, app)
	must.Write(t, filepath.Join(root, "debug/.dwz/alt"), alt)
	settle()
	m.index(t, opts, app)
	if got := m.frames(t, id, store.DWARF, text+0x108); !strings.HasPrefix(got, "shared ") {
		t.Errorf("got %q", got)
	}
	m.again(t, opts, app)
}

// splitPair is a library with a skeleton unit, and the .dwo sections that belong to it.
func splitPair(compDir string, unit uint64) (lib []byte, dwo map[string][]byte) {
	exe, split := &dwarfbuild.Builder{}, &dwarfbuild.Builder{}
	exe.Section(".debug_addr").U32(0).U16(5).U8(8, 0).U64(text)
	line := exe.Line(dwarfbuild.LineTable{Version: 5, Dirs: []string{"/src"},
		Files:   []dwarfbuild.LineFile{{Name: "a.c"}},
		Program: func(p *dwarfbuild.Prog) { p.Set(text).File(0).Row(0, 6).End(0x40) }})
	exe.Units = []*dwarfbuild.Unit{{Version: 5, Kind: 4, ID: unit, Root: dwarfbuild.D(tagSkeleton,
		attr(atDWOName, dwarfbuild.FormString, "obj/a.dwo"),
		attr(atCompDir, dwarfbuild.FormString, compDir),
		attr(atStmtList, dwarfbuild.FormSecOffset, line),
		attr(atAddrBase, dwarfbuild.FormSecOffset, uint64(8)))}}
	split.Units = []*dwarfbuild.Unit{{Version: 5, Kind: 5, ID: unit, Root: dwarfbuild.D(tagUnit,
		attr(atLanguage, dwarfbuild.FormUdata, langC11)).Add(
		dwarfbuild.D(tagFunction, named("in_dwo"), attr(atLowPC, dwarfbuild.FormAddrx, 0),
			attr(atHighPC, dwarfbuild.FormData4, 0x40)))}}
	lib = withSections(elfbuild.Lib([]byte(debugID), 0x1000,
		elfbuild.Func{Name: "outer_symbol", Size: 0x40}), exe.Sections()).Bytes()
	dwo = make(map[string][]byte)
	for name, b := range split.Sections() {
		dwo[name+".dwo"] = b
	}
	return lib, dwo
}

// packed makes a .dwp of one .dwo: an index in front of the same sections.
func packed(dwo map[string][]byte, unit uint64) map[string][]byte {
	dwp := maps.Clone(dwo)
	cols := []struct {
		kind uint32
		name string
	}{{kind: 1, name: ".debug_info.dwo"}, {kind: 3, name: ".debug_abbrev.dwo"}}
	var b dwarfbuild.Buf
	b.U16(5).U16(0).U32(uint32(len(cols))).U32(1).U32(2)
	b.U64(unit).U64(0).U32(1).U32(0)
	for _, c := range cols {
		b.U32(c.kind)
	}
	b.U32(0).U32(0)
	for _, c := range cols {
		b.U32(uint32(len(dwo[c.name])))
	}
	dwp[".debug_cu_index"] = b.B
	return dwp
}

func TestSplitUnits(t *testing.T) {
	const unit = 42
	id := buildid.New([]byte(debugID))
	for _, place := range []string{"build/obj/a.dwo", "app/obj/a.dwo", "app/a.dwo", "app/lib.so.dwp"} {
		t.Run(place, func(t *testing.T) {
			root, m := realDir(t), newMemory()
			lib, dwo := splitPair(filepath.Join(root, "build"), unit)
			app, at := filepath.Join(root, "app/lib.so"), filepath.Join(root, place)
			must.Write(t, app, lib)
			settle()
			sum := m.index(t, Options{}, app)
			if sum.Skipped[SkipIncomplete] != 1 || len(sum.Problems) != 1 ||
				!strings.Contains(sum.Problems[0].Error(), "a.dwo was not found") {
				t.Errorf("skipped %v, problems %v", sum.Skipped, sum.Problems)
			}
			if got := m.frames(t, id, store.DWARF, text); got != "? /src/a.c:7" {
				t.Errorf("without its .dwo: %q", got)
			}
			m.again(t, Options{}, app)
			if strings.HasSuffix(place, ".dwp") {
				dwo = packed(dwo, unit)
			}
			must.Write(t, at, debugFile("", dwo))
			settle()
			if sum := m.index(t, Options{}, app); len(sum.Problems) != 0 {
				t.Errorf("problems %v", sum.Problems)
			}
			if got := m.frames(t, id, store.DWARF, text); got != "in_dwo /src/a.c:7" {
				t.Errorf("got %q", got)
			}
			m.again(t, Options{}, app)
		})
	}
}

// TestSplitUnitsOfDebugFile has the skeleton units in a separate debug file, and their
// package beside the runtime file. The order makes no difference.
func TestSplitUnitsOfDebugFile(t *testing.T) {
	const unit = 42
	id := buildid.New([]byte(debugID))
	root := realDir(t)
	lib, dwo := splitPair("/nowhere", unit)
	app := filepath.Join(root, "app/lib.so")
	debug := filepath.Join(root, fmt.Sprintf("debug/.build-id/%x/%x.debug", debugID[:1], debugID[1:]))
	opts := Options{DebugRoots: []string{filepath.Join(root, "debug")}, Workers: 1}
	must.Write(t, debug, lib)
	must.Write(t, app, elfbuild.Lib([]byte(debugID), 0x1000).Stripped().Bytes())
	settle()
	late := newMemory()
	if sum := late.index(t, opts, app); sum.Skipped[SkipIncomplete] != 1 || len(sum.Problems) != 1 {
		t.Errorf("without the package: skipped %v, problems %v", sum.Skipped, sum.Problems)
	}
	late.again(t, opts, app)
	must.Write(t, app+".dwp", debugFile("", packed(dwo, unit)))
	settle()
	runs := map[string]struct {
		m     *memory
		paths []string
	}{
		"package came late": {m: late, paths: []string{app}},
		"runtime file":      {m: newMemory(), paths: []string{app}},
		"both":              {m: newMemory(), paths: []string{app, debug}},
		"both, as trees": {m: newMemory(),
			paths: []string{filepath.Dir(debug), filepath.Dir(app)}},
		"all, as a tree": {m: newMemory(), paths: []string{root}},
	}
	for name, run := range runs {
		sum := run.m.index(t, opts, run.paths...)
		if len(sum.Problems) != 0 || sum.Skipped[SkipIncomplete] != 0 {
			t.Errorf("%s: skipped %v, problems %v", name, sum.Skipped, sum.Problems)
		}
		if got := run.m.frames(t, id, store.DWARF, text); got != "in_dwo /src/a.c:7" {
			t.Errorf("%s: got %q", name, got)
		}
		run.m.again(t, opts, run.paths...)
	}
}

// TestSplitUnitOfAnother has a file of another unit in the place of a .dwo, and then a directory.
func TestSplitUnitOfAnother(t *testing.T) {
	root, m := realDir(t), newMemory()
	lib, _ := splitPair(root, 42)
	_, other := splitPair(root, 43)
	must.Write(t, filepath.Join(root, "lib.so"), lib)
	must.Write(t, filepath.Join(root, "obj/a.dwo"), debugFile("", other))
	sum := m.index(t, Options{}, filepath.Join(root, "lib.so"))
	if len(sum.Problems) != 1 || !strings.Contains(sum.Problems[0].Error(), "another split unit") {
		t.Errorf("problems %v", sum.Problems)
	}
	if err := os.RemoveAll(filepath.Join(root, "obj")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "obj/a.dwo"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum = newMemory().index(t, Options{}, filepath.Join(root, "lib.so"))
	if len(sum.Problems) != 1 || !strings.Contains(sum.Problems[0].Error(), "was not found") {
		t.Errorf("a directory in its place: problems %v", sum.Problems)
	}
}

// TestPlacesAreBounded asks for far more files than a row can hold.
func TestPlacesAreBounded(t *testing.T) {
	ti := &relatedFiles{ix: &index{}, path: "/no/such/file"}
	for i := range 5000 {
		if _, err := ti.dwo(fmt.Sprintf("%d.dwo", i), "/comp", 0); err == nil {
			t.Fatal("found")
		}
	}
	if ti.missing.n != 5000 || len(ti.looked) > maxPlaces+3 {
		t.Errorf("%d missing, %d places", ti.missing, len(ti.looked))
	}
	if got := places(ti.places()); len(got) != maxRowLooked || !slices.IsSorted(got) {
		t.Errorf("%d places in a row", len(got))
	}
}
