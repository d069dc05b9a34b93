package btf

import "strconv"

// members prints a structure or union.
func (v *valuePrinter) members(id ID, data []byte) {
	size, err := v.t.Size(id)
	if err != nil {
		v.null(err)
		return
	}
	v.w.open('{')
	anonymous := 0
	table := v.t.memberTable(id)
	for i := 0; i < table.n && v.err == nil; i++ {
		m := table.at(i)
		name := m.Name
		if name == "" {
			if anonymous++; anonymous > 1 {
				name = "#" + strconv.Itoa(anonymous)
			}
		}
		v.w.name(name)
		if m.BitSize > 0 {
			v.bitField(m, data)
		} else {
			v.member(m, data, size, i == table.n-1)
		}
	}
	v.w.close('}')
}

// member prints a member that is not a bit field. Only the last one of a structure, if data goes on
// after the structure, gets more than its own bytes: it can be a flexible array.
func (v *valuePrinter) member(m Member, data []byte, size uint64, last bool) {
	at := uint64(m.BitOffset / 8)
	if at > uint64(len(data)) {
		v.null(ErrShortValue)
		return
	}
	rest := data[at:]
	if flexible := last && uint64(len(data)) > size; !flexible {
		if own, err := v.t.Size(m.Type); err == nil && own < uint64(len(rest)) {
			rest = rest[:own]
		}
	}
	v.value(m.Type, rest)
}

// bitField prints a bit field by its type.
func (v *valuePrinter) bitField(m Member, data []byte) {
	if uint64(m.BitOffset)+uint64(m.BitSize) > 8*uint64(len(data)) {
		v.null(ErrShortValue)
		return
	}
	id := v.t.resolve(m.Type)
	size := uint(m.BitSize)
	n := v.t.bits(data, uint(m.BitOffset), size)
	switch v.t.Kind(id) {
	case KindEnum, KindEnum64:
		v.enum(id, size, n)
	case KindInt:
		v.number(v.t.Int(id), size, n)
	default: // compilers make none
		v.number(Int{}, size, n)
	}
}

// array prints an array; one of char as text, if it is text.
func (v *valuePrinter) array(id ID, data []byte) {
	a := v.t.Array(id)
	elem, err := v.t.Size(a.Elem)
	if err != nil {
		v.null(err)
		return
	}
	n := uint64(a.Len)
	if n == 0 && elem > 0 {
		n = uint64(len(data)) / elem // a flexible array has the remaining bytes
	}
	if s, ok := v.text(a.Elem, data, n); ok {
		v.w.quoted(s)
		return
	}
	v.w.open('[')
	for range n {
		if v.err != nil {
			break
		}
		own := min(elem, uint64(len(data)))
		v.value(a.Elem, data[:own])
		data = data[own:]
	}
	v.w.close(']')
}

// section prints the variables of a section, as a list as bpftool does.
func (v *valuePrinter) section(id ID, data []byte) {
	v.w.open('{')
	v.w.name(v.t.Name(id))
	v.w.open('[')
	for _, s := range v.t.Sections(id) {
		if v.err != nil {
			break
		}
		v.w.open('{')
		v.w.name(v.t.Name(s.Type))
		if at := uint64(s.Offset); at > uint64(len(data)) {
			v.null(ErrShortValue)
		} else { // a flexible array has more than its type
			v.value(s.Type, data[at:min(at+uint64(s.Size), uint64(len(data)))])
		}
		v.w.close('}')
	}
	v.w.close(']')
	v.w.close('}')
}
