package pgo

import (
	"bufio"
	"cmp"
	stdelf "debug/elf"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/texts"
)

// writeFdata writes a profile for llvm-bolt itself (DataReader.h of BOLT), by the symbols and the code of
// the object's file:
//
//	no_lbr EVENT                              without branch stacks, then
//	1 FUNCTION OFFSET SAMPLES                 for each sampled instruction; or
//	1 FUNCTION OFFSET 1 FUNCTION OFFSET MISSED COUNT
//
// for each branch, except returns, and for the end of each basic block that code ran over without a
// branch: perf2bolt writes the same. "0 [unknown] 0" is code of other files. Offsets are hexadecimal.
// Symbols that are local have their number among those of their name behind a slash.
func (t *Profile) writeFdata(w io.Writer, object int, f *elf.File) (Stats, error) {
	c := t.count(object)
	b := &boltWriter{counts: c, file: f, stats: c.stats}
	if err := b.readSymbols(); err != nil {
		return b.stats, err
	}
	out := bufio.NewWriter(w)
	if c.stats.Traces == 0 {
		fmt.Fprintf(out, "no_lbr %s\n", texts.Printable(t.source.Events[t.event].Name))
		b.samples(out)
	} else if err := b.branches(out); err != nil {
		return b.stats, err
	}
	if b.lines == 0 {
		return b.stats, ErrNoCounts
	}
	return b.stats, out.Flush()
}

// boltFunction is a function as BOLT sees it: from its symbol to its end.
type boltFunction struct {
	addr.Range
	name   string
	stub   bool    // of the PLT, without blocks
	blocks *blocks // decoded when they are needed
}

type boltWriter struct {
	counts    *counts
	file      *elf.File
	functions []boltFunction // by address
	stats     Stats
	lines     int
}

// readSymbols reads the functions of .symtab, and the stubs of the PLT, which BOLT names, too.
func (b *boltWriter) readSymbols() error {
	f := b.file
	var list []elf.Symbol
	err := f.Symbols(elf.Symtab, func(s elf.Symbol) bool {
		if stdelf.SymType(s.Type) == stdelf.STT_FUNC && s.End > s.Addr {
			list = append(list, s)
		}
		return true
	})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%s: no symbols of functions in it", f.Name)
	}
	stubs, err := b.stubs()
	if err != nil {
		return err
	}
	list = append(list, stubs...)
	slices.SortStableFunc(list, func(x, y elf.Symbol) int { return cmp.Compare(x.Addr, y.Addr) })
	numbers := make(map[string]int)
	for i := range list {
		s := &list[i]
		name, local := s.Name, stdelf.SymBind(s.Bind) == stdelf.STB_LOCAL
		if local {
			numbers[name]++
			name = fmt.Sprintf("%s/%d", name, numbers[name])
		}
		if n := len(b.functions); n > 0 && b.functions[n-1].Start == s.Addr {
			if last := &b.functions[n-1]; strings.Contains(last.name, "/") && !local {
				last.name = name
			}
			continue
		}
		b.functions = append(b.functions, boltFunction{Range: addr.Range{Start: s.Addr, End: s.End}, name: name,
			stub: strings.HasSuffix(name, stubSuffix) || name == firstStub})
	}
	return nil
}

// Names of stubs. The first one of .plt, which resolves the others, is a function of BOLT's own.
const stubSuffix, firstStub = "@PLT", "__BOLT_PSEUDO_.plt"

// stubs returns the stubs of the PLT as BOLT names them: those of dynamic symbols.
func (b *boltWriter) stubs() (list []elf.Symbol, err error) {
	first := elf.Symbol{Name: firstStub, Bind: uint8(stdelf.STB_GLOBAL)}
	if s := b.file.Section(".plt"); s != nil {
		first.Addr, first.End = s.Addr, s.Addr+addr.Addr(s.Size)
	}
	if b.file.Section(".dynsym") != nil {
		err = b.file.PLT(func(s elf.Symbol) bool {
			name, _, _ := strings.Cut(s.Name, "@")
			s.Name, s.Bind = name+stubSuffix, uint8(stdelf.STB_GLOBAL)
			list = append(list, s)
			if s.Addr >= first.Addr {
				first.End = min(first.End, s.Addr)
			}
			return true
		})
	}
	if first.End > first.Addr {
		list = append(list, first)
	}
	return list, err
}

// find returns the function with an address, nil without one or if its name cannot be written.
func (b *boltWriter) find(x place) *boltFunction {
	if x == external {
		return nil
	}
	i, found := slices.BinarySearchFunc(b.functions, x.at, func(f boltFunction, a addr.Addr) int { return cmp.Compare(f.Start, a) })
	if !found {
		i--
	}
	if i < 0 || x.at >= b.functions[i].End || strings.ContainsAny(b.functions[i].name, " \n\t\\") {
		return nil
	}
	return &b.functions[i]
}

// samples writes sampled addresses.
func (b *boltWriter) samples(out *bufio.Writer) {
	for _, x := range sorted(b.counts.samples, comparePlaces) {
		n := b.counts.samples[x]
		f := b.find(x)
		if f == nil {
			b.stats.NoSymbol += n
			continue
		}
		fmt.Fprintf(out, "1 %s %x %d\n", f.name, uint64(x.at-f.Start), n)
		b.lines++
	}
}

// decode decodes the functions that code ran in between two branches, and joins what is known of their blocks.
func (b *boltWriter) decode() error {
	for t := range b.counts.traces {
		if f := b.ran(t); f != nil && f.blocks == nil {
			f.blocks = readBlocks(b.file, f.Range)
		}
	}
	pads, err := cfi.LandingPads(b.file)
	if len(pads) == 0 && err != nil {
		return err
	}
	enter := func(x addr.Addr) {
		if f := b.find(place{at: x}); f != nil && f.blocks != nil {
			f.blocks.enter(x)
		}
	}
	for _, x := range pads {
		enter(x)
	}
	for i := range b.functions {
		jumpsOut(b.file, b.functions[i].Range, enter)
	}
	for t := range b.counts.traces {
		if f := b.ran(t); f != nil && f == b.find(t.from) && f.blocks.is(t.from.at, calls.IndirectJump) {
			f.blocks.begin(t.to.at)
		}
	}
	return nil
}

// ran returns the function that the code after a branch ran in; nil if it is not known, or a stub, whose
// blocks BOLT ignores.
func (b *boltWriter) ran(t trace) *boltFunction {
	f := b.find(t.to)
	if f == nil || f.stub || f != b.find(t.end) || t.end.at < t.to.at {
		return nil
	}
	return f
}

// resumes reports whether a branch from another function may be the return from a call: as perf2bolt, which
// knows the instructions of this file only.
func (b *boltWriter) resumes(t trace, to *boltFunction) bool {
	from := b.find(t.from)
	switch {
	case from == to:
		return false
	case b.returns(from, t.from):
		return true
	}
	return !to.blocks.entered[t.to.at]
}

// branches writes branches, and what ran between them.
func (b *boltWriter) branches(out *bufio.Writer) error {
	if err := b.decode(); err != nil {
		return err
	}
	edges := make(map[trace]branchCount)
	add := func(t trace, n branchCount) {
		x := edges[t]
		edges[t] = branchCount{x.count + n.count, x.missed + n.missed}
	}
	for t, n := range b.counts.branches {
		add(t, n)
	}
	for t, n := range b.counts.traces {
		add(trace{t.from, t.to, external}, branchCount{count: n})
		f := b.ran(t)
		if f == nil {
			continue
		}
		for _, e := range f.blocks.between(t.to.at, t.end.at, b.resumes(t, f)) {
			add(trace{place{t.to.object, e.last, true}, place{t.to.object, e.next, true}, external}, branchCount{count: n})
		}
	}
	for _, t := range sorted(edges, compareTraces) {
		n := edges[t]
		from, to := b.find(t.from), b.find(t.to)
		switch {
		case from == nil && to == nil:
			b.stats.NoSymbol += n.count
		case !b.returns(from, t.from):
			fmt.Fprintf(out, "%s %s %d %d\n", from.text(t.from), to.text(t.to), n.missed, n.count)
			b.lines++
		}
	}
	return nil
}

// returns reports whether an instruction of a function, which may be nil, is a return.
func (b *boltWriter) returns(f *boltFunction, x place) bool {
	if f == nil || f.stub {
		return false
	}
	if f.blocks == nil {
		f.blocks = readBlocks(b.file, f.Range)
	}
	return f.blocks.is(x.at, calls.Return)
}

// text is an address in a function.
func (f *boltFunction) text(x place) string {
	if f == nil {
		return "0 [unknown] 0"
	}
	return fmt.Sprintf("1 %s %x", f.name, uint64(x.at-f.Start))
}
