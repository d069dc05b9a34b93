package dwarf

import (
	"encoding/binary"
	"math/bits"
)

// A unit is a unit header and the attributes of its root entry that other units need.
type unit struct {
	off, end uint64 // of the unit in .debug_info
	die      uint64 // of its root entry
	kids     uint64 // of the first entry after the root; 0 if it has no children
	abbrev   uint64 // of its table in .debug_abbrev
	enc      encoding
	version  uint8
	kind     uint8
	shared   bool // an earlier unit has the same abbreviations
	ownsLine bool // it owns the rows of its line table
	// sharesLine: an earlier unit has the same line table, and the rows outside functions.
	sharesLine bool
	id         uint64 // of skeleton and split units; 0 if none
	language   uint16

	sig, typeOff uint64 // of a type unit: its signature, and where its type is in it

	name, compDir, dwoName ref    // strings
	lowPC                  ref    // base of range lists
	line                   uint64 // of the table in .debug_line
	hasLine, contiguous    bool   // contiguous: low_pc and high_pc, no ranges
	addrBase, strBase      uint64
	rngBase                uint64        // DW_AT_rnglists_base; GNU: base of ranges in the .dwo
	locBase                uint64        // DW_AT_loclists_base
	bias                   *contribution // of a unit in a .dwp file

	damage string // why the unit cannot be read
}

// A ref is an attribute value with its form; form 0 is an absent attribute.
type ref struct {
	val  uint64
	form uint16
}

func (v *values) ref(s slot) ref {
	if !v.has(s) {
		return ref{}
	}
	return ref{v.val[s], v.form[s]}
}

// scanner walks the unit headers of .debug_info, once per Data.
type scanner struct {
	d                     *Data
	tables                map[uint64]struct{} // abbreviations seen
	lines                 map[uint64]struct{} // line tables seen
	abbrevLeft, linesLeft int64               // budgets
	info                  []byte              // the available part of .debug_info
	root                  abbrevs             // scratch
	vals                  values
	types                 bool // the section is .debug_types, or only type units are of interest
}

// scan finds all units; it does so beside its caller while .debug_info grows. It is
// cheap: a header, a root entry, and one pass over the abbreviations to know how long
// they are.
func (d *Data) scan() {
	d.scanOnce.Do(func() {
		if d.sec.Growth != nil {
			go d.scanUnits()
			return
		}
		d.scanUnits()
	})
}

func (d *Data) scanUnits() {
	defer d.units.close()
	s := scanner{
		d:          d,
		tables:     make(map[uint64]struct{}),
		lines:      make(map[uint64]struct{}),
		abbrevLeft: sharedBudgetFactor*int64(len(d.sec.Abbrev)) + sharedBudgetFloor,
		linesLeft:  sharedBudgetFactor*int64(len(d.sec.Line)) + sharedBudgetFloor,
	}
	if d.sec.Growth == nil {
		s.info = d.sec.Info
	}
	if guarded(func() {
		if d.sec.CUIndex != nil {
			d.index, d.scanErr = parseIndex(d.sec.CUIndex, d.sec.BigEndian)
		}
		s.run()
	}) {
		d.scanErr = trouble{".debug_info", 0, "file changed while it was read"}
	}
}

// grown waits for n bytes of .debug_info, or for its end.
func (s *scanner) grown(n uint64) {
	if g := s.d.sec.Growth; g != nil && n > uint64(len(s.info)) {
		s.info = s.d.sec.Info[:min(g.Wait(n), uint64(len(s.d.sec.Info)))]
	}
}

func (s *scanner) run() {
	d := s.d
	biases := d.biases()
	for n, off := 0, uint64(0); ; {
		if s.grown(off + lengthSize); off >= uint64(len(s.info)) {
			return
		}
		if n >= maxUnits {
			d.scanErr = trouble{".debug_info", off, "too many units"}
			return
		}
		u, reason := s.header(off)
		if reason != "" {
			d.scanErr = trouble{".debug_info", off, reason}
			return
		}
		off = u.end
		if u.die == 0 || u.kind == utType || u.kind == utSplitType {
			continue // padding, and types, which hold no code and can be very many
		}
		u.bias = biases[u.off]
		if u.damage == "" {
			u.damage = s.table(&u)
		}
		if u.damage == "" {
			u.damage = s.rootEntry(&u)
		}
		d.units.add(u)
		n++
	}
}

// header reads the header at off. The reason is set if no further unit can be found; damage of
// the unit alone is noted in it.
func (s *scanner) header(off uint64) (unit, string) {
	r := buf{b: s.info, big: s.d.sec.BigEndian}
	r.seek(off)
	n, is64 := r.length()
	if at := uint64(r.off); !r.bad && n <= uint64(len(s.d.sec.Info)) {
		s.grown(at + n)
		r.b = s.info
	}
	if r.bad {
		return unit{}, "unit header does not end"
	}
	u := unit{off: off, end: uint64(r.off) + n, enc: encoding{is64: is64}}
	if n == 0 {
		return u, ""
	}
	if n > uint64(r.left()) {
		return unit{}, "unit is longer than the section"
	}
	r.b = r.b[:u.end]
	version := r.u16()
	u.version = uint8(min(version, 255))
	u.die = uint64(r.off)
	if version < 2 || version > 5 {
		u.damage = "unknown DWARF version"
		return u, ""
	}
	s.headerFields(&u, &r)
	u.die = uint64(r.off)
	if r.bad {
		u.damage = "unit header does not end"
	} else if u.enc.addrSize != 4 && u.enc.addrSize != 8 {
		u.damage = "unknown size of addresses"
	}
	u.enc.refAddr = u.enc.offsetSize()
	if u.version == 2 {
		u.enc.refAddr = u.enc.addrSize
	}
	return u, ""
}

func (s *scanner) headerFields(u *unit, r *buf) {
	u.kind = utCompile
	if u.version < 5 {
		u.abbrev = r.offset(u.enc.is64)
		u.enc.addrSize = r.u8()
		if s.types {
			u.sig, u.typeOff = r.u64(), r.offset(u.enc.is64)
		}
		return
	}
	u.kind = r.u8()
	u.enc.addrSize = r.u8()
	u.abbrev = r.offset(u.enc.is64)
	switch u.kind {
	case utCompile, utPartial:
	case utSkeleton, utSplitCompile:
		u.id = r.u64()
	case utType, utSplitType:
		u.sig, u.typeOff = r.u64(), r.offset(u.enc.is64)
	default:
		u.damage = "unknown type of unit"
	}
}

// table finds out whether the abbreviations of a unit are shared and charges their
// length to the budget.
func (s *scanner) table(u *unit) string {
	base, ok := u.bias.add(colAbbrev, u.abbrev)
	if !ok || base > uint64(len(s.d.sec.Abbrev)) {
		return "abbreviations lie outside .debug_abbrev"
	}
	u.abbrev = base
	if _, seen := s.tables[base]; seen {
		u.shared = true
		return ""
	}
	if s.abbrevLeft < 0 {
		return "abbreviation tables overlap"
	}
	s.tables[base] = struct{}{}
	s.abbrevLeft -= tableLength(s.d.sec.Abbrev[base:])
	return ""
}

// tableLength returns the length of the abbreviation table at the start of b.
func tableLength(b []byte) int64 {
	r := buf{b: b}
	for r.uleb() != 0 && !r.bad {
		r.skipLEB() // tag
		r.skip(1)
		r.skipSpecs()
	}
	return int64(r.off)
}

// skipSpecs skips the attribute specifications of one abbreviation. Most have a byte for the
// attribute and one for the form: four such are looked at in one word, for the pair of zeros that
// ends them and for forms that a value follows.
func (r *buf) skipSpecs() {
	const tops, low, forms = 0x8080808080808080, 0x0080008000800080, 0x2100210021002100
	for {
		for len(r.b)-r.off >= 8 {
			x := binary.LittleEndian.Uint64(r.b[r.off:])
			if x&tops != 0 {
				break
			}
			// A top bit is set where a byte is 0: all are below 0x80, so none borrows.
			zero, value := (tops-x)&tops, (tops-(x^forms))&(low<<8)
			end := zero & (zero >> 8) & low
			if end|value == 0 {
				r.off += 8
				continue
			}
			// Bit 7 of an ending pair is below bit 15 of one with a value.
			pair := bits.TrailingZeros64(end|value) / 16
			r.off += 2 * pair
			if end>>(16*pair)&0xff != 0 {
				r.off += 2
				return
			}
			if pair == 3 {
				break // the value is in the next word
			}
			r.off += 3
		}
		attr, form := r.uleb(), r.uleb()
		if form == formImplicitConst {
			r.skipLEB()
		}
		if attr|form == 0 {
			return
		}
	}
}

// rootEntry reads the first entry of a unit.
func (s *scanner) rootEntry(u *unit) string {
	r := buf{b: s.info[:u.end], off: int(u.die), big: s.d.sec.BigEndian}
	code := r.uleb()
	if code == 0 {
		u.kids = 0
		return ""
	}
	ab, reason := s.root.parseOne(s.d.sec.Abbrev, u.abbrev, code, u.enc)
	if reason != "" {
		return reason
	}
	v := &s.vals
	s.root.read(ab.full, &r, u.enc, v)
	if r.bad {
		return "root entry does not end"
	}
	if ab.children {
		u.kids = uint64(r.off)
	}
	if u.version < 5 && ab.tag == tagPartialUnit {
		u.kind = utPartial
	}
	if u.version < 5 && v.has(slotDWOName) && !s.d.dwo {
		u.kind = utSkeleton
	}
	if v.has(slotDWOID) {
		u.id = v.val[slotDWOID]
	}
	u.language = uint16(min(v.get(slotLanguage), 0xffff))
	u.name, u.compDir, u.dwoName = v.ref(slotName), v.ref(slotCompDir), v.ref(slotDWOName)
	u.lowPC = v.ref(slotLowPC)
	u.contiguous = v.has(slotHighPC) && !v.has(slotRanges)
	u.line, u.hasLine = v.get(slotStmtList), v.has(slotStmtList)
	u.addrBase, u.strBase = v.get(slotAddrBase), v.get(slotStrBase)
	u.rngBase, u.locBase = v.get(slotRngBase), v.get(slotLocBase)
	if v.has(slotGNURanges) {
		u.rngBase = v.val[slotGNURanges]
	}
	s.splitBases(u)
	s.ownLine(u)
	return ""
}

// ownLine gives each line table to the first unit that refers to it; later units get the rows of
// their own functions from it. The partial units that dwz makes, and type units, share the table of another unit
// and have no code.
func (s *scanner) ownLine(u *unit) {
	if u.kind == utPartial || !u.hasLine || s.types || s.d.dwo || u.line >= uint64(len(s.d.sec.Line)) {
		return
	}
	if s.linesLeft < 0 {
		return
	}
	r := buf{b: s.d.sec.Line, off: int(u.line), big: s.d.sec.BigEndian}
	n, _ := r.length()
	_, u.sharesLine = s.lines[u.line]
	s.lines[u.line] = struct{}{}
	s.linesLeft -= int64(min(n, uint64(r.left()))) + 12
	u.ownsLine = true
}
