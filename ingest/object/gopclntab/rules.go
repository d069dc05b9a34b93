package gopclntab

import (
	"bytes"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
)

// Bits of a function's flags, internal/abi/symtab.go: FuncFlag.
const (
	flagTopFrame = 1 << 0 // outermost function of a stack: goexit, mstart, rt0_go
	flagSPWrite  = 1 << 1 // writes an arbitrary value to SP: switches stacks
)

// Rules adds the rules of the Go functions to b, from the tables of the distance of SP from
// where it was at entry (pcsp). Go keeps the caller's frame pointer right below the return
// address wherever it has a frame. Functions that switch stacks are left by frame pointer, which
// they save; on amd64, arm64 and 386. lost and err are as in Functions.
func (t *Table) Rules(b *cfi.Builder) (lost int, err error) {
	u := unwinder{t: t, b: b, left: budgetFloor + budgetFactor*int64(len(t.in.Data))}
	u.signalReturns()
	for i := range t.numFuncs {
		r, reason := t.record(i)
		if reason == "" && b.Func(addr.Range{Start: addr.Addr(r.entry), End: addr.Addr(r.limit)}) {
			reason = u.function(&r)
		}
		if u.left < 0 {
			return lost + t.numFuncs - i, t.fail(t.structAt+r.at, "functions share more than they can")
		}
		if reason != "" {
			lost++
			if err == nil {
				err = t.fail(t.structAt+r.at, "%s", reason)
			}
		}
	}
	return lost, err
}

// unwinder makes the rules of functions.
type unwinder struct {
	t    *Table
	b    *cfi.Builder
	left int64 // of the budget
}

// function adds the rows of a function.
func (u *unwinder) function(r *record) (reason string) {
	name := cString(u.t.names, r.name)
	u.left -= int64(len(name))
	flags, known := u.t.flagsOf(r)
	start := addr.Addr(r.entry)
	switch {
	case isClone(name):
		rule := u.clone()
		u.b.Row(start, &rule)
		return ""
	case isOutermost(name) || known && flags&flagTopFrame != 0 && !isSignalHandler(name):
		u.b.Row(start, &cfi.Rule{Kind: cfi.End})
		return ""
	case switchesStacks(name):
		rule := u.byFramePointer()
		u.b.Row(start, &rule)
		return ""
	case known && flags&flagSPWrite != 0: // aligned stacks of assembly: the table has no depths
		u.b.Row(start, &cfi.Rule{})
		return ""
	}
	return u.rows(r)
}

// rows adds the rows of an ordinary function.
func (u *unwinder) rows(r *record) (reason string) {
	off := u.t.pcspOf(r)
	if off == 0 {
		rule := u.frame(0)
		u.b.Row(addr.Addr(r.entry), &rule)
		return ""
	}
	s := u.t.stream(off, r.entry)
	for at := r.entry; at < r.limit; at = s.end {
		u.left--
		if !s.next() {
			if s.end == r.entry {
				return "table of stack depths is damaged"
			}
			break // padding
		}
		if s.value < 0 {
			u.b.Row(addr.Addr(at), &cfi.Rule{})
			continue
		}
		rule := u.frame(s.value)
		u.b.Row(addr.Addr(at), &rule)
	}
	return ""
}

// frame is the rule where SP is depth bytes below its value at entry.
func (u *unwinder) frame(depth int32) cfi.Rule {
	a := u.b.Arch
	word := int32(a.Word)
	r := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: a.SP, Off: depth}}
	switch {
	case !a.LinkRegister:
		r.CFA.Off += word
		r.RA = cfi.Where{How: cfi.AtCFA, Off: -word}
		if depth >= word && a.Word == 8 {
			r.Saved[0] = cfi.Where{How: cfi.AtCFA, Off: -2 * word}
		}
	case depth > 0:
		// arm64: the return address is at the bottom of the frame, the frame pointer below it.
		r.RA = cfi.Where{How: cfi.AtCFA, Off: -depth}
		r.Saved[0] = cfi.Where{How: cfi.AtCFA, Off: -depth - word}
	}
	return r
}

// byFramePointer is the rule of functions that switch stacks: SP does not lead to the caller.
func (u *unwinder) byFramePointer() cfi.Rule {
	a := u.b.Arch
	word := int32(a.Word)
	return cfi.Rule{Kind: cfi.Frame,
		CFA:   cfi.Where{How: cfi.Register, Reg: a.FP, Off: 2 * word},
		RA:    cfi.Where{How: cfi.AtCFA, Off: -word},
		Saved: [cfi.MaxSaved]cfi.Where{{How: cfi.AtCFA, Off: -2 * word}},
	}
}

// switchesStacks knows the functions of the runtime that leave one stack for another. The frame
// pointer that they find, or save, is the old stack's.
func switchesStacks(name []byte) bool {
	name, _ = bytes.CutSuffix(name, []byte(".abi0"))
	switch string(name) {
	case "runtime.systemstack", "runtime.mcall", "runtime.asmcgocall", "runtime.morestack",
		"runtime.gogo", "runtime.cgocallback", "runtime.cgocallback_gofunc":
		return true
	}
	return false
}

func isOutermost(name []byte) bool {
	name, _ = bytes.CutSuffix(name, []byte(".abi0"))
	switch string(name) {
	case "runtime.goexit", "runtime.mstart", "runtime.rt0_go", "_rt0_amd64", "_rt0_amd64_linux",
		"_rt0_arm64_linux", "_rt0_386", "_rt0_386_linux":
		return true
	}
	return false
}

func isClone(name []byte) bool {
	name, _ = bytes.CutSuffix(name, []byte(".abi0"))
	return string(name) == "runtime.clone"
}

// clone is the rule of the function that starts threads: like the rule of a function without a
// frame in the parent, while the child, in which the system call returned 0, has no caller. Its
// callees are outermost themselves.
func (u *unwinder) clone() cfi.Rule {
	const breg0, deref, bra, drop, lit0 = 0x70, 0x06, 0x28, 0x13, 0x30
	r, a := u.frame(0), u.b.Arch
	code := []byte{breg0 + a.SP, 0, deref}
	if a.LinkRegister {
		code = []byte{breg0 + a.PC, 0}
	}
	// The register of the result is the first of each architecture, as DWARF numbers them.
	code = append(code, breg0, 0, bra, 2, 0, drop, lit0)
	n, ok := u.b.Expr(code)
	if !ok {
		return cfi.Rule{Kind: cfi.End}
	}
	r.RA = cfi.Where{How: cfi.Expr, Off: n}
	return r
}

func isSignalHandler(name []byte) bool {
	return bytes.HasPrefix(name, []byte("runtime.sigtramp")) ||
		bytes.HasPrefix(name, []byte("runtime.cgoSigtramp"))
}

// isSignalReturn knows the code that signal handlers return to, which is Go's own without cgo.
func isSignalReturn(name []byte) bool {
	return bytes.HasPrefix(name, []byte("runtime.sigreturn"))
}

// signalReturns adds, as a source of their own, the functions that signal handlers return to,
// each with the byte before it: nobody calls them, the address that the kernel leaves on the
// stack is their first, and unwinders look up the byte before a return address.
func (u *unwinder) signalReturns() {
	rule, ok := u.b.SignalRule(&u.b.Arch.Signals[0], 0)
	if !ok {
		return
	}
	for i := range u.t.numFuncs {
		r, reason := u.t.record(i)
		if reason != "" || r.entry == 0 || !isSignalReturn(cString(u.t.names, r.name)) {
			continue
		}
		if start := addr.Addr(r.entry - 1); u.b.Func(addr.Range{Start: start, End: addr.Addr(r.limit)}) {
			u.b.Row(start, &rule)
		}
	}
	u.b.NextSource()
}

// pcspOf returns the offset in pctab of a function's table of stack depths, 0 for none.
func (t *Table) pcspOf(r *record) uint32 {
	off, _ := t.u32(t.structs, r.at+t.shape.pcfile-4)
	return off
}

// flagsOf returns a function's FuncFlag; false before Go 1.17, which has none.
func (t *Table) flagsOf(r *record) (uint8, bool) {
	if t.version < go118 || t.shape.wide {
		return 0, false
	}
	// funcID u8, flag u8, a byte of padding, nfuncdata u8.
	return t.structs[r.at+t.shape.nfuncdata-2], true
}
