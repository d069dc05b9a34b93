package indexer

import (
	"path/filepath"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/dwarfbuild"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
)

// TestLinesEndWithSequences: code of a function that no sequence covers has no line, in particular
// not the line of the row before, whether in the middle, at the end or at the start.
func TestLinesEndWithSequences(t *testing.T) {
	db := &dwarfbuild.Builder{}
	line := db.Line(dwarfbuild.LineTable{
		Version: 5, Dirs: []string{"/src"}, Files: []dwarfbuild.LineFile{{Name: "a.c"}, {Name: "a.c"}},
		Program: func(p *dwarfbuild.Prog) {
			p.Set(text).File(1).Row(0, 0).End(0x10)
			p.Set(text+0x20).File(1).Row(0, 1).End(0x10)
			p.Set(text+0x58).File(1).Row(0, 2).End(0x28)
		},
	})
	db.Units = []*dwarfbuild.Unit{{Version: 5, Root: dwarfbuild.D(tagUnit, named("a.c"),
		attr(atCompDir, dwarfbuild.FormString, "/src"),
		attr(atStmtList, dwarfbuild.FormSecOffset, line)).Add(
		function(text, 0x40, named("f")), function(text+0x50, 0x10, named("g")))}}
	root, m := realDir(t), newMemory()
	must.Write(t, filepath.Join(root, "lib.so"),
		withSections(elfbuild.Lib([]byte(debugID), 0x1000), db.Sections()).Bytes())
	m.index(t, Options{}, root)
	m.wantFrames(t, buildid.New([]byte(debugID)), text, map[uint64]string{
		0x00: "f /src/a.c:1", 0x0f: "f /src/a.c:1", 0x10: "f ?:0", 0x1f: "f ?:0",
		0x20: "f /src/a.c:2", 0x2f: "f /src/a.c:2", 0x30: "f ?:0", 0x3f: "f ?:0",
		0x50: "g ?:0", 0x57: "g ?:0", 0x58: "g /src/a.c:3", 0x5f: "g /src/a.c:3", 0x60: "",
	})
}
