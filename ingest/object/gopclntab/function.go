package gopclntab

import (
	"symbolize/ingest/addr"
)

// NoParent marks an inlined call right in its function.
const NoParent int32 = -1

// A Function is a function with its inlined calls and lines. It is valid until the
// visit returns, except Name, a part of Input.Data.
type Function struct {
	addr.Range // without the padding up to the next function, where the table has its end
	Name       []byte
	File       uint32 // where it is declared: number for Table.File, or NoFile
	StartLine  uint32 // of the declaration; 0 before Go 1.20, and for generated code
	// Inlines are its inlined calls in pre-order: each after its caller, before the
	// caller's next. All have code.
	Inlines []Inline
	// Lines are in order of address; the first is at Start, the last one goes to End.
	Lines []Line
}

// An Inline is a call that was inlined.
type Inline struct {
	Name      []byte // of the function inlined
	File      uint32 // where that is declared, or NoFile
	StartLine uint32 // of its declaration; 0 before Go 1.20
	Parent    int32  // the call that it is in: index into Function.Inlines, or NoParent
	Depth     uint32 // 1 for a call right in the function
	CallFile  uint32 // where it is called: number for Table.File, or NoFile
	CallLine  uint32 // 0 if unknown
	// Ranges are the code of the call and of the calls inlined into it, in order of address. They
	// are within Parent's and do not touch each other.
	Ranges []addr.Range
}

// A Line is the source position of the code from Addr to the next Line: the file and line
// of the innermost inlined call, or of the function. Line 0 is unknown.
type Line struct {
	Addr addr.Addr
	File uint32 // number for Table.File, or NoFile
	Line uint32
}

// Budget of reading: the bytes of shared data that all functions together may read, as
// floor + factor × size of the table. That of cmd/go needs a factor of 0.3.
const (
	budgetFloor  = 1 << 20
	budgetFactor = 16
)

// Functions visits the functions in order of address until visit returns false. Lost is the number
// of unreadable and partly read functions, and err, a *decode.Error, the error of the first.
func (t *Table) Functions(visit func(*Function) bool) (lost int, err error) {
	return t.FunctionsIn(func(addr.Range) bool { return true }, visit)
}

// FunctionsIn is Functions for functions with a range, which may include the padding
// after them, want accepts. The others are not decoded.
func (t *Table) FunctionsIn(want func(addr.Range) bool, visit func(*Function) bool) (
	lost int, err error) {
	w := walker{t: t, left: budgetFloor + budgetFactor*int64(len(t.in.Data))}
	for i := range t.numFuncs {
		r, reason := t.record(i)
		if reason == "" && !want(addr.Range{Start: addr.Addr(r.entry), End: addr.Addr(r.limit)}) {
			continue
		}
		if reason == "" {
			reason = w.function(&r)
			if w.left < 0 {
				return lost + t.numFuncs - i,
					t.fail(t.structAt+r.at, "functions share more than they can")
			}
			if !visit(&w.f) {
				return w.note(lost, err, &r, reason)
			}
		}
		lost, err = w.note(lost, err, &r, reason)
	}
	return lost, err
}

// note counts a damaged function.
func (w *walker) note(lost int, err error, r *record, reason string) (int, error) {
	if reason == "" {
		return lost, err
	}
	if err == nil {
		err = w.t.fail(w.t.structAt+r.at, "%s", reason)
	}
	return lost + 1, err
}

// walker holds the buffers for decoding a function, reused for the next.
type walker struct {
	t    *Table
	f    Function
	left int64 // of the budget

	at     []span // index of the inlined call by address
	calls  []call
	stack  []int32
	pieces []piece
	ranges []addr.Range
}

// function decodes a function into w.f. A reason describes damage that was left out.
func (w *walker) function(r *record) (reason string) {
	f := &w.f
	*f = Function{
		Name: w.name(r.name), File: NoFile, StartLine: r.startLine,
		Inlines: f.Inlines[:0], Lines: f.Lines[:0],
	}
	f.Start, f.End = addr.Addr(r.entry), addr.Addr(r.limit)
	if end := w.lines(r); end > r.entry && end < r.limit {
		f.End = addr.Addr(end)
	}
	if len(f.Name) == 0 {
		reason = "function has no name"
	}
	if why := w.inlines(r); why != "" {
		reason = why // the valid calls stay
	}
	f.File = w.declared(r.entry)
	return reason
}

// name returns a function's name and charges it to the budget.
func (w *walker) name(off uint32) []byte {
	b := cString(w.t.names, off)
	w.left -= int64(len(b))
	return b
}

// lines decodes the tables of files and lines together. It returns the end of the table
// of lines.
func (w *walker) lines(r *record) (end uint64) {
	f := &w.f
	files, lines := w.t.stream(r.pcfile, r.entry), w.t.stream(r.pcln, r.entry)
	file, num := NoFile, uint32(0)
	for at := r.entry; at < r.limit && w.left >= 0; {
		if files.end <= at {
			if file = NoFile; files.next() {
				file = w.t.fileOf(r.cu, files.value)
			} else {
				files.end = ^uint64(0)
			}
			w.left--
		}
		if lines.end <= at {
			if num = 0; lines.next() {
				num = line(lines.value)
				end = lines.end
			} else {
				lines.end = ^uint64(0)
			}
			w.left--
		}
		if n := len(f.Lines); n == 0 || f.Lines[n-1].File != file || f.Lines[n-1].Line != num {
			f.Lines = append(f.Lines, Line{addr.Addr(at), file, num})
		}
		at = min(files.end, lines.end)
	}
	// The code after the end of the tables is padding, which End leaves out.
	for n := len(f.Lines); end > 0 && n > 1 && uint64(f.Lines[n-1].Addr) >= end; n-- {
		f.Lines = f.Lines[:n-1]
	}
	return end
}

// position returns the file and line of an address in the function.
func (w *walker) position(a uint64) (file, line uint32) {
	lo, hi := 0, len(w.f.Lines)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if uint64(w.f.Lines[mid].Addr) <= a {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return NoFile, 0
	}
	l := w.f.Lines[lo-1]
	return l.File, l.Line
}

// declared returns the file of a function: the one of its first code that is not inlined
// into it.
func (w *walker) declared(entry uint64) uint32 {
	at := entry
	for _, s := range w.at {
		if s.call < 0 {
			at = s.start
			break
		}
	}
	file, _ := w.position(at)
	return file
}
