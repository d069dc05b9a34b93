package dwarf

import (
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

// lineUnit makes one unit with a line table and no functions.
func lineUnit(t dwarfbuild.LineTable) *dwarfbuild.Builder {
	b := one()
	u := cu(t.Version, secOff(atStmtList, b.Line(t)))
	u.Is64 = t.Is64
	b.Units = append(b.Units, u)
	return b
}

var twoFiles = []dwarfbuild.LineFile{{Name: "a.c"}, {Name: "b.h", Dir: 1}}

func TestLineVersions(t *testing.T) {
	program := func(p *dwarfbuild.Prog) {
		p.Set(0x1000).Row(0, 9).Column(3).Discriminator(5).Row(4, 1).File(2).Row(4, -3).End(8)
		p.Set(0x1800).U8(13 + 5 + 14*2 + 1) // special: 2 on, 1 line further: line 2
		p.U8(8)                             // const_add_pc: (255-13)/14 = 17
		p.U8(9).U16(0x100)                  // fixed_advance_pc
		p.U8(1, 6, 7, 10, 11).U8(12).ULEB(300)
		p.End(1)
	}
	for _, version := range []uint16{2, 3, 4} {
		b := lineUnit(dwarfbuild.LineTable{Version: version, Dirs: []string{"../inc"},
			Files: twoFiles, Program: program, Is64: version == 3})
		check(t, b, Options{}, `
			seq {1000 1010} 1000=/src/a.c:10:0 1004=/src/a.c:11:3/5 1008=/inc/b.h:8:3
			seq {1802 1914} 1802=/src/a.c:2:0 1913=/src/a.c:2:0`)
	}
	for _, form := range []uint16{formString, formLineStrp, formStrp} {
		for _, md5 := range []bool{false, true} {
			b := lineUnit(dwarfbuild.LineTable{Version: 5, Dirs: []string{"/cwd", "inc"},
				Files:    append([]dwarfbuild.LineFile{{Name: "zero.c"}}, twoFiles...),
				PathForm: form, MD5: md5, Program: program})
			check(t, b, Options{}, `
				seq {1000 1010} 1000=/cwd/a.c:10:0 1004=/cwd/a.c:11:3/5 1008=/src/inc/b.h:8:3
				seq {1802 1914} 1802=/cwd/a.c:2:0 1913=/cwd/a.c:2:0`)
		}
	}
}

// Line table contents that break simple look-ups.
func TestLineTraps(t *testing.T) {
	const top = 1<<64 - 1
	tests := []struct {
		name    string
		program func(*dwarfbuild.Prog)
		want    string
	}{
		{name: "the end of a sequence is no row", program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 0).End(16).Set(0x2000).Row(0, 0).End(4)
		}, want: "seq {1000 1010} 1000=/src/a.c:1:0\nseq {2000 2004} 2000=/src/a.c:1:0"},
		{name: "empty sequences", program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 0).End(0).Set(0x1100).End(4).Set(0x2000).Row(0, 0).End(4)
		}, want: "seq {2000 2004} 2000=/src/a.c:1:0\ndead 1"},
		{name: "addresses that go down", program: func(p *dwarfbuild.Prog) {
			p.Set(0x2000).Row(0, 0).Row(8, 1).Set(0x1000).Row(0, 5).End(4)
		}, want: "seq {1000 2008} 1000=/src/a.c:7:0 2000=/src/a.c:1:0"},
		{name: "down to an address that is there", program: func(p *dwarfbuild.Prog) {
			p.Set(0x2000).Row(0, 0).Row(8, 1).Set(0x2000).Row(0, 5).Row(4, 1).End(8)
		}, want: "seq {2000 200c} 2000=/src/a.c:7:0 2004=/src/a.c:8:0 2008=/src/a.c:2:0"},
		{name: "down to dropped code", program: func(p *dwarfbuild.Prog) {
			p.Set(0x2000).Row(0, 0).Row(8, 1).Set(0).Row(0, 5).Row(4, 1).End(8)
		}, want: "seq {2000 2008} 2000=/src/a.c:1:0\ndead 1"},
		{name: "an end below the rows", program: func(p *dwarfbuild.Prog) {
			p.Set(0x2000).Row(0, 0).Row(8, 1).Row(8, 1).Set(0x1000).End(0).
				Set(0x3000).Row(0, 0).Set(0x1000).End(4)
		}, want: "seq {2000 2010} 2000=/src/a.c:1:0 2008=/src/a.c:2:0\ndead 1"},
		{name: "sequences out of order", program: func(p *dwarfbuild.Prog) {
			p.Set(0x2000).Row(0, 0).End(4).Set(0x1000).Row(0, 0).End(4)
		}, want: "seq {2000 2004} 2000=/src/a.c:1:0\nseq {1000 1004} 1000=/src/a.c:1:0"},
		{name: "line 0 is kept", program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 4).Row(4, -5).Row(4, 6).End(4)
		}, want: "seq {1000 100c} 1000=/src/a.c:5:0 1004=/src/a.c:0:0 1008=/src/a.c:6:0"},
		{name: "of rows at one address the last counts", program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 4).Row(0, 1).Row(0, 1).End(4)
		}, want: "seq {1000 1004} 1000=/src/a.c:7:0"},
		{name: "dropped code", program: func(p *dwarfbuild.Prog) {
			for _, at := range []uint64{0, 1, top, top - 1} {
				p.Set(at).Row(0, 0).Row(0, 1).End(4)
			}
			p.Set(0x1000).Row(0, 0).End(4)
		}, want: "seq {1000 1004} 1000=/src/a.c:1:0\ndead 4"},
		{name: "file numbers without a file", program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).File(0).Row(0, 0).File(9).Row(4, 0).End(4)
		}, want: "seq {1000 1008} 1000=?:1:0 1004=?:1:0"},
		{name: "define_file", program: func(p *dwarfbuild.Prog) {
			p.U8(0).ULEB(8).U8(3).Str("c.h").ULEB(1, 0, 0)
			p.Set(0x1000).File(3).Row(0, 0).End(4)
		}, want: "seq {1000 1004} 1000=/src/inc/c.h:1:0"},
		{name: "unknown opcodes", program: func(p *dwarfbuild.Prog) {
			p.U8(0).ULEB(3).U8(0x80, 1, 2).U8(0).ULEB(0)
			p.Set(0x1000).Row(0, 0).End(4)
		}, want: "seq {1000 1004} 1000=/src/a.c:1:0"},
		{name: "no end of sequence", program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 0).End(4).Set(0x2000).Row(0, 0)
		}, want: `seq {1000 1004} 1000=/src/a.c:1:0
			problem .debug_line: offset 0x30: line number sequence does not end`},
		{name: "cut off within an opcode", program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 0).End(4).U8(2, 0x80)
		}, want: `seq {1000 1004} 1000=/src/a.c:1:0
			problem .debug_line: offset 0x45: line number program does not end`},
		{name: "extended opcode beyond the table", program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 0).End(4).U8(0).ULEB(1<<40, 2)
		}, want: `seq {1000 1004} 1000=/src/a.c:1:0
			problem .debug_line: offset 0x45: line number program does not end`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			check(t, lineUnit(dwarfbuild.LineTable{Version: 4, Dirs: []string{"inc"},
				Files: twoFiles, Program: test.program}), Options{}, test.want)
		})
	}
}

// Functions in another order than their code, as Dart lists them in one sequence: the last row of
// each reaches to the next function, the last function's last row to its end.
func TestLinesOfUnorderedFunctions(t *testing.T) {
	unit := func(funcs ...*die) *dwarfbuild.Builder {
		b := lineUnit(dwarfbuild.LineTable{Version: 2, Files: twoFiles,
			Program: func(p *dwarfbuild.Prog) {
				p.Set(0x3000).Row(0, 0).Row(8, 1).Set(0x1000).Row(0, 1).Row(4, 1)
				p.Set(0x2000).Row(0, 1).Set(0x1800).Row(0, 1).End(4)
			}})
		b.Units[0].Root.Add(funcs...)
		return b
	}
	const rows = "1000=/src/a.c:3:0 1004=/src/a.c:4:0 1800=/src/a.c:6:0 2000=/src/a.c:5:0 " +
		"3000=/src/a.c:1:0"
	for _, c := range []struct {
		name  string
		funcs []*die
		want  string
	}{
		{"functions", []*die{fn("c", 0x3000, 16), fn("a", 0x1000, 16)},
			"c [{3000 3010}]\na [{1000 1010}]\nseq {1000 3010} " + rows + " 3008=/src/a.c:2:0"},
		{"code in no function", nil, "seq {1000 3008} " + rows},
		{"a row behind its function", []*die{fn("c", 0x3000, 8)},
			"c [{3000 3008}]\nseq {1000 3008} " + rows},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, unit(c.funcs...), Options{}, c.want) })
	}
}

// VLIW machines put several operations into an instruction.
func TestLineOperations(t *testing.T) {
	check(t, lineUnit(dwarfbuild.LineTable{Version: 4, MaxOps: 4, Files: twoFiles[:1],
		Program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 0).Row(3, 1).Row(1, 1).End(4)
		}}), Options{}, "seq {1000 1002} 1000=/src/a.c:2:0 1001=/src/a.c:3:0")
}

// Two units with one line table, as produced by dwz and LTO. Rows outside the first unit's
// functions may be in one of the second: both have those rows, and tables prefer a function.
func TestSharedLineTable(t *testing.T) {
	b := one()
	table := secOff(atStmtList, b.Line(dwarfbuild.LineTable{Version: 4, Files: twoFiles[:1],
		Program: func(p *dwarfbuild.Prog) { p.Set(0x1000).Row(0, 0).End(4) }}))
	partial := &dwarfbuild.Unit{Version: 4, Root: dwarfbuild.D(tagPartialUnit, table)}
	u, v := cu(4, table), cu(4, table)
	v.Root.Add(sub(name("f"), low(0x1000), length(4), udata(atDeclFile, 1)))
	b.Units = append(b.Units, partial, u, v)
	check(t, b, Options{}, `
		seq {1000 1004} 1000=/src/a.c:1:0
		f decl /src/a.c:0 [{1000 1004}]
		seq {1000 1004} 1000=/src/a.c:1:0`)
}

// Rows of a shared table belong to the unit that has their function, not only to the first; rows of
// no function to the first alone.
func TestSharedLineTableHasCodeOfAll(t *testing.T) {
	b := one()
	table := secOff(atStmtList, b.Line(dwarfbuild.LineTable{Version: 4, Files: twoFiles[:1],
		Program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 0).End(4)
			p.Set(0x2000).Row(0, 6).End(4)
			p.Set(0x3000).Row(0, 8).End(4)
		}}))
	u, v := cu(4, table), cu(4, table)
	u.Root.Add(fn("f", 0x1000, 4))
	v.Root.Add(fn("g", 0x2000, 4))
	b.Units = append(b.Units, u, v)
	check(t, b, Options{}, `
		f [{1000 1004}]
		seq {1000 1004} 1000=/src/a.c:1:0
		seq {2000 2004} 2000=/src/a.c:7:0
		seq {3000 3004} 3000=/src/a.c:9:0
		g [{2000 2004}]
		seq {2000 2004} 2000=/src/a.c:7:0`)
}

// A count without entries made debug/dwarf allocate 4 GiB.
func TestFileCountBomb(t *testing.T) {
	for _, forms := range [][]uint64{{0}, {1, 1, formImplicitConst}, {1, 1, formFlagPresent}} {
		b := one()
		line := b.Section(".debug_line")
		head := new(dwarfbuild.Buf)
		head.U8(1, 1, 1, 0, 14, 1).ULEB(forms...).ULEB(1 << 28)
		line.U32(uint32(8+len(head.B)+64)).U16(5).U8(8, 0).U32(uint32(len(head.B)))
		line.B = append(line.B, head.B...)
		line.B = append(line.B, make([]byte, 64)...)
		u := cu(5, secOff(atStmtList, 0))
		u.Root.Add(fn("f", 0x1000, 4))
		b.Units = append(b.Units, u)
		check(t, b, Options{}, `f [{1000 1004}]
			problem .debug_line: offset 0x0: more files than the line table has bytes for`)
	}
}

func TestAppendPath(t *testing.T) {
	tests := []struct{ base, dir, name, want string }{
		{base: "/build", dir: "src", name: "a.c", want: "/build/src/a.c"},
		{base: "/build/glibc/io", dir: "../sysdeps/x", name: "./../fts.c",
			want: "/build/glibc/sysdeps/fts.c"},
		{base: "/build", dir: "/usr/include", name: "a.h", want: "/usr/include/a.h"},
		{base: "/build", dir: "src", name: "/abs//a.c", want: "/abs/a.c"},
		{dir: "src", name: "a.c", want: "src/a.c"},
		{dir: "../x", name: "../../../a.c", want: "../../../a.c"},
		{dir: "..", name: "a.c", want: "../a.c"},
		{base: "/", dir: "..", name: "../a.c", want: "/a.c"},
		{base: "/a", dir: "..", name: "..", want: "/"},
		{base: ".", name: "./a.c", want: "a.c"},
		{base: "a", name: "../b", want: "b"},
		{base: "/build", dir: "src"},
		{base: "/build/", name: "<built-in>", want: "/build/<built-in>"},
	}
	for _, test := range tests {
		f := File{[]byte(test.base), []byte(test.dir), []byte(test.name)}
		if got := string(AppendPath(nil, f)); got != test.want {
			t.Errorf("%q %q %q: got %q, want %q", test.base, test.dir, test.name, got, test.want)
		}
		if got := string(AppendPath([]byte("/x"), f)); got != "/x"+test.want {
			t.Errorf("appended: got %q, want %q", got, "/x"+test.want)
		}
	}
}

func TestLineHeaderDamage(t *testing.T) {
	whole := lineUnit(dwarfbuild.LineTable{Version: 4, Files: twoFiles,
		Program: func(p *dwarfbuild.Prog) { p.Set(0x1000).Row(0, 0).End(4) }})
	secs := whole.Sections()
	for n := range len(secs[".debug_line"]) {
		cut := built(secs, false)
		cut.Line = cut.Line[:n]
		if got := dump(t, New(cut, Options{})); n > 0 && !strings.Contains(got, "problem") {
			t.Errorf("cut at %d: no problem in %q", n, got)
		}
	}
}

// Directory 0 of DWARF 5 is the compilation directory: it must not count twice.
func TestDirectoryZero(t *testing.T) {
	for _, test := range []struct{ comp, zero, want string }{
		{comp: "./csu", zero: "./csu", want: "csu/a.c csu/inc/b.h"},
		{comp: "/src", zero: "/src", want: "/src/a.c /src/inc/b.h"},
		{comp: "/src", zero: ".", want: "/src/a.c /src/inc/b.h"},
		{zero: "/src", want: "/src/a.c /src/inc/b.h"},
		{comp: "obj", zero: "/src/obj", want: "/src/obj/a.c /src/obj/inc/b.h"},
	} {
		h := lineHeader{version: 5, dirs: [][]byte{[]byte(test.zero), []byte("inc")},
			files: []fileEntry{{[]byte("a.c"), 0}, {[]byte("b.h"), 1}}}
		a := AppendPath(nil, h.file(0, []byte(test.comp)))
		b := AppendPath(nil, h.file(1, []byte(test.comp)))
		if got := string(a) + " " + string(b); got != test.want {
			t.Errorf("%q %q: got %s, want %s", test.comp, test.zero, got, test.want)
		}
	}
}
