package dwarf

import "slices"

// An Entry is one entry of .debug_info as a Tree reads it. Its methods give the attributes by their
// codes (DW_AT_); strings, references and addresses are read by the Tree.
type Entry struct {
	Pos
	Tag      uint16 // DW_TAG_ code; 0 ends a list of children
	Children bool
	next     uint64 // position after the attributes
	attrs    []attribute
}

// usualAttributes is how many attributes an entry has at most, but for few.
const usualAttributes = 24

// attribute is a value as stored: a number, an offset, an index, or the position and length of a
// block.
type attribute struct {
	code, form uint16
	val        uint64
	size       uint32 // of a block
}

func (e *Entry) reset(p Pos) { *e = Entry{Pos: p, attrs: e.attrs[:0]} }

func (e *Entry) attr(code uint16) *attribute {
	for i := range e.attrs {
		if e.attrs[i].code == code {
			return &e.attrs[i]
		}
	}
	return nil
}

// Has reports whether an entry has an attribute.
func (e *Entry) Has(code uint16) bool { return e.attr(code) != nil }

// Flag returns a flag.
func (e *Entry) Flag(code uint16) bool {
	a := e.attr(code)
	return a != nil && a.val != 0
}

// Class is the class of an attribute's value, by its form.
type Class uint8

// The classes of values: absent or of no use here, a constant, one with a sign, a block or
// expression, a position or index of a list (DW_FORM_sec_offset, DW_FORM_loclistx), an address or
// an index of one, a string, a reference.
const (
	ClassNone Class = iota
	ClassConst
	ClassSigned
	ClassBlock
	ClassList
	ClassAddress
	ClassString
	ClassRef
)

// Class returns the class of an attribute. The forms of numbers were positions of lists up to
// DWARF 3; the caller knows which of its attributes can be lists.
func (e *Entry) Class(code uint16) Class {
	a := e.attr(code)
	if a == nil {
		return ClassNone
	}
	switch a.form {
	case formData1, formData2, formData4, formData8, formUdata, formFlag, formFlagPresent:
		return ClassConst
	case formSdata, formImplicitConst:
		return ClassSigned
	case formBlock, formBlock1, formBlock2, formBlock4, formExprloc, formData16:
		return ClassBlock
	case formSecOffset, formLoclistx, formRnglistx:
		return ClassList
	case formAddr, formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return ClassAddress
	case formString, formStrp, formLineStrp, formStrpSup, formGNUStrpAlt, formStrx, formStrx1,
		formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		return ClassString
	case formRef1, formRef2, formRef4, formRef8, formRefUdata, formRefAddr, formRefSig8, formRefSup4,
		formRefSup8, formGNURefAlt:
		return ClassRef
	}
	return ClassNone
}

// Const returns a constant. signed reports that the form has a sign; data forms are extended by
// zeros.
func (e *Entry) Const(code uint16) (v uint64, signed, ok bool) {
	switch e.Class(code) {
	case ClassConst:
		return e.attr(code).val, false, true
	case ClassSigned:
		return e.attr(code).val, true, true
	}
	return 0, false, false
}

// Width returns the bytes of a constant of a fixed size, 0 for other values.
func (e *Entry) Width(code uint16) int {
	if a := e.attr(code); a != nil {
		switch a.form {
		case formData1:
			return 1
		case formData2:
			return 2
		case formData4:
			return 4
		case formData8:
			return 8
		}
	}
	return 0
}

// Block returns the bytes of a block or an expression, which the caller must not change.
func (e *Entry) Block(code uint16) ([]byte, bool) {
	if e.Class(code) != ClassBlock {
		return nil, false
	}
	a := e.attr(code)
	r := e.Root.info
	r.seek(a.val)
	return r.bytes(uint64(a.size)), true
}

// sibling returns the position of the next entry at this depth, if the entry has it.
func (e *Entry) sibling() (uint64, bool) {
	a := e.attr(atSibling)
	if a == nil {
		return 0, false
	}
	switch a.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		to := e.Root.start() + a.val
		return to, to > e.next && to < e.Root.end()
	}
	return 0, false
}

// entryAbbrev is an abbreviation with all its attributes, which are a part of the table's.
type entryAbbrev struct {
	tag      uint16
	children bool
	from, to uint32
}

// entryTable is a table of .debug_abbrev for a Tree.
type entryTable struct {
	list   []entryAbbrev
	specs  []attrSpec
	sparse map[uint64]uint32
}

// specOnly marks attributes of which an entry has no bytes.
const specOnly = 0xff

// add adds the attributes of an abbreviation.
func (t *entryTable) add(ab *entryAbbrev, a *abbrevs) {
	ab.from = uint32(len(t.specs))
	for _, s := range a.specs {
		switch size := a.sizeOf(s.form); {
		case s.form == formImplicitConst:
			s.size = specOnly
		case s.form == formFlagPresent:
			s.size, s.value = specOnly, 1
		case size <= 8:
			s.size = size
		}
		t.specs = append(t.specs, s)
	}
	ab.to = uint32(len(t.specs))
}

func (t *entryTable) lookup(code uint64) *entryAbbrev {
	if t.sparse == nil && code-1 < uint64(len(t.list)) {
		return &t.list[code-1]
	}
	if i, ok := t.sparse[code]; ok {
		return &t.list[i]
	}
	return nil
}

// parse reads the table at off. It keeps the abbreviations before damage and returns the reason, or
// "".
func (t *entryTable) parse(sec []byte, off uint64, enc encoding) string {
	var a abbrevs // reads specifications
	a.use(enc)
	r := buf{b: sec}
	r.seek(off)
	for {
		code := r.uleb()
		if r.failed() {
			return "abbreviation table does not end"
		}
		if code == 0 {
			return ""
		}
		if len(t.list) >= maxAbbrevs {
			return "too many abbreviations"
		}
		ab := entryAbbrev{tag: uint16(min(r.uleb(), 0xffff)), children: r.u8() != 0}
		if reason := a.readSpecs(&r); reason != "" {
			return reason
		}
		if t.sparse == nil && code != uint64(len(t.list))+1 {
			t.sparse = make(map[uint64]uint32, len(t.list)+1)
			for i := range t.list {
				t.sparse[uint64(i)+1] = uint32(i)
			}
		}
		if t.sparse != nil {
			if _, dup := t.sparse[code]; dup {
				continue
			}
			t.sparse[code] = uint32(len(t.list))
		}
		t.add(&ab, &a)
		t.list = append(t.list, ab)
	}
}

// read reads the attributes of an entry.
func (t *entryTable) read(ab *entryAbbrev, r *buf, enc encoding, e *Entry) bool {
	specs := t.specs[ab.from:ab.to]
	e.attrs = slices.Grow(e.attrs, min(len(specs), usualAttributes))
	for i := range specs {
		s := &specs[i]
		a := attribute{code: s.attr, form: s.form, val: uint64(s.value)}
		switch {
		case s.size == specOnly:
		case s.size > 0:
			a.val = r.sized(s.size)
		default:
			if s.form == formIndirect {
				a.form = uint16(min(r.uleb(), 0xffff))
				if a.form == formIndirect || a.form == formImplicitConst {
					return false
				}
			}
			a.read(r, enc)
		}
		e.attrs = append(e.attrs, a)
	}
	return !r.failed()
}

func (a *attribute) read(r *buf, enc encoding) {
	n := uint64(0)
	switch a.form {
	case formBlock, formExprloc:
		n = r.uleb()
	case formBlock1:
		n = uint64(r.u8())
	case formBlock2:
		n = uint64(r.u16())
	case formBlock4:
		n = uint64(r.u32())
	case formData16:
		n = 16
	default:
		a.val = readForm(r, a.form, enc)
		return
	}
	a.val, a.size = r.position(), uint32(min(n, 1<<31))
	r.skip(n)
	if r.failed() {
		a.val, a.size = 0, 0
	}
}
