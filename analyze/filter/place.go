package filter

import (
	"encoding/binary"

	"symbolize/buildid"
	"symbolize/ingest"
)

// form is the written form of a place, as far as its rewriting depends on it.
type form uint8

const (
	formOffset  form = iota // build ID and file offset: replaced
	formAddress             // build ID and ELF virtual address: replaced
	formSymbol              // symbol and offset: kept, the source is added
	formBPF                 // bpf_prog_TAG[_NAME]+0xOFF: kept, the source is added
	formModule              // offset from the start of the module in memory: kept, name and source are added
	formTag                 // bpf_prog_TAG: name and source are added
	formProgram             // address in a process: of its program if that has a fixed address
)

// place is a place in code in the text. Its slices alias the text.
type place struct {
	start, end int // in the text
	form       form
	// weak marks text that may not be a place: it is not counted if it is unknown.
	weak   bool
	exact  bool // not a return address
	keep   bool // the text stays, and the answer follows it
	length bool // the text has the length of the symbol
	// doubtful: a return address, or where a signal interrupted the code.
	doubtful bool
	id       []byte
	symbol   []byte // of formSymbol, formBPF, formTag
	module   []byte
	file     []byte // name of the file, if the text has no build ID
	part     string // the first 32 digits of the file's build ID; "" if the text has none
	offset   uint64 // file offset, address, or offset in the symbol
	size     uint64 // of the symbol, with length

	object buildid.ID // if id is nil: the kernel, a module of the markup or of a core dump
	// why is the reason if the place cannot be looked up.
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
	b = append(append(b, 0), p.part...)
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

// parseID parses a build ID.
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
