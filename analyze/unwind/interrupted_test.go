package unwind

import (
	"debug/elf"
	"slices"
	"testing"

	"symbolize/ingest/input"
	"symbolize/ingest/object/cfi"
)

// TestInterrupted has a signal that came while a function ran in which the way to its caller
// depends on registers that functions need not keep: they are in the kernel's frame.
func TestInterrupted(t *testing.T) {
	const code, rdi = codeAt, 5
	// A stub of the PLT has pushed a word from its byte 11 on: CFA = rsp + 8 + (rip & 15 >= 11) << 3.
	stub := []byte{opBreg0 + rsp, 8, opBreg0 + 16, 0, opLit0 + 15, opAnd, opLit0 + 11, opGe, opLit0 + 3,
		opShl, opPlus}
	plt := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Expr}, RA: cfi.Where{How: cfi.AtCFA, Off: -8}}
	vfork := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: rsp},
		RA: cfi.Where{How: cfi.Register, Reg: rdi}}
	for _, c := range []struct {
		name string
		at   uint64 // of the interrupted instruction
		rule cfi.Rule
		rdi  uint64
		sp   []uint64 // words at the interrupted stack pointer
	}{
		{name: "first byte of a stub", at: 0x600, rule: plt, sp: []uint64{code + 0x10}},
		{name: "stub that has pushed", at: 0x60b, rule: plt, sp: []uint64{1, code + 0x10}},
		{name: "vfork", at: 0x608, rule: vfork, rdi: code + 0x10, sp: []uint64{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ucontext := make([]uint64, 22) // rdi at 104, rsp at 160, rip at 168
			ucontext[13], ucontext[20], ucontext[21] = c.rdi, slot(24), code+c.at
			words := slices.Concat([]uint64{code + 0x400}, ucontext, []uint64{0}, c.sp)
			funcs := append(slices.Clone(program), function{start: 0x600, size: 0x10, rules: []any{0, c.rule}})
			w := newTables(t, elf.EM_X86_64, funcs, true, stub).For(objects()).Worker()
			got, end, guessed := w.Unwind(x86Stack(code+0x200, 0, 0, words...), nil)
			want := []uint64{code + 0x200, code + 0x400, input.UserMarker, code + c.at, code + 0x10}
			if !slices.Equal(got, want) || end != input.StackComplete || guessed {
				t.Errorf("%q, end %d, guessed %v; want %q", text(got), end, guessed, text(want))
			}
		})
	}
}

// TestSplitStack: where gcc's __morestack has changed stacks, the caller's is read in the copy, also
// below, and nothing is read outside it.
func TestSplitStack(t *testing.T) {
	const code = codeAt
	morestack := frameRule(rbp, 24, cfi.Where{How: cfi.AtCFA, Off: -24})
	ordinary := frameRule(rbp, 24, savedFP)
	for _, c := range []struct {
		name string
		rule cfi.Rule
		fp   uint64
		want []uint64
		end  input.StackEnd
	}{
		{name: "above", rule: morestack, fp: slot(9), want: []uint64{code + 0x10}, end: input.StackComplete},
		{name: "below", rule: morestack, fp: slot(1), want: []uint64{code + 0x120, code + 0x10},
			end: input.StackComplete},
		{name: "outside", rule: morestack, fp: slot(-9), end: input.StackElsewhere},
		{name: "of an ordinary function", rule: ordinary, fp: slot(1), end: input.StackBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			funcs := append(slices.Clone(program), function{start: 0x600, size: 0x10, rules: []any{0, c.rule}},
				function{start: 0x700, size: 0x10, rules: []any{0, frameRule(rsp, 8*7)}})
			words := make([]uint64, 16)
			words[1], words[2], words[3] = slot(4), code+0x250, code+0x120 // the caller's frame, below
			words[4], words[5] = 0, code+0x10
			words[6] = code + 0x605 // the return address of the innermost function
			words[9], words[10], words[11] = 0, code+0x250, code+0x10
			w := newTables(t, elf.EM_X86_64, funcs, false).For(objects()).Worker()
			got, end, _ := w.Unwind(x86Stack(code+0x700, c.fp, 0, words...), nil)
			want := append([]uint64{code + 0x700, code + 0x605}, c.want...)
			if !slices.Equal(got, want) || end != c.end {
				t.Errorf("%q, end %d; want %q, %d", text(got), end, text(want), c.end)
			}
		})
	}
}

// TestBoundedWork: what a stack and rules that were made for it cost is bounded: steps of
// expressions, and changes of the stack that lead to the same frames again and again.
func TestBoundedWork(t *testing.T) {
	const code = codeAt
	// The caller's stack pointer after many steps: rsp + 16, and 60 times "+ 0".
	loop := []byte{opBreg0 + rsp, 16}
	for range 60 {
		loop = append(loop, opLit0, opPlus, opNop, opNop)
	}
	slow := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Expr}, RA: cfi.Where{How: cfi.AtCFA, Off: -8}}
	for i := range slow.Saved {
		slow.Saved[i] = cfi.Where{How: cfi.Expr}
	}
	morestack := frameRule(rbp, 24, cfi.Where{How: cfi.AtCFA, Off: -24})
	up := frameRule(rsp, 8*6, cfi.Where{How: cfi.CFAPlus, Off: -8 * 9})
	words := make([]uint64, 4096)
	for i := 1; i < len(words); i += 2 {
		words[i] = code + 0x605
	}
	circle := make([]uint64, 32)
	circle[2], circle[8] = code+0x705, code+0x605
	for _, c := range []struct {
		name   string
		rules  []function
		words  []uint64
		frames int // at most
	}{
		{name: "expressions", rules: []function{{start: 0x600, size: 0x10, rules: []any{0, slow}}}, words: words,
			frames: maxWork / 60},
		{name: "changes of the stack", words: circle, frames: 4*maxChanges + 4,
			rules: []function{{start: 0x600, size: 0x10, rules: []any{0, morestack}},
				{start: 0x700, size: 0x10, rules: []any{0, up}}}},
	} {
		w := newTables(t, elf.EM_X86_64, append(slices.Clone(program), c.rules...), false, loop).
			For(objects()).Worker().(*stackUnwinder)
		got, end, _ := w.Unwind(x86Stack(code+0x600, slot(0), 0, c.words...), nil)
		if len(got) > c.frames || end == input.StackComplete || w.work > maxWork+16 || w.changes > maxChanges+1 {
			t.Errorf("%s: %d frames, end %d, %d steps, %d changes", c.name, len(got), end, w.work, w.changes)
		}
	}
}
