package bpfobj

import "symbolize/ingest/decode"

// maxOwnTags bounds the tags of a subprogram that is called from many programs.
const maxOwnTags = 64

// The kernel's rewrites before it computes a function's own tag: only that kernel can
// compute it.
const (
	rewrittenHelper   = "calls of helpers"
	rewrittenFunc     = "addresses of functions"
	rewrittenDivision = "divisions"
	rewrittenPacket   = "loads from packets"
	rewrittenArena    = "addresses in arenas"
	rewrittenLoop     = "bounded loops"
)

// Opcodes that the kernel rewrites (do_misc_fixups in kernel/bpf/verifier.c).
const (
	classMask, classLoad          = 0x07, 0x00
	classALU, classALU64          = 0x04, 0x07
	modeMask, modeAbs, modeInd    = 0xe0, 0x20, 0x40
	operationMask, opDiv, opMod   = 0xf0, 0x30, 0x90
	fromRegister                  = 0x08
	opMove64, offAddrSpaceCast    = 0xbf, 1
	opMayGoto                     = 0xe5
	pseudoCallImm, maxSubprograms = 1, 256
)

// rewritten returns the kernel's rewrites in the code of a function, "" if the function's
// tag is one of the unchanged instructions. Dead code, and accesses to contexts that are no
// memory, are rewritten too: that cannot be detected here.
func (r *linker) rewritten(code []byte) string {
	for at := 0; at+insnSize <= len(code); at += insnSize {
		insn := code[at : at+insnSize]
		op, class := insn[0], insn[0]&classMask
		switch {
		case op == opLoadImm64:
			if r.source(insn) == srcFunc {
				return rewrittenFunc
			}
			at += insnSize // the second half is no instruction
		case op == opCall && r.source(insn) == srcKfunc:
			return uncertainKfunc
		case op == opCall && r.source(insn) != srcCall:
			return rewrittenHelper
		case class == classLoad && (op&modeMask == modeAbs || op&modeMask == modeInd):
			return rewrittenPacket
		case op == opMove64 && r.offset(insn) == offAddrSpaceCast:
			return rewrittenArena
		case op == opMayGoto:
			return rewrittenLoop
		case class == classALU || class == classALU64:
			operation := op & operationMask
			byMinusOne := r.offset(insn) == 1 && int32(r.imm(insn)) == -1
			if (operation == opDiv || operation == opMod) && (op&fromRegister != 0 || byMinusOne) {
				return rewrittenDivision
			}
		}
	}
	return ""
}

// offset returns the offset field of an instruction.
func (r *linker) offset(insn []byte) uint16 { return decode.U16(insn[2:], r.f.BigEndian) }

// ownTags adds the tags that the kernel gives each function of a program by itself (jit_subprogs in
// kernel/bpf/verifier.c). insns are the program's, list its functions in their order: by then a
// call has the number of its callee as its offset, and the immediate 1.
func (r *linker) ownTags(insns []byte, list []*function) {
	if len(list) < 2 || len(list) > maxSubprograms {
		return // the kernel loads no more, and one function's tag is its program's
	}
	order := decode.OrderOf(r.f.BigEndian)
	number := make(map[*function]uint16, len(list))
	for i, fn := range list {
		number[fn] = uint16(i)
	}
	for _, fn := range list {
		code := insns[:fn.Length]
		insns = insns[fn.Length:]
		if len(fn.OwnTags) >= maxOwnTags || len(fn.refs) == 0 && fn.OwnTags != nil {
			continue // a function without calls has the same tag in every program
		}
		if fn.Rewritten = r.rewritten(code); fn.Rewritten != "" {
			continue
		}
		for _, x := range fn.refs {
			call := code[x.insn*insnSize:][:insnSize]
			order.PutUint16(call[2:], number[x.target])
			order.PutUint32(call[4:], pseudoCallImm)
		}
		fn.OwnTags = fn.addTags(fn.OwnTags, code)
	}
}
