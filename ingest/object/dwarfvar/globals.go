package dwarfvar

import (
	"cmp"
	"maps"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
)

// global adds a global variable, with the number of its type.
func (x *Info) global(c *converter, p dwarf.Pos) {
	r := x.r
	var e dwarf.Entry
	if !r.tree.Read(p, &e) {
		return
	}
	b, _ := e.Block(atLocation)
	place := evaluate(r.tree, e.Root, unknown, b)
	name := r.qualified(&e)
	if name == "" {
		return
	}
	read := c.functions()
	n := int(read.typ(&e))
	x.pending = append(x.pending, pendingGlobal{Global: Global{Name: name, Addr: addr.Addr(place.Off),
		Local: place.Kind == ThreadLocal}, pos: p})
	if r.opts.All && !r.opts.Values {
		d := btf.Def{Kind: btf.KindVar, Name: name, Ref: n}
		if e.Flag(atExternal) {
			d.Len = 1
		}
		c.add(d)
	}
}

// pendingGlobal is a global variable, or what is declared, without its type.
type pendingGlobal struct {
	Global
	declared *Declared // nil for a Global
	pos      dwarf.Pos
}

// declare adds a variable that a unit declares, unless another unit declared it.
func (x *Info) declare(c *converter, p dwarf.Pos) {
	r := x.r
	var e dwarf.Entry
	if !r.tree.Read(p, &e) {
		return
	}
	name := linkage(r.tree, &e)
	if name == "" {
		name = r.qualified(&e)
	}
	placed := e.Flag(atDeclaration)
	if have := x.declared[name]; have != nil {
		have.Several = have.Several || !placed
		return
	}
	if name == "" {
		return
	}
	read := c.functions()
	read.typ(&e)
	d := &Declared{Symbol: name, Placed: placed}
	x.declared[name] = d
	x.pending = append(x.pending, pendingGlobal{declared: d, pos: p})
}

// Declared returns the variables that the units that were read declare, sorted, with Options.Linked.
func (x *Info) Declared() []*Declared {
	return slices.SortedFunc(maps.Values(x.declared), func(a, b *Declared) int { return cmp.Compare(a.Symbol, b.Symbol) })
}

// finishGlobals sets the types of the global variables and sorts them.
func (x *Info) finishGlobals() {
	read := x.r.finalReader()
	var e dwarf.Entry
	for _, g := range x.pending {
		if !x.r.tree.Read(g.pos, &e) {
			continue
		}
		g.Type = read.typ(&e)
		if g.declared != nil {
			g.declared.Type = g.Type
			continue
		}
		g.Size, _ = x.types.Size(g.Type)
		x.globals = append(x.globals, g.Global)
	}
	x.pending = nil
	slices.SortStableFunc(x.globals, func(a, b Global) int {
		if a.Local != b.Local {
			if b.Local {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Addr, b.Addr)
	})
	x.globals = slices.Compact(x.globals)
}
