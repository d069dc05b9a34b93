package unwind

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/input"
	"symbolize/ingest/object/cfi"
)

const vdsoAt = 0x7d0000 // of the tests of signal frames

// TestSignalFrames has a handler that was called by the kernel, with a frame as in struct
// rt_sigframe and struct sigframe_ia32 of arch/x86/include/asm/sigframe.h and
// arch/arm64/kernel/signal.c. The handler returns to a function of the program, which is known by
// its code alone, or to the vdso, of which nothing is known.
func TestSignalFrames(t *testing.T) {
	const code, handler, interrupted, fp, link = 0x8001000, 0x104, 0x204, 0x5e5e5e0, 0x8001010
	for _, c := range []struct {
		name     string
		machine  elf.Machine
		arch     string
		abi      uint64
		restorer string
		frame    map[int]uint64 // words, by bytes from the stack pointer at the restorer
		size     int
	}{
		{name: "x86-64", machine: elf.EM_X86_64, arch: "x86_64", abi: abi64,
			restorer: "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05",
			frame:    map[int]uint64{120: fp, 160: stack32 + 0x400, 168: code + interrupted},
			size:     0x3f8},
		{name: "i386, rt", machine: elf.EM_386, arch: "x86_64", abi: abi32,
			restorer: "\xb8\xad\x00\x00\x00\xcd\x80",
			frame: map[int]uint64{0: 14, 4: stack32 + 4 + 12, 8: stack32 + 4 + 140, 184: fp, 188: stack32 + 0x400,
				216: code + interrupted}, size: 0x3fc},
		{name: "i386", machine: elf.EM_386, arch: "x86_64", abi: abi32,
			restorer: "\x58\xb8\x77\x00\x00\x00\xcd\x80",
			frame:    map[int]uint64{0: 14, 28: fp, 32: stack32 + 0x400, 60: code + interrupted, 64: 0x23, 76: 0x2b},
			size:     0x3fc},
		{name: "arm64", machine: elf.EM_AARCH64, arch: "aarch64", abi: abi64,
			restorer: "\x68\x11\x80\xd2\x01\x00\x00\xd4",
			frame:    map[int]uint64{544: fp, 552: link, 560: stack32 + 0x400, 568: code + interrupted, 592: 0x46508001},
			size:     0x400},
	} {
		for _, inVDSO := range []bool{false, true} {
			if inVDSO && c.machine == elf.EM_X86_64 {
				continue // its restorer is the C library's
			}
			at := uint64(code + 0x300)
			if inVDSO {
				at = vdsoAt + 0x300
			}
			s := signalStack(c.machine, c.arch, c.abi, code+handler, at, c.frame, c.size, link)
			b := cfi.NewBuilder(cfi.ArchOf(c.machine))
			leaf := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: b.Arch.SP}}
			if !b.Arch.LinkRegister {
				leaf.CFA.Off, leaf.RA = int32(b.Arch.Word), cfi.Where{How: cfi.AtCFA, Off: -int32(b.Arch.Word)}
			}
			b.Func(addr.Range{Start: vaddr, End: vaddr + 0x20})
			b.Row(vaddr, &cfi.Rule{Kind: cfi.End})
			for _, start := range []addr.Addr{0x100, 0x200} {
				b.Func(addr.Range{Start: vaddr + start, End: vaddr + start + 0x40})
				b.Row(vaddr+start, &leaf)
			}
			b.Restorers(vaddr+0x2f0, append(make([]byte, 16), c.restorer...))
			objects := []ingest.Object{{}, {Kind: ingest.ELF, ID: id}, {Kind: ingest.VDSO}}
			words, end, _ := tablesOf(t, b).For(objects).Worker().Unwind(s, nil)
			want := []uint64{code + handler, at, input.UserMarker, code + interrupted, code + 0x10}
			if !slices.Equal(words, want) || end != input.StackComplete {
				t.Errorf("%s, vdso %v: %#x, end %d; want %#x", c.name, inVDSO, words, end, want)
			}
			if inVDSO {
				s = signalStack(c.machine, c.arch, c.abi, code+handler, at, nil, c.size, link)
				if words, end, _ := tablesOf(t, b).For(objects).Worker().Unwind(s, nil); end != input.StackNoTable {
					t.Errorf("%s, no frame: %#x, end %d", c.name, words, end)
				}
			}
		}
	}
}

const stack32 = 0x9000000

// signalStack is a stack with a handler's frame of one word at the stack pointer, the return
// address, or none on arm64, and the kernel's frame after it.
func signalStack(machine elf.Machine, arch string, abi, pc, ra uint64, frame map[int]uint64, size int,
	caller uint64) *input.CopiedStack {
	word := cfi.ArchOf(machine).Word
	s := &input.CopiedStack{Arch: arch, ABI: abi, Mask: 0xff0fff, Asked: 8192}
	sp := uint64(stack32)
	regs := map[int]uint64{7: sp, 8: pc}
	if machine == elf.EM_AARCH64 {
		s.Mask, regs = 1<<33-1, map[int]uint64{30: ra, 31: sp, 32: pc}
	} else {
		s.Memory = putWord(nil, word, ra)
	}
	for i := range 33 {
		if s.Mask>>i&1 != 0 {
			s.Regs = binary.LittleEndian.AppendUint64(s.Regs, regs[i])
		}
	}
	for off := 0; off < size; off += word {
		s.Memory = putWord(s.Memory, word, frame[off])
	}
	s.Memory = append(putWord(s.Memory, word, caller), make([]byte, 64)...)
	b := addrspace.NewBuilder()
	b.Map(0, 7, addrspace.Mapping{Start: 0x8001000, End: 0x8011000, PgOff: 0x1000, Object: 1})
	b.Map(0, 7, addrspace.Mapping{Start: vdsoAt, End: vdsoAt + 0x1000, Object: 2})
	s.Spaces = b.Build()
	s.Version = s.Spaces.Process(7, 0).Version()
	return s
}

func putWord(b []byte, word int, v uint64) []byte {
	return append(b, binary.LittleEndian.AppendUint64(nil, v)[:word]...)
}
