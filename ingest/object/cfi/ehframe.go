package cfi

import (
	"bytes"
	"debug/elf"
	"fmt"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	ingestelf "symbolize/ingest/object/elf"
)

// maxEHFrame bounds the bytes of .eh_frame. Chromium's has 30 MB.
const maxEHFrame = 512 << 20

// EHFrame is a .eh_frame section.
type EHFrame struct {
	Name      string // of the file, for messages
	Data      []byte // not changed
	Offset    int64  // of Data in the file, for messages
	Addr      addr.Addr
	Class64   bool
	BigEndian bool
	// Debug is set for .debug_frame: entries refer to their common entry by its offset, and lengths
	// of 64 bits make all offsets 64 bits wide.
	Debug bool
	// TextBase and GOT are the bases of DW_EH_PE_textrel and DW_EH_PE_datarel.
	TextBase, GOT addr.Addr
}

// contents reads the section of an unwind table in a linked file. It is nil where there is none
// with contents, and for relocatable files, where it has no addresses before relocation.
func contents(f *ingestelf.File, name string, limit int64) (*ingestelf.Section, []byte, error) {
	s := f.Section(name)
	if s == nil || s.Type == elf.SHT_NOBITS || s.Size == 0 || f.Type == elf.ET_REL {
		return nil, nil, nil
	}
	b, err := f.Data(s, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("unwind table: %w", err)
	}
	return s, b, nil
}

// FindEHFrame reads the .eh_frame section of a linked file; nil if there is none.
func FindEHFrame(f *ingestelf.File) (*EHFrame, error) { return findEHFrame(f, ".eh_frame") }

// FindDebugFrame reads the .debug_frame section of a linked file, which may be compressed; nil if
// there is none.
func FindDebugFrame(f *ingestelf.File) (*EHFrame, error) { return findEHFrame(f, ".debug_frame") }

func findEHFrame(f *ingestelf.File, name string) (*EHFrame, error) {
	s, b, err := contents(f, name, maxEHFrame)
	if s == nil {
		return nil, err
	}
	e := &EHFrame{
		Name: f.Name, Data: b, Offset: int64(s.Offset), Debug: name == ".debug_frame",
		Class64: f.Class == elf.ELFCLASS64, BigEndian: f.BigEndian,
	}
	if e.Debug { // its pointers are absolute
		return e, nil
	}
	e.Addr = s.Addr
	if t := f.Section(".text"); t != nil {
		e.TextBase = t.Addr
	}
	if t := f.Section(".got"); t != nil {
		e.GOT = t.Addr
	}
	return e, nil
}

// CodeRange is the code that an entry covers.
type CodeRange struct {
	addr.Range
	// Signal marks code that a signal handler returns to: its return address is the one of the
	// interrupted instruction, not of a call. Its range may begin a byte early, for unwinders
	// that look up the byte before every return address.
	Signal bool
}

// Frames visits the code that each entry covers, in the order of the section, until
// visit returns false. Empty ranges are left out; overlaps and repetitions are not.
// Lost is the number of unreadable entries, and err, a *decode.Error, the error of the first.
func (s *EHFrame) Frames(visit func(CodeRange) bool) (lost int, err error) {
	w := walker{s: s, wordSize: 4}
	if s.Class64 {
		w.wordSize = 8
	}
	return w.walk(func(_ entry, f CodeRange) (string, bool) { return "", visit(f) })
}

// walk visits the entries of code that are not empty until visit returns false. A reason is
// damage of the entry.
func (w *walker) walk(visit func(e entry, f CodeRange) (reason string, more bool)) (lost int,
	err error) {
	s := w.s
	for at := 0; at < len(s.Data); {
		e, reason := w.entry(at)
		var r addr.Range
		more := true
		if reason == "" && !e.common {
			if r, reason = w.fde(e); reason == "" && r.End > r.Start {
				reason, more = visit(e, CodeRange{r, w.cie.signal})
			}
		}
		if reason != "" {
			lost++
			if err == nil {
				err = s.fail(at, reason)
			}
		}
		if e.end == 0 || !more {
			break
		}
		at = e.end
	}
	return lost, err
}

func (s *EHFrame) fail(at int, reason string) error {
	name := ".eh_frame: "
	if s.Debug {
		name = ".debug_frame: "
	}
	return &decode.Error{Name: s.Name, Offset: s.Offset + int64(at), Reason: name + reason}
}

// walker walks through a section. It keeps the common entry (CIE) it read last.
type walker struct {
	s        *EHFrame
	wordSize int
	cie      cie
	body     int // where the instructions of the entry begin that fde read last

	// For Rules.
	rules *Builder
	slot  [64]int8 // index in Rule.Saved by register
	stack []Rule   // of DW_CFA_remember_state
	left  int      // of the budget
}

// cie is the part of a common entry that ranges need.
type cie struct {
	at       int // in the section
	valid    bool
	encoding uint8 // of pointers to code
	lsda     uint8 // encoding of pointers to exception tables, or omitted
	signal   bool
	sized    bool // entries have a length of augmentation data
	reason   string

	codeAlign, dataAlign uint64
	ra                   uint64 // register of the return address
	program, end         int    // of the initial instructions
	ran                  bool   // they have been run, to these:
	initial              Rule
	initReason           string
}

// entry is an entry's frame: the body is Data[body:end].
type entry struct {
	body, end int
	common    bool   // it is a CIE
	id        uint64 // else: where its CIE is, see cieOf
	idAt      int    // of the field before the body
}

// entry reads the length at a position. An end of 0 is returned if the next entry cannot
// be found. Length 0 is the terminator: an unwinder stops there, but linkers have left
// more after it.
func (w *walker) entry(at int) (e entry, reason string) {
	c := cursor{b: w.s.Data, at: at, big: w.s.BigEndian}
	size := uint64(c.fixed(4))
	if size == 0 && !c.bad {
		return entry{body: c.at, end: c.at, common: true}, ""
	}
	width := 4
	if size == 0xffffffff {
		size = c.fixed(8)
		if w.s.Debug {
			width = 8
		}
	}
	if c.bad || size > uint64(len(c.b)-c.at) {
		return e, "entry is longer than the section"
	}
	e.end = c.at + int(size)
	c.b = c.b[:e.end]
	e.idAt = c.at
	e.id = c.fixed(width)
	e.common = e.id == 0
	if w.s.Debug {
		e.common = e.id == ^uint64(0)>>(64-8*width)
	}
	e.body = c.at
	if c.bad {
		return e, "entry is too short"
	}
	return e, ""
}

// fde reads the range of an entry.
func (w *walker) fde(e entry) (r addr.Range, reason string) {
	at := e.id
	if !w.s.Debug {
		at = uint64(e.idAt) - e.id
	}
	if at > uint64(e.idAt) && !w.s.Debug || at > uint64(len(w.s.Data)) {
		return r, "common entry lies before the section"
	}
	return w.rangeOf(e, int(at))
}

// rangeOf reads the range of an entry with its common entry at a position.
func (w *walker) rangeOf(e entry, at int) (r addr.Range, reason string) {
	if !w.cie.valid || w.cie.at != at {
		w.cie = w.readCIE(at)
	}
	if w.cie.reason != "" {
		return r, w.cie.reason
	}
	c := w.cursor(e)
	start := w.pointer(&c, w.cie.encoding)
	size := w.pointer(&c, w.cie.encoding&formatMask)
	mask := ^uint64(0)
	if !w.s.Class64 {
		mask >>= 32
	}
	start, size = start&mask, size&mask
	if w.rules != nil && w.cie.sized {
		n := c.leb(false)
		c.bad = c.bad || n > uint64(len(c.b)-c.at)
		c.at += int(min(n, uint64(len(c.b)-c.at)))
	}
	w.body = c.at
	switch {
	case c.bad:
		return r, "range does not end or is encoded in an unknown way"
	case size > mask-start:
		return r, "range ends after the last address"
	}
	return addr.Range{Start: addr.Addr(start), End: addr.Addr(start + size)}, ""
}

func (w *walker) cursor(e entry) cursor {
	return cursor{b: w.s.Data[:e.end], at: e.body, big: w.s.BigEndian}
}

// maxAugmentation bounds an augmentation string; the longest in use is "zPLRSB".
const maxAugmentation = 16

// readCIE reads the common entry at a position, for the encoding of pointers.
func (w *walker) readCIE(at int) (c cie) {
	c = cie{at: at, valid: true, lsda: omitted}
	e, reason := w.entry(at)
	if reason == "" && (e.end == 0 || !e.common) {
		reason = "no common entry where one should be"
	}
	if reason != "" {
		c.reason = reason
		return c
	}
	r := w.cursor(e)
	version := r.byte()
	augmentation := r.name(maxAugmentation)
	if version != 1 && version != 3 && version != 4 {
		c.reason = fmt.Sprintf("common entry of version %d", version)
		return c
	}
	if string(augmentation) == "eh" { // GCC 2
		r.fixed(w.wordSize)
		augmentation = nil
	}
	if version == 4 {
		r.fixed(2) // sizes of addresses and segment selectors
	}
	c.codeAlign, c.dataAlign = r.leb(false), r.leb(true)
	if version == 1 {
		c.ra = uint64(r.byte())
	} else {
		c.ra = r.leb(false)
	}
	c.sized = len(augmentation) > 0 && augmentation[0] == 'z'
	c.signal = bytes.IndexByte(augmentation, 'S') > 0
	if len(augmentation) > 0 {
		c.reason = w.augmentation(&r, augmentation, &c)
	}
	c.program, c.end = r.at, e.end
	if r.bad {
		c.reason = "common entry does not end"
	}
	return c
}

// augmentation reads the data of an augmentation string up to the encoding of pointers to code.
func (w *walker) augmentation(r *cursor, chars []byte, c *cie) (reason string) {
	if chars[0] != 'z' {
		return fmt.Sprintf("unknown augmentation %q", chars)
	}
	size := r.leb(false)
	if r.bad || size > uint64(len(r.b)-r.at) {
		r.bad = true
		return ""
	}
	end := r.at + int(size)
	defer func() {
		if !r.bad {
			r.at = end
		}
	}()
	for _, ch := range chars[1:] {
		switch ch {
		case 'R':
			c.encoding = r.byte()
			if c.encoding == omitted || c.encoding&indirect != 0 {
				return fmt.Sprintf("pointers to code have encoding %#x", c.encoding)
			}
			return ""
		case 'L':
			c.lsda = r.byte()
		case 'P':
			w.pointer(r, r.byte())
		case 'S', 'B', 'G': // signal frame, signed return addresses, memory tagging
		default:
			return fmt.Sprintf("unknown augmentation %q", chars)
		}
	}
	return ""
}
