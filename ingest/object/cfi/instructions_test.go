package cfi

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

var hows = [...]string{"same", "undefined", "at cfa", "cfa", "reg", "at expr", "expr"}

// whereText prints a place.
func whereText(b *Builder, w Where) string {
	switch w.How {
	case AtCFA, CFAPlus:
		return fmt.Sprintf("%s%+d", hows[w.How], w.Off)
	case Register:
		return fmt.Sprintf("r%d%+d", w.Reg, w.Off)
	case AtExpr, Expr:
		return fmt.Sprintf("%s %x", hows[w.How], b.Exprs[w.Off])
	}
	return hows[w.How]
}

// rowTexts prints the rows of a section: address, CFA, return address, then the saved registers
// that are not the same, by DWARF number.
func rowTexts(t testing.TB, s *EHFrame, machine elf.Machine) (out []string, lost int, err error) {
	t.Helper()
	b := NewBuilder(ArchOf(machine))
	lost, err = s.Rules(b)
	b.Rows(func(at addr.Addr, n uint32) {
		r := b.Rules[n]
		text := fmt.Sprintf("%x", uint64(at))
		switch r.Kind {
		case NoRule:
			text += " none"
		case End:
			text += " end"
		default:
			text += " " + whereText(b, r.CFA) + ", ra " + whereText(b, r.RA)
			for i, reg := range b.Arch.Saved {
				if r.Saved[i].How != Same {
					text += fmt.Sprintf(", %d %s", reg, whereText(b, r.Saved[i]))
				}
			}
			if r.Signal {
				text += ", signal"
			}
		}
		out = append(out, text)
	})
	return out, lost, err
}

// x86 are the initial instructions of x86-64: CFA = rsp+8, the return address below it.
var x86 = []byte{cfaDefCFA, 7, 8, cfaOffset | 16, 1}

// TestInstructions runs each instruction.
func TestInstructions(t *testing.T) {
	const enc = formatU8
	for _, c := range []struct {
		name string
		code []byte
		want []string // of 0x401000 to 0x401100
	}{
		{name: "none", want: []string{"401000 r7+8, ra at cfa-8"}},
		{name: "push rbp, mov, pop", code: []byte{
			cfaAdvance | 1, cfaDefCFAOffset, 16, cfaOffset | 6, 2,
			cfaAdvance | 3, cfaDefCFARegister, 6,
			cfaAdvance1, 0x40, cfaDefCFA, 7, 8, cfaRestore | 6,
		}, want: []string{"401000 r7+8, ra at cfa-8", "401001 r7+16, ra at cfa-8, 6 at cfa-16",
			"401004 r6+16, ra at cfa-8, 6 at cfa-16", "401044 r7+8, ra at cfa-8"}},
		{name: "long steps",
			code: []byte{cfaAdvance2, 0x10, 0, cfaDefCFAOffset, 16, cfaAdvance4, 0x10, 0, 0, 0,
				cfaDefCFAOffset, 24, cfaAdvance8, 0x10, 0, 0, 0, 0, 0, 0, 0, cfaDefCFAOffset, 32,
				cfaSetLoc, 0x80, 0x10, 0x40, 0, 0, 0, 0, 0, cfaDefCFAOffset, 40},
			want: []string{"401000 r7+8, ra at cfa-8", "401010 r7+16, ra at cfa-8",
				"401020 r7+24, ra at cfa-8", "401030 r7+32, ra at cfa-8", "401080 r7+40, ra at cfa-8"}},
		{name: "a state with its CFA",
			code: []byte{cfaAdvance | 1, cfaDefCFAOffset, 16, cfaRemember,
				cfaAdvance | 1, cfaDefCFA, 6, 32, cfaOffset | 3, 3, cfaAdvance | 1, cfaRestoreState},
			want: []string{"401000 r7+8, ra at cfa-8", "401001 r7+16, ra at cfa-8",
				"401002 r6+32, ra at cfa-8, 3 at cfa-24", "401003 r7+16, ra at cfa-8"}},
		{name: "extended numbers",
			code: []byte{cfaOffsetExt, 12, 2, cfaOffsetSF, 13, 0x7f, cfaNegOffsetExt, 14, 2,
				cfaValOffset, 15, 1, cfaValOffsetSF, 3, 0x7f, cfaArgsSize, 0x80, 1, cfaAdvance | 2,
				cfaRestoreExt, 12, cfaSame, 13, cfaUndefined, 14, cfaRegister, 15, 10, cfaDefCFASF, 6, 0x7e},
			want: []string{"401000 r7+8, ra at cfa-8, 3 cfa+8, 12 at cfa-16, 13 at cfa+8, 14 at cfa+16, 15 cfa-8",
				"401002 r6+16, ra at cfa-8, 3 cfa+8, 14 undefined, 15 r10+0"}},
		{name: "signed offset of the CFA", code: []byte{cfaDefCFAOffSF, 0x7e},
			want: []string{"401000 r7+16, ra at cfa-8"}},
		{name: "expressions",
			code: []byte{cfaDefCFAExpr, 2, 0x76, 8, cfaExpr, 6, 2, 0x76, 0, cfaValExpr, 3, 1, 0x30,
				cfaExpr, 16, 1, 0x31},
			want: []string{"401000 expr 7608, ra at expr 31, 6 at expr 7600, 3 expr 30"}},
		{name: "offset beside an expression",
			code: []byte{cfaDefCFAExpr, 2, 0x76, 8, cfaAdvance | 4, cfaDefCFAOffset, 24,
				cfaAdvance | 4, cfaDefCFARegister, 6},
			want: []string{"401000 expr 7608, ra at cfa-8", "401008 r6+24, ra at cfa-8"}},
		{name: "no caller", code: []byte{cfaUndefined, 16}, want: []string{"401000 end"}},
		{name: "registers without a place",
			code: []byte{cfaOffset, 2, cfaOffsetExt, 40, 2, cfaOffsetExt, 0x80, 8, 2},
			want: []string{"401000 r7+8, ra at cfa-8"}},
		{name: "signed return addresses", code: []byte{cfaNegateRA, cfaAdvance | 4, cfaNegateRA},
			want: []string{"401000 r7+8, ra at cfa-8"}},
		{name: "steps beyond the end", code: []byte{cfaAdvance4, 0, 0, 1, 0, cfaDefCFAOffset, 16},
			want: []string{"401000 r7+8, ra at cfa-8"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &frames{class64: true, initial: x86}
			f.common(1, "zR", enc)
			f.function(enc, 0x401000, 0x100, c.code...)
			got, lost, err := rowTexts(t, f.section(), elf.EM_X86_64)
			want := append(slices.Clone(c.want), "401100 none")
			if !slices.Equal(got, want) || lost > 0 || err != nil {
				t.Errorf("%q\nwant %q; lost %d, %v", got, want, lost, err)
			}
		})
	}
}

// TestDamagedInstructions keeps the rows before the damage, and all other functions.
func TestDamagedInstructions(t *testing.T) {
	const enc = formatU8
	for _, c := range []struct {
		name string
		code []byte
		want string
	}{
		{name: "unknown", code: []byte{cfaAdvance | 4, 0x3f}, want: "unknown instruction 0x3f"},
		{name: "cut off", code: []byte{cfaAdvance | 4, cfaDefCFAExpr, 0x80, 1}, want: "too early"},
		{name: "no state", code: []byte{cfaAdvance | 4, cfaRestoreState}, want: "not remembered"},
		{name: "states",
			code: append([]byte{cfaAdvance | 4}, slices.Repeat([]byte{cfaRemember}, 100)...),
			want: "too many"},
		{name: "register", code: []byte{cfaAdvance | 4, cfaDefCFA, 0x80, 8, 8},
			want: "register 1024"},
		{name: "offset",
			code: []byte{cfaAdvance | 4, cfaDefCFAOffset, 0x80, 0x80, 0x80, 0x80, 0x40},
			want: "offset 17179869184"},
		{name: "saved", code: []byte{cfaAdvance | 4, cfaOffset | 6, 0x80, 0x80, 0x80, 0x80, 0x40},
			want: "register 6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &frames{class64: true, initial: x86}
			f.common(1, "zR", enc)
			f.function(enc, 0x401000, 0x100, c.code...)
			f.function(enc, 0x401100, 0x100)
			got, lost, err := rowTexts(t, f.section(), elf.EM_X86_64)
			var de *decode.Error
			if lost != 1 || !errors.As(err, &de) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("lost %d, %v; want %q", lost, err, c.want)
			}
			if len(got) < 3 || got[0] != "401000 r7+8, ra at cfa-8" ||
				!slices.Contains(got, "401100 r7+8, ra at cfa-8") || !slices.Contains(got, "401004 none") {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestCommonRules has a common entry that is damaged: its functions are lost.
func TestCommonRules(t *testing.T) {
	const enc = formatU8
	f := &frames{class64: true, initial: []byte{0x3f}}
	f.common(1, "zR", enc)
	f.function(enc, 0x401000, 0x100)
	f.function(enc, 0x401100, 0x100)
	f.initial = x86
	f.common(1, "zRS", enc)
	f.function(enc, 0x401200, 0x100)
	got, lost, err := rowTexts(t, f.section(), elf.EM_X86_64)
	if want := []string{"401200 r7+8, ra at cfa-8, signal", "401300 none"}; lost != 2 || err == nil ||
		!slices.Equal(got, want) {
		t.Errorf("%q, lost %d, %v; want %q", got, lost, err, want)
	}
}

// TestDebugFrame reads .debug_frame in both widths: absolute pointers, common entries by
// offset, no augmentation.
func TestDebugFrame(t *testing.T) {
	for _, long := range []bool{false, true} {
		f := &frames{class64: true, debug: true, long: long, initial: x86}
		f.common(4, "")
		f.function(formatPtr, 0x401000, 0x100, cfaAdvance|1, cfaDefCFAOffset, 16)
		f.common(3, "")
		f.function(formatPtr, 0x402000, 0x10)
		got, lost, err := rowTexts(t, f.section(), elf.EM_X86_64)
		want := []string{"401000 r7+8, ra at cfa-8", "401001 r7+16, ra at cfa-8", "401100 none",
			"402000 r7+8, ra at cfa-8", "402010 none"}
		if !slices.Equal(got, want) || lost > 0 || err != nil {
			t.Errorf("long %v: %q, lost %d, %v", long, got, lost, err)
		}
	}
}

// TestBudget: entries that make a long common entry be read again and again end the walk.
func TestBudget(t *testing.T) {
	const enc = formatU8
	f := &frames{class64: true, initial: append(slices.Repeat([]byte{cfaNop}, 1<<16), x86...)}
	var cies []int
	for range 2 {
		f.common(1, "zR", enc)
		cies = append(cies, f.cie)
	}
	for i := range 1000 {
		f.cie = cies[i%2]
		f.function(enc, uint64(0x401000+0x10*i), 0x10)
	}
	got, lost, err := rowTexts(t, f.section(), elf.EM_X86_64)
	if len(got) == 0 || lost == 0 || err == nil || !strings.Contains(err.Error(), "more often") {
		t.Errorf("%d rows, lost %d, %v", len(got), lost, err)
	}
}

// TestEHRulesTruncated cuts sections at every length.
func TestEHRulesTruncated(t *testing.T) {
	for _, debug := range []bool{false, true} {
		f := &frames{class64: true, initial: x86, debug: debug}
		aug, enc := "zR", byte(formatU8)
		if debug {
			aug, enc = "", formatPtr
		}
		f.common(1, aug, enc)
		f.function(enc, 0x401000, 0x100, cfaAdvance|1, cfaDefCFAExpr, 3, 0x76, 8, 6, cfaAdvance|4,
			cfaDefCFASF, 6, 0x7e)
		f.function(enc, 0x401100, 0x100, cfaAdvance|1, cfaDefCFAOffset, 16)
		s := f.section()
		b := s.Data
		for n := range b {
			s.Data = b[:n:n]
			if _, lost, err := rowTexts(t, s, elf.EM_X86_64); (lost > 0) != (err != nil) {
				t.Errorf("cut at %d: lost %d, %v", n, lost, err)
			}
		}
	}
}

func FuzzEHRules(f *testing.F) {
	fr := &frames{class64: true, initial: x86}
	fr.common(1, "zR", formatU8)
	fr.function(formatU8, 0x401000, 0x100, cfaAdvance|1, cfaDefCFAExpr, 3, 0x76, 8, 6, cfaRemember)
	f.Add(fr.b, false)
	f.Add(everything(true, false).b, false)
	f.Fuzz(func(t *testing.T, b []byte, debug bool) {
		s := (&frames{b: b, class64: true, debug: debug}).section()
		got, lost, err := rowTexts(t, s, elf.EM_X86_64)
		if (lost > 0) != (err != nil) || len(got) > 4*len(b)+1 {
			t.Errorf("%d rows of %d bytes, lost %d, %v", len(got), len(b), lost, err)
		}
	})
}

// BenchmarkRules makes the rules of unwinding of a section, without writing them.
func BenchmarkRules(b *testing.B) {
	sections, _ := system(b)
	s := sections[0]
	b.SetBytes(int64(len(s.Data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Rules(NewBuilder(ArchOf(elf.EM_X86_64))); err != nil {
			b.Fatal(err)
		}
	}
}
