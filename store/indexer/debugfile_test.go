package indexer

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/store"
)

// TestDebugFileIsFound puts the debug file of a stripped program where gdb looks for it, and only
// there.
func TestDebugFileIsFound(t *testing.T) {
	id := mixedID(t)
	h := id.Hex()
	for _, place := range []string{
		"app/mixed.debug", "app/.debug/mixed.debug", "debug/ROOT/app/mixed.debug",
		"debug/.build-id/" + h[:2] + "/" + h[2:] + ".debug",
	} {
		t.Run(place, func(t *testing.T) {
			root, m := realDir(t), newMemory()
			opts := Options{DebugRoots: []string{filepath.Join(root, "debug")}}
			app := filepath.Join(root, "app/mixed")
			must.Write(t, app, fixture(t, "bin/mixed"))
			settle()
			m.index(t, opts, app)
			if slices.Contains(m.names(t, id, store.Symtab), "main") {
				t.Fatal("a stripped program has a main")
			}
			m.again(t, opts, app)

			// It appears later: the row of the program knows where it was looked for.
			if place == "debug/ROOT/app/mixed.debug" {
				place = "debug" + root + "/app/mixed.debug"
			}
			must.Write(t, filepath.Join(root, place), fixture(t, "bin/mixed.debug"))
			settle()
			m.index(t, opts, app)
			if !slices.Contains(m.names(t, id, store.Symtab), "main") {
				t.Error("the debug file was not found")
			}
			if o := m.object(t, id); len(o.Layout) != 2 {
				t.Errorf("%d segments", len(o.Layout))
			}
			m.again(t, opts, app)
		})
	}
}

// TestWrongDebugFile has a file at the right place with another CRC, then the right one.
func TestWrongDebugFile(t *testing.T) {
	root, m, id := realDir(t), newMemory(), mixedID(t)
	app, debug := filepath.Join(root, "mixed"), filepath.Join(root, "mixed.debug")
	must.Write(t, app, fixture(t, "bin/mixed"))
	for _, wrong := range [][]byte{
		fixture(t, "bin/spawn"),                     // another build ID
		append(fixture(t, "bin/mixed.debug"), 0),    // the build ID, but not the CRC
		fixture(t, "bin/mixed.debug")[:2000],        // cut
		[]byte("not even an ELF file, but present"), // rubbish
	} {
		must.Write(t, debug, wrong)
		settle()
		m.index(t, Options{}, app)
		if slices.Contains(m.names(t, id, store.Symtab), "main") {
			t.Fatalf("took a debug file of %d bytes", len(wrong))
		}
		m.again(t, Options{}, app)
	}
	must.Write(t, debug, fixture(t, "bin/mixed.debug"))
	settle()
	m.index(t, Options{}, app)
	if !slices.Contains(m.names(t, id, store.Symtab), "main") {
		t.Error("the right one is not seen")
	}
}

// TestDebugFileAloneHasNoLayout is the other order: only the debug file is known.
func TestDebugFileAloneHasNoLayout(t *testing.T) {
	root, m, id := realDir(t), newMemory(), mixedID(t)
	must.Write(t, filepath.Join(root, "mixed.debug"), fixture(t, "bin/mixed.debug"))
	sum := m.index(t, Options{}, root)
	if o := m.object(t, id); len(o.Layout) != 0 || len(o.Sources) != 2 || sum.Debug != 1 {
		t.Errorf("layout %v, sources %v", o.Layout, o.Sources)
	}
}

// TestBuildIDLinks walks a .build-id tree of links, as Fedora and perf's cache have
// them.
func TestBuildIDLinks(t *testing.T) {
	root, m := realDir(t), newMemory()
	must.Write(t, filepath.Join(root, "usr/bin/mixed"), fixture(t, "bin/mixed"))
	must.Write(t, filepath.Join(root, "cache/x/1234567890abcdef1234/elf"), fixture(t, "bin/fixed"))
	links := filepath.Join(root, "lib/.build-id/ab")
	if err := os.MkdirAll(links, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"file": "../../../usr/bin/mixed", "dir": "../../../cache/x/1234567890abcdef1234", "gone": "x",
	} {
		if err := os.Symlink(to, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	sum := m.index(t, Options{}, filepath.Join(root, "lib"))
	if sum.Read != 2 || len(sum.Problems) != 0 {
		t.Errorf("read %d, problems %v", sum.Read, sum.Problems)
	}
	m.again(t, Options{}, filepath.Join(root, "lib"))
	// With its target in the same walk the file is read once.
	m = newMemory()
	if sum := m.index(t, Options{}, root); sum.Read != 2 {
		t.Errorf("read %d", sum.Read)
	}
}

// TestDebuginfodCache has its layout: negative answers are empty files.
func TestDebuginfodCache(t *testing.T) {
	root, m, id := realDir(t), newMemory(), mixedID(t)
	must.Write(t, filepath.Join(root, id.Hex(), "executable"), fixture(t, "bin/mixed"))
	must.Write(t, filepath.Join(root, id.Hex(), "debuginfo"), fixture(t, "bin/mixed.debug"))
	must.Write(t, filepath.Join(root, "00112233445566778899", "debuginfo"), nil)
	must.Write(t, filepath.Join(root, "cache_clean_interval_s"), []byte("86400"))
	sum := m.index(t, Options{}, root)
	if sum.Read != 2 || sum.Objects != 1 || len(sum.Problems) != 0 {
		t.Errorf("summary %+v", sum)
	}
	if o := m.object(t, id); len(o.Layout) != 2 || len(m.names(t, id, store.Symtab)) == 0 {
		t.Errorf("object %+v", o)
	}
}

// TestDebugFileWithoutID belongs to whom links to it, and is nothing alone.
func TestDebugFileWithoutID(t *testing.T) {
	root, m := realDir(t), newMemory()
	debug := withoutID(t, fixture(t, "bin/mixed.debug"))
	must.Write(t, filepath.Join(root, "bin/mixed.debug"), debug)
	sum := m.index(t, Options{}, root)
	if sum.Skipped[SkipDebugNoID] != 1 || len(m.ids) != 0 {
		t.Errorf("alone: skipped %v, objects %v", sum.Skipped, m.ids)
	}
	app := withDebugCRC(t, fixture(t, "bin/mixed"), fixture(t, "bin/mixed.debug"), debug)
	must.Write(t, filepath.Join(root, "bin/mixed"), app)
	m.index(t, Options{}, root)
	if id := mixedID(t); !slices.Contains(m.names(t, id, store.Symtab), "main") {
		t.Error("with its program: no main")
	}
}

func realDir(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestStale(t *testing.T) {
	root := realDir(t)
	there, gone := filepath.Join(root, "there"), filepath.Join(root, "no/such/dir/x")
	must.Write(t, there, []byte("x"))
	st, err := statFile(there)
	if err != nil {
		t.Fatal(err)
	}
	other := st
	other.size++
	tests := []struct {
		name   string
		looked []string
		want   bool
	}{
		{name: "nothing looked for"},
		{name: "still not there", looked: []string{gone}},
		{name: "has come", looked: []string{gone, there}, want: true},
		{name: "refused and the same", looked: []string{refused(there, st)}},
		{name: "refused and another now", looked: []string{refused(there, other)}, want: true},
		{name: "refused and gone", looked: []string{refused(gone, st)}},
	}
	for _, tt := range tests {
		ix := &index{}
		if got := ix.stale(tt.looked); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestAbsentRemembersDirectories(t *testing.T) {
	root := realDir(t)
	var a absent
	for range 2 {
		for _, p := range []string{"no/a", "no/b", "no/deeper/c"} {
			if _, err := a.stat(filepath.Join(root, p)); err == nil {
				t.Errorf("%s is there", p)
			}
		}
	}
	if !a.dirs[filepath.Join(root, "no")] || a.dirs[root] {
		t.Errorf("remembered %v", a.dirs)
	}
	// Files created within a run are seen by the next one.
	must.Write(t, filepath.Join(root, "no/a"), []byte("x"))
	if _, err := a.stat(filepath.Join(root, "no/a")); err == nil {
		t.Error("a directory was looked at twice")
	}
	if _, err := new(absent).stat(filepath.Join(root, "no/a")); err != nil {
		t.Error(err)
	}
}

// TestManyDebugRoots has more places than a row can keep.
func TestManyDebugRoots(t *testing.T) {
	root, m := realDir(t), newMemory()
	var roots []string
	for i := range 100 {
		roots = append(roots, filepath.Join(root, "none", string(rune('a'+i%26)), strings.Repeat("x", i)))
	}
	must.Write(t, filepath.Join(root, "app/mixed"), fixture(t, "bin/mixed"))
	settle()
	m.index(t, Options{DebugRoots: roots}, filepath.Join(root, "app"))
	rows, _, err := m.Dir(filepath.Join(root, "app"))
	if err != nil || len(rows) != 1 || len(rows[0].Looked) != maxRowLooked {
		t.Errorf("rows %+v, %v", rows, err)
	}
}

// TestDamagedDebugFile has a debug file that passes for one and cannot be read: it is looked at
// again when it has been repaired.
func TestDamagedDebugFile(t *testing.T) {
	root, m, id := realDir(t), newMemory(), mixedID(t)
	opts := Options{DebugRoots: []string{root}}
	app := filepath.Join(root, "mixed")
	debug := filepath.Join(root, ".build-id", id.Hex()[:2], id.Hex()[2:]+".debug")
	whole := fixture(t, "bin/mixed.debug")
	must.Write(t, app, fixture(t, "bin/mixed"))
	f, err := elf.NewFile(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	bad := slices.Clone(whole)
	shoff := binary.LittleEndian.Uint64(bad[0x28:])
	for i, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB { // its offset: far outside
			binary.LittleEndian.PutUint64(bad[shoff+uint64(i)*64+24:], 1<<40)
		}
	}
	must.Write(t, debug, bad)
	settle()
	if sum := m.index(t, opts, app); len(sum.Problems) != 1 || sum.Problems[0].Path != debug {
		t.Errorf("problems %v", sum.Problems)
	}
	m.again(t, opts, app)
	must.Write(t, debug, whole)
	settle()
	m.index(t, opts, app)
	if !slices.Contains(m.names(t, id, store.Symtab), "main") {
		t.Error("the repaired file is not seen")
	}
}

// TestIncompleteDebugFile has a debug file with damaged debug information, repaired later.
func TestIncompleteDebugFile(t *testing.T) {
	root, m, id := realDir(t), newMemory(), mixedID(t)
	opts := Options{DebugRoots: []string{root}}
	app, debug := filepath.Join(root, "mixed"), buildid.DebugPaths(id, []string{root})[0]
	whole := fixture(t, "bin/mixed.debug")
	f, err := elf.NewFile(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	bad := slices.Clone(whole)
	bad[f.Section(".debug_abbrev").Offset+8] = 0xff
	must.Write(t, app, fixture(t, "bin/mixed"))
	must.Write(t, debug, bad)
	settle()
	if sum := m.index(t, opts, app); sum.Skipped[SkipIncomplete] != 1 {
		t.Errorf("skipped %v, problems %v", sum.Skipped, sum.Problems)
	}
	m.again(t, opts, app)
	must.Write(t, debug, whole)
	settle()
	m.index(t, opts, app)
	if got := m.frames(t, id, store.DWARF, 0xd44); got != "main /srv/app/src/mixed.c:81" {
		t.Errorf("the repaired file gives %q", got)
	}
}
