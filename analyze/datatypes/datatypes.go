// Package datatypes finds which member of which type sampled instructions access: by the tables of a store
// (store/typetab), else by the debug information of files.
package datatypes

import (
	"context"
	"errors"
	"slices"
	"strings"

	"symbolize/analyze/code"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/flow"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
	"symbolize/store/typetab"
)

// Finder finds the accesses of objects. It is for one goroutine.
type Finder struct {
	ctx    context.Context
	view   store.View
	files  *code.Options
	failed func(error)
	tables map[buildid.Key]*Object // nil for objects without a table in the view
}

// New returns a Finder that uses the tables of a view, and then the files that files finds, if it is not
// nil. failed gets the errors of what could not be read.
func New(ctx context.Context, view store.View, files *code.Options, failed func(error)) *Finder {
	return &Finder{ctx: ctx, view: view, files: files, failed: failed, tables: make(map[buildid.Key]*Object)}
}

// Object has the accesses of an object's instructions.
type Object struct {
	Types  *btf.Types
	Source datatype.Source

	table  *typetab.Table
	addrs  resolve.Addresses
	leaves *flow.Layouts
}

// Access is what an instruction accesses.
type Access struct {
	flow.Access
	Object *Object // has the types; nil if the access is not known
}

// noTypes is the access of an instruction without debug information.
var noTypes = Access{Access: flow.Access{Reason: flow.NoDebugInfo}}

// Find returns what the instructions of an object at offsets access, which are sorted.
func (f *Finder) Find(o *ingest.Object, offsets []addr.Offset) []Access {
	list := slices.Repeat([]Access{noTypes}, len(offsets))
	if o.ID.IsZero() || len(offsets) == 0 {
		return list
	}
	known, ok := f.tables[o.ID.Key()]
	if !ok {
		known = f.stored(o)
		f.tables[o.ID.Key()] = known
	}
	if known == nil && f.files != nil {
		known = f.ofFiles(o, offsets)
	}
	if known == nil {
		return list
	}
	for i, off := range offsets {
		if a, ok := known.addrs.Of(off); ok {
			list[i] = f.at(known, a)
		}
	}
	return list
}

// at returns what the instruction at an address accesses.
func (f *Finder) at(o *Object, a addr.Addr) Access {
	x, err := o.table.At(a)
	if err != nil {
		f.failed(err)
		return noTypes
	}
	if x.Reason != flow.Known {
		return Access{Access: x}
	}
	return Access{Access: x, Object: o}
}

// stored returns the table of the view; nil if there is none.
func (f *Finder) stored(o *ingest.Object) *Object {
	m, _, _ := store.FindOne(f.view, o.ID) // what cannot be read is reported by the join
	if m == nil {
		return nil
	}
	for i := range m.Sources {
		if m.Sources[i].Kind != store.Types || m.Sources[i].Outdated() {
			continue
		}
		addrs, why := resolve.NewAddresses(o, m)
		if why != ingest.ReasonNone {
			return nil
		}
		t, err := f.view.OpenTypes(m, i)
		if err == nil {
			var x *Object
			if x, err = newObject(t, addrs); err == nil {
				return x
			}
		}
		f.failed(err)
	}
	return nil
}

func newObject(t *typetab.Table, addrs resolve.Addresses) (*Object, error) {
	types, err := t.Types()
	if err != nil {
		return nil, err
	}
	return &Object{Types: types, Source: t.Source(), table: t, addrs: addrs, leaves: flow.NewLayouts(types)}, nil
}

// ofFiles makes a table of the functions at some offsets from the debug information of files.
func (f *Finder) ofFiles(o *ingest.Object, offsets []addr.Offset) *Object {
	program, debug, m := f.files.Debug(o)
	if program == "" {
		return nil
	}
	addrs, why := resolve.NewAddresses(o, m)
	if why != ingest.ReasonNone {
		return nil
	}
	var list []addr.Addr
	for _, off := range offsets {
		if a, ok := addrs.Of(off); ok {
			list = append(list, a)
		}
	}
	slices.Sort(list)
	t, err := indexer.FileTypes(f.ctx, program, debug, slices.Compact(list))
	if err != nil || t == nil {
		if err != nil && !errors.Is(err, context.Canceled) {
			f.failed(err)
		}
		return nil
	}
	x, err := newObject(t, addrs)
	if err != nil {
		f.failed(err)
		return nil
	}
	return x
}

// Texts of Access.
const (
	maxAlternatives = 3
	noMember        = "(whole)"
)

// Type returns the name of the type as C has it, "struct point", or in parentheses why it is not known.
func (a *Access) Type() string {
	if a.Object == nil {
		return "(" + a.Reason.String() + ")"
	}
	name := texts.Printable(a.Object.Types.TypeName(a.Access.Type))
	if a.Object.Source == datatype.FromBTF {
		name += " [BTF]"
	}
	return name
}

// Members returns the members at the access, joined by dots: of a union all that have its size, of a pair
// both; none of a type without members.
func (a *Access) Members() (list []string) {
	if a.Object == nil {
		return nil
	}
	for _, leaf := range a.Object.leaves.Leaves(&a.Access) {
		if leaf.Path != "" && !slices.Contains(list, leaf.Path) {
			list = append(list, leaf.Path)
		}
	}
	return list
}

// Texts returns the fields that instructions of an object at offsets access; "" for those that access no
// memory, or the stack.
func (f *Finder) Texts(o *ingest.Object, offsets []addr.Offset) []string {
	list := make([]string, len(offsets))
	for i, a := range f.Find(o, offsets) {
		switch a.Reason {
		case flow.NoMemory, flow.StackOp, flow.Spill, flow.NoDebugInfo:
		default:
			list[i] = a.Field()
		}
	}
	return list
}

// Field returns the type with the member, "struct point.x", of a union "struct value.i|d", or in
// parentheses why they are not known.
func (a *Access) Field() string {
	name := a.Type()
	list := a.Members()
	if len(list) == 0 {
		return name
	}
	if len(list) > maxAlternatives {
		list = append(list[:maxAlternatives:maxAlternatives], "…")
	}
	return name + "." + texts.Printable(strings.Join(list, "|"))
}
