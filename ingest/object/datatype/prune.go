package datatype

import (
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
)

// pruner copies types with what they contain. Of structures behind pointers the name is enough.
type pruner struct {
	types *btf.Types
	defs  []btf.Def
	// numbers are those of Defs, by type; names those of declarations, of types that may have no definition.
	numbers, names map[btf.ID]int
	todo           []btf.ID // types with Defs that are to be filled in
	made           []btf.ID // what btf.Builder.Add returned
}

func newPruner(t *btf.Types) *pruner {
	return &pruner{types: t, numbers: make(map[btf.ID]int), names: make(map[btf.ID]int)}
}

// add adds a type of its own, and returns its number.
func (p *pruner) add(d btf.Def) int {
	p.defs = append(p.defs, d)
	return len(p.defs)
}

// fillAll completes the Defs.
func (p *pruner) fillAll() {
	for len(p.todo) > 0 {
		id := p.todo[0]
		p.todo = p.todo[1:]
		p.fill(id)
	}
}

// prune returns a blob with the types of ids, which are distinct, in their order and before what they contain, and
// the numbers of these in it, and with variables, sorted by address.
func prune(types *btf.Types, ids []btf.ID, vars []dwarfvar.Global) (*btf.Types, map[btf.ID]btf.ID, error) {
	p := newPruner(types)
	for _, id := range ids {
		p.whole(id)
	}
	p.variables(vars)
	p.fillAll()
	b := btf.NewBuilder(types.BigEndian(), 8)
	made := b.Add(p.defs)
	out, final, err := b.Types("types")
	if err != nil {
		return nil, nil, err
	}
	moved := make(map[btf.ID]btf.ID, len(ids))
	for _, id := range ids {
		if n := p.numbers[id]; n > 0 {
			moved[id] = final(made[n])
		}
	}
	return out, moved, nil
}

// whole returns the number of a type that is wholly known.
func (p *pruner) whole(id btf.ID) int {
	if id == 0 || p.types.Kind(id) == btf.KindVoid {
		return 0
	}
	if n, ok := p.numbers[id]; ok {
		return n
	}
	n := p.add(btf.Def{Kind: p.types.Kind(id), Name: p.types.Name(id)})
	p.numbers[id] = n
	p.todo = append(p.todo, id)
	return n
}

// declared returns the number of a type that needs only its name.
func (p *pruner) declared(id btf.ID) int {
	kind, name := p.types.Kind(id), p.types.Name(id)
	if kind != btf.KindStruct && kind != btf.KindUnion || name == "" {
		return p.whole(id)
	}
	if n, ok := p.numbers[id]; ok {
		return n
	}
	if n, ok := p.names[id]; ok {
		return n
	}
	n := p.add(btf.Def{Kind: btf.KindFwd, Name: name, Flag: kind == btf.KindUnion})
	p.names[id] = n
	return n
}

// behind returns the number of what a pointer points to: typedefs and qualifiers are kept.
func (p *pruner) behind(id btf.ID) int {
	switch p.types.Kind(id) {
	case btf.KindTypedef, btf.KindConst, btf.KindVolatile, btf.KindRestrict, btf.KindTypeTag:
		own := p.types.Strip(id)
		if k := p.types.Kind(own); k != btf.KindStruct && k != btf.KindUnion || p.types.Name(own) == "" {
			return p.whole(id)
		}
		if p.types.Kind(id) != btf.KindTypedef {
			return p.behind(p.types.Ref(id))
		}
		if n, ok := p.names[id]; ok {
			return n
		}
		n := p.add(btf.Def{Kind: btf.KindTypedef, Name: p.types.Name(id)})
		p.names[id] = n
		ref := p.declared(own)
		p.defs[n-1].Ref = ref
		return n
	case btf.KindFuncProto:
		return 0 // a pointer to a function is printed as one to void
	}
	return p.declared(id)
}

// fill sets the contents of a Def.
func (p *pruner) fill(id btf.ID) {
	t, n := p.types, p.numbers[id]-1
	d := p.defs[n]
	switch d.Kind {
	case btf.KindInt:
		d.Int = t.Int(id)
		d.Size = d.Int.Size
	case btf.KindPtr:
		d.Ref = p.behind(t.Ref(id))
	case btf.KindArray:
		a := t.Array(id)
		d.Ref, d.Len = p.whole(a.Elem), a.Len
	case btf.KindStruct, btf.KindUnion:
		size, _ := t.Size(id)
		d.Size = uint32(size)
		for _, m := range t.Members(id) {
			d.Items = append(d.Items, btf.DefItem{Name: m.Name, Ref: p.whole(m.Type), Value: uint64(m.BitOffset),
				Bits: m.BitSize})
		}
	case btf.KindEnum, btf.KindEnum64: // its values are not printed
		size, _ := t.Size(id)
		d.Size, d.Flag = uint32(size), t.EnumSigned(id)
	case btf.KindFloat:
		size, _ := t.Size(id)
		d.Size = uint32(size)
	case btf.KindFwd:
		d.Flag = t.FwdUnion(id)
	case btf.KindTypedef, btf.KindVolatile, btf.KindConst, btf.KindRestrict, btf.KindTypeTag:
		d.Ref = p.whole(t.Ref(id))
	case btf.KindFuncProto:
	default:
		d = btf.Def{Kind: btf.KindTypedef, Name: "void"}
	}
	p.defs[n] = d
}
