package filter

import (
	"strconv"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// answer is the text for a place.
type answer struct {
	// name is the physical function with the offset in it; for formTag and formBPF the part of the
	// name that the text lacks, "_NAME". "" for none.
	name string
	// source is the source line: "peek at lex.h:3, parse.c:97"; "" if unknown.
	source string
	// probable: the text only has name and tag of a BPF function, and one known function fits.
	probable bool
	// otherTag: the known BPF program of this name has another tag.
	otherTag bool
	// trampoline: signal handlers return to this function.
	trampoline bool
	atStart    bool          // the place is the first byte of its function
	byFile     bool          // the object is known only by its file name
	lineless   bool          // the object is known, but has no lines
	reason     ingest.Reason // ReasonNone if there is an answer
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

// fileLine is "FILE:LINE", or "FILE" if the line is unknown.
func fileLine(file string, line uint32) string {
	file = texts.Printable(file)
	if line == 0 {
		return file
	}
	return file + ":" + strconv.FormatUint(uint64(line), 10)
}
