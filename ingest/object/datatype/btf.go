package datatype

import (
	"cmp"
	"context"
	stdelf "debug/elf"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/flow"
	"symbolize/ingest/object/x86"
)

// ReadBTF finds the accesses of the instructions of a kernel or a module by BTF: parameters are known at the entry
// of functions, in the registers of the ABI, the types that called functions return, and the variables of
// processors. It is nil as Read's, and without a symbol table.
func ReadBTF(ctx context.Context, code *elf.File, types *btf.Types, o Options) (*Table, error) {
	if code.Machine != stdelf.EM_X86_64 || code.Class != stdelf.ELFCLASS64 || code.BigEndian ||
		!code.IsKernelImage() && !code.IsModule() {
		return nil, nil
	}
	c, err := readCode(code, code, o.Base)
	if err != nil {
		return nil, err
	}
	r := &reader{code: c, types: types}
	s := symbolReader{reader: r, protos: make(map[string]btf.ID)}
	if err := s.read(o.Base); err != nil {
		return nil, err
	}
	if err := s.variables(); err != nil {
		return nil, err
	}
	if err := s.functions(ctx, o); err != nil || len(r.funcs) == 0 {
		return nil, err
	}
	t, err := r.table(o)
	if t != nil {
		t.Source = FromBTF
	}
	return t, err
}

// symbolReader finds functions by symbols and BTF.
type symbolReader struct {
	*reader
	list   []symbol          // functions by address
	protos map[string]btf.ID // FUNC_PROTOs by the names of functions; 0 where several differ
	calls  map[addr.Addr]btf.ID
}

// symbol is a function with all of its names.
type symbol struct {
	addr.Range
	names []string
}

// Functions returns the functions of a kernel or module that BTF has, by address, with their parameters at the
// entry, where the ABI of its machine has them. A module is at base.
func Functions(f *elf.File, types *btf.Types, base addr.Addr) (list []dwarfvar.Function, err error) {
	s := symbolReader{reader: &reader{code: &code{file: f}, types: types}, protos: make(map[string]btf.ID)}
	if f.Type == stdelf.ET_REL {
		if err := s.place(base); err != nil {
			return nil, err
		}
	}
	if err := s.read(base); err != nil {
		return nil, err
	}
	for i := range s.list {
		x := &s.list[i]
		proto := s.proto(x)
		args, ok := Arguments(f.Machine, types, proto)
		if proto == 0 || !ok {
			continue
		}
		n := slices.IndexFunc(x.names, func(name string) bool { return s.protos[name] != 0 })
		fn := dwarfvar.Function{Name: x.names[n], Entry: x.Start, Ranges: []addr.Range{x.Range}, Result: types.Ref(proto),
			Scopes: []dwarfvar.Scope{{Parent: -1, Ranges: []addr.Range{x.Range}}}}
		for k := range args {
			v := dwarfvar.Variable{Name: args[k].Name, Type: args[k].Type, Param: true}
			v.Where = []dwarfvar.Located{{Range: addr.Range{Start: x.Start, End: x.Start + 1}, Place: args[k].placed()}}
			fn.Vars = append(fn.Vars, v)
		}
		list = append(list, fn)
	}
	return list, nil
}

// placed returns the place of an argument at the entry.
func (a *Argument) placed() dwarfvar.Place {
	switch {
	case a.Pointer && a.OnStack:
		return dwarfvar.Place{Kind: dwarfvar.Computed}
	case a.OnStack:
		return dwarfvar.Place{Kind: dwarfvar.Stack, Off: a.Stack}
	case a.Pointer:
		return dwarfvar.Place{Kind: dwarfvar.Memory, Reg: uint16(a.Registers[0])}
	case len(a.Registers) == 1:
		return dwarfvar.Place{Kind: dwarfvar.Register, Reg: uint16(a.Registers[0])}
	}
	p := dwarfvar.Place{Kind: dwarfvar.Parts}
	for _, r := range a.Registers {
		p.Parts = append(p.Parts, dwarfvar.Part{Place: dwarfvar.Place{Kind: dwarfvar.Register, Reg: uint16(r)}, Bits: 64})
	}
	return p
}

// read reads the symbols, and finds the functions of BTF among them.
func (s *symbolReader) read(base addr.Addr) error {
	s.readProtos()
	if s.image == nil {
		base = 0
	}
	places := make(map[string][]addr.Addr) // of functions
	err := s.file.Symbols(elf.Symtab, func(x elf.Symbol) bool {
		if stdelf.SymType(x.Type) != stdelf.STT_NOTYPE && x.End > x.Addr {
			at := addr.Range{Start: x.Addr + base, End: x.End + base}
			s.list = append(s.list, symbol{at, []string{x.Name}})
			places[x.Name] = append(places[x.Name], at.Start)
		}
		return true
	})
	if err != nil {
		return err
	}
	for name, list := range places {
		if slices.Sort(list); len(slices.Compact(list)) > 1 {
			s.protos[name] = 0 // static functions with one name, of which BTF has one
		}
	}
	s.join()
	s.extents = s.extents[:0]
	for i := range s.list {
		s.extents = append(s.extents, s.list[i].Range)
	}
	return nil
}

// join gives symbols at an address to one function.
func (s *symbolReader) join() {
	slices.SortStableFunc(s.list, func(a, b symbol) int { return cmp.Compare(a.Start, b.Start) })
	out := s.list[:0]
	for _, f := range s.list {
		if n := len(out) - 1; n >= 0 && out[n].Start == f.Start {
			out[n].End = max(out[n].End, f.End)
			out[n].names = append(out[n].names, f.names...)
			continue
		}
		out = append(out, f)
	}
	s.list = out
	s.calls = make(map[addr.Addr]btf.ID)
	for i := range s.list {
		if id := s.types.Ref(s.proto(&s.list[i])); id != 0 {
			s.calls[s.list[i].Start] = id
		}
	}
	if s.image != nil { // what is imported
		_ = s.image.Entries(func(e elf.Entry) bool {
			if e.Section == 0 {
				f := symbol{names: []string{e.Name}}
				if id := s.types.Ref(s.proto(&f)); id != 0 {
					s.calls[e.Code] = id
				}
			}
			return true
		})
	}
}

// readProtos notes the functions of BTF by name.
func (s *symbolReader) readProtos() {
	for id := range btf.ID(s.types.Len()) {
		if s.types.Kind(id) != btf.KindFunc {
			continue
		}
		name, proto := s.types.Name(id), s.types.Ref(id)
		if known, dup := s.protos[name]; dup && known != proto {
			proto = 0
		}
		s.protos[name] = proto
	}
}

// proto returns the FUNC_PROTO of a function, 0 if it is not known. Compilers change the parameters of functions
// whose symbols have a suffix, as .isra.0 and .constprop.0.
func (s *symbolReader) proto(f *symbol) (proto btf.ID) {
	for _, name := range f.names {
		id := s.protos[name]
		switch {
		case strings.Contains(name, "."):
			return 0
		case id == 0:
		case proto != 0 && id != proto:
			return 0
		default:
			proto = id
		}
	}
	return proto
}

// perCPUOffsets is the kernel's array of the distances of the variables of processors, which BTF lacks.
const perCPUOffsets = "__per_cpu_offset"

// variables finds the variables of BTF by their symbols. Of static ones with the same name it is not known which
// is where, but by the offsets in their section.
func (s *symbolReader) variables() error {
	vars := make(map[string]btf.ID)
	for id := range btf.ID(s.types.Len()) {
		switch s.types.Kind(id) {
		case btf.KindVar:
			s.note(vars, s.types.Name(id), s.types.Ref(id))
		case btf.KindDatasec:
			s.section(id)
		}
	}
	for _, name := range []string{"long unsigned int", "unsigned long"} {
		if id, ok := s.types.ByName(btf.KindInt, name); ok {
			vars[perCPUOffsets] = id
		}
	}
	places := make(map[string][]elf.Entry)
	visit := func(e elf.Entry) bool {
		if vars[e.Name] != 0 && e.Code == 0 && (e.Section > 0 || s.image != nil) {
			places[e.Name] = append(places[e.Name], e)
		}
		return true
	}
	var err error
	if s.image != nil {
		err = s.image.Entries(func(e elf.Entry) bool {
			if e.Section == 0 {
				e.Code = 0
			}
			return visit(e)
		})
	} else {
		err = s.file.Entries(elf.Symtab, visit)
	}
	if err != nil {
		return err
	}
	for name, list := range places {
		if len(list) == 1 {
			s.linkVariable(&list[0], name, vars[name])
		}
	}
	s.sortVariables()
	return nil
}

// note adds a variable, 0 for one of several.
func (s *symbolReader) note(vars map[string]btf.ID, name string, id btf.ID) {
	if known, dup := vars[name]; dup && known != id {
		id = 0
	}
	vars[name] = id
}

// section adds the variables of a section that the file has. In a linked file their offsets are known.
func (s *symbolReader) section(id btf.ID) {
	x := s.file.Section(s.types.Name(id))
	if x == nil || s.image != nil {
		return
	}
	for _, v := range s.types.Sections(id) {
		if s.types.Kind(v.Type) == btf.KindVar && v.Size > 0 && uint64(v.Offset) < x.Size {
			s.globals = append(s.globals, dwarfvar.Global{Name: s.types.Name(v.Type), Addr: x.Addr + addr.Addr(v.Offset),
				Size: uint64(v.Size), Type: s.types.Ref(v.Type)})
		}
	}
}

// functions analyzes the functions.
func (s *symbolReader) functions(ctx context.Context, o Options) error {
	analyzer := flow.New(s.reader, s.file.Machine, s.types)
	only := slices.Clone(o.Only)
	slices.Sort(only)
	for i := range s.list {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := &s.list[i]
		if n, _ := slices.BinarySearch(only, f.Start); o.Only != nil && (n == len(only) || only[n] >= f.End) {
			continue
		}
		if i+1 < len(s.list) {
			f.End = min(f.End, s.list[i+1].Start)
		}
		fn := &flow.Function{Ranges: []addr.Range{f.Range}, Variables: s.parameters(f), Results: s.results(f), Bare: true}
		rows, reason := analyzer.Function(fn)
		s.split(fn.Ranges, rows, reason)
	}
	return nil
}

// parameters returns the parameters of a function in registers, at its entry.
func (s *symbolReader) parameters(f *symbol) (list []flow.Variable) {
	args, _ := Arguments(s.file.Machine, s.types, s.proto(f))
	for i := range args {
		a := &args[i]
		if len(a.Registers) == 1 {
			list = append(list, flow.Variable{Name: a.Name, Type: a.Type, Reg: a.Registers[0],
				Range: addr.Range{Start: f.Start, End: f.Start + 1}})
		}
	}
	return list
}

// results returns what the functions return that a function calls.
func (s *symbolReader) results(f *symbol) map[addr.Addr]btf.ID {
	out := make(map[addr.Addr]btf.ID)
	code := s.Bytes(f.Start, int(min(f.End-f.Start, maxSection)))
	for at := f.Start; len(code) > 0; {
		n := 1
		if in, ok := x86.Decode(code); ok {
			n = in.Len
			if in.Map == x86.OneByte && in.Op == 0xe8 && !in.VEX {
				next := at + addr.Addr(n)
				if id := s.calls[next+addr.Addr(in.Imm)]; id != 0 {
					out[next] = id
				}
			}
		}
		code, at = code[n:], at+addr.Addr(n)
	}
	return out
}
