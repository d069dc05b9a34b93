package filter

import (
	"strconv"

	"symbolize/ingest"
)

// answer is the result for a place, ready to be written.
type answer struct {
	// name is the physical function and the distance from its start; of formTag and
	// formBPF the part of the name that the text lacks: "_NAME". "" if it has none.
	name string
	// source is where that is: "peek at lex.h:3, parse.c:97"; "" if it is not known.
	source string
	// probable: the text has only the name of a BPF function and its tag, and one known function
	// fits.
	probable bool
	// otherTag: a BPF program of this name is known, and has another tag.
	otherTag bool
	// trampoline: the function is code that signal handlers return to.
	trampoline bool
	atStart    bool          // the place is the first byte of its function
	byFile     bool          // the object is known by its file name alone
	lineless   bool          // it is known, by a source without lines
	reason     ingest.Reason // why there is nothing; ReasonNone if there is something
}

// empty reports whether the answer adds nothing to the text.
func (a *answer) empty() bool { return a.name == "" && a.source == "" }

// appendTo appends the text of a place with its answer.
func (a *answer) appendTo(b []byte, p *place, text []byte) []byte {
	switch {
	case a.empty():
		return append(b, text...)
	case p.form == formSymbol:
		b = append(b, text...)
	case p.form == formTag || p.form == formBPF:
		n := len(p.symbol)
		b = append(b, text[:n]...)
		b = append(b, a.name...)
		b = append(b, text[n:]...)
	case p.keep:
		b = append(b, text...)
		if a.name != "" {
			b = append(append(b, ' '), a.name...)
		}
	default:
		b = append(b, a.name...)
	}
	if a.source != "" {
		b = append(append(append(b, " ("...), a.source...), ')')
	}
	return b
}

// withOffset is "NAME+0xOFF".
func withOffset(name string, offset uint64) string {
	b := make([]byte, 0, len(name)+19)
	b = append(append(b, name...), "+0x"...)
	return string(strconv.AppendUint(b, offset, 16))
}

// fileLine is "FILE:LINE", FILE alone if the line is not known.
func fileLine(file string, line uint32) string {
	file = ingest.Printable(file)
	if line == 0 {
		return file
	}
	return file + ":" + strconv.FormatUint(uint64(line), 10)
}
