package bpfobj

import (
	stdelf "debug/elf"
	"strings"

	"symbolize/ingest/decode"
)

// Relocations of EM_BPF (llvm/docs and Documentation/bpf/llvm_reloc.rst).
const (
	reloc6464 = 1  // R_BPF_64_64: an ld_imm64
	reloc6432 = 10 // R_BPF_64_32: a call
)

// maxRelocs bounds the bytes of one section of relocations.
const maxRelocs = 64 << 20

// The opcodes and registers that matter here (Documentation/bpf/standardization).
const (
	opLoadImm64 = 0x18 // BPF_LD | BPF_IMM | BPF_DW
	opCall      = 0x85 // BPF_JMP | BPF_CALL

	srcMapFD    = 1 // BPF_PSEUDO_MAP_FD, of an ld_imm64
	srcMapValue = 2 // BPF_PSEUDO_MAP_VALUE
	srcFunc     = 4 // BPF_PSEUDO_FUNC
	srcCall     = 1 // BPF_PSEUDO_CALL, of a call
	srcKfunc    = 2 // BPF_PSEUDO_KFUNC_CALL
)

// rel is a relocation of an instruction.
type rel struct {
	kind   uint32
	symbol uint32
}

// readRelocations reads the relocations of code, and their targets.
func (r *linker) readRelocations() {
	for i := range r.f.Sections {
		table := &r.f.Sections[i]
		s := r.sections[int(table.Info)]
		if table.Type != stdelf.SHT_REL || s == nil {
			continue
		}
		b, err := r.f.Data(table, maxRelocs)
		if err != nil {
			r.fail("section %s: %v", table.Name, err)
			continue
		}
		const size = 16 // of Elf64_Rel
		d := decode.New(r.f.Name, b, int64(table.Offset), r.f.BigEndian)
		for d.Left() >= size {
			offset, info := d.U64(), d.U64()
			x := rel{kind: uint32(info), symbol: uint32(info >> 32)}
			if offset%insnSize != 0 || offset >= uint64(len(s.code)) ||
				uint64(x.symbol) >= uint64(len(r.symbols)) {
				r.fail("section %s: relocation of symbol %d at %#x is outside", table.Name,
					x.symbol, offset)
				continue
			}
			s.relocs[uint32(offset)] = x
		}
	}
	for _, fn := range r.functions {
		r.resolve(fn)
	}
}

// resolve applies the relocations of a function to its code as a loader does, as far as
// they affect the tag, and lists the functions that it refers to.
func (r *linker) resolve(fn *function) {
	code := fn.section.code
	fn.Code = code[fn.start:fn.end:fn.end]
	for at := fn.start; at < fn.end; at += insnSize {
		insn := code[at : at+insnSize]
		x, relocated := fn.section.relocs[at]
		if relocated && r.symbols[x.symbol].Name != "" {
			if fn.Symbols == nil {
				fn.Symbols = make(map[int]string)
			}
			fn.Symbols[int(at-fn.start)/insnSize] = r.symbols[x.symbol].Name
		}
		switch insn[0] {
		case opLoadImm64:
			switch {
			case relocated && x.kind == reloc6464:
				r.loadImm64(fn, at, x)
			case r.source(insn) == srcFunc:
				r.refer(fn, at, fn.section, uint64(at/insnSize)+1+r.imm(insn))
			}
			if at+insnSize < fn.end {
				at += insnSize // the second half is no instruction
			}
		case opCall:
			switch {
			case relocated && x.kind == reloc6432:
				r.call(fn, at, x)
			case r.source(insn) == srcCall:
				r.refer(fn, at, fn.section, uint64(at/insnSize)+1+r.imm(insn))
			case r.source(insn) == srcKfunc:
				fn.Uncertain = uncertainKfunc
			}
		}
	}
}

// loadImm64 applies a relocation of an ld_imm64.
func (r *linker) loadImm64(fn *function, at uint32, x rel) {
	sym := &r.symbols[x.symbol]
	insn := fn.section.code[at : at+insnSize]
	target := r.sections[sym.Section]
	switch {
	case target != nil: // the address of a subprogram; a section's own symbol has value 0
		r.setSource(insn, srcFunc)
		offset := (sym.Value + r.imm(insn)) / insnSize
		r.refer(fn, at, target, offset)
	case sym.Section > 0 && isMaps(r.f.Sections[sym.Section].Name):
		r.setSource(insn, srcMapFD)
	case sym.Section > 0 || r.kconfig[sym.Name]:
		r.setSource(insn, srcMapValue)
	default:
		fn.Uncertain = uncertainSymbol
	}
}

// isMaps reports whether a section holds definitions of maps, all others variables.
func isMaps(name string) bool {
	return name == ".maps" || name == "maps" || strings.HasPrefix(name, "maps/")
}

// call applies a relocation of a call. Its immediate counts instructions from the symbol,
// and is one less, as in the instruction itself.
func (r *linker) call(fn *function, at uint32, x rel) {
	sym := &r.symbols[x.symbol]
	insn := fn.section.code[at : at+insnSize]
	target := r.sections[sym.Section]
	if target == nil {
		fn.Uncertain = uncertainKfunc
		return
	}
	r.setSource(insn, srcCall)
	r.refer(fn, at, target, sym.Value/insnSize+1+r.imm(insn))
}

// refer notes that an instruction refers to the function that holds instruction number
// insn of a section.
func (r *linker) refer(fn *function, at uint32, s *sectionData, insn uint64) {
	var target *function
	if insn < uint64(len(s.code)) {
		target = s.at(insn * insnSize)
	}
	if target == nil {
		r.fail("function %s: instruction %d refers to no function of section %s", fn.Name,
			(at-fn.start)/insnSize, s.name)
		fn.Uncertain = "a call of what is not there"
		return
	}
	r.calls = true
	fn.refs = append(fn.refs, ref{(at - fn.start) / insnSize, target})
}

// imm returns the immediate of an instruction, extended to 64 bits.
func (r *linker) imm(insn []byte) uint64 {
	return uint64(int64(int32(decode.U32(insn[4:], r.f.BigEndian))))
}

// source returns the source register of an instruction. struct bpf_insn has it in a bit
// field: the high half of its byte in little endian, the low one in big endian.
func (r *linker) source(insn []byte) byte {
	if r.f.BigEndian {
		return insn[1] & 0xf
	}
	return insn[1] >> 4
}

func (r *linker) setSource(insn []byte, src byte) {
	if r.f.BigEndian {
		insn[1] = insn[1]&0xf0 | src
	} else {
		insn[1] = insn[1]&0xf | src<<4
	}
}
