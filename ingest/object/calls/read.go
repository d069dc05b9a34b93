package calls

import (
	"cmp"
	stdelf "debug/elf"
	"encoding/binary"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
)

// Options describe an object for Read.
type Options struct {
	// GoText is the range of Go's functions, empty if there are none.
	GoText addr.Range
}

// Read reads the calls of an object, of which rules has the unwind rules; nil for a machine whose
// calls it does not know. Memory is a small multiple of the code, which must be in the file.
func Read(f *elf.File, rules *cfi.Builder, opts Options) (*Table, error) {
	if f.Machine != stdelf.EM_X86_64 && f.Machine != stdelf.EM_AARCH64 ||
		f.Class != stdelf.ELFCLASS64 || f.BigEndian || rules.Arch.ELF != f.Machine {
		return nil, nil
	}
	t := &Table{Resolvers: make(map[addr.Addr][]addr.Addr)}
	dyn, err := readDynamic(f, t)
	if err != nil {
		return nil, err
	}
	t.Exports = dyn.exports()
	t.Linker = strings.HasPrefix(dyn.soname, "ld-")
	r := &callReader{f: f, t: t, dyn: dyn, rules: rules, goText: opts.GoText,
		stubs: make(map[addr.Addr]Target), mentioned: make(map[int][]addr.Addr)}
	r.states()
	if err := r.sections(); err != nil {
		return nil, err
	}
	r.functions()
	for i := range t.Funcs {
		r.function(i)
	}
	r.golang()
	r.addresses()
	r.returned()
	return t, nil
}

// callReader is the state of Read.
type callReader struct {
	f      *elf.File
	t      *Table
	dyn    *dynamic
	rules  *cfi.Builder
	goText addr.Range
	code   []codeSection
	plt    []addr.Range
	stubs  map[addr.Addr]Target
	// mentioned are the functions whose addresses the code of a resolver has, by function.
	mentioned map[int][]addr.Addr
	goRows    []goFunc
	rest      []codeSection // of functions that are Unknown
}

type codeSection struct {
	addr.Range
	bytes []byte
}

// maxCode bounds the code of one section.
const maxCode = 1 << 30

// sections reads the code.
func (r *callReader) sections() error {
	for i := range r.f.Sections {
		s := &r.f.Sections[i]
		if !s.IsCode() || s.Type == stdelf.SHT_NOBITS || s.Size == 0 {
			continue
		}
		b, err := r.f.Data(s, maxCode)
		if err != nil {
			return err
		}
		at := addr.Range{Start: s.Addr, End: s.Addr + addr.Addr(len(b))}
		if strings.HasPrefix(s.Name, ".plt") || s.Name == ".iplt" {
			r.plt = append(r.plt, at)
		}
		r.code = append(r.code, codeSection{at, b})
	}
	slices.SortFunc(r.code, func(a, b codeSection) int { return cmp.Compare(a.Start, b.Start) })
	return nil
}

// bytesAt returns the code from an address to the end of its section; nil if it is in none.
func (r *callReader) bytesAt(a addr.Addr) []byte {
	i, found := slices.BinarySearchFunc(r.code, a, func(s codeSection, a addr.Addr) int {
		return cmp.Compare(s.Start, a)
	})
	if !found {
		i--
	}
	if i < 0 || a >= r.code[i].End {
		return nil
	}
	return r.code[i].bytes[a-r.code[i].Start:]
}

func (r *callReader) inPLT(a addr.Addr) bool {
	return slices.ContainsFunc(r.plt, func(p addr.Range) bool { return p.Contains(a) })
}

// functions lists the ranges of unwind rules, and the code between them.
func (r *callReader) functions() {
	var ranges []addr.Range
	r.rules.Ranges(func(x addr.Range) { ranges = append(ranges, x) })
	for i := range r.code {
		s := &r.code[i]
		if r.inPLT(s.Start) {
			continue
		}
		at := s.Start
		k, _ := slices.BinarySearchFunc(ranges, at, func(x addr.Range, a addr.Addr) int {
			return cmp.Compare(x.End, a+1)
		})
		for ; k < len(ranges) && ranges[k].Start < s.End; k++ {
			x := addr.Range{Start: max(ranges[k].Start, at), End: min(ranges[k].End, s.End)}
			if x.Start > at {
				r.between(s, addr.Range{Start: at, End: x.Start})
			}
			if x.Start < x.End {
				r.t.Funcs = append(r.t.Funcs, Func{Range: x})
			}
			at = max(at, x.End)
		}
		if at < s.End {
			r.between(s, addr.Range{Start: at, End: s.End})
		}
	}
}

// between adds the code between functions as one, unless it is padding.
func (r *callReader) between(s *codeSection, x addr.Range) {
	for _, b := range s.bytes[x.Start-s.Start : x.End-s.Start] {
		if b != 0 && b != 0xcc {
			r.t.Funcs = append(r.t.Funcs, Func{Range: x})
			return
		}
	}
}

// states makes the rows of states of the unwind rules.
func (r *callReader) states() {
	var last addr.Addr
	var rule uint32
	put := func(next addr.Addr, following *cfi.Rule) {
		r.t.put(last, r.stateOf(&r.rules.Rules[rule], following, next-last))
	}
	first := true
	r.rules.Rows(func(at addr.Addr, n uint32) {
		if !first {
			put(at, &r.rules.Rules[n])
		}
		first, last, rule = false, at, n
	})
	if !first {
		put(last, &cfi.Rule{})
	}
}

// put adds a row; equal neighbours are one.
func (t *Table) put(at addr.Addr, s State) {
	if n := len(t.States); n > 0 && t.States[n-1].State == s {
		return
	}
	t.States = append(t.States, Row{at, s})
}

// setUp is the length in bytes of the instruction that makes the stack pointer the frame pointer, and
// one more.
const setUp = 4

// stateOf returns the state that follows from a rule. next is the rule behind it, size bytes on.
func (r *callReader) stateOf(rule, next *cfi.Rule, size addr.Addr) State {
	switch {
	case rule.Kind == cfi.End:
		return Ends
	case rule.Kind != cfi.Frame:
		return Unproven
	case rule.Signal:
		return Signal
	}
	arch := r.rules.Arch
	word := int32(arch.Word)
	saved, ra := rule.Saved[0], rule.RA
	switch {
	case saved.How == cfi.Same:
		return Outer
	case r.isFrame(rule):
		return Own
	case rule.CFA.How != cfi.Register || saved.How != cfi.AtCFA:
		return Unproven
	case rule.CFA.Reg == arch.SP && saved.Off+rule.CFA.Off < 0:
		return Outer // popped: it is below the stack
	case rule.CFA.Reg != arch.SP:
		return Unproven
	case arch.LinkRegister: // a frame record from the next instruction or a later one on
		return Unproven
	case ra.How == cfi.AtCFA && ra.Off == -word && saved.Off == -2*word && size <= setUp && r.isFrame(next):
		return Outer
	}
	return Used
}

// isFrame reports whether by a rule the frame pointer points to the saved one, with the return
// address above it.
func (r *callReader) isFrame(rule *cfi.Rule) bool {
	arch := r.rules.Arch
	word := int32(arch.Word)
	return rule.Kind == cfi.Frame && !rule.Signal && rule.CFA.How == cfi.Register &&
		rule.CFA.Reg == arch.FP && rule.Saved[0] == cfi.Where{How: cfi.AtCFA, Off: -rule.CFA.Off} &&
		rule.RA == cfi.Where{How: cfi.AtCFA, Off: word - rule.CFA.Off}
}

// window is how many instructions before an indirect jump can make its target from a table.
const window = 8

// function decodes a function.
func (r *callReader) function(i int) {
	fn := &r.t.Funcs[i]
	fn.calls.from, fn.jumps.from = uint32(len(r.t.Calls)), uint32(len(r.t.jumps))
	b := r.bytesAt(fn.Start)[:fn.End-fn.Start]
	var recent [window]insn
	golang := r.goText.Contains(fn.Start) && r.f.Machine == stdelf.EM_X86_64
	var g goFrames
	saved, waits, kept := false, false, false
	for at, n := fn.Start, 0; len(b) > 0; n++ {
		in, ok := decodeInsn(r.f.Machine, b, at)
		if !ok {
			fn.Unknown = true
			r.rest = append(r.rest, codeSection{addr.Range{Start: at, End: fn.End}, b})
			break
		}
		b, at = b[in.size:], at+addr.Addr(in.size)
		r.instruction(i, &in, at, recent[:], n)
		recent[n%window] = in
		if golang {
			g.add(&in, at)
		}
		switch {
		case in.class == saves:
			saved, waits = true, true
		case in.class == replaces || in.class == sets:
			waits = false
		case in.kind != plain && waits:
			kept, waits = true, false
		}
	}
	fn.Replaces = saved && !kept && !waits && !fn.Unknown
	if golang {
		r.goRows = append(r.goRows, goFunc{fn.Range, g.states(r.t, fn)})
	}
	fn.calls.to, fn.jumps.to = uint32(len(r.t.Calls)), uint32(len(r.t.jumps))
}

// decodeInsn decodes an instruction of arm64 or x86-64.
func decodeInsn(machine stdelf.Machine, b []byte, at addr.Addr) (insn, bool) {
	if machine == stdelf.EM_AARCH64 {
		return arm64(b, at)
	}
	return decodeX86(b, at)
}

// instruction adds an instruction that ends at next.
func (r *callReader) instruction(i int, in *insn, next addr.Addr, recent []insn, n int) {
	fn := &r.t.Funcs[i]
	switch in.kind {
	case call:
		r.t.Calls = append(r.t.Calls, Call{next, r.place(in.target)})
	case callIndirect:
		r.t.Calls = append(r.t.Calls, Call{next, r.slot(in)})
	case jump:
		if !fn.Contains(in.target) {
			r.jump(fn, r.place(in.target))
		}
	case jumpIndirect:
		t := r.slot(in)
		switch {
		case t.Kind != Indirect:
			r.jump(fn, t)
		case !r.isSwitch(fn, in, recent, n):
			fn.Leaps = true
		}
	default:
		if in.memory && (!fn.Contains(in.target) || in.target == fn.Start) {
			r.mention(i, in.target)
		}
		if r.f.Type == stdelf.ET_EXEC && in.imm > 0 {
			r.mention(i, addr.Addr(in.imm))
		}
	}
}

// maxJumps is how many targets of jumps out of it are kept of a function. Those of a /usr/lib have at
// most some hundred.
const maxJumps = 1 << 10

// jump adds the target of a jump out of a function, each once.
func (r *callReader) jump(fn *Func, t Target) {
	switch have := r.t.jumps[fn.jumps.from:]; {
	case len(have) == maxJumps:
		fn.Leaps = true
	case !slices.Contains(have, t):
		r.t.jumps = append(r.t.jumps, t)
	}
}

// slot returns the target of a call or jump through a pointer that only the dynamic linker sets.
func (r *callReader) slot(in *insn) Target {
	if in.memory {
		return r.dyn.slots[in.target]
	}
	return Target{}
}

// place returns the target of a direct call or jump: behind a stub of the procedure linkage table
// what the stub jumps to.
func (r *callReader) place(a addr.Addr) Target {
	if !r.inPLT(a) {
		return Target{Local, a}
	}
	t, ok := r.stubs[a]
	if !ok {
		t = r.stub(a)
		r.stubs[a] = t
	}
	return t
}

// maxStub is how many instructions a stub has at most.
const maxStub = 4

func (r *callReader) stub(a addr.Addr) Target {
	page := addr.Addr(0)
	for range maxStub {
		in, ok := decodeInsn(r.f.Machine, r.bytesAt(a), a)
		switch {
		case !ok || in.kind == call || in.kind == jump || in.kind == ret:
			return Target{}
		case r.f.Machine == stdelf.EM_AARCH64 && in.memory:
			page = in.target
		case in.kind == jumpIndirect && r.f.Machine == stdelf.EM_AARCH64:
			return r.dyn.slots[page]
		case in.kind == jumpIndirect:
			return r.slot(&in)
		}
		a += addr.Addr(in.size)
	}
	return Target{}
}

// isSwitch reports whether an indirect jump is one to a place in its function.
func (r *callReader) isSwitch(fn *Func, in *insn, recent []insn, n int) bool {
	if r.f.Machine == stdelf.EM_AARCH64 {
		return false
	}
	if in.notrack {
		return true
	}
	if in.scaled {
		to, ok := word(r.f, in.target)
		return ok && fn.Contains(to)
	}
	if in.memory {
		return false
	}
	added, moved := false, false
	for k := 1; k <= min(n, window); k++ {
		x := &recent[(n-k)%window]
		added = added || x.add && k <= 3
		moved = moved || x.move
	}
	return added && moved
}

// mention notes the address of a function in the code of function i.
func (r *callReader) mention(i int, a addr.Addr) {
	to := r.t.Func(a)
	if to < 0 {
		return
	}
	r.t.Funcs[to].Open = true
	if r.t.Funcs[to].Start == a && len(r.mentioned[i]) < maxJumps {
		r.mentioned[i] = append(r.mentioned[i], a)
	}
}

// addresses marks the functions whose addresses are in pointers. On arm64 the code puts addresses
// together in several instructions: any function can be meant.
func (r *callReader) addresses() {
	if r.f.Machine == stdelf.EM_AARCH64 {
		for i := range r.t.Funcs {
			r.t.Funcs[i].Open = true
		}
		return
	}
	open := func(a addr.Addr) {
		if i := r.t.Func(a); i >= 0 {
			r.t.Funcs[i].Open = true
		}
	}
	for _, a := range r.dyn.taken {
		open(a)
	}
	for i := range r.t.Exports {
		open(r.t.Exports[i].At)
	}
	open(r.f.Entry)
	for _, s := range r.rest { // any four bytes may be the distance to a function
		for i := 0; i+4 <= len(s.bytes); i++ {
			open(s.Start + addr.Addr(i+4) + addr.Addr(int64(int32(binary.LittleEndian.Uint32(s.bytes[i:])))))
		}
	}
	if r.f.Type != stdelf.ET_EXEC {
		return
	}
	// Pointers in a file at a fixed address need no relocations.
	for i := range r.f.Sections {
		s := &r.f.Sections[i]
		if s.Flags&stdelf.SHF_ALLOC == 0 || s.IsCode() || s.Type == stdelf.SHT_NOBITS ||
			s.Name == ".gopclntab" || s.Name == ".eh_frame" {
			continue
		}
		b, err := r.f.Data(s, maxCode)
		if err != nil {
			continue
		}
		for at := int(-s.Addr & 7); at+8 <= len(b); at += 8 {
			if a := addr.Addr(uint64le(b[at:])); len(r.t.Funcs) > 0 && a >= r.t.Funcs[0].Start {
				open(a)
			}
		}
	}
}

// returned finds the functions that resolvers return: those whose addresses their code has.
func (r *callReader) returned() {
	add := func(a addr.Addr) {
		i := r.t.Func(a)
		if i < 0 || r.t.Funcs[i].Unknown {
			return
		}
		list := slices.Clone(r.mentioned[i])
		for _, t := range r.t.JumpsOf(i) {
			if j := r.t.Func(t.At); t.Kind == Local && j >= 0 {
				list = append(list, r.mentioned[j]...)
			}
		}
		slices.Sort(list)
		r.t.Resolvers[a] = slices.Compact(list)
	}
	for _, t := range r.dyn.slots {
		if t.Kind == Resolved {
			add(t.At)
		}
	}
	for i := range r.t.Exports {
		if r.t.Exports[i].Resolver {
			add(r.t.Exports[i].At)
		}
	}
}
