package filter

import (
	"encoding/binary"

	"symbolize/buildid"
	"symbolize/ingest"
)

// form is how a place was written, as far as its rewriting depends on that.
type form uint8

const (
	formOffset  form = iota // build ID and file offset: replaced
	formAddress             // build ID and ELF virtual address: replaced
	formSymbol              // symbol and offset: kept, the source is added
	formBPF                 // bpf_prog_TAG[_NAME]+0xOFF: kept, the source is added
	formModule              // offset from where the module begins in memory: kept, all follows
	formTag                 // bpf_prog_TAG alone: its name and source are added
	formProgram             // address in a process: of its program where that has a fixed address
)

// place is a place in code as the text has it. Its slices alias the text.
type place struct {
	start, end int // in the text
	form       form
	// weak is set for text that may be no place: it is not counted if it is not known.
	weak   bool
	exact  bool // no return address
	keep   bool // the text stays, and all that is known follows it
	length bool // of the symbol, is in the text
	// doubtful: it may be a return address, or where a signal came.
	doubtful bool
	id       []byte
	symbol   []byte // of formSymbol, formBPF, formTag
	module   []byte
	file     []byte // name of the file, where the text has no build ID
	offset   uint64 // file offset, address, or offset in the symbol
	size     uint64 // of the symbol, with length

	object buildid.ID // where id is nil: the kernel, a module of the markup or of a core dump
	// why is the reason why the place cannot be looked up; ReasonNone if it can.
	why ingest.Reason
}

// appendKey appends the identity of the place, independent of its position in the text.
func (p *place) appendKey(b []byte) []byte {
	flags := byte(p.form)
	for i, set := range [...]bool{p.exact, p.length, len(p.module) > 0, len(p.id) > 0} {
		if set {
			flags |= 0x10 << i
		}
	}
	b = append(b, flags)
	b = binary.LittleEndian.AppendUint64(b, p.offset)
	if p.length {
		b = binary.LittleEndian.AppendUint64(b, p.size)
	}
	if len(p.id) > 0 {
		b = append(b, p.id...)
	} else {
		b = append(b, p.object.String()...)
	}
	b = append(append(b, byte(p.why)), p.symbol...)
	b = append(append(b, 0), p.file...)
	return append(append(b, 0), p.module...)
}

// buildID returns the object's build ID. 40 digits may have been padded: BPF stack maps have no
// length.
func (p *place) buildID() buildid.ID {
	if len(p.id) == 0 {
		return p.object
	}
	return parseID(p.id)
}

// parseID returns the build ID in hexadecimal digits.
func parseID(digits []byte) buildid.ID {
	if len(digits) > 2*buildid.MaxLen || len(digits)%2 != 0 {
		return buildid.ID{}
	}
	var b [buildid.MaxLen]byte
	for i := range len(digits) / 2 {
		b[i] = nibble(digits[2*i])<<4 | nibble(digits[2*i+1])
	}
	if len(digits) == 2*buildid.KeyLen {
		return buildid.Padded(b[:buildid.KeyLen])
	}
	return buildid.New(b[:len(digits)/2])
}

// nibble returns the value of a hexadecimal digit.
func nibble(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	if c >= 'A' {
		return c - 'A' + 10
	}
	return c - '0'
}

// isReturn reports whether a place is looked up one byte before its offset.
func (p *place) isReturn() bool { return !p.exact && p.offset != 0 }
