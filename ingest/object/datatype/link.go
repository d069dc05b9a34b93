package datatype

import (
	stdelf "debug/elf"
	"maps"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/elf"
)

// link finds the variables that the units that were read declare, or define without a place: the symbol tables
// have their addresses.
func (r *reader) link(debug *elf.File) error {
	vars := make(map[string]*dwarfvar.Declared)
	for _, d := range r.info.Declared() {
		vars[d.Symbol] = d
	}
	unplaced := make(map[string][]elf.Entry) // symbols of them
	visit := func(e elf.Entry) bool {
		if e.Section <= 0 && r.image == nil {
			return true
		}
		name, _, _ := strings.Cut(e.Name, "@")
		switch d := vars[name]; {
		case d == nil:
		case d.Placed && e.Bind != stdelf.STB_LOCAL:
			r.linkVariable(&e, name, d.Type)
		case !d.Placed && e.Type == stdelf.STT_TLS:
			unplaced[name] = append(unplaced[name], e)
		}
		return true
	}
	if err := r.symbols(debug, visit); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(unplaced)) {
		r.linkUnplaced(vars[name], unplaced[name])
	}
	return nil
}

// symbols visits the symbols of the files.
func (r *reader) symbols(debug *elf.File, visit func(elf.Entry) bool) error {
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

// linkUnplaced adds a thread-local variable by its symbols, which must be of one place and of its size.
func (r *reader) linkUnplaced(d *dwarfvar.Declared, list []elf.Entry) {
	size, err := r.info.Types().Size(d.Type)
	for i := range list {
		if err != nil || d.Several || list[i].Value != list[0].Value || list[i].Size != size {
			return
		}
	}
	r.linkVariable(&list[0], d.Symbol, d.Type)
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
