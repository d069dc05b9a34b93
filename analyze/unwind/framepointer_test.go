package unwind

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"symbolize/ingest/input"
)

// TestFramePointer steps over code without rules: proven, guessed and refuted steps.
func TestFramePointer(t *testing.T) {
	const code = codeAt
	for _, c := range []struct {
		name    string
		stack   *input.CopiedStack
		want    []string
		end     input.StackEnd
		guessed bool
	}{
		// A function without a frame pointer, called by lib+20: its own step would leave out
		// lib+20, which owns the frame of the register.
		{name: "no table, a caller below the frame", stack: x86Stack(libAt+0x10, slot(3), 0, 1, libAt+0x20, 0, slot(5),
			code+0x120, 0, code+0x10), want: []string{"lib+10"}, end: input.StackNoTable},
		{name: "JIT, a caller below the leaf's frame", stack: x86Stack(jitAt+0x10, slot(3), 0, 1, jitAt+0x20, 0, slot(6),
			jitAt+0x30, 0, slot(8), code+0x120, 0, code+0x10),
			want: []string{"jit+10", "guess", "jit+30", "120", "10"}, end: input.StackComplete, guessed: true},
		{name: "JIT, a word of code in a caller's frame", stack: x86Stack(jitAt+0x10, slot(0), 0, slot(3), jitAt+0x20,
			jitAt+0x30, slot(5), code+0x120, 0, code+0x10),
			want: []string{"jit+10", "jit+20", "120", "10"}, end: input.StackComplete, guessed: true},
		{name: "no rules, words of code in each frame", stack: x86Stack(code+0x710, slot(1), 0, code+0x720, slot(4),
			code+0x730, code+0x720, slot(7), code+0x740, 0, slot(9), code+0x120, 0, code+0x10),
			want: []string{"710", "guess", "730", "740", "120", "10"}, end: input.StackComplete, guessed: true},
		// The register points to two words of data. 0x205 has its caller 6 words above.
		{name: "no frame, by its caller", stack: x86Stack(jitAt+0x10, slot(1), 0, 0, 5, code+0x205, 1, 2, 3, 4, 5, 6),
			want: []string{"jit+10"}, end: input.StackBroken},
		{name: "no frame, as it has no caller", stack: x86Stack(jitAt+0x10, slot(1), 0, 0, 0, 0, 5),
			want: []string{"jit+10"}, end: input.StackBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTables(t, elf.EM_X86_64, program, true).For(objects()).Worker()
			words, end, guessed := w.Unwind(c.stack, nil)
			if got := text(words); !slices.Equal(got, c.want) || end != c.end || guessed != c.guessed {
				t.Errorf("%q, end %d, guessed %v; want %q, %d, %v", got, end, guessed, c.want, c.end, c.guessed)
			}
		})
	}
}

// TestLoongArch64 steps by frame pointers, which is all that is known of the machine's stacks: the
// record is below the address in the register.
func TestLoongArch64(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   uint64
		locals uint64
		want   []string
		end    input.StackEnd
	}{
		{name: "no table", code: libAt, want: []string{"lib+10", "lib+20", "lib+30"},
			end: input.StackNoTable},
		{name: "an address below the record", code: libAt, locals: libAt + 0x20,
			want: []string{"lib+10"}, end: input.StackNoTable},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &input.CopiedStack{Arch: "loongarch64", ABI: abi64, Mask: 1<<32 - 1, Spaces: spaces()}
			s.Version = s.Spaces.Process(7, 0).Version()
			regs := [32]uint64{0: c.code + 0x10, 1: c.code + 0x20, 3: stack, 22: slot(4)}
			for _, v := range regs {
				s.Regs = binary.LittleEndian.AppendUint64(s.Regs, v)
			}
			for _, v := range []uint64{1, c.locals, slot(7), c.code + 0x20, 2, slot(12), c.code + 0x30} {
				s.Memory = binary.LittleEndian.AppendUint64(s.Memory, v)
			}
			w := newTables(t, elf.EM_X86_64, program, false).For(objects()).Worker()
			words, end, _ := w.Unwind(s, nil)
			if got := text(words); !slices.Equal(got, c.want) || end != c.end {
				t.Errorf("%q, end %d; want %q, %d", got, end, c.want, c.end)
			}
		})
	}
}
