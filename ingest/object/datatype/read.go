// Package datatype finds which member of which type each instruction of a file reads or writes: by its debug
// information (ingest/object/dwarfvar), its code, and the flow of values through it (ingest/object/flow).
package datatype

import (
	"cmp"
	"context"
	stdelf "debug/elf"
	"errors"
	"slices"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/flow"
)

// Options are for Read.
type Options struct {
	// Only selects the functions at these addresses; nil for all.
	Only []addr.Addr
	// Base is subtracted from the addresses of the table. A module is placed there.
	Base addr.Addr
}

// Read finds the accesses of the instructions in code, a file that runs, by debug information: d is open, of
// debug, which may be the same file. It is nil for a machine whose instructions it does not know, and
// without types. Memory is a multiple of the types and of one function.
func Read(ctx context.Context, code, debug *elf.File, d *dwarf.Data, o Options) (*Table, error) {
	if !flow.Knows(code.Machine) || code.Class != stdelf.ELFCLASS64 || code.BigEndian {
		return nil, nil
	}
	if code.Type == stdelf.ET_REL && code.Machine != stdelf.EM_X86_64 {
		return nil, nil // relocations of instructions are not known
	}
	c, err := readCode(code, debug, o.Base)
	if err != nil {
		return nil, err
	}
	info, err := dwarfvar.Read(ctx, d, &dwarfvar.Options{All: o.Only == nil, Addrs: o.Only, Linked: true, Values: true})
	if err != nil && !errors.Is(err, btf.ErrFull) {
		return nil, err
	}
	defer info.Close()
	r := &reader{code: c, types: info.Types(), info: info}
	if err := r.variables(debug); err != nil {
		return nil, err
	}
	if err := r.functions(ctx, o); err != nil || len(r.funcs) == 0 {
		return nil, err
	}
	return r.table(o)
}

// reader is the state of Read and ReadBTF. It is the flow.Object.
type reader struct {
	*code
	types   *btf.Types
	info    *dwarfvar.Info    // nil of BTF
	globals []dwarfvar.Global // with sizes, by address
	own     []dwarfvar.Global // those that have their places in debug information
	local   []dwarfvar.Global
	fixed   map[addr.Addr]bool // where own ones are that have flow.Global.Fixed
	funcs   []Func
}

// variables sorts the global variables. Those of discarded sections are at address 0, where a kernel has
// the variables of processors.
func (r *reader) variables(debug *elf.File) error {
	for _, g := range r.info.Globals() {
		switch {
		case g.Size == 0:
		case g.Local:
			r.local = append(r.local, g)
		case g.Addr != 0 || r.kernel:
			r.globals = append(r.globals, g)
		}
	}
	r.own = slices.Clone(r.globals)
	if err := r.link(debug); err != nil {
		return err
	}
	r.sortVariables()
	return r.fix()
}

// fix finds the variables of a program that are nowhere else at run time: those that the dynamic linker does not
// know. Those of processors in a kernel are elsewhere.
func (r *reader) fix() error {
	if r.kernel {
		return nil
	}
	r.fixed = make(map[addr.Addr]bool, len(r.own))
	for _, g := range r.own {
		r.fixed[g.Addr] = true
	}
	return r.file.Entries(elf.Dynsym, func(e elf.Entry) bool {
		delete(r.fixed, addr.Addr(e.Value))
		return true
	})
}

// sortVariables sorts the variables by address. Of several at one the first counts.
func (r *reader) sortVariables() {
	for _, list := range []*[]dwarfvar.Global{&r.globals, &r.local} {
		slices.SortStableFunc(*list, func(a, b dwarfvar.Global) int { return cmp.Compare(a.Addr, b.Addr) })
		*list = slices.CompactFunc(*list, func(a, b dwarfvar.Global) bool { return a.Addr == b.Addr })
	}
}

// find returns the variable at an address.
func find(list []dwarfvar.Global, a addr.Addr) (flow.Global, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr > a }) - 1
	if i < 0 || uint64(a-list[i].Addr) >= list[i].Size {
		return flow.Global{}, false
	}
	return flow.Global{Name: list[i].Name, Type: list[i].Type, At: list[i].Addr}, true
}

// Global implements flow.Object.
func (r *reader) Global(a addr.Addr) (flow.Global, bool) {
	g, ok := find(r.globals, a)
	g.Fixed = r.fixed[g.At]
	return g, ok
}

// ThreadLocal implements flow.Object.
func (r *reader) ThreadLocal(d int64) (flow.Global, bool) {
	if d < r.tls {
		return flow.Global{}, false
	}
	g, ok := find(r.local, addr.Addr(d-r.tls))
	g.At += addr.Addr(r.tls)
	return g, ok
}

// functions analyzes the functions.
func (r *reader) functions(ctx context.Context, o Options) error {
	analyzer := flow.New(r, r.file.Machine, r.types)
	var vars []flow.Variable
	results := make(map[addr.Addr]btf.ID)
	for _, i := range r.info.InUnits() {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := r.info.Function(i)
		if err != nil {
			return err
		}
		vars = variables(vars[:0], f)
		clear(results)
		fn := &flow.Function{Ranges: entryFirst(f), Variables: vars, Results: results}
		for _, c := range f.Calls {
			fn.Results[c.Return] = c.Result
		}
		if len(f.Calls) == 0 { // rustc writes no entries of calls
			fn.Result = func(a addr.Addr) btf.ID { return r.info.ResultAt(i, a) }
		}
		rows, reason := analyzer.Function(fn)
		r.split(f.Ranges, rows, reason)
	}
	return nil
}

// entryFirst returns the ranges of a function, the one of its entry first.
func entryFirst(f *dwarfvar.Function) []addr.Range {
	list := slices.Clone(f.Ranges)
	i := slices.IndexFunc(list, func(r addr.Range) bool { return r.Contains(f.Entry) })
	if i > 0 {
		list[0], list[i] = list[i], list[0]
	}
	return list
}

// split adds a Func for each range.
func (r *reader) split(ranges []addr.Range, rows []flow.Access, reason flow.Reason) {
	for _, x := range ranges {
		from, _ := slices.BinarySearchFunc(rows, x.Start, compareRow)
		to, _ := slices.BinarySearchFunc(rows, x.End, compareRow)
		if x.Start < x.End {
			r.funcs = append(r.funcs, Func{Range: x, Reason: reason, Rows: rows[from:to]})
		}
	}
}

func compareRow(r flow.Access, a addr.Addr) int { return cmp.Compare(r.At, a) }

// variables appends the places of a function's variables.
func variables(list []flow.Variable, f *dwarfvar.Function) []flow.Variable {
	depths := make([]int, len(f.Scopes))
	for i := range f.Scopes {
		if p := f.Scopes[i].Parent; p >= 0 {
			depths[i] = depths[p] + 1
		}
	}
	for i := range f.Vars {
		v := &f.Vars[i]
		for k := range v.Where {
			l := &v.Where[k]
			base := flow.Variable{Name: v.Name, Type: v.Type, Depth: depths[v.Scope], Whole: v.Whole}
			for _, r := range f.Scopes[v.Scope].Ranges {
				base.Range = addr.Range{Start: max(r.Start, l.Start), End: min(r.End, l.End)}
				if base.Start < base.End {
					list = appendPlace(list, base, &l.Place)
				}
			}
		}
	}
	return list
}

// appendPlace appends a place, or its parts in registers and in memory.
func appendPlace(list []flow.Variable, v flow.Variable, p *dwarfvar.Place) []flow.Variable {
	v.Reg, v.Off = uint8(min(p.Reg, uint16(flow.NoRegister))), p.Off
	switch p.Kind {
	case dwarfvar.Register:
		v.Kind = flow.InRegister
	case dwarfvar.Memory:
		v.Kind = flow.AtRegister
	case dwarfvar.Stack:
		v.Kind = flow.AtCFA
	case dwarfvar.Sum:
		v.Kind = flow.IsRegister
	case dwarfvar.StackAddress:
		v.Kind = flow.IsCFA
	case dwarfvar.Parts:
		at := uint64(0)
		for i := range p.Parts {
			part := &p.Parts[i]
			inside := part.Kind == dwarfvar.Register || part.Kind == dwarfvar.Memory || part.Kind == dwarfvar.Stack
			if inside && at%8 == 0 && part.Bits%8 == 0 {
				v.Piece, v.Size = int64(at/8), int64(part.Bits/8)
				list = appendPlace(list, v, &part.Place)
			}
			at += part.Bits
		}
		return list
	default:
		return list
	}
	return append(list, v)
}

// table makes the table: functions in order, without overlaps, and the types that they use, in the order of their
// first use: it does not depend on how the types were read.
func (r *reader) table(o Options) (*Table, error) {
	slices.SortStableFunc(r.funcs, func(a, b Func) int { return cmp.Compare(a.Start, b.Start) })
	var used []btf.ID
	seen := make([]bool, r.types.Len())
	end := addr.Addr(0)
	t := &Table{}
	for _, f := range r.funcs {
		if f.Start < end || f.Start < o.Base {
			continue // of two functions at a place, after identical code was folded, the first
		}
		end = f.End
		t.Funcs = append(t.Funcs, f)
		for i := range f.Rows {
			if x := &f.Rows[i]; x.Reason == flow.Known && !seen[x.Type] {
				seen[x.Type] = true
				used = append(used, x.Type)
			}
		}
	}
	types, moved, err := prune(r.types, used, r.placed(o))
	if err != nil {
		return nil, err
	}
	t.Types = types
	for i := range t.Funcs {
		f := &t.Funcs[i]
		f.Start, f.End = f.Start-o.Base, f.End-o.Base
		for k := range f.Rows {
			x := &f.Rows[k]
			x.At -= o.Base
			if x.Reason == flow.Known {
				x.Type = moved[x.Type]
			}
		}
	}
	return t, nil
}
