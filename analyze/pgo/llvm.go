package pgo

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeLLVM writes a sample profile of LLVM as text (SampleProfWriter.cpp): functions with most counts
// first; "name:total:entries", then lines "offset.discriminator: count target:count…", then inlined calls
// in the same form, indented. Comments before them name what was counted.
//
// With branch stacks the count of a line is how often its most frequent instruction ran, as llvm-profgen
// counts; without, it is the number of samples at the instruction with most of them, as create_llvm_prof
// counts. Other lines of a function with counts have 0: clang inlines calls in lines of unknown frequency,
// as of code that handles errors. The total of a function is the sum of its lines' counts, or its number of samples.
func (s *sites) writeLLVM(w io.Writer) error {
	list := s.heaviest()
	if len(list) == 0 {
		return ErrNoCounts
	}
	out := bufio.NewWriter(w)
	for _, h := range s.counts.header() {
		fmt.Fprintf(out, "# %s\n", h)
	}
	for _, f := range list {
		fmt.Fprintf(out, "%s:%d:%d\n", f.name, f.total, f.head)
		f.write(out, 1)
	}
	return out.Flush()
}

// heaviest joins branches to the functions that they enter, and returns the functions with counts, those
// with most first.
func (s *sites) heaviest() (list []*function) {
	s.joinTargets()
	for _, f := range s.functions {
		if f.sum(); f.total > 0 {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *function) int {
		return cmp.Or(cmp.Compare(b.total, a.total), strings.Compare(a.name, b.name))
	})
	return list
}

// sum sets the total of a function and of the inlined calls in it.
func (f *function) sum() uint64 {
	f.total = 0
	for _, b := range f.body {
		b.count = max(b.count, b.called)
		f.total += min(cmp.Or(b.samples, b.count), maxTotal-f.total)
	}
	for _, m := range f.calls {
		for _, in := range m {
			f.total += min(in.sum(), maxTotal-f.total)
		}
	}
	return f.total
}

// write writes the lines and inlined calls of a function.
func (f *function) write(out *bufio.Writer, indent int) {
	begin := strings.Repeat(" ", indent)
	for _, at := range sorted(f.body, compareLines) {
		b := f.body[at]
		fmt.Fprintf(out, "%s%s: %d", begin, at, b.count)
		for _, name := range sorted(b.targets, func(x, y string) int {
			return cmp.Or(cmp.Compare(b.targets[y], b.targets[x]), strings.Compare(x, y))
		}) {
			fmt.Fprintf(out, " %s:%d", name, b.targets[name])
		}
		out.WriteByte('\n')
	}
	for _, at := range sorted(f.calls, compareLines) {
		for _, name := range sorted(f.calls[at], strings.Compare) {
			in := f.calls[at][name]
			fmt.Fprintf(out, "%s%s: %s:%d\n", begin, at, name, in.total)
			in.write(out, indent+1)
		}
	}
}

// String is a line as LLVM writes it.
func (l line) String() string {
	if l.discriminator == 0 {
		return fmt.Sprint(l.offset)
	}
	return fmt.Sprintf("%d.%d", l.offset, l.discriminator)
}

func compareLines(a, b line) int {
	return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.discriminator, b.discriminator))
}
