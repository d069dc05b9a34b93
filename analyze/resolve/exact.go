package resolve

import (
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/symlist"
	"symbolize/store"
)

const (
	// padded is the least alignment of a function with padding before it: where compilers
	// do not align functions, none is before them.
	padded = 8
	// aligned is how most compilers align functions. Labels inside of functions, which
	// may follow a call, are not.
	aligned = 16
)

// Exact returns ingest's check of offsets in the places of return addresses
// (input.Options.Exact): which of them no call can precede. These are
//
//   - the first byte of the code that signal handlers return to, known by its name
//     (ingest.IsSignalReturn) or by its unwind table (augmentation S): the kernel put the address
//     onto the stack, without a call;
//   - the first byte of a function with no function before it, but padding: an interrupt
//     came there, or the address was put onto the stack. A symbol without a size is assumed
//     to end before the padding, except in kallsyms of kernels that name their padding.
//
// A function that begins where another ends stays a return address: compilers put nothing behind a
// call that does not return, such as a call of abort.
//
// The effect of the rules was measured in 559,556 frames of a mixed load (C, C++, Go, Python,
// the kernel; by frame pointers), where the code before each address of user space was
// looked at for a call:
//
//	frames    share   address                         truth
//	   660  0.118 %   signal trampolines              no call before any
//	     3  0.001 %   first byte, padding: kernel     interrupts at a first instruction
//	   578  0.103 %   first byte, padding: user       no call before any: words that code
//	                                                  without frame pointers left, as perf
//	                                                  names them
//	    75  0.013 %   first byte, function before it  a call before all: left as they are
//	32,080  5.733 %   runtime.goexit+1                Go puts it below each goroutine for the
//	                                                  byte before it to be looked up
//	   394  0.070 %   an interrupt of the             exact, inside of functions: a byte
//	                  kernel's own code came at       changes no function but the 3 above
//	    13  0.002 %   behind sigpanic, asyncPreempt   the same, of Go
func Exact(v store.View) func(*ingest.Object, []addr.Offset) []addr.Offset {
	return func(src *ingest.Object, returns []addr.Offset) []addr.Offset {
		if src.ID.IsZero() || src.Reason != ingest.ReasonNone {
			return nil // without names a byte makes no difference
		}
		m, _, _ := store.FindOne(v, src.ID)
		if m == nil {
			return nil
		}
		addrs, reason := NewAddresses(src, m)
		if reason != ingest.ReasonNone {
			return nil
		}
		offsets := make(map[addr.Addr]addr.Offset, len(returns))
		list := make([]addr.Addr, 0, len(returns))
		for _, off := range returns {
			if at, ok := addrs.Of(off); ok {
				offsets[at] = off
				list = append(list, at)
			}
		}
		slices.Sort(list)
		var exact []addr.Offset
		for _, at := range NewFinder(v, m).Exact(list) {
			exact = append(exact, offsets[at])
		}
		slices.Sort(exact)
		return exact
	}
}

// Exact returns which of table addresses, ascending, are exact where return addresses are expected,
// by the rules of the function Exact. It replaces a Join.
func (f *Finder) Exact(returns []addr.Addr) (exact []addr.Addr) {
	var list, ask []addr.Addr
	f.textsLater = true
	defer func() { f.textsLater = false }()
	for _, at := range returns {
		if at%padded == 0 && at > 0 {
			list = append(list, at)
		}
	}
	for part := range slices.Chunk(slices.Compact(list), shardSize) {
		ask = ask[:0]
		for _, at := range part {
			ask = append(ask, addr.Site(at, true), at)
		}
		f.Join(ask)
		f.readNamesAt(part)
		for i, at := range part {
			if f.noCallBefore(at, 2*i) {
				exact = append(exact, at)
			}
		}
	}
	return exact
}

// readNamesAt reads the names that noCallBefore uses for the addresses of the last Join: names
// of functions that begin there, and of the ones before these. Few return addresses are such.
func (f *Finder) readNamesAt(part []addr.Addr) {
	used := make([]bool, len(f.texts))
	for i, at := range part {
		name, start := f.Function(f.Place(2*i+1), SymbolNames)
		if start == at || start == addr.Site(at, true) {
			before, _ := f.Function(f.Place(2*i), SymbolNames)
			used[name], used[before] = true, true
		}
	}
	for i := range f.layers {
		l := &f.layers[i]
		l.names.drop(func(t Text) bool { return used[t] })
		l.files.drop(func(Text) bool { return false })
		if l.table != nil && f.readTexts(l) != nil {
			f.forget()
		}
	}
}

// noCallBefore reports whether no call can end before an address, the last Join's number
// i+1; number i is the byte before it.
func (f *Finder) noCallBefore(at addr.Addr, i int) bool {
	name, start := f.Function(f.Place(i+1), SymbolNames)
	switch {
	case name == 0 || start != at && start != addr.Site(at, true):
		return false
	case strings.HasPrefix(f.Text(name), ingest.SignalPrefix):
		return start == at || start == addr.Site(at, true)
	case start != at:
		return false
	case ingest.IsSignalReturn(f.Text(name)):
		return true
	}
	p := f.Place(i)
	before, _ := f.Function(p, SymbolNames)
	switch {
	case before == 0, strings.HasPrefix(f.Text(before), symlist.KernelPadding):
		return true
	case p.unsized && p.from == p.to && !p.SymbolKind.List():
		return at%aligned == 0 // it reaches over the padding
	}
	return false
}
