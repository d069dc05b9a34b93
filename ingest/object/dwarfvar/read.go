package dwarfvar

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
)

// Options selects what Read reads.
type Options struct {
	// All reads all functions, variables and types.
	All bool
	// Addrs selects the functions at addresses, Names those with a name: Function.Name, its last part,
	// or Function.Linkage. Of their units the types are read that they refer to.
	Addrs []addr.Addr
	Names []string
	// Inlined also selects the functions into which one of Names is inlined.
	Inlined bool
	// Lines selects the functions that have code of source lines, see Info.Places.
	Lines []SourceLine
	// Variables selects global variables by their names, as Names functions.
	Variables []string
	// Types selects structures, unions, enumerations and typedefs by Name.
	Types []string
	// Globals reads all global variables.
	Globals bool
	// Linked reads the variables that the code of the units that are read refers to by symbols: their
	// global ones, and Info.Declared. It also reads all types of these units: what is a part of what there is
	// known as with All.
	Linked bool
	// Values reads of functions only what the analysis of their code needs: they have no names and are no types,
	// and their variables have places with addresses and registers, no constants. The Function of the last call of
	// Info.Function is then used again by the next one.
	Values bool
}

// Info has functions, variables and types of a file. It is not safe for concurrent use.
type Info struct {
	r       *reader
	types   *btf.Types
	funcs   []found                    // by start
	places  []addr.Addr                // of Options.Lines
	byLine  map[SourceLine][]addr.Addr // the same
	table   lineTable
	recent  map[int]*Function // of FunctionAt
	globals []Global

	declared map[string]*Declared
	pending  []pendingGlobal
	inUnits  map[*dwarf.Root][]found // functions of the units that were read
	callees  callees
	values   *functionReader // with Options.Values
}

// reader is what Read needs, and Info to read functions later.
type reader struct {
	ctx   context.Context
	tree  *dwarf.Tree
	opts  *Options
	units map[*dwarf.Root]*unit
	order []*dwarf.Root // of units, the ones read last at the end
	lang  uint16        // of units without a language
	last  *converter

	b       *btf.Builder
	shared  map[dwarf.Pos]btf.ID // types of units that others refer to
	ids     map[*dwarf.Root]*typeIDs
	final   func(btf.ID) btf.ID
	types   *btf.Types           // nil while they are collected
	index   map[string]dwarf.Pos // definitions by name, once they were needed
	declare map[string]bool      // names that are declared, but not defined, among the types
	named   map[dwarf.Pos]bool   // inlined functions: whether they have one of Options.Names

	names, variables nameSet // of Options
}

// typeIDs has the types at the offsets of a unit.
type typeIDs struct {
	off []uint64
	id  []btf.ID
}

// maxUnits bounds the units with their names in memory: one of ceph-osd needs a megabyte.
const maxUnits = 16

// Read reads the functions, variables and types that o selects. The Info reads from d until it is
// closed. Losses are not an error, see Problems; the error is from ctx, dwarf.ErrChanged, or
// btf.ErrFull with a result.
func Read(ctx context.Context, d *dwarf.Data, o *Options) (*Info, error) {
	r := &reader{ctx: ctx, tree: d.Tree(), opts: o, units: make(map[*dwarf.Root]*unit),
		shared: make(map[dwarf.Pos]btf.ID), ids: make(map[*dwarf.Root]*typeIDs),
		declare: make(map[string]bool), named: make(map[dwarf.Pos]bool),
		names: newNameSet(o.Names), variables: newNameSet(o.Variables)}
	x := &Info{r: r, declared: make(map[string]*Declared), byLine: make(map[SourceLine][]addr.Addr),
		inUnits: make(map[*dwarf.Root][]found)}
	var err error
	if fault := r.tree.Guard(func() { err = x.read() }); fault != nil {
		err = fault
	}
	if err != nil && x.types == nil {
		x.Close()
		return nil, err
	}
	return x, err
}

// Close releases files that were opened for split units.
func (x *Info) Close() error { return x.r.tree.Close() }

// Types returns the types, which stay valid after Close.
func (x *Info) Types() *btf.Types { return x.types }

// Globals returns the variables with a fixed place: by address, thread-local ones by their offset at the end.
func (x *Info) Globals() []Global { return x.globals }

// Problems returns the first losses and their number.
func (x *Info) Problems() ([]*decode.Error, int) { return x.r.tree.Problems, x.r.tree.Lost }

func (x *Info) read() error {
	r := x.r
	var roots []*dwarf.Root
	pointer := 8
	r.tree.Roots(false, func(root *dwarf.Root) bool {
		roots = append(roots, root)
		if pointer = root.AddrSize; r.lang == 0 && qualifies(root.Language) {
			r.lang = root.Language
		}
		return true
	})
	r.b = btf.NewBuilder(r.tree.BigEndian(), pointer)
	chosen, err := x.choose(roots)
	if err != nil {
		return err
	}
	// Types that are selected by name may be in units of a supplementary file, which are not in roots.
	listed := make(map[*dwarf.Root]bool)
	if len(r.opts.Types) > 0 {
		for _, root := range roots {
			listed[root] = true
		}
	}
	for i := 0; i < len(chosen); i++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		for _, root := range x.convert(chosen[i]).imports {
			if !listed[root] {
				listed[root] = true
				chosen = append(chosen, root)
			}
		}
	}
	if err := x.complete(roots); err != nil {
		return err
	}
	x.types, r.final, err = r.b.Types("DWARF")
	r.b, r.last = nil, nil // a multiple of the types
	if r.types = x.types; r.types == nil {
		return err
	}
	slices.SortStableFunc(x.funcs, func(a, b found) int { return cmp.Compare(a.ranges[0].Start, b.ranges[0].Start) })
	x.finishGlobals()
	return err
}

// choose returns the units to read.
func (x *Info) choose(roots []*dwarf.Root) (chosen []*dwarf.Root, err error) {
	r, o := x.r, x.r.opts
	if o.All {
		return roots, nil
	}
	everywhere := len(o.Names) > 0 || len(o.Types) > 0 || len(o.Variables) > 0 || o.Globals
	if len(o.Lines) > 0 {
		if in := x.findLines(roots); len(x.byLine) < len(o.Lines) && !everywhere {
			return in, nil // calls may be inlined there
		}
	}
	want := append(slices.Clone(o.Addrs), x.places...)
	slices.Sort(want)
	for _, root := range roots {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		var e dwarf.Entry
		if !r.tree.Read(root.First(), &e) {
			continue
		}
		rs := r.tree.Ranges(&e)
		if everywhere || len(want) > 0 && (len(rs) == 0 || hits(rs, want)) {
			chosen = append(chosen, root)
		}
	}
	return chosen, nil
}

// hits reports whether one of the sorted addresses is in one of the ranges.
func hits(rs []addr.Range, want []addr.Addr) bool {
	for _, r := range rs {
		if i, _ := slices.BinarySearch(want, r.Start); i < len(want) && want[i] < r.End {
			return true
		}
	}
	return false
}

// unit returns the walk of a unit. Few are kept.
func (r *reader) unit(root *dwarf.Root) *unit {
	if u, ok := r.units[root]; ok {
		return u
	}
	if len(r.order) >= maxUnits {
		delete(r.units, r.order[0])
		r.order = r.order[1:]
	}
	r.order = append(r.order, root)
	return r.walk(root)
}

// language returns the language of a unit: parts that dwz made have none.
func (r *reader) language(root *dwarf.Root) uint16 {
	if root.Language == 0 && root.Shared {
		return r.lang
	}
	return root.Language
}

// definition returns the position of the definition of a declared type, else the type's own.
func (r *reader) definition(p dwarf.Pos) dwarf.Pos {
	if to, ok := r.unit(p.Root).alias[p.Off]; ok {
		return to
	}
	return p
}

// convert adds the types of a unit, of all or of the selected functions and variables. It returns the unit, which
// may be walked again by the next call of reader.unit.
func (x *Info) convert(root *dwarf.Root) *unit {
	r := x.r
	u := r.unit(root)
	r.selectInlined(u)
	for _, c := range u.calls {
		x.addPlace(c.line, c.at)
	}
	x.sortPlaces()
	c := newConverter(r)
	for i := range u.funcs {
		f := &u.funcs[i]
		selected := x.selects(f)
		if selected {
			x.funcs = append(x.funcs, *f)
		}
		switch {
		case selected && !r.opts.Values:
			c.function(f)
		case r.opts.Values || r.opts.Linked:
			c.result(f.pos)
		}
	}
	x.inUnits[root] = u.funcs
	c.uses(&u.uses)
	for _, off := range u.globals {
		if p := (dwarf.Pos{Root: root, Off: off}); r.opts.All || r.opts.Globals || r.opts.Linked || r.wants(p, &r.variables) {
			x.global(c, p)
		}
	}
	if r.opts.Linked {
		for _, off := range u.extern {
			x.declare(c, dwarf.Pos{Root: root, Off: off})
		}
	}
	for _, off := range u.types {
		if p := (dwarf.Pos{Root: root, Off: off}); r.opts.All || r.opts.Linked || x.selectsType(p) {
			c.at(p)
		}
	}
	r.addTypes(c)
	return u
}

// addTypes reads the entries of the types of c and adds them.
func (r *reader) addTypes(c *converter) {
	c.convert()
	ids := r.b.Add(c.defs)
	for i := range c.defs {
		if d := &c.defs[i]; d.Kind == btf.KindFwd && d.Known == 0 && qualifies(r.language(c.pos[i].Root)) {
			r.declare[d.Name] = true
		}
	}
	slices.SortFunc(c.num.list, func(a, b numbered) int { return cmp.Compare(a.Off, b.Off) })
	for _, p := range c.num.list {
		if p.Root.Shared {
			r.shared[p.Pos] = ids[p.n]
			continue
		}
		t := r.ids[p.Root]
		if t == nil {
			t = &typeIDs{make([]uint64, 0, len(c.num.list)), make([]btf.ID, 0, len(c.num.list))}
			r.ids[p.Root] = t
		}
		t.add(p.Off, ids[p.n])
	}
}

// add notes a type.
func (t *typeIDs) add(off uint64, id btf.ID) {
	if n := len(t.off); n == 0 || t.off[n-1] < off {
		t.off, t.id = append(t.off, off), append(t.id, id)
		return
	}
	i, found := slices.BinarySearch(t.off, off)
	if !found {
		t.off, t.id = slices.Insert(t.off, i, off), slices.Insert(t.id, i, id)
	}
}

// typeID returns the final type at a position. Types that were read by a declaration are noted at it, too.
func (r *reader) typeID(p dwarf.Pos) btf.ID {
	id, ok := r.noted(p)
	if !ok {
		id, _ = r.noted(r.definition(p))
	}
	return r.final(id)
}

// noted returns the type at a position by its number in the Builder.
func (r *reader) noted(p dwarf.Pos) (id btf.ID, ok bool) {
	if p.Root.Shared {
		id, ok = r.shared[p]
		return id, ok
	}
	t := r.ids[p.Root]
	if t == nil {
		return 0, false
	}
	i, found := slices.BinarySearch(t.off, p.Off)
	if !found {
		return 0, false
	}
	return t.id[i], true
}

// selects reports whether a function is selected.
func (x *Info) selects(f *found) bool {
	o := x.r.opts
	if o.All {
		return true
	}
	for _, a := range o.Addrs {
		for _, r := range f.ranges {
			if a >= r.Start && a < r.End {
				return true
			}
		}
	}
	return f.inlines || hits(f.ranges, x.places) || x.r.wants(f.pos, &x.r.names)
}

// wants reports whether an entry has one of the names.
func (r *reader) wants(p dwarf.Pos, names *nameSet) bool {
	if names.empty() {
		return false
	}
	e := r.tree.Entry()
	defer r.tree.Release(e)
	return r.tree.Read(p, e) && names.has(r.qualified(e), linkage(r.tree, e))
}

// selectsType reports whether a type is selected by its name.
func (x *Info) selectsType(p dwarf.Pos) bool {
	if len(x.r.opts.Types) == 0 {
		return false
	}
	var e dwarf.Entry
	return x.r.tree.Read(p, &e) && slices.Contains(x.r.opts.Types, x.r.typeName(&e))
}

// maxRounds bounds the searches for definitions: each completes what the last one declared.
const maxRounds = 32

// complete adds the definitions of types that are only declared in the units that were read. With
// all types read, btf.Builder finds them.
func (x *Info) complete(roots []*dwarf.Root) error {
	r := x.r
	for range maxRounds {
		if r.opts.All || len(r.declare) == 0 {
			return nil
		}
		if r.index == nil {
			if err := r.indexDefinitions(roots); err != nil {
				return err
			}
		}
		byRoot := make(map[*dwarf.Root][]dwarf.Pos)
		for name, open := range r.declare {
			if p, ok := r.index[name]; ok && open {
				byRoot[p.Root] = append(byRoot[p.Root], p)
			}
			r.declare[name] = false
		}
		if len(byRoot) == 0 {
			return nil
		}
		for _, root := range roots {
			list := byRoot[root]
			if list == nil {
				continue
			}
			slices.SortFunc(list, func(a, b dwarf.Pos) int { return cmp.Compare(a.Off, b.Off) })
			known := r.declare
			r.declare = make(map[string]bool)
			c := newConverter(r)
			for _, p := range list {
				c.at(p)
			}
			r.addTypes(c)
			for name := range r.declare {
				if _, seen := known[name]; !seen {
					known[name] = true
				}
			}
			r.declare = known
		}
	}
	return nil
}

// indexDefinitions finds the definitions of all units by name, of several the first.
func (r *reader) indexDefinitions(roots []*dwarf.Root) error {
	r.index = make(map[string]dwarf.Pos)
	for _, root := range roots {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if !qualifies(r.language(root)) {
			continue
		}
		for _, d := range r.unit(root).defined {
			if _, dup := r.index[d.name]; !dup {
				r.index[strings.Clone(d.name)] = dwarf.Pos{Root: root, Off: d.off}
			}
		}
	}
	return nil
}
