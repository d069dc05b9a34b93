package dwarf

// encoding holds the unit's parameters that determine the size of a form.
type encoding struct {
	addrSize uint8
	is64     bool
	refAddr  uint8 // size of DW_FORM_ref_addr: of an address in DWARF 2, else of an offset
}

func (e encoding) offsetSize() uint8 {
	if e.is64 {
		return 8
	}
	return 4
}

// extent is the length of a form's values: a fixed size, or one of the kinds below.
type extent uint8

const (
	extentUnknown  extent = 0xff - iota // an unknown form
	extentVariable                      // each value has its own length
	extentAddress
	extentOffset
	extentRefAddr
)

// extents is indexed by form: the abbreviation table of a unit has hundreds of them.
var extents = func() (t [64]extent) {
	for i := range t {
		t[i] = extentOf(uint16(i))
	}
	return t
}()

func extentOf(form uint16) extent {
	switch form {
	case formFlagPresent, formImplicitConst:
		return 0
	case formData1, formRef1, formFlag, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		return 4
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formAddr:
		return extentAddress
	case formRefAddr:
		return extentRefAddr
	case formStrp, formSecOffset, formLineStrp, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return extentOffset
	case formBlock, formBlock1, formBlock2, formBlock4, formExprloc, formString, formSdata,
		formUdata, formRefUdata, formIndirect, formStrx, formAddrx, formLoclistx,
		formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		return extentVariable
	}
	return extentUnknown
}

func lookupExtent(form uint16) extent {
	if int(form) < len(extents) {
		return extents[form]
	}
	return extentOf(form)
}

// fixedSize returns the size of values of a form, if they all have the same.
func (e encoding) fixedSize(form uint16) (uint8, bool) {
	switch x := lookupExtent(form); x {
	case extentUnknown, extentVariable:
		return 0, false
	case extentAddress:
		return e.addrSize, true
	case extentOffset:
		return e.offsetSize(), true
	case extentRefAddr:
		return e.refAddr, true
	default:
		return uint8(x), true
	}
}

// class selects the walk's treatment of an entry with an abbreviation.
type class uint8

const (
	classOther  class = iota // attributes and, if a sibling is given, children are skipped
	classScope               // children can be functions or inlined calls
	classType                // as classScope where types can hold code
	classBody                // a subprogram without addresses: local types in it hold code
	classFunc                // a subprogram with addresses
	classInline              // an inlined call
)

// step is one instruction of a compiled abbreviation: skip pre bytes, then read a value of the
// form into the slot, or skip it.
type step struct {
	pre  uint32
	form uint16
	slot slot
	size uint8 // of the values, 1 to 8; 0 if readForm or skipForm is needed
	arg  int32 // index into implicit, for DW_FORM_implicit_const
}

// program is a run of steps and the bytes after the last.
type program struct {
	lo, hi uint32
	tail   uint32
}

// abbrev is a compiled abbreviation. full reads all attributes of interest in the entry, skip
// only its sibling. sibling is the position of a four byte sibling reference from the first
// attribute on, or -1.
type abbrev struct {
	tag      uint16
	class    class
	children bool
	sibling  int32
	full     program
	skip     program
}

// abbrevs is a compiled table of .debug_abbrev. Producers number from 1 on, so the code is an
// index; other codes are in the map.
type abbrevs struct {
	list     []abbrev
	sparse   map[uint64]uint32
	steps    []step
	implicit []int64
	damage   string     // why the table ends early, "" if it does not
	specs    []attrSpec // scratch

	enc   encoding
	sizes [64]uint8 // of values of the first forms in enc; variableSize if they differ
}

type attrSpec struct {
	attr, form uint16
	size       uint8 // in a Tree: of the values, 1 to 8, specOnly if value is all; else 0
	value      int64
}

func (t *abbrevs) lookup(code uint64) *abbrev {
	if code-1 < uint64(len(t.list)) && t.sparse == nil {
		return &t.list[code-1]
	}
	if i, ok := t.sparse[code]; ok {
		return &t.list[i]
	}
	return nil
}

// parse compiles the table at off and replaces the content of t. It keeps the abbreviations
// before damage and returns the reason, or "".
func (t *abbrevs) parse(sec []byte, off uint64, enc encoding) string {
	t.list, t.steps, t.implicit = t.list[:0], t.steps[:0], t.implicit[:0]
	t.sparse = nil
	t.use(enc)
	r := buf{b: sec}
	r.seek(off)
	for {
		code := r.uleb()
		if r.bad {
			return "abbreviation table does not end"
		}
		if code == 0 {
			return ""
		}
		if len(t.list) >= maxAbbrevs {
			return "too many abbreviations"
		}
		ab := abbrev{sibling: -1}
		tag := r.uleb()
		ab.tag = uint16(min(tag, 0xffff))
		ab.children = r.u8() != 0
		if reason := t.readSpecs(&r); reason != "" {
			return reason
		}
		t.compile(&ab)
		t.add(code, ab)
	}
}

// parseOne compiles only the abbreviation with this code: the first one, as a rule,
// when it is a root entry's. The result is valid until the next call.
func (t *abbrevs) parseOne(sec []byte, off, code uint64, enc encoding) (*abbrev, string) {
	t.list, t.steps, t.implicit = t.list[:0], t.steps[:0], t.implicit[:0]
	t.use(enc)
	r := buf{b: sec}
	r.seek(off)
	for n := 0; n < maxAbbrevs; n++ {
		c := r.uleb()
		if r.bad || c == 0 {
			break
		}
		ab := abbrev{sibling: -1, tag: uint16(min(r.uleb(), 0xffff))}
		ab.children = r.u8() != 0
		if reason := t.readSpecs(&r); reason != "" {
			return nil, reason
		}
		if c == code {
			t.compile(&ab)
			t.list = append(t.list, ab)
			return &t.list[0], ""
		}
	}
	return nil, "entry without abbreviation"
}

func (t *abbrevs) add(code uint64, ab abbrev) {
	if t.sparse == nil && code == uint64(len(t.list))+1 {
		t.list = append(t.list, ab)
		return
	}
	if t.sparse == nil {
		t.sparse = make(map[uint64]uint32, len(t.list)+1)
		for i := range t.list {
			t.sparse[uint64(i)+1] = uint32(i)
		}
	}
	if _, dup := t.sparse[code]; !dup {
		t.sparse[code] = uint32(len(t.list))
		t.list = append(t.list, ab)
	}
}

// readSpecs reads the attribute specifications of one abbreviation into specs.
func (t *abbrevs) readSpecs(r *buf) string {
	t.specs = t.specs[:0]
	for {
		var s attrSpec
		if left := r.b[r.off:]; len(left) > 1 && (left[0]|left[1]) < 0x80 { // as a rule
			s.attr, s.form = uint16(left[0]), uint16(left[1])
			r.off += 2
		} else {
			s.attr, s.form = uint16(min(r.uleb(), 0xffff)), uint16(min(r.uleb(), 0xffff))
		}
		if s.form == formImplicitConst {
			s.value = r.sleb()
		}
		switch {
		case r.bad:
			return "abbreviation table does not end"
		case s.attr|s.form == 0:
			return ""
		case lookupExtent(s.form) == extentUnknown:
			return "unknown form in an abbreviation"
		case len(t.specs) >= maxAbbrevAttrs:
			return "too many attributes in an abbreviation"
		}
		t.specs = append(t.specs, s)
	}
}

// variableSize marks forms with values of different sizes.
const variableSize = 0xff

// use sets the encoding that the sizes of forms depend on.
func (t *abbrevs) use(enc encoding) {
	if t.enc == enc && t.sizes[formData1] == 1 {
		return
	}
	t.enc = enc
	for form := range t.sizes {
		size, ok := enc.fixedSize(uint16(form))
		if !ok {
			size = variableSize
		}
		t.sizes[form] = size
	}
}

// sizeOf returns the size of values of a form, or variableSize.
func (t *abbrevs) sizeOf(form uint16) uint8 {
	if int(form) < len(t.sizes) {
		return t.sizes[form]
	}
	if size, ok := t.enc.fixedSize(form); ok {
		return size
	}
	return variableSize
}

func (t *abbrevs) compile(ab *abbrev) {
	pc, decl := false, false
	for _, s := range t.specs {
		pc = pc || s.attr == atLowPC || s.attr == atRanges
		decl = decl || s.attr == atDeclaration
	}
	ab.class = classify(ab.tag, pc, decl)
	ab.skip, ab.sibling = t.program(siblingSlots)
	ab.full = ab.skip
	switch ab.tag {
	case tagSubprogram, tagInlinedSubroutine, tagLexicalBlock:
		ab.full, _ = t.program(functionSlots)
	case tagCompileUnit, tagPartialUnit, tagSkeletonUnit, tagTypeUnit:
		ab.full, _ = t.program(unitSlots)
	case tagNamespace, tagModule, tagClassType, tagStructureType, tagUnionType,
		tagEnumerationType, tagInterfaceType:
		ab.full, _ = t.program(scopeSlots)
	}
	if !ab.children {
		ab.sibling = -1
	}
}

// program compiles specs, with the slots of the attributes to read. at is the position of a four
// byte sibling reference, or -1.
func (t *abbrevs) program(slots *slotTable) (p program, at int32) {
	p.lo, at = uint32(len(t.steps)), -1
	pre, total, fixed := uint32(0), uint32(0), true
	for i := range t.specs {
		s := &t.specs[i]
		size, sl := t.sizeOf(s.form), slots.of(s.attr)
		ok := size != variableSize
		if sl == slotNone && ok {
			pre += uint32(size)
			total += uint32(size)
			continue
		}
		if sl == slotSibling && s.form == formRef4 && fixed && at < 0 {
			at = int32(total)
		}
		st := step{pre: pre, form: s.form, slot: sl}
		if size <= 8 {
			st.size = size
		}
		if s.form == formImplicitConst {
			st.arg = int32(len(t.implicit))
			t.implicit = append(t.implicit, s.value)
		}
		t.steps = append(t.steps, st)
		pre = 0
		if fixed = fixed && ok; fixed {
			total += uint32(size)
		}
	}
	p.tail, p.hi = pre, uint32(len(t.steps))
	return p, at
}

func classify(tag uint16, pc, decl bool) class {
	switch tag {
	case tagSubprogram:
		switch {
		case pc:
			return classFunc
		case !decl:
			return classBody
		}
	case tagInlinedSubroutine:
		return classInline
	case tagClassType, tagStructureType, tagUnionType, tagInterfaceType, tagEnumerationType,
		tagVariantPart:
		return classType
	case tagArrayType, tagSubroutineType, tagCallSite, tagGNUCallSite, tagGNUParameterPack:
	default:
		return classScope
	}
	return classOther
}
