package flow

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
)

// Reason is why the type that an instruction accesses is not known.
type Reason uint8

// The reasons. Their numbers are stored.
const (
	Known       Reason = iota
	NoMemory           // no memory operand
	StackOp            // a push, pop, call or return
	Spill              // a stack slot without a variable
	Weak               // evidence is weak: an index of unknown stride, a cast, members that do not fit
	Untracked          // the address comes from where values are not followed
	NoType             // a pointer to void or to a type that is declared only
	NoVariable         // a fixed address without a variable
	Implicit           // a string instruction
	Undecoded          // no instruction, or one that is not known
	NoDebugInfo        // no function of debug information has the instruction
	TooLarge           // the function is beyond the bounds of the analysis
	Canary             // the value that compilers compare against overflows of the stack
	Refuted            // the recorded address is of other data: not of tables
	numReasons
)

var reasonTexts = [numReasons]string{
	Known: "", NoMemory: "no memory operand", StackOp: "stack operation", Spill: "spill slot",
	Weak: "weak evidence", Untracked: "address not followed", NoType: "pointer without a type",
	NoVariable: "address without a variable", Implicit: "string instruction", Undecoded: "unknown instruction",
	NoDebugInfo: "no debug information", TooLarge: "function too large", Canary: "stack canary",
	Refuted: "refuted by the address",
}

// String returns the reason as it is printed; "" for Known.
func (r Reason) String() string {
	if r < numReasons {
		return reasonTexts[r]
	}
	return "unknown reason"
}

// Access is what an instruction reads or writes in memory.
type Access struct {
	At addr.Addr
	// Reason is set if the rest is not known.
	Reason Reason
	// Sure is set if no weaker evidence was used (confidence 3 of 3); else it is likely (2).
	Sure   bool
	Write  bool
	Fixed  bool  // a variable with Global.Fixed is accessed by its address
	Pair   bool  // two accesses of half the size, one behind the other
	Size   uint8 // bytes; 0 if only the address is known
	Type   btf.ID
	Offset int64 // in the type, bytes; of elements of arrays that in the first one
}

// candidate is an Access with the evidence: 3 sure, 2 likely, 1 weak.
type candidate struct {
	Access
	confidence int
}

// collect adds the access of an instruction. A conditional jump right behind a comparison of memory
// executes with it as one, and holds its samples.
func (f *function) collect(s *state, i int, first bool) {
	x := &f.insns[i]
	a := Access{At: x.at}
	switch {
	case x.text:
		a.Reason = Implicit
	case x.vague:
		a.Reason = Undecoded
	case x.access == 0 && x.stack:
		a.Reason = StackOp
	case x.access == 0:
		if n := len(f.found); x.jump == branch && !first && f.insns[i-1].reads && n > 0 &&
			f.found[n-1].At == f.insns[i-1].at {
			a = f.found[n-1]
			a.At = x.at
			break
		}
		return
	default:
		a = f.accessOf(s, x)
	}
	f.found = append(f.found, a)
}

// accessOf returns what an instruction accesses.
func (f *function) accessOf(s *state, x *insn) Access {
	if x.pair {
		return f.pairOf(s, x)
	}
	c := f.answer(s, x)
	if c.Reason == Known && c.confidence < 2 {
		c.Access = Access{Reason: Weak}
	}
	a := c.Access
	a.At, a.Sure = x.at, c.Reason == Known && c.confidence == 3
	a.Size, a.Write = x.access, x.writes
	return a
}

// pairOf returns what a pair accesses: only the first, if the second is not behind it in the same object.
func (f *function) pairOf(s *state, x *insn) Access {
	first, second := x.halves()
	a, b := f.accessOf(s, &first), f.accessOf(s, &second)
	if a.Reason == Known && b.Reason == Known && a.Type == b.Type && b.Offset == a.Offset+int64(a.Size) {
		a.Pair, a.Size, a.Sure = true, x.access, a.Sure && b.Sure
	}
	return a
}

func none(r Reason) candidate { return candidate{Access: Access{Reason: r}} }

// answer returns what the memory operand of an instruction is.
func (f *function) answer(s *state, x *insn) candidate {
	if f.segmented(x) {
		return f.segmentAnswer(s, x)
	}
	v := f.address(s, x)
	switch v.kind {
	case stackAt:
		return f.stackAnswer(s, x, v)
	case globalAt:
		g, ok := f.object.Global(addr.Addr(v.off))
		if !ok {
			return none(NoVariable)
		}
		c := f.variableAnswer(x, &g, v.off-int64(g.At), v)
		c.Fixed = c.Reason == Known && g.Fixed
		return c
	case threadOff:
		g, ok := f.object.ThreadLocal(v.off)
		if !ok {
			return none(NoVariable)
		}
		return f.variableAnswer(x, &g, v.off-int64(g.At), v)
	case pointer:
		return f.pointerAnswer(x, v)
	}
	return none(Untracked)
}

// canaryAt is where x86-64 has the canary, from fs in programs, from gs in kernels.
const canaryAt = 0x28

func (f *function) segmentAnswer(s *state, x *insn) candidate {
	segment := byte(segmentFS)
	if f.object.Kernel() {
		segment = segmentGS
	}
	if m := &x.mem; m.absolute && m.segment == segment && m.disp == canaryAt {
		return none(Canary)
	}
	g, off, indexed := f.segmentVar(s, x)
	if g == nil {
		return none(NoVariable)
	}
	return f.variableAnswer(x, g, off, value{steps: steps{indexed: indexed, stride: 1}})
}

// variableAnswer is an access to a variable at a fixed address.
func (f *function) variableAnswer(x *insn, g *Global, off int64, v value) candidate {
	t := f.layouts.of(g.Type)
	declared := t.kind == btf.KindArray && t.count == 0 // without its length: the symbol has it
	if t.size >= 0 && (off < 0 || off >= t.size && !declared) && !v.indexed {
		return none(NoVariable)
	}
	return f.give(x, t, off, v, 3)
}

func (f *function) stackAnswer(s *state, x *insn, v value) candidate {
	if f.span == nil {
		return none(Spill)
	}
	fv, off := f.frameAt(s, f.span.frame, v.off)
	switch {
	case fv == nil:
		return none(Spill)
	case fv.object:
		return f.give(x, fv.t, off, v, 2)
	}
	return f.give(x, fv.t, off, v, 3)
}

// pointerAnswer is an access through a pointer.
func (f *function) pointerAnswer(x *insn, v value) candidate {
	switch {
	case v.t.empty(), v.t.kind == btf.KindFwd, v.t.size == 0 && v.t.group():
		return none(NoType)
	}
	confidence := 3
	if v.origin == derived {
		confidence = 2
	}
	if !v.t.group() && v.t.size > 0 {
		// Elements of an array of numbers or pointers: the part of one does not matter.
		if int64(x.access) > v.t.size && x.access < 16 || f.bare && (v.t.size == 1 || int64(x.access) < v.t.size) {
			return none(Weak)
		}
		return f.give(x, v.t, mod(v.off, v.t.size), value{}, confidence)
	}
	return f.give(x, v.t, v.off, v, confidence)
}

// give is the answer for an offset in a type. Of an index the known multiple must fit the elements: of the
// type itself, or of an array in it.
func (f *function) give(x *insn, t *typ, off int64, v value, confidence int) candidate {
	if t.kind == btf.KindArray {
		e := f.layouts.element(t)
		if e.size <= 0 {
			return none(NoType)
		}
		if v.indexed && gcd(v.stride, e.size) != e.size && e.group() {
			// A multiple that does not fit elements; an array within them?
			return f.inner(x, e, mod(off, e.size), v, confidence)
		}
		t, off, v.indexed = e, mod(off, e.size), false
	}
	if f.bare && v.indexed && t.tail {
		return none(Weak) // behind it there is more than elements of it
	}
	outside := t.size > 0 && (off < 0 || off >= t.size)
	switch {
	case v.indexed && t.size > 0 && v.stride%t.size == 0 && v.stride > 0:
		off = mod(off, t.size)
	case v.indexed:
		return f.inner(x, t, off, v, confidence)
	case outside:
		if !f.neighbour(t, off) {
			return none(Weak)
		}
		off, confidence = mod(off, t.size), 2
	}
	return f.finish(x, t, off, confidence)
}

// neighbour reports whether an offset outside of a structure is in another element of an array. Behind
// the end it often is in a larger structure, to which the pointer was cast; before the beginning in one
// around it.
func (f *function) neighbour(t *typ, off int64) bool {
	if !t.group() || t.name == "" {
		return false
	}
	u := f.layouts.useOf(t)
	return u&inStruct == 0 && (off < 0 || u&inArray != 0)
}

// inner is an access with an index that does not fit the type: into an array within.
func (f *function) inner(x *insn, t *typ, off int64, v value, confidence int) candidate {
	leaves := f.layouts.leavesOf(t, off, int64(x.access))
	if v.biased || len(leaves) == 0 || t.size > 0 && off >= t.size && leaves[0].Stride == 0 {
		return none(Weak)
	}
	for _, leaf := range leaves {
		if leaf.Stride <= 0 || v.stride%leaf.Stride != 0 {
			return none(Weak)
		}
	}
	return f.finish(x, t, off, min(confidence, 2))
}

// finish is an access at a known offset: a member must be there.
func (f *function) finish(x *insn, t *typ, off int64, confidence int) candidate {
	leaves := f.layouts.leavesOf(t, off, int64(x.access))
	if len(leaves) == 0 && t.group() {
		return none(Weak)
	}
	exact, longer := !t.group(), true
	for _, leaf := range leaves {
		exact = exact || leaf.Exact
		longer = longer && leaf.Offset == off && leaf.t.size > 0 && leaf.t.size < int64(x.access)
	}
	if longer && !exact && x.access <= 8 {
		return none(Weak) // a cast, or several members that are copied as one
	}
	if !exact {
		confidence = min(confidence, 2)
	}
	return candidate{Access{Type: t.id, Offset: off}, confidence}
}
