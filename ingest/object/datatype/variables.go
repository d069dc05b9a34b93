package datatype

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"strconv"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/dwarfvar"
)

// Variables are the global variables of an object with their types.
type Variables struct {
	Types *btf.Types
	list  []dwarfvar.Global // by address
}

// At returns the variable that has an address.
func (v *Variables) At(a addr.Addr) (g dwarfvar.Global, ok bool) {
	i := sort.Search(len(v.list), func(i int) bool { return v.list[i].Addr > a }) - 1
	if i < 0 || uint64(a-v.list[i].Addr) >= v.list[i].Size {
		return g, false
	}
	return v.list[i], true
}

// ReadVariables reads the global variables of a file, as Read does for a Table of all functions. Base is as in
// Options.
func ReadVariables(ctx context.Context, d *dwarf.Data, base addr.Addr, kernel bool) (*Variables, error) {
	info, err := dwarfvar.Read(ctx, d, &dwarfvar.Options{Globals: true})
	if info == nil {
		return nil, err
	}
	defer info.Close()
	v := &Variables{Types: info.Types(), list: placedOf(info.Globals(), base, kernel)}
	return v, nil
}

// placed returns the variables of a table: all, unless single functions are read.
func (r *reader) placed(o Options) []dwarfvar.Global {
	if o.Only != nil || len(r.own) == 0 {
		return nil
	}
	return placedOf(r.own, o.Base, r.kernel)
}

// placedOf returns the variables with places and sizes, at their addresses in tables. Of several at an address the
// first counts.
func placedOf(list []dwarfvar.Global, base addr.Addr, kernel bool) (out []dwarfvar.Global) {
	for _, g := range list {
		if g.Local || g.Size == 0 || g.Addr < base || g.Addr == 0 && !kernel {
			continue
		}
		g.Addr -= base
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(a, b dwarfvar.Global) int { return cmp.Compare(a.Addr, b.Addr) })
	return slices.CompactFunc(out, func(a, b dwarfvar.Global) bool { return a.Addr == b.Addr })
}

// The DATASECs that have the variables of a table are named by their lowest address.
const (
	sectionBase   = 16
	sectionLength = math.MaxUint16
)

// variables adds the variables, sorted by address.
func (p *pruner) variables(list []dwarfvar.Global) {
	for len(list) > 0 {
		start := list[0].Addr
		section := btf.Def{Kind: btf.KindDatasec, Name: strconv.FormatUint(uint64(start), sectionBase)}
		n := 0
		for ; n < len(list) && n < sectionLength && list[n].Addr-start <= math.MaxUint32; n++ {
			g := &list[n]
			if g.Size > math.MaxUint32 {
				continue
			}
			ref := p.whole(g.Type)
			variable := p.add(btf.Def{Kind: btf.KindVar, Name: g.Name, Ref: ref})
			section.Items = append(section.Items, btf.DefItem{Ref: variable, Value: uint64(g.Addr-start) | g.Size<<32})
		}
		p.add(section)
		list = list[n:]
	}
}

// VariablesOf returns the variables that the types of a Table have.
func VariablesOf(types *btf.Types) *Variables {
	v := &Variables{Types: types}
	for id := range btf.ID(types.Len()) {
		if types.Kind(id) != btf.KindDatasec {
			continue
		}
		start, err := strconv.ParseUint(types.Name(id), sectionBase, 64)
		if err != nil {
			continue
		}
		for _, s := range types.Sections(id) {
			v.list = append(v.list, dwarfvar.Global{Name: types.Name(s.Type), Addr: addr.Addr(start + uint64(s.Offset)),
				Size: uint64(s.Size), Type: types.Ref(s.Type)})
		}
	}
	slices.SortStableFunc(v.list, func(a, b dwarfvar.Global) int { return cmp.Compare(a.Addr, b.Addr) })
	return v
}
