package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// stubsX86 finds stubs of x86-64, x32 and i386. They begin at multiples of 16 bytes, or of 8 in the
// .plt.got that ld makes without IBT, and are
//
//	[endbr64] [bnd] jmp *slot(%rip)    ff 25 disp32; also *slot on i386
//	[endbr32] jmp *slot(%ebx)          ff a3 disp32, counted from the GOT
//	endbr64; push $n; [bnd] jmp plt0   the lazy .plt of files whose calls go to .plt.sec
//	endbr64; mov $n, %r11d; jmp …      mold's, of i386 with %ecx
//	mov slot(%rip), %r11; …            lld's with -z retpolineplt, see retpolineX86
//
// The first entry of a lazy .plt pushes a GOT slot and so is none of these.
func stubsX86(f *File, code []byte, a, got uint64, section int) []stub {
	step := uint64(16)
	if f.implied || f.Sections[section].EntSize == 8 {
		step = 8
	}
	size := uint64(len(code))
	stubs := make([]stub, 0, size/32)
	for at := -a & (step - 1); at+8 <= size; at += step {
		s, ok := stubX86(f, code[at:], a+at, got)
		if !ok {
			continue
		}
		s.addr, s.section = a+at, section
		if s.end == 0 {
			s.end = s.addr + step
			if f.implied && string(code[at+6:at+8]) != "\x66\x90" {
				s.end = s.addr + 16
			}
		}
		s.end = min(s.end, a+size)
		if n := len(stubs); n > 0 {
			stubs[n-1].end = min(stubs[n-1].end, s.addr)
		}
		stubs = append(stubs, s)
	}
	return stubs
}

// stubX86 decodes one stub at address a. An end of 0 is that of the usual size.
func stubX86(f *File, b []byte, a, got uint64) (stub, bool) {
	const opJump, opPush, prefixBND = 0xff, 0x68, 0xf2
	if s, ok := retpolineX86(f, b, a, got); ok {
		return s, true
	}
	at := uint64(0)
	ibt := len(b) >= 4 && b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e &&
		(b[3] == 0xfa || b[3] == 0xfb)
	if ibt {
		at = 4
		number, size, ok := moldNumber(f, b[at:])
		if at += size; ok && f.Machine == elf.EM_386 && uint64(len(b)) > at && b[at] == opJump {
			return stub{index: number}, true // its %ebx may point to .got
		}
	}
	if uint64(len(b)) > at && b[at] == prefixBND {
		at++
	}
	if uint64(len(b)) < at+6 {
		return stub{}, false
	}
	disp := binary.LittleEndian.Uint32(b[at+2:])
	switch {
	case b[at] == opJump && b[at+1] == 0x25 && f.Machine == elf.EM_386:
		return stub{slot: uint64(disp), index: -1}, true
	case b[at] == opJump && b[at+1] == 0x25:
		return stub{slot: a + at + 6 + uint64(int64(int32(disp))), index: -1}, true
	case b[at] == opJump && b[at+1] == 0xa3 && f.Machine == elf.EM_386:
		return stub{slot: uint64(uint32(got) + disp), index: -1}, true
	case b[at] == opPush && ibt:
		n := int64(binary.LittleEndian.Uint32(b[at+1:]))
		if f.Machine == elf.EM_386 {
			n /= 8 // i386 pushes the offset of an Elf32_Rel
		}
		return stub{index: n}, true
	}
	return stub{}, false
}

// moldNumber decodes the instruction by which a stub of mold passes the number of its relocation,
// mov $n, %r11d, on i386 the offset of an Elf32_Rel, mov $n, %ecx (elf/arch-x86-64.cc and arch-i386.cc
// of mold). It returns the instruction's length, 0 if there is none.
func moldNumber(f *File, b []byte) (number int64, size uint64, ok bool) {
	switch {
	case f.Machine == elf.EM_X86_64 && len(b) > 6 && b[0] == 0x41 && b[1] == 0xbb:
		return int64(binary.LittleEndian.Uint32(b[2:])), 6, true
	case f.Machine == elf.EM_386 && len(b) > 5 && b[0] == 0xb9:
		return int64(binary.LittleEndian.Uint32(b[1:])) / 8, 5, true
	}
	return 0, 0, false
}

// Sizes of the stubs of lld with -z retpolineplt.
const retpolineLazy, retpolineNow = 32, 16

// retpolineX86 decodes a stub of lld with -z retpolineplt (ELF/Arch/X86_64.cpp and X86.cpp of lld):
//
//	mov slot(%rip), %r11; call or jmp   4c 8b 1d disp32 e8 or e9; lazy with call
//	push %eax; mov slot(%ebx), %eax     50 8b 83 disp32, counted from the GOT
//	push %eax; mov slot, %eax           50 a1 addr32
func retpolineX86(f *File, b []byte, a, got uint64) (stub, bool) {
	const opCall, opJump = 0xe8, 0xe9
	next := func(n int, ops ...byte) bool { return len(b) > n && bytes.IndexByte(ops, b[n]) >= 0 }
	word := func(n int) uint32 { return binary.LittleEndian.Uint32(b[n:]) }
	switch {
	case f.Machine == elf.EM_X86_64 && bytes.HasPrefix(b, []byte("\x4c\x8b\x1d")) && next(7, opCall, opJump):
		size := uint64(retpolineLazy)
		if b[7] == opJump {
			size = retpolineNow
		}
		return stub{slot: a + 7 + uint64(int64(int32(word(3)))), end: a + size, index: -1}, true
	case f.Machine == elf.EM_386 && bytes.HasPrefix(b, []byte("\x50\x8b\x83")) && next(7, opCall):
		return stub{slot: uint64(uint32(got) + word(3)), end: a + retpolineLazy, index: -1}, true
	case f.Machine == elf.EM_386 && bytes.HasPrefix(b, []byte("\x50\xa1")) && next(6, opCall):
		return stub{slot: uint64(word(2)), end: a + retpolineLazy, index: -1}, true
	}
	return stub{}, false
}

// stubsARM64 finds the stubs of arm64, 16 or 24 bytes each:
//
//	[bti c]; adrp x16, page; ldr x17, [x16, #off]; add …; [autia1716]; br x17
//
// In ILP32 files the load is of w17. The first entry pushes x16 before, and its slot has no
// relocation.
func stubsARM64(f *File, code []byte, a, _ uint64, section int) []stub {
	const (
		btiC     = 0xd503245f
		brX17    = 0xd61f0220
		longest  = 32
		slotSize = 8
	)
	var stubs []stub
	insn := func(i int) uint32 { return binary.LittleEndian.Uint32(code[i:]) }
	for i := 0; i+slotSize <= len(code); i += 4 {
		adrp, ldr := insn(i), insn(i+4)
		if adrp&0x9f00001f != 0x90000010 { // adrp x16
			continue
		}
		var off uint64
		switch imm := uint64(ldr >> 10 & 0xfff); ldr & 0xffc003ff {
		case 0xf9400211: // ldr x17, [x16, #8·imm]
			off = imm * 8
		case 0xb9400211: // ldr w17, [x16, #4·imm]
			off = imm * 4
		default:
			continue
		}
		start := i
		if i >= 4 && insn(i-4) == btiC {
			start = i - 4
		}
		// immhi:immlo, 21 bits, counts pages.
		pages := int64(int32((adrp>>5&0x7ffff)<<2|adrp>>29&3)<<11) >> 11
		slot := (a+uint64(i))&^0xfff + uint64(pages<<12) + off
		end := min(start+longest, len(code))
		for k := i; f.implied && k+4 <= end; k += 4 { // no section ends it
			if insn(k) == brX17 {
				end = k + 4
			}
		}
		stubs = appendStub(stubs, stub{addr: a + uint64(start), slot: slot, section: section,
			end: a + uint64(end)})
	}
	return stubs
}

// appendStub appends a stub that names its slot. The one before it ends there at the latest.
func appendStub(stubs []stub, s stub) []stub {
	if n := len(stubs); n > 0 {
		stubs[n-1].end = min(stubs[n-1].end, s.addr)
	}
	s.index = -1
	return append(stubs, s)
}

// stubsRISCV finds the stubs of RISC-V, 16 bytes each:
//
//	[lpad 0]; auipc t3, hi; l[wd] t3, lo(t3); jalr t1, t3; [nop]
//
// The first entry loads into another register than t3.
func stubsRISCV(f *File, code []byte, a, _ uint64, section int) []stub {
	const (
		lpad     = 0x00000017
		stubSize = 16
	)
	load := uint32(0xe3e03) // ld t3, (t3)
	if f.Class == elf.ELFCLASS32 {
		load = 0xe2e03 // lw
	}
	var stubs []stub
	insn := func(i int) uint32 { return binary.LittleEndian.Uint32(code[i:]) }
	for i := 0; i+12 <= len(code); i += 4 {
		auipc, ld, jalr := insn(i), insn(i+4), insn(i+8)
		// The jump may keep the return address in any register, or nowhere.
		if auipc&0xfff != 0xe17 || ld&0xfffff != load || jalr&0xfffff07f != 0x000e0067 {
			continue
		}
		start := i
		if i >= 4 && insn(i-4) == lpad {
			start = i - 4
		}
		slot := a + uint64(i) + uint64(int64(int32(auipc&^0xfff))) + uint64(int64(int32(ld)>>20))
		if f.Class == elf.ELFCLASS32 {
			slot = uint64(uint32(slot))
		}
		stubs = appendStub(stubs, stub{addr: a + uint64(start), slot: slot, section: section,
			end: a + uint64(min(start+stubSize, len(code)))})
	}
	return stubs
}

// stubsS390 finds the stubs of s390x, 32 bytes each, of which the second half is for lazy binding,
// and mold's, which pass the offset of their relocation in %r0:
//
//	larl %r1, slot; lg %r1, 0(%r1); [lgfi %r0, n;] br %r1; …
//
// The first entry copies between the two loads.
func stubsS390(f *File, code []byte, a, _ uint64, section int) []stub {
	const (
		larlR1   = "\xc0\x10"
		lgR1     = "\xe3\x10\x10\x00\x00\x04"
		lgfiR0   = "\xc0\x01"
		brR1     = "\x07\xf1"
		longInsn = 6 // bytes of larl, lg and lgfi
		stubSize = 32
	)
	var stubs []stub
	for i := 0; i+2*longInsn+len(brR1) <= len(code); i += 2 {
		if string(code[i:i+2]) != larlR1 || string(code[i+longInsn:i+2*longInsn]) != lgR1 {
			continue
		}
		rest := code[i+2*longInsn:]
		if bytes.HasPrefix(rest, []byte(lgfiR0)) && len(rest) > longInsn {
			rest = rest[longInsn:]
		}
		if !bytes.HasPrefix(rest, []byte(brR1)) {
			continue
		}
		halfwords := int64(int32(f.u32(code[i+2:])))
		stubs = appendStub(stubs, stub{addr: a + uint64(i), slot: a + uint64(i) + uint64(2*halfwords),
			section: section, end: a + uint64(min(i+stubSize, len(code)))})
	}
	return stubs
}
