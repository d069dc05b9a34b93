package dwarfvar

import (
	"cmp"
	"math"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
)

// maxRecent is how many functions FunctionAt keeps: those of a list of addresses are read once.
const maxRecent = 256

// FunctionAt reads the innermost selected function that contains an address, nil if there is none. The result must not be
// changed.
func (x *Info) FunctionAt(a addr.Addr) (*Function, error) {
	best := -1
	for i := range x.funcs {
		for _, r := range x.funcs[i].ranges {
			if a >= r.Start && a < r.End && (best < 0 || length(x.funcs[i].ranges) < length(x.funcs[best].ranges)) {
				best = i
			}
		}
	}
	if best < 0 {
		return nil, nil
	}
	if f := x.recent[best]; f != nil {
		return f, nil
	}
	f, err := x.Function(best)
	if err == nil {
		if x.recent == nil || len(x.recent) >= maxRecent {
			x.recent = make(map[int]*Function)
		}
		x.recent[best] = f
	}
	return f, err
}

func length(rs []addr.Range) (n addr.Addr) {
	for _, r := range rs {
		n += r.End - r.Start
	}
	return n
}

// Len returns the number of selected functions.
func (x *Info) Len() int { return len(x.funcs) }

// Start returns the start of a function, by which they are sorted.
func (x *Info) Start(i int) addr.Addr { return x.funcs[i].ranges[0].Start }

// InUnits returns the numbers of the functions in the order of their units. Function reads them fastest in
// this order: a linker mixes functions of several units.
func (x *Info) InUnits() []int {
	list := make([]int, len(x.funcs))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(x.funcs[a].pos.Root.Offset, x.funcs[b].pos.Root.Offset)
	})
	return list
}

// Function reads function i. The result is the caller's, but see Options.Values.
func (x *Info) Function(i int) (*Function, error) {
	r := x.r
	read := x.values
	if read == nil {
		first := r.finalReader()
		read = &first
		read.places = true
	}
	if r.opts.Values {
		x.values = read
		read.again()
	}
	if err := r.tree.Guard(func() { read.read(&x.funcs[i]) }); err != nil {
		return nil, err
	}
	return &read.f, nil
}

// callees are the functions of one unit by their first address.
type callees struct {
	root *dwarf.Root
	at   map[addr.Addr]dwarf.Pos
}

// ResultAt returns the type that the function that begins at an address returns, 0 for none. It is known of the
// functions in the unit of function i.
func (x *Info) ResultAt(i int, a addr.Addr) (id btf.ID) {
	root := x.funcs[i].pos.Root
	_ = x.r.tree.Guard(func() { // of a file that shrank: the next Function fails, too
		if x.callees.root != root {
			x.callees = callees{root, make(map[addr.Addr]dwarf.Pos)}
			for _, f := range x.inUnits[root] {
				x.callees.at[f.ranges[0].Start] = f.pos
			}
		}
		e := x.r.tree.Entry()
		defer x.r.tree.Release(e)
		if p, ok := x.callees.at[a]; ok && x.r.tree.Read(p, e) {
			read := x.r.finalReader()
			id = read.typ(e)
		}
	})
	return id
}

// result adds the type that a function returns.
func (c *converter) result(p dwarf.Pos) {
	e := c.r.tree.Entry()
	defer c.r.tree.Release(e)
	if c.r.tree.Read(p, e) {
		read := c.functions()
		read.typ(e)
	}
}

// function adds the types that a function refers to, and its own.
func (c *converter) function(f *found) {
	read := c.functions()
	read.read(f)
	fn := &read.f
	if fn.Name == "" {
		return
	}
	proto := btf.Def{Kind: btf.KindFuncProto, Ref: int(fn.Result)}
	for _, v := range fn.Vars {
		if v.Param && v.Scope == 0 && len(proto.Items) < math.MaxUint16-1 {
			proto.Items = append(proto.Items, btf.DefItem{Name: v.Name, Ref: int(v.Type)})
		}
	}
	if fn.Variadic {
		proto.Items = append(proto.Items, btf.DefItem{})
	}
	d := btf.Def{Kind: btf.KindFunc, Name: fn.Name, Ref: c.add(proto)}
	if fn.External {
		d.Len = 1
	}
	c.add(d)
}

// linkage returns the symbol's name of a function, "" if it has none.
func linkage(t *dwarf.Tree, e *dwarf.Entry) string {
	next := t.Entry()
	defer t.Release(next)
	for range maxChain {
		for _, a := range []uint16{atLinkageName, atMIPSLinkage} {
			if s := t.String(e, a); s != "" {
				return s
			}
		}
		p, ok := origin(t, e)
		if !ok || !t.Read(p, next) {
			break
		}
		e = next
	}
	return ""
}

// described calls f with an entry and those that it refers to as its declaration, until f returns true.
func described(t *dwarf.Tree, e *dwarf.Entry, f func(*dwarf.Entry) bool) {
	next := t.Entry()
	defer t.Release(next)
	for range maxChain {
		if f(e) {
			return
		}
		p, ok := origin(t, e)
		if !ok || !t.Read(p, next) {
			return
		}
		e = next
	}
}

// functionReader reads one function.
type functionReader struct {
	r      *reader
	tree   *dwarf.Tree
	f      Function
	places bool // read locations
	values bool // Options.Values
	typeOf func(dwarf.Pos) btf.ID

	frame []frameBase   // where DW_AT_frame_base is what
	where []Located     // with Options.Values: of all variables
	scope []int32       // by depth
	seen  [][]dwarf.Pos // by depth: origins of the entries in a scope
	from  []dwarf.Pos   // by depth: the abstract instance of a scope
}

// frameBase is the value of DW_AT_frame_base in a range.
type frameBase struct {
	start, end addr.Addr
	symbol
}

// Bounds of a function: blocks and inlined calls, variables, and places of one variable, of which 9,000,
// 40,000, and 2,700 were seen; calls.
const (
	maxScopes = 1 << 17
	maxVars   = 1 << 19
	maxPlaces = 1 << 16
	maxCalls  = 1 << 18
)

// functions returns a reader with types by their numbers in c, to which they are added.
func (c *converter) functions() functionReader {
	return functionReader{r: c.r, tree: c.r.tree, values: c.r.opts.Values, typeOf: func(p dwarf.Pos) btf.ID { return btf.ID(c.at(p)) }}
}

// finalReader returns a reader with the final types.
func (r *reader) finalReader() functionReader {
	return functionReader{r: r, tree: r.tree, values: r.opts.Values, typeOf: r.typeID}
}

func (fr *functionReader) read(found *found) {
	r := fr.r
	var e dwarf.Entry
	if !r.tree.Read(found.pos, &e) {
		return
	}
	f := &fr.f
	f.pos, f.Language, f.Ranges, f.Entry = found.pos, r.language(e.Root), found.ranges, found.ranges[0].Start
	if !fr.values {
		f.Name, f.Linkage = r.qualified(&e), linkage(r.tree, &e)
		described(r.tree, &e, func(d *dwarf.Entry) bool { f.External = f.External || d.Flag(atExternal); return f.External })
		f.Result = fr.typ(&e)
	}
	f.Scopes = append(f.Scopes, Scope{Parent: -1, Ranges: f.Ranges, pos: found.pos})
	if fr.places {
		fr.frameBase(&e)
	}
	fr.enter(0, 0, &e)
	r.tree.Kids(&e, func(k *dwarf.Entry, depth int) dwarf.Step { return fr.kid(k, depth) },
		func(depth int) { fr.leave(depth) })
	fr.leave(0)
	slices.SortStableFunc(f.Calls, func(a, b Call) int { return cmp.Compare(a.Return, b.Return) })
}

// again prepares for another function, in the memory of the last one.
func (fr *functionReader) again() {
	f := &fr.f
	clear(f.Scopes)
	clear(f.Vars)
	*f = Function{Scopes: f.Scopes[:0], Vars: f.Vars[:0], Calls: f.Calls[:0]}
	fr.frame, fr.where = fr.frame[:0], fr.where[:0]
}

// typ returns the type of an entry or its declaration.
func (fr *functionReader) typ(e *dwarf.Entry) (id btf.ID) {
	described(fr.tree, e, func(d *dwarf.Entry) bool {
		if !d.Has(atType) {
			return false
		}
		if p, ok := fr.tree.Ref(d, atType); ok {
			id = fr.typeOf(p)
		}
		return true
	})
	return id
}

// enter begins a scope at a depth.
func (fr *functionReader) enter(depth int, scope int32, e *dwarf.Entry) {
	from, _ := fr.tree.Ref(e, atAbstractOrigin)
	fr.scope = append(fr.scope[:depth], scope)
	fr.from = append(fr.from[:depth], from)
	fr.seen = append(fr.seen[:depth], nil)
}

// leave ends the entries at a depth: the variables of the abstract instance that this instance does
// not have are optimized out.
func (fr *functionReader) leave(depth int) {
	if depth >= len(fr.from) || fr.from[depth].Root == nil || fr.values {
		return
	}
	from := fr.from[depth]
	fr.from[depth] = dwarf.Pos{}
	var e dwarf.Entry
	if !fr.tree.Read(from, &e) {
		return
	}
	seen := fr.seen[depth]
	fr.tree.Kids(&e, func(k *dwarf.Entry, below int) dwarf.Step {
		switch {
		case slices.Contains(seen, k.Pos):
		case k.Tag == tagLexicalBlock:
			return dwarf.Into
		case k.Tag == tagFormalParameter, k.Tag == tagVariable:
			n := len(fr.f.Vars)
			fr.variable(k, depth)
			if added := fr.f.Vars[n:]; below > 1 && len(added) > 0 && len(added[0].Where) == 0 {
				fr.f.Vars = fr.f.Vars[:n] // of a block without code: only static ones are left
			}
		}
		return dwarf.Over
	}, nil)
}

// kid reads an entry within the function.
func (fr *functionReader) kid(e *dwarf.Entry, depth int) dwarf.Step {
	switch e.Tag {
	case tagFormalParameter, tagVariable:
		fr.variable(e, depth-1)
	case tagUnspecifiedParams:
		fr.f.Variadic = fr.f.Variadic || depth == 1
	case tagGNUFormalPack:
		fr.enter(depth, fr.scope[depth-1], e)
		return dwarf.Into
	case tagLexicalBlock, tagInlinedSubroutine, tagTryBlock, tagCatchBlock, tagWithStmt:
		return fr.block(e, depth)
	case tagCallSite:
		fr.call(e, atCallReturnPC, atCallOrigin)
	case tagGNUCallSite:
		fr.call(e, atLowPC, atAbstractOrigin)
	}
	return dwarf.Over
}

// call reads a call.
func (fr *functionReader) call(e *dwarf.Entry, at, origin uint16) {
	a, ok := fr.tree.Address(e, at)
	if !ok || len(fr.f.Calls) >= maxCalls {
		return
	}
	to := fr.tree.Entry()
	defer fr.tree.Release(to)
	if p, ok := fr.tree.Ref(e, origin); !ok || !fr.tree.Read(p, to) {
		return
	}
	if id := fr.typ(to); id != 0 {
		fr.f.Calls = append(fr.f.Calls, Call{addr.Addr(a), id})
	}
}

// block begins a block or an inlined call.
func (fr *functionReader) block(e *dwarf.Entry, depth int) dwarf.Step {
	r := fr.r
	parent := fr.scope[depth-1]
	s := Scope{Parent: parent, Ranges: fr.f.Scopes[parent].Ranges}
	if e.Has(atLowPC) || e.Has(atRanges) {
		if s.Ranges = slices.Clone(r.tree.Ranges(e)); len(s.Ranges) == 0 {
			return dwarf.Over // its code was dropped
		}
	} else if e.Tag == tagInlinedSubroutine {
		return dwarf.Over
	}
	if p, ok := r.tree.Ref(e, atAbstractOrigin); ok && !fr.values {
		fr.seen[depth-1] = append(fr.seen[depth-1], p)
	}
	if e.Tag == tagInlinedSubroutine && !fr.values {
		s.Inline, s.pos = cmp.Or(r.qualified(e), "(unknown)"), e.Pos
		s.Result = fr.typ(e)
		if fr.places {
			s.Entry, _ = entryOf(r.tree, e)
			s.Linkage = linkage(r.tree, e)
		}
	}
	if len(fr.f.Scopes) >= maxScopes {
		r.tree.Lose(e.Pos, "function with too many blocks")
		return dwarf.Over
	}
	fr.f.Scopes = append(fr.f.Scopes, s)
	fr.enter(depth, int32(len(fr.f.Scopes)-1), e)
	if !e.Children { // all of its variables are optimized out
		fr.leave(depth)
	}
	return dwarf.Into
}

// variable reads a parameter or a variable of the scope at a depth.
func (fr *functionReader) variable(e *dwarf.Entry, depth int) {
	v := Variable{Param: e.Tag == tagFormalParameter, Scope: fr.scope[depth]}
	if fr.values {
		from := len(fr.where)
		v.Where = fr.where[from:]
		if fr.locate(e, &v); len(v.Where) == 0 {
			return
		}
		fr.where = append(fr.where, v.Where...)
		v.Where = slices.Clip(fr.where[from:])
	} else if p, ok := origin(fr.tree, e); ok {
		fr.seen[depth] = append(fr.seen[depth], p)
	}
	if e.Flag(atDeclaration) && !e.Has(atLocation) {
		return
	}
	if v.Name, v.Type = fr.nameAndType(e); v.Name == "" {
		return
	}
	if len(fr.f.Vars) >= maxVars {
		fr.tree.Lose(e.Pos, "function with too many variables")
		return
	}
	if fr.places && !fr.values {
		fr.locate(e, &v)
	}
	fr.f.Vars = append(fr.f.Vars, v)
}

// nameAndType returns the name and the type of a variable, which its declaration can have; no type without a name.
func (fr *functionReader) nameAndType(e *dwarf.Entry) (name string, id btf.ID) {
	var to dwarf.Pos
	typed := false
	described(fr.tree, e, func(d *dwarf.Entry) bool {
		if name == "" {
			name = fr.tree.String(d, atName)
		}
		if !typed && d.Has(atType) {
			typed = true
			to, _ = fr.tree.Ref(d, atType)
		}
		return typed && name != ""
	})
	if name != "" && to.Root != nil {
		id = fr.typeOf(to)
	}
	return name, id
}

// locate reads the places of a variable.
func (fr *functionReader) locate(e *dwarf.Entry, v *Variable) {
	t := fr.tree
	switch e.Class(atLocation) {
	case dwarf.ClassBlock:
		b, _ := e.Block(atLocation)
		v.Whole = true
		fr.place(e, v, addr.Range{End: math.MaxUint64}, b)
	case dwarf.ClassList, dwarf.ClassConst:
		var other []dwarf.Location
		t.Locations(e, atLocation, func(l dwarf.Location) {
			if l.Default {
				other = append(other, l)
				return
			}
			fr.place(e, v, addr.Range{Start: addr.Addr(l.Start), End: addr.Addr(l.End)}, l.Expr)
		})
		for _, l := range other { // behind the others, which At finds first
			fr.place(e, v, addr.Range{End: math.MaxUint64}, l.Expr)
		}
	default:
		if !fr.values {
			fr.constant(e, v)
		}
	}
}

// place adds the place of an expression in a range, or several where the frame base changes.
func (fr *functionReader) place(e *dwarf.Entry, v *Variable, in addr.Range, expr []byte) {
	add := func(rg addr.Range, p Place) {
		if len(v.Where) < maxPlaces && rg.Start < rg.End && p.Kind != Lost {
			v.Where = append(v.Where, Located{rg, p})
		}
	}
	switch {
	case len(fr.frame) == 0:
		add(in, evaluate(fr.tree, e.Root, unknown, expr))
	case len(fr.frame) == 1 && fr.frame[0].end == math.MaxUint64:
		add(in, evaluate(fr.tree, e.Root, fr.frame[0].symbol, expr))
	default:
		v.Whole = false
		for _, b := range fr.frame {
			add(addr.Range{Start: max(in.Start, b.start), End: min(in.End, b.end)},
				evaluate(fr.tree, e.Root, b.symbol, expr))
		}
	}
}

// constant sets the place of a variable with a constant value, in the entry or its declaration.
func (fr *functionReader) constant(e *dwarf.Entry, v *Variable) {
	described(fr.tree, e, func(d *dwarf.Entry) bool {
		p := Place{Kind: Constant}
		n, _, ok := d.Const(atConstValue)
		switch {
		case ok:
			p.Off = fr.r.extend(int64(n), d.Width(atConstValue), v.Type)
		case d.Class(atConstValue) == dwarf.ClassBlock:
			b, _ := d.Block(atConstValue)
			p = Place{Kind: Bytes, Data: b}
		case d.Class(atConstValue) == dwarf.ClassString:
			p = Place{Kind: Bytes, Data: append([]byte(fr.tree.String(d, atConstValue)), 0)}
		case d != e && d.Class(atLocation) == dwarf.ClassBlock: // a static variable of an inlined function
			b, _ := d.Block(atLocation)
			if p = evaluate(fr.tree, d.Root, unknown, b); p.Kind != Static && p.Kind != ThreadLocal {
				return false
			}
		default:
			return false
		}
		v.Whole = true
		v.Where = []Located{{addr.Range{End: math.MaxUint64}, p}}
		return true
	})
}

// extend gives a constant of a fixed width the sign of its type: compilers write −1 as 0xffffffff.
func (r *reader) extend(n int64, width int, id btf.ID) int64 {
	if width == 0 || r.types == nil {
		return n
	}
	if i := r.types.Int(r.types.Strip(id)); i.Signed && i.Size > 0 && i.Size < 8 && int(i.Size) <= width {
		shift := 64 - 8*i.Size
		return n << shift >> shift
	}
	return n
}

// frameBase reads DW_AT_frame_base.
func (fr *functionReader) frameBase(e *dwarf.Entry) {
	base := func(rg addr.Range, expr []byte) {
		s := unknown
		switch p := evaluate(fr.tree, e.Root, unknown, expr); p.Kind {
		case Register:
			s = symbol{base: baseRegister, reg: p.Reg}
		case Memory: // DW_OP_breg: the address itself
			s = symbol{baseRegister, p.Reg, p.Off}
		case Stack:
			s = symbol{base: baseCFA, n: p.Off}
		}
		if len(fr.frame) < maxPlaces {
			fr.frame = append(fr.frame, frameBase{rg.Start, rg.End, s})
		}
	}
	switch e.Class(atFrameBase) {
	case dwarf.ClassBlock:
		b, _ := e.Block(atFrameBase)
		base(addr.Range{End: math.MaxUint64}, b)
	case dwarf.ClassList, dwarf.ClassConst:
		fr.tree.Locations(e, atFrameBase, func(l dwarf.Location) {
			rg := addr.Range{Start: addr.Addr(l.Start), End: addr.Addr(l.End)}
			if l.Default {
				rg = addr.Range{End: math.MaxUint64}
			}
			base(rg, l.Expr)
		})
	}
}
