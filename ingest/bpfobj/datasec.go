package bpfobj

import (
	"symbolize/ingest/btf"
	"symbolize/ingest/decode"
)

// datasec returns the types of the variables of a section in BTF. It walks over the blob:
// it is asked once a file.
func (r *reader) datasec(want btf.ID) []btf.ID {
	const datasec = 15
	d := decode.New(r.f.Name+": .BTF", r.types.Raw(), 0, r.f.BigEndian)
	d.Skip(4)
	header := d.U32()
	typeOff, typeLen := d.U32(), d.U32()
	d.Seek(uint64(header) + uint64(typeOff))
	d = decode.New(r.f.Name+": .BTF", d.Bytes(uint64(typeLen)), 0, r.f.BigEndian)
	for id := btf.ID(1); d.Err() == nil && d.Left() > 0; id++ {
		d.U32()
		info := d.U32()
		d.U32()
		kind, n := info>>24&31, uint64(info&0xffff)
		if id == want && kind == datasec {
			list := make([]btf.ID, 0, min(n, uint64(d.Left())/12))
			for range cap(list) {
				list = append(list, btf.ID(d.U32()))
				d.Skip(8)
			}
			return list
		}
		d.Skip(tailOf(kind, n))
	}
	return nil
}

// tailOf returns how many bytes follow a type's head, by its kind
// (Documentation/bpf/btf.rst).
func tailOf(kind uint32, n uint64) uint64 {
	switch kind {
	case 1, 14, 17: // INT, VAR, DECL_TAG
		return 4
	case 3: // ARRAY
		return 12
	case 4, 5, 15, 19: // STRUCT, UNION, DATASEC, ENUM64
		return 12 * n
	case 6, 13: // ENUM, FUNC_PROTO
		return 8 * n
	}
	return 0
}
