package bpfobj

import (
	stdelf "debug/elf"
	"encoding/binary"
	"fmt"

	"symbolize/fixtures/elfbuild"
)

// section declares a section of code of an object.
type section struct {
	name   string
	code   []byte
	funcs  []symbol // one over all of it if there are none
	relocs []elfbuild.Reloc
}

// symbol declares a function.
type symbol struct {
	name       string
	start, end uint64
}

func order(bigEndian bool) binary.AppendByteOrder {
	if bigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// object builds an object. The symbols 1, 2, … are the functions in their order.
func object(bigEndian bool, sections ...section) []byte {
	f := &elfbuild.File{BigEndian: bigEndian, Machine: stdelf.EM_BPF, Type: stdelf.ET_REL}
	for i, s := range sections {
		f.Sections = append(f.Sections, elfbuild.Section{Name: s.name, Data: s.code, Align: 8,
			Flags: stdelf.SHF_ALLOC | stdelf.SHF_EXECINSTR})
		if s.funcs == nil {
			s.funcs = []symbol{{name: fmt.Sprintf("f%d", i), start: 0, end: uint64(len(s.code))}}
		}
		for _, fn := range s.funcs {
			f.Symbols = append(f.Symbols, elfbuild.Symbol{Name: fn.name, Section: s.name,
				Value: fn.start, Size: fn.end - fn.start, Type: stdelf.STT_FUNC, Bind: stdelf.STB_GLOBAL})
		}
	}
	for i, s := range sections {
		if len(s.relocs) > 0 {
			f.Sections = append(f.Sections, elfbuild.Section{Name: ".rel" + s.name,
				Type: stdelf.SHT_REL, Link: ".symtab", Info: uint32(i + 1), EntSize: 16,
				Data: f.Rela(false, s.relocs...)})
		}
	}
	return f.Bytes()
}

// insn is an instruction in little endian.
func insn(op, dst, src byte, imm uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{op, src<<4 | dst, 0, 0}, imm)
}

// exit ends a program.
func exit() []byte { return insn(0x95, 0, 0, 0) }

// calls is the code of a function that calls, by relocations, n others.
func calls(n int) []byte {
	var b []byte
	for range n {
		b = append(b, insn(opCall, 0, srcCall, 0xffffffff)...)
	}
	return append(b, exit()...)
}
