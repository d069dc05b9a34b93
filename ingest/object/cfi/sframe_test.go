package cfi

import (
	"debug/elf"
	"slices"
	"strings"
	"testing"
)

// Infos of rows.
const (
	fp = 0
	sp = 1
)

// amd64Funcs are functions of x86-64 with the rules amd64Rules.
var amd64Funcs = []builtFunc{
	{start: 0x1000, size: 0x40, rows: []builtRow{{off: 0, info: sp, words: []int32{8}}, {off: 1,
		info: sp, words: []int32{16, -16}},
		{off: 4, info: fp, words: []int32{16, -16}}, {off: 0x3f, info: sp, words: []int32{8, -16}}}},
	{start: 0x1040, size: 0x2000, info: 1, rows: []builtRow{{off: 0, info: sp, words: []int32{8}}, {off: 0x1234,
		info: sp, words: []int32{0x4018, -16}}}},
	{start: 0x4000, size: 0x80000, info: 2, rows: []builtRow{{off: 0, info: sp, words: []int32{8}}, {off: 0x70000,
		info: sp, words: []int32{0x12340}}}},
	{start: 0x90000, size: 0x10, rows: []builtRow{{off: 0, info: 0}}},
}

var amd64Rules = []string{
	"1000 CFA r7+8 RA *(c-8) FP how0+0", "1001 CFA r7+16 RA *(c-8) FP *(c-16)",
	"1004 CFA r6+16 RA *(c-8) FP *(c-16)", "103f CFA r7+8 RA *(c-8) FP *(c-16)",
	"1040 CFA r7+8 RA *(c-8) FP how0+0", "2274 CFA r7+16408 RA *(c-8) FP *(c-16)", "3040 none",
	"4000 CFA r7+8 RA *(c-8) FP how0+0", "74000 CFA r7+74560 RA *(c-8) FP how0+0", "84000 none",
	"90000 end", "90010 none",
}

// TestSFrameVersions reads the same functions in each version.
func TestSFrameVersions(t *testing.T) {
	for _, c := range []struct{ version, flags byte }{{version: 1, flags: 1}, {version: 2,
		flags: 1}, {version: 2, flags: 1 | flagRelative}, {version: 3, flags: 1 | flagRelative}} {
		s, err := openSFrame(buildSFrame(c.version, c.flags, abiAMD64, 0, -8, amd64Funcs))
		if err != nil {
			t.Fatal(err)
		}
		if got := listed(t, s, ArchOf(elf.EM_X86_64)); !slices.Equal(got, amd64Rules) {
			t.Errorf("version %d, flags %d: %q\nwant %q", c.version, c.flags, got, amd64Rules)
		}
	}
}

// TestSFrameKinds has the forms of some versions alone, and arm64.
func TestSFrameKinds(t *testing.T) {
	const regCFA = 10<<3 | byRegister
	for _, c := range []struct {
		name    string
		version byte
		abi     byte
		f       builtFunc
		want    []string
	}{
		{name: "a block that repeats", version: 2, abi: abiAMD64,
			f: builtFunc{start: 0x1000, size: 0x20, info: infoBlock, block: 16,
				rows: []builtRow{{off: 0, info: sp, words: []int32{8}}, {off: 11, info: sp,
					words: []int32{16}}}}, want: []string{
				"1000 CFA r7+8 RA *(c-8) FP how0+0", "100b CFA r7+16 RA *(c-8) FP how0+0",
				"1010 CFA r7+8 RA *(c-8) FP how0+0", "101b CFA r7+16 RA *(c-8) FP how0+0", "1020 none"}},
		{name: "a block of unknown size", version: 1, abi: abiAMD64,
			f: builtFunc{start: 0x1000, size: 0x20, info: infoBlock,
				rows: []builtRow{{off: 0, info: sp, words: []int32{8}}}}},
		{name: "a signal frame", version: 3, abi: abiAMD64,
			f: builtFunc{start: 0x1000, size: 0x10, info: infoSignal, kind: kindFlex,
				rows: []builtRow{{off: 0, info: 0,
					words: []int32{7<<3 | dereference | byRegister, 160, 7<<3 | dereference | byRegister, 168,
						7<<3 | dereference | byRegister, 120}}}},
			want: []string{"1000 CFA [77 a0 01 06] RA [77 a8 01 06] FP [77 f8 00 06] signal", "1010 none"}},
		{name: "a realigned frame", version: 3, abi: abiAMD64,
			f: builtFunc{start: 0x1000, size: 0x10, kind: kindFlex, rows: []builtRow{
				{off: 0, info: 0, words: []int32{regCFA, 0}}, {off: 1, info: 0,
					words: []int32{6<<3 | dereference | byRegister, -16, 0, 6<<3 | dereference | byRegister, 0}},
				{off: 2, info: 0, words: []int32{regCFA, 8, dereference, -24, dereference, -32}}}},
			want: []string{"1000 CFA r10+0 RA *(c-8) FP how0+0", "1001 CFA [76 70 06] RA *(c-8) FP [76 00 06]",
				"1002 CFA r10+8 RA *(c-24) FP *(c-32)", "1010 none"}},
		{name: "arm64", version: 2, abi: abiARM64,
			f: builtFunc{start: 0x1000, size: 0x10, rows: []builtRow{{off: 0, info: sp,
				words: []int32{0}},
				{off: 4, info: sp, words: []int32{32, -24, -32}}, {off: 8, info: fp | 0x80,
					words: []int32{32, -24, -32}}, {off: 12, info: sp, words: []int32{16, -8}}}},
			want: []string{"1000 CFA r31+0 RA how0+0 FP how0+0", "1004 CFA r31+32 RA *(c-24) FP *(c-32)",
				"1008 CFA r29+32 RA *(c-24) FP *(c-32)", "100c CFA r31+16 RA *(c-8) FP how0+0", "1010 none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			machine, ra := elf.EM_X86_64, int8(-8)
			if c.abi == abiARM64 {
				machine, ra = elf.EM_AARCH64, 0
			}
			s, err := openSFrame(buildSFrame(c.version, 0, c.abi, 0, ra, []builtFunc{c.f}))
			if err != nil {
				t.Fatal(err)
			}
			if got := listed(t, s, ArchOf(machine)); !slices.Equal(got, c.want) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// TestSFrameDamage has an error for each, and keeps the functions that are whole.
func TestSFrameDamage(t *testing.T) {
	good := builtFunc{start: 0x1000, size: 0x10, rows: []builtRow{{off: 0, info: sp,
		words: []int32{8}}}}
	section := func(version byte, f builtFunc) []byte {
		return buildSFrame(version, 0, abiAMD64, 0, -8, []builtFunc{f, good})
	}
	put := func(data []byte, at int, v byte) []byte { data[at] = v; return data }
	bad := builtFunc{start: 0x2000, size: 0x10, rows: good.rows}
	with := func(change func(*builtFunc)) builtFunc { f := bad; change(&f); return f }
	for _, c := range []struct {
		name, err string
		data      []byte
		lost      int
	}{
		{name: "width of starts", err: "width",
			data: section(2, with(func(f *builtFunc) { f.info = 3 })), lost: 1},
		{name: "kind", err: "kind", data: section(3, with(func(f *builtFunc) { f.kind = 2 })),
			lost: 1},
		{name: "rows outside", err: "outside", data: put(section(2, bad), sframeHeader+11, 0x7f),
			lost: 1},
		{name: "CFA without a register", err: "no rule", data: section(3, with(func(f *builtFunc) {
			f.kind, f.rows = kindFlex, []builtRow{{off: 0, info: 0,
				words: []int32{dereference, 8}}}
		})), lost: 1},
		{name: "half a pair", err: "no rule", data: section(3, with(func(f *builtFunc) {
			f.kind, f.rows = kindFlex, []builtRow{{off: 0, info: 0,
				words: []int32{7<<3 | byRegister}}}
		})), lost: 1},
		{name: "too many rows", err: "cut off", data: put(section(2, bad), sframeHeader+12, 200),
			lost: 1},
		{name: "magic", err: "no header", data: put(section(2, bad), 0, 1), lost: 0},
		{name: "version", err: "version 4", data: put(section(2, bad), 2, 4), lost: 0},
		{name: "auxiliary header", err: "auxiliary", data: put(section(2, bad), 7, 255), lost: 0},
		{name: "functions", err: "functions overrun", data: put(section(2, bad), 8, 255), lost: 0},
		{name: "rows", err: "rows overrun", data: put(section(2, bad), 16, 255), lost: 0},
	} {
		s, err := openSFrame(c.data)
		lost := 0
		b := NewBuilder(ArchOf(elf.EM_X86_64))
		if err == nil {
			lost, err = s.Rules(b)
			if got := lines(b); !slices.Contains(got, "1000 CFA r7+8 RA *(c-8) FP how0+0") {
				t.Errorf("%s: %q", c.name, got)
			}
		}
		if lost != c.lost || err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: lost %d, %v", c.name, lost, err)
		}
	}
	s, err := openSFrame(buildSFrame(2, 0, abiARM64, 0, 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rules(NewBuilder(ArchOf(elf.EM_X86_64))); err == nil {
		t.Error("no error for another machine")
	}
}

// TestSFrameHostile has functions that share rows, and a block of one byte: the work is bounded by
// the section's size.
func TestSFrameHostile(t *testing.T) {
	f := builtFunc{start: 0x1000, size: 1 << 30, info: infoBlock, block: 1, rows: []builtRow{{off: 0,
		info: sp, words: []int32{8}}, {off: 0, info: sp, words: []int32{16}}}}
	data := buildSFrame(2, 0, abiAMD64, 0, -8, slices.Repeat([]builtFunc{f}, 1000))
	s, err := openSFrame(data)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(ArchOf(elf.EM_X86_64))
	lost, err := s.Rules(b)
	rows := 0
	for range lines(b) {
		rows++
	}
	if lost != 1000 || err == nil || rows > sframeBudgetFloor+sframeBudgetFactor*len(data) {
		t.Errorf("lost %d, %v, %d rows", lost, err, rows)
	}
}

// TestSFrameTruncated cuts sections at every length.
func TestSFrameTruncated(t *testing.T) {
	for version := byte(1); version <= 3; version++ {
		data := buildSFrame(version, 0, abiAMD64, 0, -8, amd64Funcs)
		for n := range data {
			s, err := openSFrame(data[:n:n])
			if err != nil {
				continue
			}
			b := NewBuilder(ArchOf(elf.EM_X86_64))
			if lost, err := s.Rules(b); (lost > 0) != (err != nil) {
				t.Errorf("version %d cut at %d: lost %d, %v", version, n, lost, err)
			}
		}
	}
}

func FuzzSFrame(f *testing.F) {
	for version := byte(1); version <= 3; version++ {
		f.Add(buildSFrame(version, 0, abiAMD64, 0, -8, amd64Funcs))
	}
	f.Add(buildSFrame(3, 0, abiARM64, 0, 0, []builtFunc{{start: 0x1000, size: 0x10, kind: kindFlex, info: infoBlock | infoSignal,
		block: 4, rows: []builtRow{{off: 0, info: 0,
			words: []int32{7<<3 | dereference | byRegister, 160}}}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := openSFrame(data)
		if err != nil {
			return
		}
		machine := elf.EM_X86_64
		if s.abi == abiARM64 {
			machine = elf.EM_AARCH64
		}
		b := NewBuilder(ArchOf(machine))
		lost, err := s.Rules(b)
		if (lost > 0) != (err != nil) || lost > s.numbers {
			t.Errorf("lost %d of %d, %v", lost, s.numbers, err)
		}
		for _, r := range b.Rules {
			for _, w := range append(r.Saved[:], r.CFA, r.RA) {
				if (w.How == Expr || w.How == AtExpr) && int(w.Off) >= len(b.Exprs) {
					t.Errorf("%+v of %d expressions", w, len(b.Exprs))
				}
			}
		}
	})
}
