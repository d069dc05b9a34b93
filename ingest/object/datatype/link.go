package datatype

import (
	stdelf "debug/elf"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/elf"
)

// link finds the variables that the units that were read declare: the symbol tables have their addresses.
func (r *reader) link(debug *elf.File) error {
	vars := make(map[string]btf.ID)
	for _, d := range r.info.Declared() {
		vars[d.Symbol] = d.Type
	}
	visit := func(e elf.Entry) bool {
		if e.Bind == stdelf.STB_LOCAL || e.Section <= 0 && r.image == nil {
			return true
		}
		name, _, _ := strings.Cut(e.Name, "@")
		if id, ok := vars[name]; ok {
			r.linkVariable(&e, name, id)
		}
		return true
	}
	if r.image != nil {
		return r.image.Entries(visit)
	}
	for _, f := range []*elf.File{debug, r.file} {
		for _, table := range []elf.Table{elf.Symtab, elf.Dynsym} {
			if err := f.Entries(table, visit); err != nil {
				return err
			}
		}
		if f == r.file {
			break
		}
	}
	return nil
}

// linkVariable adds a variable at its symbol. A declaration may lack the length of an array.
func (r *reader) linkVariable(e *elf.Entry, name string, id btf.ID) {
	size, err := r.types.Size(id)
	if err != nil || size == 0 {
		size = e.Size
	}
	g := dwarfvar.Global{Name: name, Addr: addr.Addr(e.Value), Size: size, Type: id}
	switch {
	case size == 0:
	case e.Type == stdelf.STT_TLS:
		g.Local = true
		r.local = append(r.local, g)
	default:
		r.globals = append(r.globals, g)
	}
}
