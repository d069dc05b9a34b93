package unwind

import (
	"encoding/binary"

	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/input"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/cfi"
)

// Bounds of a chain, and of its work: steps of expressions. Real rules with an expression have
// fewer than 12 steps and occur eight times a frame at most.
const (
	maxFrames  = 1024
	maxSignals = 16
	maxChanges = 16 // of stacks downwards: a copy has as many segments of 4 KiB
	maxWork    = 1 << 16
)

// maxStack is how far above the copy a frame of the same stack may be: the usual limit of a
// thread's stack is 8 MiB, and 64 MiB allows for larger ones.
const maxStack = 64 << 20

// cacheBits is log2 of the number of rules that a worker caches.
const cacheBits = 14

// kind is the kind of code at an address.
type kind uint8

const (
	unknown   kind = iota
	unmapped       // no mapping of code
	generated      // code without a file: of a JIT
	noTable        // the object has no table
	noImage        // nor has the vdso
	noRule         // its table has no rule
	ruled
)

// found is the answer for an address in a version of an address space.
type found struct {
	at      addr.PC
	version addrspace.Version
	kind    kind
	rule    *cfi.Rule
	exprs   [][]byte
}

// stackUnwinder unwinds the stacks of one goroutine.
type stackUnwinder struct {
	u     *unwinder
	cache []found // direct-mapped

	// Of the present stack.
	arch   *machine.Arch
	mask   uint64 // of a word
	sp     uint64 // where mem begins
	mem    []byte
	full   bool // mem has the requested length
	missed bool
	miss   uint64 // the address outside mem that was read
	stack  *input.CopiedStack

	guessed bool // a step by frame pointer is not proven
	changes int  // of stacks downwards
	work    int  // steps of expressions
}

// frame is a function activation.
type frame struct {
	w     *stackUnwinder
	regs  [numRegs]uint64
	valid uint64 // bits of the registers that are known
	pc    uint64
	exact bool // pc is no return address
	guess bool // its callees may be others: see byFramePointer
}

// Unwind implements input.StackUnwinder.
func (w *stackUnwinder) Unwind(s *input.CopiedStack, words []uint64) ([]uint64, input.StackEnd, bool) {
	f := frame{w: w, exact: true}
	w.stack, w.mem, w.missed, w.guessed, w.changes, w.work = s, s.Memory, false, false, 0, 0
	w.full = len(s.Memory) >= s.Asked
	if len(s.Memory) == 0 {
		return words, input.StackNotCopied, false
	}
	if !f.start(s) {
		return words, input.StackBroken, false
	}
	w.sp = f.regs[w.arch.SP]
	words, end := w.chain(&f, append(words, f.pc))
	return words, end, w.guessed
}

// InLinkRegister implements input.StackUnwinder.
func (w *stackUnwinder) InLinkRegister(s *input.CopiedStack, pc uint64) bool {
	arch := archOf(s)
	if arch == nil || !arch.LinkRegister {
		return false
	}
	w.stack = s
	at := w.find(pc, true)
	return at.kind == ruled && at.rule.Kind == cfi.Frame && at.rule.RA.How == cfi.Same
}

// chain appends the callers of the first frame.
func (w *stackUnwinder) chain(f *frame, words []uint64) ([]uint64, input.StackEnd) {
	at := w.find(f.pc, true)
	marked := false // the present run of frames without rules
	for n, signals := 1, 0; n < maxFrames; n++ {
		marked = marked && at.kind != ruled
		interrupted := f.exact
		end, ok := f.step(&at)
		if !ok {
			return words, end
		}
		if f.exact {
			if signals++; signals > maxSignals {
				break
			}
		}
		exact, kind := f.exact, at.kind
		if at = w.find(f.pc, exact); at.kind == unmapped {
			return words, input.StackBroken
		}
		if f.guess {
			w.guessed = true
			// JITs keep frame pointers or the chain breaks soon: a frame for each of their
			// stacks would cut one function in two.
			if !marked && (kind != generated || interrupted) {
				words = append(words, input.UserGuess)
				marked = true
			}
		}
		if exact {
			words = append(words, input.UserMarker)
		}
		words = append(words, f.pc)
	}
	return words, input.StackBroken
}

// step goes to the caller; if that is impossible it returns the reason.
func (f *frame) step(at *found) (end input.StackEnd, ok bool) {
	w := f.w
	switch {
	case at.kind == ruled && at.rule.Kind == cfi.End:
		return input.StackComplete, false
	case at.kind == ruled:
		ok = f.byRule(at)
	case at.kind == noImage && f.bySignalFrame():
		ok = true
	default:
		// Where a table would have the rule nothing is guessed.
		lacking := at.kind == noTable || at.kind == noImage
		if ok = f.byFramePointer(!lacking); !ok && lacking {
			return input.StackNoTable, false
		}
	}
	switch {
	case !ok && w.missed:
		return w.outside(), false
	case !ok:
		return input.StackBroken, false
	case f.pc == 0:
		return input.StackComplete, false
	}
	return 0, true
}

// byRule goes to the caller by a rule.
func (f *frame) byRule(at *found) bool {
	w, r := f.w, at.rule
	f.w.missed = false
	if r.RA.How == cfi.Same && !(w.arch.LinkRegister && f.exact) {
		f.pc = 0 // with the link register that a callee left: the end
		return w.arch.LinkRegister
	}
	cfa, ok := f.cfa(&r.CFA, at.exprs)
	if !ok {
		return false
	}
	if !f.exact && !r.Signal && cfa <= f.regs[w.arch.SP] && !w.changesStack(r, cfa) {
		w.missed, w.miss = cfa < w.sp, cfa // another stack, or none
		return false
	}
	ra, ok := f.value(&r.RA, w.arch.PC, cfa, at.exprs)
	if !ok {
		return false
	}
	next := frame{w: w, pc: w.codeAddress(ra), exact: r.Signal}
	next.set(w.arch.SP, cfa)
	for i, reg := range w.arch.Saved {
		place := &r.Saved[i]
		if f.exact && !r.Signal && place.How == cfi.AtCFA {
			// Popped already: memory has rubbish there now, the register has its value.
			if slot := cfa + uint64(int64(place.Off)); slot < f.regs[w.arch.SP] || slot >= cfa {
				place = &cfi.Where{}
			}
		}
		if v, ok := f.value(place, reg, cfa, at.exprs); ok {
			next.set(reg, v)
		}
	}
	if r.Signal {
		next.fromSignal(f.regs[w.arch.SP])
	}
	switch {
	case !w.arch.LinkRegister:
		next.set(w.arch.PC, next.pc) // the rule of PLT stubs depends on it
	case !r.Signal:
		next.valid &^= 1 << w.arch.PC
	}
	w.missed = false // by a register that may not be needed
	*f = next
	return true
}

// changesStack reports whether a rule belongs to gcc's __morestack (-fsplit-stack), and the copy
// contains the caller's stack, which may be below: __morestack is called after its caller's return
// address was pushed, and pushes the frame pointer.
func (w *stackUnwinder) changesStack(r *cfi.Rule, cfa uint64) bool {
	word := int32(w.arch.Word)
	saved, copied := cfi.Where{How: cfi.AtCFA, Off: -3 * word}, uint64(len(w.mem))
	w.changes++
	return w.changes <= maxChanges && r.CFA == cfi.Where{How: cfi.Register, Reg: w.arch.FP, Off: 3 * word} && r.Saved[0] == saved &&
		r.RA == cfi.Where{How: cfi.AtCFA, Off: -word} && cfa-w.sp >= uint64(3*word) && cfa-w.sp <= copied
}

// set sets a register.
func (f *frame) set(reg uint8, v uint64) {
	f.regs[reg] = v & f.w.mask
	f.valid |= 1 << reg
}

// cfa computes the caller's stack pointer.
func (f *frame) cfa(p *cfi.Where, exprs [][]byte) (uint64, bool) {
	switch p.How {
	case cfi.Register:
		if p.Reg >= numRegs || f.valid>>p.Reg&1 == 0 {
			return 0, false
		}
		return (f.regs[p.Reg] + uint64(int64(p.Off))) & f.w.mask, true
	case cfi.Expr:
		return f.eval(exprs[p.Off], false, 0)
	}
	return 0, false
}

// value computes the caller's value of a register.
func (f *frame) value(p *cfi.Where, reg uint8, cfa uint64, exprs [][]byte) (uint64, bool) {
	w := f.w
	switch p.How {
	case cfi.Same:
		return f.regs[reg], f.valid>>reg&1 != 0
	case cfi.AtCFA:
		return w.read(cfa+uint64(int64(p.Off)), w.arch.Word)
	case cfi.CFAPlus:
		return cfa + uint64(int64(p.Off)), true
	case cfi.Register:
		if p.Reg >= numRegs {
			return 0, false
		}
		return f.regs[p.Reg] + uint64(int64(p.Off)), f.valid>>p.Reg&1 != 0
	case cfi.AtExpr:
		if a, ok := f.eval(exprs[p.Off], true, cfa); ok {
			return w.read(a, w.arch.Word)
		}
	case cfi.Expr:
		return f.eval(exprs[p.Off], true, cfa)
	}
	return 0, false
}

// read returns the n bytes at an address of the copied memory.
func (w *stackUnwinder) read(a uint64, n int) (uint64, bool) {
	a &= w.mask
	off := a - w.sp
	if a < w.sp || off > uint64(len(w.mem)) || uint64(len(w.mem))-off < uint64(n) {
		w.missed, w.miss = true, a
		return 0, false
	}
	if n == 8 {
		return binary.LittleEndian.Uint64(w.mem[off:]), true
	}
	var b [8]byte
	copy(b[:], w.mem[off:off+uint64(n)])
	return binary.LittleEndian.Uint64(b[:]), true
}

// outside returns the end of a stack with the next address outside the copied memory.
func (w *stackUnwinder) outside() input.StackEnd {
	end := w.sp + uint64(len(w.mem))
	if w.full && w.miss+8 > end && w.miss-w.sp < maxStack {
		return input.StackTruncated
	}
	return input.StackElsewhere
}

// find returns the facts of the code at an address, or before a return address.
func (w *stackUnwinder) find(pc uint64, exact bool) found {
	at := addr.Site(addr.PC(pc), !exact)
	v := w.stack.Version
	h := (uint64(at) ^ uint64(v)<<40 ^ uint64(v)>>24) * 0x9e3779b97f4a7c15
	f := &w.cache[h>>(64-cacheBits)]
	if f.kind == unknown || f.at != at || f.version != v {
		*f = w.u.lookUp(w.stack.Spaces, v, at)
	}
	return *f
}
