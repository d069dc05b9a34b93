package probe

import (
	"errors"
	"fmt"
	"strings"

	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/texts"
)

// A fetch is how a probe reads a value.
type fetch struct {
	name string
	text string // copied as it is, if not ""

	base   string // register without "%", a number, a symbol; see kind
	kind   baseKind
	refs   []ref  // from the inside out: a read at the sum; the next one begins with its result
	format string // type of tracefs, "" for its default
	ctype  string // the variable's type in C
}

type baseKind uint8

const (
	baseRegister baseKind = iota
	baseNumber            // the value is base
	baseSymbol            // of a kernel: memory at its address
	baseFile              // of a program: memory at an offset of its file
)

// ref is a read at an offset.
type ref struct {
	off  int64
	user bool
}

// value is a place while members are found in it.
type value struct {
	fetch
	typ    btf.ID
	own    int            // refs that are the variable's own place
	place  dwarfvar.Place // of kinds that are not read yet: Sum, StackAddress, Parts; Off counts
	whole  bool           // fetch reads it
	bits   uint8          // of a bit field, 0 for others
	bitOff uint32
}

// locate begins to read a variable of a name and type in a place.
func (s *site) locate(name string, typ btf.ID, p dwarfvar.Place) (value, error) {
	val := value{typ: typ, whole: true}
	val.ctype = texts.Printable(s.p.Vars.Types().TypeName(typ))
	switch p.Kind {
	case dwarfvar.Entry:
		if s.at != s.f.Entry {
			return val, errors.New("only the value that it had at the function's entry is known there")
		}
		p.Kind = dwarfvar.Sum
		fallthrough
	case dwarfvar.Sum:
		if p.Off == 0 {
			return val, s.register(&val, p.Reg)
		}
		val.place, val.whole = p, false
		return val, s.register(&val, p.Reg)
	case dwarfvar.Register:
		return val, s.register(&val, p.Reg)
	case dwarfvar.Memory:
		val.refs, val.own = []ref{{off: p.Off}}, 1
		return val, s.register(&val, p.Reg)
	case dwarfvar.Stack:
		val.refs, val.own = []ref{{off: p.Off}}, 1
		return val, s.frame(&val)
	case dwarfvar.StackAddress:
		val.place, val.whole = dwarfvar.Place{Kind: dwarfvar.Sum, Off: p.Off}, false
		return val, s.frame(&val)
	case dwarfvar.Static:
		return val, s.static(&val, name, uint64(p.Off))
	case dwarfvar.Constant:
		val.kind, val.base = baseNumber, fmt.Sprint(p.Off)
		return val, nil
	case dwarfvar.Bytes:
		return val, s.bytes(&val, p.Data)
	case dwarfvar.Parts:
		val.place, val.whole = p, false
		return val, nil
	case dwarfvar.ThreadLocal:
		return val, errors.New("it is in thread-local storage, which probes do not read")
	case dwarfvar.Pointee:
		return val, errors.New("the pointer is optimized out there")
	case dwarfvar.Computed:
		return val, errors.New("it is computed from memory contents")
	}
	return val, errGone
}

// errGone is the error of a variable without a place.
var errGone = errors.New("it is optimized out there")

// register sets the register that a value begins with.
func (s *site) register(v *value, reg uint16) error {
	name, ok := s.p.registerName(reg)
	v.base = name
	if !ok {
		return fmt.Errorf("it is in %s, which probes do not read", s.p.Arch.RegisterName(reg))
	}
	return nil
}

// frame makes a value relative to the frame's address relative to a register.
func (s *site) frame(v *value) error {
	reg, off, ok := s.cfa()
	if !ok {
		return errors.New("no unwind table has the stack frame of the place")
	}
	if len(v.refs) > 0 {
		v.refs[0].off += off
	} else {
		v.place.Off += off
	}
	return s.register(v, reg)
}

// static makes a value of a variable at an address.
func (s *site) static(v *value, name string, a uint64) error {
	v.refs, v.own = []ref{{}}, 1
	if s.p.Kernel {
		v.kind, v.base = baseSymbol, name
		return nil
	}
	// The kernel adds the offset to where the file is mapped for the code of the probe (uprobe_events).
	off, ok := s.p.FileOffset(s.table(s.at))
	if !ok {
		return errors.New("the layout of the program is unknown")
	}
	v.kind, v.base = baseFile, ""
	v.refs[0].off = int64(a - (uint64(s.at) - off))
	return nil
}

// bytes makes a value of a constant.
func (s *site) bytes(v *value, b []byte) error {
	if len(b) == 0 || len(b) > 8 || s.p.Vars.Types().BigEndian() {
		return errors.New("its value is a constant of more than 8 bytes")
	}
	var n uint64
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	v.kind, v.base = baseNumber, fmt.Sprintf("%#x", n)
	return nil
}

// into steps into a member or an element of a value.
func (s *site) into(v *value, name string, f Field) (string, error) {
	t := s.p.Vars.Types()
	id := t.Strip(v.typ)
	kind := t.Kind(id)
	if f.Name == "" {
		next := fmt.Sprintf("[%d]", f.Index)
		var elem btf.ID
		switch kind {
		case btf.KindArray:
			elem = t.Array(id).Elem
		case btf.KindPtr:
			elem = t.Ref(id)
			if err := v.deref(); err != nil {
				return next, err
			}
		default:
			return next, fmt.Errorf("%s is neither an array nor a pointer", name)
		}
		size, err := t.Size(elem)
		if err != nil || size > 1<<31 {
			return next, fmt.Errorf("the elements of %s have no size", name)
		}
		v.typ = elem
		return next, v.move(t, f.Index*int64(size))
	}
	if kind == btf.KindPtr {
		if !f.Arrow {
			return f.Name, fmt.Errorf("%s is a pointer: %s is behind ->", name, f.Name)
		}
		id = t.Strip(t.Ref(id))
		if kind = t.Kind(id); kind != btf.KindStruct && kind != btf.KindUnion {
			return f.Name, fmt.Errorf("%s does not point to a structure, but to %s", name, texts.Printable(t.TypeName(id)))
		}
		if err := v.deref(); err != nil {
			return f.Name, err
		}
	} else if kind != btf.KindStruct && kind != btf.KindUnion {
		return f.Name, fmt.Errorf("%s is no structure, but %s", name, texts.Printable(t.TypeName(v.typ)))
	} else if f.Arrow {
		return f.Name, fmt.Errorf("%s is no pointer: %s is behind a dot", name, f.Name)
	}
	m, off, ok := findMember(t, id, f.Name, 0)
	if !ok {
		return f.Name, fmt.Errorf("%s (%s) has no member %s", name, texts.Printable(t.TypeName(id)), f.Name)
	}
	v.typ, v.bits = m.Type, m.BitSize
	if m.BitSize > 0 { // in a word of its type, as far as that is aligned
		size, err := t.Size(m.Type)
		if err != nil || size == 0 || size > 8 {
			return f.Name, fmt.Errorf("the bit field %s has no size", f.Name)
		}
		unit := uint32(8 * size)
		v.bitOff = off % unit
		if v.bitOff+uint32(m.BitSize) > unit {
			return f.Name, fmt.Errorf("the bit field %s is not in one word", f.Name)
		}
		off -= v.bitOff
	}
	return f.Name, v.move(t, int64(off/8))
}

// maxMembers bounds the depth of members without a name.
const maxMembers = 64

// findMember finds a member of a structure, also in its members without a name; off is in bits.
func findMember(t *btf.Types, id btf.ID, name string, depth int) (m btf.Member, off uint32, ok bool) {
	for _, m := range t.Members(id) {
		if m.Name == name {
			return m, m.BitOffset, true
		}
	}
	for _, m := range t.Members(id) {
		if in := t.Strip(m.Type); m.Name == "" && depth < maxMembers &&
			(t.Kind(in) == btf.KindStruct || t.Kind(in) == btf.KindUnion) {
			if f, off, ok := findMember(t, in, name, depth+1); ok {
				return f, m.BitOffset + off, true
			}
		}
	}
	return m, 0, false
}

// deref makes a pointer's target the value.
func (v *value) deref() error {
	if v.kind == baseNumber && len(v.refs) == 0 {
		return errors.New("its value is a constant")
	}
	off := int64(0)
	if !v.whole {
		if v.place.Kind == dwarfvar.Parts {
			return errors.New("it is in several places")
		}
		off, v.whole = v.place.Off, true
	}
	v.refs = append(v.refs, ref{off: off})
	return nil
}

// move moves a value that is in memory, or a part of one in registers.
func (v *value) move(t *btf.Types, off int64) error {
	switch n := len(v.refs); {
	case v.whole && n > 0:
		v.refs[n-1].off += off
		return nil
	case !v.whole && v.place.Kind == dwarfvar.Parts:
		return v.part(t, off)
	case v.whole && off == 0: // the beginning of a register
		return nil
	}
	return errors.New("it is a structure in a register")
}

// part selects the part of a value in several places that begins at an offset.
func (v *value) part(t *btf.Types, off int64) error {
	size, _ := t.Size(v.typ)
	at := int64(0)
	for _, p := range v.place.Parts {
		if at == 8*off && p.Bits >= 8*size {
			v.place.Parts = []dwarfvar.Part{p}
			return nil
		}
		at += int64(p.Bits)
	}
	return errors.New("it is a structure in several places")
}

// finish decides how the value is printed.
func (s *site) finish(v *value, a *Arg) error {
	t := s.p.Vars.Types()
	if !v.whole && v.place.Kind == dwarfvar.Parts {
		first := v.place.Parts[0]
		size, _ := t.Size(v.typ)
		if first.Bits < 8*min(size, 8) {
			return errors.New("it is in several places")
		}
		part, err := s.locate("", v.typ, first.Place)
		if err != nil {
			return err
		}
		part.ctype, part.typ, part.bits, part.bitOff = v.ctype, v.typ, v.bits, v.bitOff
		*v = part
	}
	if !v.whole {
		return fmt.Errorf("it is the value %%%s%+d, and probes read registers and memory", v.base, v.place.Off)
	}
	if len(a.Fields) > 0 {
		v.ctype = texts.Printable(t.TypeName(v.typ))
	}
	v.name, v.format = a.name(), a.Type
	switch a.Type {
	case "string", "ustring":
		if err := v.asText(t, a.Type); err != nil {
			return err
		}
	case "":
		v.format = formatOf(t, v)
	}
	for i := v.own; i < len(v.refs); i++ {
		v.refs[i].user = a.User
	}
	return nil
}

// asText makes a value a text that ends with a 0.
func (v *value) asText(t *btf.Types, typ string) error {
	id := t.Strip(v.typ)
	elem := btf.ID(0)
	switch t.Kind(id) {
	case btf.KindPtr:
		elem = t.Strip(t.Ref(id))
		if err := v.deref(); err != nil {
			return err
		}
	case btf.KindArray:
		elem = t.Strip(t.Array(id).Elem)
	default:
		return fmt.Errorf("it is %s, and a %s is in an array of char or behind a pointer", v.ctype, typ)
	}
	if i := t.Int(elem); i.Size != 1 || len(v.refs) == 0 {
		return fmt.Errorf("it is %s, and a %s is in an array of char or behind a pointer", v.ctype, typ)
	}
	return nil
}

// formatOf returns the type of tracefs for a value, as perf chooses it.
func formatOf(t *btf.Types, v *value) string {
	id := t.Strip(v.typ)
	size, err := t.Size(id)
	if err != nil || size == 0 {
		return ""
	}
	for size&(size-1) != 0 {
		size &= size - 1
	}
	size = min(size, 8)
	if v.bits > 0 {
		return fmt.Sprintf("b%d@%d/%d", v.bits, v.bitOff, 8*size)
	}
	sign := "x"
	switch t.Kind(id) {
	case btf.KindArray:
		return ""
	case btf.KindInt:
		if t.Int(id).Signed {
			sign = "s"
		}
	case btf.KindEnum, btf.KindEnum64:
		if t.EnumSigned(id) {
			sign = "s"
		}
	}
	return fmt.Sprintf("%s%d", sign, 8*size)
}

// tracefs returns the text of a value for tracefs.
func (f *fetch) tracefs() string {
	text := f.text
	if text == "" {
		text = f.plain()
	}
	if f.name != "" {
		text = f.name + "=" + text
	}
	if f.format != "" {
		text += ":" + f.format
	}
	return text
}

func (f *fetch) plain() string {
	refs := f.refs
	var text string
	switch f.kind {
	case baseRegister:
		text = "%" + f.base
	case baseNumber:
		text = `\` + f.base
	case baseSymbol, baseFile:
		text = fmt.Sprintf("@%s%+d", f.base, refs[0].off)
		refs = refs[1:]
	}
	for _, r := range refs {
		off := fmt.Sprintf("%+d", r.off)
		if r.user {
			off = off[:1] + "u" + off[1:]
		}
		text = off + "(" + text + ")"
	}
	return text
}

// isText reports whether the value is a text.
func (f *fetch) isText() bool { return strings.HasSuffix(f.format, "string") }
