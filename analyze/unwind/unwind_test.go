package unwind

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/input"
	"symbolize/ingest/object/cfi"
	ingestelf "symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/unwindtab"
)

// The program of the tests: object 1, file offset 0x1000 at 0x401000, mapped at 0x555500001000;
// object 2 is a library without a table, at 0x7f0000000000; object 3 is code of a JIT, at
// 0x7e0000000000.
const (
	codeAt = 0x555500001000
	vaddr  = 0x401000
	libAt  = 0x7f0000000000
	jitAt  = 0x7e0000000000
	stack  = 0x7ffc00000000 // where copies begin
)

// function is a function of the program, by its offset in the code.
type function struct {
	start, size addr.Addr
	rules       []any // offset (int), cfi.Rule, …
}

func frameRule(reg uint8, off int32, saved ...cfi.Where) cfi.Rule {
	r := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: reg, Off: off},
		RA: cfi.Where{How: cfi.AtCFA, Off: -8}}
	copy(r.Saved[:], saved)
	return r
}

var savedFP = cfi.Where{How: cfi.AtCFA, Off: -16}

const rsp, rbp = 7, 6

// program are functions that tests use by their names' offsets.
var program = []function{
	{start: 0x000, size: 0x20, rules: []any{0, cfi.Rule{Kind: cfi.End}}}, // start
	{start: 0x100, size: 0x40,
		rules: []any{0, frameRule(rsp, 8), 1, frameRule(rsp, 16, savedFP), 4, frameRule(rbp, 16, savedFP)}}, // main
	{start: 0x200, size: 0x40, rules: []any{0, frameRule(rsp, 8), 4, frameRule(rsp, 0x28)}}, // leaf: 4 words
	{start: 0x300, size: 0x10, rules: []any{0, frameRule(10, 8)}},                           // CFA by r10
	{start: 0x500, size: 0x10, rules: []any{0, frameRule(rsp, 8)}},                          // noreturn call at the end
}

// signalRule is the rule of x86-64's restorer: all registers are in the ucontext at rsp.
func signalRule(b *cfi.Builder) cfi.Rule {
	at := func(off int32, deref bool) cfi.Where {
		code := binary.AppendUvarint([]byte{opBreg0 + rsp}, 0)[:1]
		code = append(code, byte(off&0x7f|0x80), byte(off>>7))
		how := cfi.AtExpr
		if deref {
			code, how = append(code, opDeref), cfi.Expr
		}
		n, _ := b.Expr(code)
		return cfi.Where{How: how, Off: n}
	}
	r := cfi.Rule{Kind: cfi.Frame, Signal: true, CFA: at(160, true), RA: at(168, false)}
	r.Saved[0] = at(120, false)
	return r
}

// newTables returns tables with the program's rules.
func newTables(t testing.TB, machine elf.Machine, funcs []function, signal bool,
	exprs ...[]byte) *Tables {
	t.Helper()
	b := cfi.NewBuilder(cfi.ArchOf(machine))
	for _, code := range exprs {
		b.Expr(code)
	}
	for _, f := range funcs {
		b.Func(addr.Range{Start: vaddr + f.start, End: vaddr + f.start + f.size})
		for i := 0; i < len(f.rules); i += 2 {
			r := f.rules[i+1].(cfi.Rule)
			b.Row(vaddr+f.start+addr.Addr(f.rules[i].(int)), &r)
		}
	}
	if signal {
		b.Func(addr.Range{Start: vaddr + 0x3ff, End: vaddr + 0x410})
		r := signalRule(b)
		b.Row(vaddr+0x3ff, &r)
	}
	return tablesOf(t, b)
}

// tablesOf returns tables with the rules of a builder for the program.
func tablesOf(t testing.TB, b *cfi.Builder) *Tables {
	t.Helper()
	o := store.NewOverlay()
	err := o.Merge(context.Background(), &store.Contribution{
		Manifest: store.Manifest{ID: id, Layout: []ingestelf.Segment{
			{Offset: 0x1000, Addr: vaddr, FileSize: 0x10000, MemSize: 0x10000, Flags: 5}}},
		Sources: []store.NewSource{{Info: store.SourceInfo{Kind: store.Unwind},
			Table: unwindtab.Encode(b)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return NewTables(o, nil, func(err error) { t.Error(err) })
}

var id = buildid.Make(buildid.GNU, []byte("0123456789abcdefghij"))

// objects are the objects of the mappings.
func objects() []ingest.Object {
	return []ingest.Object{{}, {Kind: ingest.ELF, ID: id, File: ingest.FileRef{Path: "/bin/program"}},
		{Kind: ingest.ELF, File: ingest.FileRef{Path: "/lib/other.so"}},
		{Kind: ingest.Anonymous, File: ingest.FileRef{Path: "//anon"}}}
}

func spaces() *addrspace.Map {
	b := addrspace.NewBuilder()
	b.Map(0, 7, addrspace.Mapping{Start: codeAt, End: codeAt + 0x10000, PgOff: 0x1000, Object: 1})
	b.Map(0, 7, addrspace.Mapping{Start: libAt, End: libAt + 0x1000, Object: 2})
	b.Map(0, 7, addrspace.Mapping{Start: jitAt, End: jitAt + 0x1000, Object: 3})
	return b.Build()
}

// x86Stack makes a copied stack of x86-64.
func x86Stack(rip, rbp, r10 uint64, words ...uint64) *input.CopiedStack {
	s := &input.CopiedStack{Arch: "x86_64", ABI: abi64, Mask: 0xff0fff, Spaces: spaces()}
	s.Version = s.Spaces.Process(7, 0).Version()
	regs := make([]uint64, 20)
	regs[6], regs[7], regs[8], regs[14] = rbp, stack, rip, r10
	for _, r := range regs {
		s.Regs = binary.LittleEndian.AppendUint64(s.Regs, r)
	}
	for _, w := range words {
		s.Memory = binary.LittleEndian.AppendUint64(s.Memory, w)
	}
	s.Asked = 8192
	return s
}

// text prints words by their offsets in the program.
func text(words []uint64) (out []string) {
	for _, w := range words {
		switch {
		case w == input.UserMarker:
			out = append(out, "exact")
		case w == input.UserGuess:
			out = append(out, "guess")
		case w >= codeAt && w < codeAt+0x10000:
			out = append(out, fmt.Sprintf("%x", w-codeAt))
		case w >= libAt && w < libAt+0x1000:
			out = append(out, fmt.Sprintf("lib+%x", w-libAt))
		case w >= jitAt && w < jitAt+0x1000:
			out = append(out, fmt.Sprintf("jit+%x", w-jitAt))
		default:
			out = append(out, fmt.Sprintf("%#x", w))
		}
	}
	return out
}

// slot is the address of a word of the copy.
func slot(n int) uint64 { return stack + 8*uint64(n) }

func TestUnwind(t *testing.T) {
	const code = codeAt
	ucontext := make([]uint64, 22) // words from rsp up: rbp at 120, rsp at 160, rip at 168
	ucontext[15], ucontext[20], ucontext[21] = slot(30), slot(24), code+0x204
	for _, c := range []struct {
		name  string
		stack *input.CopiedStack
		full  bool // the copy is as long as was asked for
		want  []string
		end   input.StackEnd
	}{
		{name: "leaf, main, start",
			stack: x86Stack(code+0x210, slot(6), 0, 1, 2, 3, 4, code+0x120, 99, 0, code+0x10),
			want:  []string{"210", "120", "10"}, end: input.StackComplete},
		{name: "in a prologue", stack: x86Stack(code+0x101, slot(6), 0, 77, code+0x10),
			want: []string{"101", "10"}, end: input.StackComplete},
		{name: "return address 0", stack: x86Stack(code+0x200, 0, 0, 0), want: []string{"200"},
			end: input.StackComplete},
		// The call is the last instruction of its function: 0x510 is the next one's.
		{name: "behind the end of a function",
			stack: x86Stack(code+0x200, 0, 0, code+0x510, code+0x10),
			want:  []string{"200", "510", "10"}, end: input.StackComplete},
		// rbp was popped already: its slot is below the stack pointer.
		{name: "popped frame pointer",
			stack: x86Stack(code+0x104, stack-16, 0, code+0x120, slot(5)), want: []string{"104"},
			end: input.StackElsewhere},
		{name: "by another register", stack: x86Stack(code+0x300, 0, slot(2), 1, 2, code+0x10),
			want: []string{"300", "10"}, end: input.StackComplete},
		{name: "that register is unknown in a caller",
			stack: x86Stack(code+0x200, 0, slot(3), code+0x305, 1, 2, code+0x10),
			want:  []string{"200", "305"}, end: input.StackBroken},
		{name: "truncated", stack: x86Stack(code+0x210, 0, 0, 1, 2, 3), full: true,
			want: []string{"210"}, end: input.StackTruncated},
		{name: "the mapping ended", stack: x86Stack(code+0x210, 0, 0, 1, 2, 3),
			want: []string{"210"},
			end:  input.StackElsewhere},
		{name: "far away", stack: x86Stack(code+0x104, stack+(1<<32), 0, 1, 2, 3), full: true,
			want: []string{"104"},
			end:  input.StackElsewhere},
		{name: "no code", stack: x86Stack(code+0x200, 0, 0, 0x1234), want: []string{"200"},
			end: input.StackBroken},
		{name: "not copied", stack: x86Stack(code+0x200, 0, 0), end: input.StackNotCopied},
		{name: "no table", stack: x86Stack(libAt+0x10, 0, 0, 1, code+0x120),
			want: []string{"lib+10"},
			end:  input.StackNoTable},
		{name: "no table, by frame pointer",
			stack: x86Stack(libAt+0x10, slot(1), 0, 1, slot(3), code+0x120, 0, code+0x10),
			want:  []string{"lib+10", "120", "10"}, end: input.StackComplete},
		{name: "JIT, by frame pointer",
			stack: x86Stack(jitAt+0x10, slot(0), 0, slot(2), jitAt+0x20, slot(4), code+0x120, 0, code+0x10),
			want:  []string{"jit+10", "jit+20", "120", "10"}, end: input.StackComplete},
		{name: "JIT without one", stack: x86Stack(jitAt+0x10, 5, 0, 1, 2),
			want: []string{"jit+10"}, end: input.StackBroken},
		{name: "the CFA does not grow",
			stack: x86Stack(code+0x104, slot(0), 0, slot(0), code+0x120, 1, 2),
			want:  []string{"104", "120"}, end: input.StackBroken},
		{name: "signal",
			stack: x86Stack(code+0x200, 0, 0, slices.Concat([]uint64{code + 0x400}, ucontext,
				[]uint64{0, 1, 2, 3, 4, code + 0x120, 0, code + 0x10})...),
			want: []string{"200", "400", "exact", "204", "120", "10"}, end: input.StackComplete},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.full {
				c.stack.Asked = len(c.stack.Memory)
			}
			switch c.name {
			case "signal": // the words shift by the return address in front
				put(c.stack.Memory, 1+20, slot(24))
				put(c.stack.Memory, 1+15, slot(29))
			}
			w := newTables(t, elf.EM_X86_64, program, true).For(objects()).Worker()
			for range 2 { // the second time from the cache
				words, end, guessed := w.Unwind(c.stack, nil)
				if got := text(words); !slices.Equal(got, c.want) || end != c.end || guessed {
					t.Errorf("%q, end %d, guessed %v; want %q, %d", got, end, guessed, c.want, c.end)
				}
			}
		})
	}
}

func put(mem []byte, word int, v uint64) { binary.LittleEndian.PutUint64(mem[8*word:], v) }

// TestARM64 has the return address of the leaf in the link register, and signed return
// addresses on the stack.
func TestARM64(t *testing.T) {
	const sp, fp = 31, 29
	plain := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: sp}}
	framed := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: sp, Off: 16},
		RA: cfi.Where{How: cfi.AtCFA, Off: -8}}
	framed.Saved[0] = cfi.Where{How: cfi.AtCFA, Off: -16}
	funcs := []function{{start: 0x100, size: 0x40, rules: []any{0, plain}}, {start: 0x200,
		size: 0x40, rules: []any{0, framed}},
		{start: 0x300, size: 0x40, rules: []any{0, plain}}}
	s := &input.CopiedStack{Arch: "aarch64", ABI: abi64, Mask: 1<<33 - 1, Spaces: spaces(), Asked: 8192}
	s.Version = s.Spaces.Process(7, 0).Version()
	for i := range 33 {
		v := uint64(i)
		switch i {
		case 30:
			v = codeAt + 0x210 | 0x2a<<48
		case 31:
			v = stack
		case 32:
			v = codeAt + 0x108
		}
		s.Regs = binary.LittleEndian.AppendUint64(s.Regs, v)
	}
	for _, w := range []uint64{0, codeAt + 0x308 | 0x55<<48, 0, 0} {
		s.Memory = binary.LittleEndian.AppendUint64(s.Memory, w)
	}
	w := newTables(t, elf.EM_AARCH64, funcs, false).For(objects()).Worker()
	for pc, want := range map[uint64]bool{codeAt + 0x108: true, codeAt + 0x208: false,
		codeAt + 0x900: false, 0x1000: false} {
		if got := w.InLinkRegister(s, pc); got != want {
			t.Errorf("the return address of %#x is in the link register: %v", pc, got)
		}
	}
	words, end, _ := w.Unwind(s, nil)
	if got := text(words); !slices.Equal(got, []string{"108", "210", "308"}) ||
		end != input.StackComplete {
		t.Errorf("%q, end %d", got, end)
	}
}

// TestI386 has words of four bytes.
func TestI386(t *testing.T) {
	r := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: 4, Off: 8},
		RA: cfi.Where{How: cfi.AtCFA, Off: -4}}
	funcs := []function{{start: 0x100, size: 0x40, rules: []any{0, r}}, {start: 0x200, size: 0x40,
		rules: []any{0, cfi.Rule{Kind: cfi.End}}}}
	b := addrspace.NewBuilder()
	b.Map(0, 7, addrspace.Mapping{Start: 0x8000000, End: 0x8010000, PgOff: 0x1000, Object: 1})
	s := &input.CopiedStack{Arch: "x86_64", ABI: abi32, Mask: 0xff0fff, Spaces: b.Build(), Asked: 8192}
	s.Version = s.Spaces.Process(7, 0).Version()
	for i := range 20 {
		s.Regs = binary.LittleEndian.AppendUint64(s.Regs, map[int]uint64{7: 0xffff0000, 8: 0x8000110}[i])
	}
	for _, w := range []uint32{1, 0x8000120, 2, 0x8000210} {
		s.Memory = binary.LittleEndian.AppendUint32(s.Memory, w)
	}
	words, end, _ := newTables(t, elf.EM_386, funcs, false).For(objects()).Worker().Unwind(s, nil)
	if !slices.Equal(words, []uint64{0x8000110, 0x8000120, 0x8000210}) || end != input.StackComplete {
		t.Errorf("%#x, end %d", words, end)
	}
}

// TestMemory loads more chunks than the limit allows: the oldest go, and come again.
func TestMemory(t *testing.T) {
	var funcs []function
	for i := range 3000 {
		f := function{start: addr.Addr(0x10 * i), size: 0x10}
		for k := range 8 {
			f.rules = append(f.rules, k, frameRule(rsp, int32(8+8*((i+k)%50))))
		}
		funcs = append(funcs, f)
	}
	tables := newTables(t, elf.EM_X86_64, funcs, false)
	u := tables.For(objects()).(*unwinder)
	tables.open(&u.objects[1])
	o := u.objects[1].tables[0]
	if len(o.chunks) < 2 {
		t.Fatalf("%d chunks", len(o.chunks))
	}
	tables.limit = 1
	for range 3 {
		for i := range funcs {
			r, ok := tables.rule(o, vaddr+funcs[i].start+3)
			if want := int32(8 + 8*((i+3)%50)); !ok || r.CFA.Off != want {
				t.Fatalf("function %d: %v, want CFA rsp+%d", i, r, want)
			}
			if len(tables.loaded) > 1 {
				t.Fatalf("%d chunks in memory", len(tables.loaded))
			}
		}
	}
}

// TestBounds: an endless stack ends.
func TestBounds(t *testing.T) {
	words := make([]uint64, 4*maxFrames)
	for i := range words {
		words[i] = codeAt + 0x505
	}
	s := x86Stack(codeAt+0x500, 0, 0, words...)
	got, end, _ := newTables(t, elf.EM_X86_64, program, false).For(objects()).Worker().Unwind(s, nil)
	if len(got) != maxFrames || end != input.StackBroken {
		t.Errorf("%d frames, end %d", len(got), end)
	}
}

// TestNMI: registers that the kernel did not know are none.
func TestNMI(t *testing.T) {
	s := x86Stack(codeAt+0x300, 0, ^uint64(0), 1, 2, codeAt+0x10)
	got, end, _ := newTables(t, elf.EM_X86_64, program, false).For(objects()).Worker().Unwind(s, nil)
	if len(got) != 1 || end != input.StackBroken {
		t.Errorf("%q, end %d", text(got), end)
	}
}

// FuzzUnwind has any dump, any registers, and any expressions.
func FuzzUnwind(f *testing.F) {
	f.Add(uint64(1), []byte{opBreg0 + rsp, 8}, []byte("memory"), uint64(0x210))
	f.Add(uint64(2), []byte{opLit0 + 3, opSkip, 0xfc, 0xff}, make([]byte, 256), uint64(0x300))
	f.Fuzz(func(t *testing.T, seed uint64, code, memory []byte, pc uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		var funcs []function
		for i := range 8 {
			rule := cfi.Rule{Kind: cfi.Kind(r.IntN(3)), Signal: r.IntN(4) == 0}
			for _, w := range []*cfi.Where{&rule.CFA, &rule.RA, &rule.Saved[0], &rule.Saved[3]} {
				*w = cfi.Where{How: cfi.How(r.IntN(int(cfi.Expr) + 1)), Reg: uint8(r.Uint32()), Off: int32(r.Uint64())}
				if w.How == cfi.AtExpr || w.How == cfi.Expr {
					w.Off = 0
				}
			}
			funcs = append(funcs, function{addr.Addr(0x100 * i), 0x100, []any{0, rule}})
		}
		s := x86Stack(codeAt+pc&0xfff, r.Uint64(), stack+r.Uint64N(64))
		s.Memory, s.Asked = memory, len(memory)
		if len(code) > 1000 {
			return
		}
		tables := newTables(t, elf.EM_X86_64, funcs, true, code)
		words, _, _ := tables.For(objects()).Worker().Unwind(s, nil)
		if len(words) > maxFrames+maxSignals+1 {
			t.Errorf("%d words", len(words))
		}
	})
}
