package btf

import (
	stdelf "debug/elf"
	"math"

	"symbolize/ingest/decode"
	"symbolize/ingest/object/elf"
)

// place is the position of a variable in its section, bytes.
type place struct{ offset, size uint64 }

// placeVariables updates the DATASECs of an object file as libbpf does when it loads the object:
// compilers leave the offsets of variables, and the size of the section, to the linker. The blob
// is t's own. Variables without a symbol stay zero.
func placeVariables(f *elf.File, t *Types) error {
	if f.Type != stdelf.ET_REL {
		return nil
	}
	placed := make(map[string]map[string]place) // by the names of section and variable
	err := f.Entries(elf.Symtab, func(e elf.Entry) bool {
		if e.Type == stdelf.STT_OBJECT && e.Section > 0 {
			section := f.Sections[e.Section].Name
			if placed[section] == nil {
				placed[section] = make(map[string]place)
			}
			placed[section][e.Name] = place{e.Value, e.Size}
		}
		return true
	})
	for i, at := range t.at {
		id := t.first + ID(i)
		if t.Kind(id) != KindDatasec {
			continue
		}
		if s := f.Section(t.Name(id)); s != nil && s.Size <= math.MaxUint32 {
			_, n, _ := t.info(t.types[at:])
			t.placeSection(t.types[at:], n, uint32(s.Size), placed[s.Name])
		}
	}
	return err
}

// placeSection writes into the record of a DATASEC.
func (t *Types) placeSection(b []byte, n int, size uint32, placed map[string]place) {
	order := decode.OrderOf(t.big)
	if order.Uint32(b[8:]) == 0 {
		order.PutUint32(b[8:], size)
	}
	for i := range n {
		v := b[typeHead+12*i:]
		p, ok := placed[t.Name(ID(order.Uint32(v)))]
		if ok && p.offset <= uint64(size) && p.size <= uint64(size)-p.offset {
			order.PutUint32(v[4:], uint32(p.offset))
			order.PutUint32(v[8:], uint32(p.size))
		}
	}
}
