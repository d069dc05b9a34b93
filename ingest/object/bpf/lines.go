package bpf

import (
	"cmp"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// Fields of struct bpf_line_info (include/uapi/linux/bpf.h), and the parts of line_col.
const (
	lineInsnAt = 0
	lineFileAt = 4
	lineTextAt = 8
	lineColAt  = 12

	columnBits = 10
)

// place is the position of a line record.
type place struct {
	fn     uint32
	offset uint32
	record uint32
}

// lines sets the functions' lines. Of several records at one address the last one applies to the
// code. Records of line 0 are the compiler's own: the code belongs to the line before, also to one
// at the same address.
func (e *entry) lines(p *Program) {
	infos, addrs := &e.arrays[ArrayLineInfo], &e.arrays[ArrayJITedLineInfo]
	n := min(infos.n, addrs.n)
	placed := func(f Func) bool { return f.Start != 0 && f.Length != 0 }
	if n == 0 || !slices.ContainsFunc(p.Funcs, placed) {
		p.noLines = e.noLines(p)
		return // nothing is damaged: the kernel hid the addresses of functions
	}
	if infos.n != addrs.n {
		e.fail(0, "jited_line_info: %d addresses for %d lines", addrs.n, infos.n)
	}
	places, outside := e.places(p, n)
	if e.isMoved(places) {
		e.begins(p, places)
		p.noLines = MissingMoved
		p.Note = e.error(0, "line info: %s: lines within its functions are not known", MissingMoved)
		return
	}
	switch {
	case e.overwritten(outside):
		p.Note = e.error(0, "line info: the kernel wrote the addresses of its handler of exceptions over "+
			"those of the first %d records: the code of records after the first belongs to the line before",
			len(outside))
	case len(outside) > 0:
		e.fail(0, "jited_line_info: %d of %d records lie in no function, record %d the first",
			len(outside), n, outside[0])
	}
	all := make([]Line, 0, len(places))
	for len(places) > 0 {
		fn, from := places[0].fn, len(all)
		for ; len(places) > 0 && places[0].fn == fn; places = places[1:] {
			l := e.line(infos.at(int(places[0].record)))
			if l.Line == 0 {
				continue
			}
			if l.Offset = places[0].offset; len(all) > from && all[len(all)-1].Offset == l.Offset {
				all = all[:len(all)-1]
			}
			all = append(all, l)
		}
		if len(all) > from {
			all[from].Offset = 0
			p.Funcs[fn].Lines = all[from:len(all):len(all)]
		}
	}
}

// maxHandler bounds the BPF instructions of the kernel's handler of exceptions, which are 2.
const maxHandler = 4

// overwritten reports whether records in no function are those that the kernel overwrote: it appends
// a handler to a program that throws exceptions, does not report it as a function, and treats it as
// the function of the first record (bpf_prog_fill_jited_linfo in kernel/bpf/core.c, linfo_idx 0).
func (e *entry) overwritten(outside []int) bool {
	n := len(outside)
	return n > 0 && outside[n-1] == n-1 &&
		decode.U32(e.arrays[ArrayLineInfo].at(n - 1)[lineInsnAt:], e.big) < maxHandler
}

// noLines returns the reason why no function of a program has lines.
func (e *entry) noLines(p *Program) string {
	const needed = 1<<ArrayLineInfo | 1<<ArrayJITedLineInfo | 1<<ArrayJITedKSyms
	switch {
	case p.Missing == MissingRights || p.Missing == MissingNotJITed:
		return p.Missing
	case e.u32(Arrays[ArrayLineInfo].Count) == 0 && p.BTFID == 0:
		return MissingBTF
	case e.u32(Arrays[ArrayLineInfo].Count) == 0:
		return MissingLineInfo
	case e.mask&needed != needed:
		return MissingNotRecorded
	case e.hidden[ArrayLineInfo] || e.hidden[ArrayJITedLineInfo] || e.hidden[ArrayJITedKSyms] ||
		e.u32(Arrays[ArrayJITedLineInfo].Count) == 0:
		return MissingHidden
	}
	return MissingDamaged
}

// isMoved reports whether line info violates the rule of the kernel's verifier: the first
// record of each function is at the function's first instruction.
func (e *entry) isMoved(places []place) bool {
	infos, lines := &e.arrays[ArrayFuncInfo], &e.arrays[ArrayLineInfo]
	for i, x := range places {
		first := i == 0 || places[i-1].fn != x.fn
		if !first || x.offset != 0 || int64(x.fn) >= int64(infos.n) {
			continue
		}
		begin := decode.U32(infos.at(int(x.fn)), e.big)
		if begin > 0 && decode.U32(lines.at(int(x.record))[lineInsnAt:], e.big) > begin {
			return true
		}
	}
	return false
}

// begins sets the start of each function's source.
func (e *entry) begins(p *Program, places []place) {
	for _, x := range places {
		f := &p.Funcs[x.fn]
		if f.Begin.Line == 0 && x.offset == 0 {
			f.Begin = e.line(e.arrays[ArrayLineInfo].at(int(x.record)))
		}
	}
}

// places finds the functions of the first n records, and sorts them by function, offset and number;
// outside are those with an address in no function. The verifier demands that the first record is at
// the program's first instruction: it has a place in any case.
func (e *entry) places(p *Program, n int) (places []place, outside []int) {
	addrs := &e.arrays[ArrayJITedLineInfo]
	finder := newFuncFinder(p.Funcs)
	places = make([]place, 0, n)
	for i := range n {
		pc := addr.PC(decode.U64(addrs.at(i), e.big))
		fn, ok := finder.find(pc)
		if !ok {
			outside = append(outside, i)
			if i > 0 {
				continue
			}
			pc = p.Funcs[0].Start
		}
		places = append(places, place{uint32(fn), uint32(pc - p.Funcs[fn].Start), uint32(i)})
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.fn, b.fn), cmp.Compare(a.offset, b.offset),
			cmp.Compare(a.record, b.record))
	})
	return places, outside
}

func (e *entry) line(b []byte) Line {
	col := decode.U32(b[lineColAt:], e.big)
	l := Line{Insn: decode.U32(b[lineInsnAt:], e.big), Line: col >> columnBits,
		Column: col & (1<<columnBits - 1)}
	if e.btf != nil {
		l.File, _ = e.btf.StringAt(decode.U32(b[lineFileAt:], e.big))
		l.Source, _ = e.btf.StringAt(decode.U32(b[lineTextAt:], e.big))
	}
	return l
}

// funcFinder finds functions by address. Records are grouped by function, so the last result is
// tried first.
type funcFinder struct {
	funcs  []Func
	sorted []int32 // by address
	last   int
}

func newFuncFinder(funcs []Func) *funcFinder {
	x := &funcFinder{funcs: funcs, sorted: make([]int32, len(funcs))}
	for i := range x.sorted {
		x.sorted[i] = int32(i)
	}
	slices.SortStableFunc(x.sorted, func(a, b int32) int {
		return cmp.Compare(funcs[a].Start, funcs[b].Start)
	})
	return x
}

// covers reports whether pc is in function i. An address of a function that was
// hidden is none.
func (x *funcFinder) covers(i int, pc addr.PC) bool {
	f := &x.funcs[i]
	return f.Start != 0 && pc >= f.Start && pc-f.Start < addr.PC(f.Length)
}

func (x *funcFinder) find(pc addr.PC) (int, bool) {
	if x.covers(x.last, pc) {
		return x.last, true
	}
	i, found := slices.BinarySearchFunc(x.sorted, pc, func(fn int32, pc addr.PC) int {
		return cmp.Compare(x.funcs[fn].Start, pc)
	})
	if !found {
		i--
	}
	if i < 0 || !x.covers(int(x.sorted[i]), pc) {
		return 0, false
	}
	x.last = int(x.sorted[i])
	return x.last, true
}
