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
// Symbols that are local have their number among those of their name behind a slash. What perf2bolt has
// and this has not: calls that end a block, as they have a landing pad.
func (t *Profile) writeFdata(w io.Writer, object int, f *elf.File) (Stats, error) {
	c := t.count(object)
	b := &boltWriter{counts: c, stats: c.stats}
	if err := b.readSymbols(f); err != nil {
		return b.stats, err
	}
	out := bufio.NewWriter(w)
	if c.stats.Traces == 0 {
		fmt.Fprintf(out, "no_lbr %s\n", texts.Printable(t.source.Events[t.event].Name))
		b.samples(out)
	} else {
		b.branches(out, f)
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
	blocks *blocks // decoded when they are needed
}

type boltWriter struct {
	counts    *counts
	functions []boltFunction // by address
	stats     Stats
	lines     int
}

// readSymbols reads the functions of .symtab, and the stubs of the PLT, which BOLT names, too.
func (b *boltWriter) readSymbols(f *elf.File) error {
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
	err = f.PLT(func(s elf.Symbol) bool {
		name, _, _ := strings.Cut(s.Name, "@")
		s.Name, s.Bind = name+"@PLT", uint8(stdelf.STB_GLOBAL)
		list = append(list, s)
		return true
	})
	if err != nil {
		return err
	}
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
		b.functions = append(b.functions, boltFunction{Range: addr.Range{Start: s.Addr, End: s.End}, name: name})
	}
	return nil
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

// branches writes branches, and what ran between them.
func (b *boltWriter) branches(out *bufio.Writer, file *elf.File) {
	edges := make(map[trace]branchCount)
	add := func(t trace, n branchCount) {
		x := edges[t]
		edges[t] = branchCount{x.count + n.count, x.missed + n.missed}
	}
	for t, n := range b.counts.traces {
		add(trace{t.from, t.to, external}, branchCount{count: n})
		from, to := b.find(t.from), b.find(t.to)
		if to == nil || to != b.find(t.end) || t.end.at < t.to.at {
			continue
		}
		if to.blocks == nil {
			to.blocks = readBlocks(file, to.Range)
		}
		if from == to && to.blocks.indirect(t.from.at) {
			to.blocks.begin(t.to.at)
		}
	}
	for t, n := range b.counts.branches {
		add(t, n)
	}
	for t, n := range b.counts.traces { // all targets of indirect jumps are known now
		to := b.find(t.to)
		if to == nil || to != b.find(t.end) || t.end.at < t.to.at {
			continue
		}
		to.blocks.between(t.to.at, t.end.at, func(last, next addr.Addr) {
			add(trace{place{t.to.object, last, true}, place{t.to.object, next, true}, external}, branchCount{count: n})
		})
	}
	for _, t := range sorted(edges, compareTraces) {
		n := edges[t]
		from, to := b.find(t.from), b.find(t.to)
		if from == nil && to == nil {
			b.stats.NoSymbol += n.count
			continue
		}
		if from != nil && from.blocks == nil {
			from.blocks = readBlocks(file, from.Range)
		}
		if from != nil && from.blocks.returns(t.from.at) {
			continue
		}
		fmt.Fprintf(out, "%s %s %d %d\n", from.text(t.from), to.text(t.to), n.missed, n.count)
		b.lines++
	}
}

// text is an address in a function.
func (f *boltFunction) text(x place) string {
	if f == nil {
		return "0 [unknown] 0"
	}
	return fmt.Sprintf("1 %s %x", f.name, uint64(x.at-f.Start))
}
