// Package datatypes finds which member of which type sampled instructions access: by the tables of a store
// (store/typetab), else by the debug information of files.
package datatypes

import (
	"cmp"
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
	made   map[buildid.Key]*made   // by files, of objects without a table
	kernel *kernelTypes            // nil until a module without debug information is asked for
	own    []ingest.Object         // kernels of the profile
	data   map[buildid.Key]*variables
	// Recorded counts what the recorded addresses of data say.
	Recorded Recorded
	told     map[told][]string // of Texts, where recorded addresses say something else
}

// New returns a Finder that uses the tables of a view, and then the files that files finds, if it is not
// nil. failed gets the errors of what could not be read.
func New(ctx context.Context, view store.View, files *code.Options, failed func(error)) *Finder {
	return &Finder{ctx: ctx, view: view, files: files, failed: failed, tables: make(map[buildid.Key]*Object),
		made: make(map[buildid.Key]*made), data: make(map[buildid.Key]*variables), told: make(map[told][]string)}
}

// Trim forgets the tables and variables of the view if they are of more than some objects. They are opened again
// where they are needed.
func (f *Finder) Trim(objects int) {
	if len(f.tables)+len(f.data) > objects {
		clear(f.tables)
		clear(f.data)
	}
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
	if known == nil {
		if f.files != nil {
			f.fromFiles(o, offsets, list)
		}
		return list
	}
	for i, off := range offsets {
		if a, ok := known.addrs.Of(off); ok {
			list[i] = f.at(known, a)
		}
	}
	return list
}

// made has the tables of an object that were made from files: of the functions at offsets that were asked for.
type made struct {
	tables []*Object
	asked  map[addr.Offset]bool
}

// fromFiles sets the accesses at offsets by tables made from files. A function is read once.
func (f *Finder) fromFiles(o *ingest.Object, offsets []addr.Offset, list []Access) {
	m := f.made[o.ID.Key()]
	if m == nil {
		m = &made{asked: make(map[addr.Offset]bool)}
		f.made[o.ID.Key()] = m
	}
	var missing []addr.Offset
	for i, off := range offsets {
		if list[i] = f.among(m.tables, off); list[i].Reason == flow.NoDebugInfo && !m.asked[off] {
			m.asked[off] = true
			missing = append(missing, off)
		}
	}
	if len(missing) == 0 {
		return
	}
	x := f.ofFiles(o, missing)
	if x == nil {
		return
	}
	m.tables = append(m.tables, x)
	for i, off := range offsets {
		if list[i].Reason == flow.NoDebugInfo {
			list[i] = f.among(m.tables[len(m.tables)-1:], off)
		}
	}
}

// among returns what the instruction at an offset accesses by one of several tables.
func (f *Finder) among(tables []*Object, off addr.Offset) Access {
	for _, x := range tables {
		if a, ok := x.addrs.Of(off); ok {
			if access := f.at(x, a); access.Reason != flow.NoDebugInfo {
				return access
			}
		}
	}
	return noTypes
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

// stored returns the table of the view, one by DWARF before one by BTF; nil if there is none.
func (f *Finder) stored(o *ingest.Object) *Object {
	m, _, _ := store.FindOne(f.view, o.ID) // what cannot be read is reported by the join
	if m == nil {
		return nil
	}
	var bare *Object
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
			if x, err = newObject(t, addrs); err == nil && x.Source == datatype.FromDWARF {
				return x
			}
			bare = cmp.Or(bare, x)
		}
		if err != nil {
			f.failed(err)
		}
	}
	return bare
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
	t, err := f.read(o, program, debug, slices.Compact(list))
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

// kernelTypes are the types of the one kernel of a profile, nil if they are not known.
type kernelTypes struct{ types *btf.Types }

// use makes the kernel of a profile known: types of its modules continue those of the kernel.
func (f *Finder) use(p *ingest.Profile) {
	f.own, f.kernel = nil, nil
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Kind == ingest.Kernel && !o.ID.IsZero() {
			f.own = append(f.own, *o)
		}
	}
}

// read makes the table of an object from its files.
func (f *Finder) read(o *ingest.Object, program, debug string, only []addr.Addr) (*typetab.Table, error) {
	switch {
	case debug != "":
		return indexer.FileTypes(f.ctx, program, debug, only)
	case o.Kind == ingest.Kernel:
		return indexer.BTFTypes(f.ctx, program, nil, only)
	case o.Kind == ingest.Module:
		base, err := f.base()
		if err != nil {
			return nil, err
		}
		return indexer.BTFTypes(f.ctx, program, base, only)
	}
	return nil, nil
}

// base returns the types of the profile's kernel, if it has one kernel.
func (f *Finder) base() (*btf.Types, error) {
	if f.kernel != nil || len(f.own) != 1 {
		return f.kernel.get(), nil
	}
	program, _, _ := f.files.Debug(&f.own[0])
	types, err := indexer.KernelBTF(program, f.own[0].ID, f.files.Recorded)
	f.kernel = &kernelTypes{types}
	return types, err
}

func (k *kernelTypes) get() *btf.Types {
	if k == nil {
		return nil
	}
	return k.types
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
	return a.name() + a.mark()
}

// name returns the name of a known type.
func (a *Access) name() string { return texts.Printable(a.Object.Types.TypeName(a.Access.Type)) }

// mark returns what follows names that are less sure than those of debug information.
func (a *Access) mark() string {
	if a.Object.Source == datatype.FromBTF {
		return " [BTF]"
	}
	return ""
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
		if says := f.told[told{o.ID.Key(), offsets[i]}]; len(says) > 0 {
			list[i] = alternatives(says)
			continue
		}
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
	list := a.Members()
	if len(list) == 0 {
		return a.Type()
	}
	return a.name() + "." + texts.Printable(alternatives(list)) + a.mark()
}

// alternatives joins texts, not too many.
func alternatives(list []string) string {
	if len(list) > maxAlternatives {
		list = append(list[:maxAlternatives:maxAlternatives], "…")
	}
	return strings.Join(list, "|")
}
