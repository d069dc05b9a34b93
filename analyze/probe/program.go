package probe

import (
	"cmp"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/texts"
)

// A Program is what probes are for.
type Program struct {
	Path   string        // of a program, on the host of the probe
	Kernel bool          // it is a kernel or a module
	Module string        // name of the module
	Linked addr.Addr     // linked address of what is 0 in symbol tables
	Vars   Variables     // nil without debug information
	Base   addr.Addr     // what addresses of debug information are above those of symbol tables
	Arch   *machine.Arch // may be nil
	// Symbols are its functions, by their addresses.
	Symbols Symbols
	// FileOffset returns where an address of symbol tables is in the file of a program.
	FileOffset func(addr.Addr) (uint64, bool)
	// Code returns up to n bytes of code at an address of symbol tables, fewer or none where they are unknown.
	Code      func(a addr.Addr, n int) []byte
	NoInlines bool // no probes in inlined calls

	funcs  []*dwarfvar.Function // of Vars
	called map[string][]int     // numbers of funcs with a name, or with inlined calls of one
}

// Variables are the functions that debug information has for queries, as indexer.Variables and dwarfvar.Info.
type Variables interface {
	Types() *btf.Types
	FromBTF() bool
	Len() int
	Function(i int) (*dwarfvar.Function, error)
	Globals() []dwarfvar.Global
	Decl(f *dwarfvar.Function, scope int32) dwarfvar.SourceLine
	LinesFrom(f *dwarfvar.Function, scope int32, n uint32) []addr.Addr
	Places(l dwarfvar.SourceLine) []addr.Addr
	Body(f *dwarfvar.Function) (addr.Addr, bool)
	CFA(a addr.Addr) (reg uint16, off int64, ok bool)
}

// A Symbol is a function of a symbol table.
type Symbol struct {
	Name       string
	Start, End addr.Addr
	Global     bool
}

// Symbols are sorted by Sort.
type Symbols []Symbol

// Sort sorts symbols by their addresses, of several at one address the one that is most likely meant first.
func (s Symbols) Sort() {
	slices.SortFunc(s, func(a, b Symbol) int {
		global := 0
		if a.Global != b.Global {
			global = 1
			if a.Global {
				global = -1
			}
		}
		return cmp.Or(cmp.Compare(a.Start, b.Start), global, cmp.Compare(a.Name, b.Name))
	})
}

// at returns the symbol that has an address, and the distance from its start; "" without one.
func (s Symbols) at(a addr.Addr) (name string, off uint64) {
	i, _ := slices.BinarySearchFunc(s, a+1, func(x Symbol, a addr.Addr) int { return cmp.Compare(x.Start, a) })
	if i--; i < 0 || a >= s[i].End {
		return "", 0
	}
	for i > 0 && s[i-1].Start == s[i].Start {
		i--
	}
	return s[i].Name, uint64(a - s[i].Start)
}

// named returns the symbols of a name, as a Query has it.
func (s Symbols) named(name string) (list Symbols) {
	for _, x := range s {
		if plain, _, _ := strings.Cut(x.Name, "@"); plain == name {
			x.Name = plain
			list = append(list, x)
		}
	}
	return list
}

// registerName returns the name of a register in probes; ok is false for those that they do not read.
func (p *Program) registerName(reg uint16) (name string, ok bool) {
	name = strings.TrimPrefix(p.Arch.RegisterName(reg), "%")
	if p.Arch.ELF == stdelf.EM_X86_64 {
		if len(name) == 3 && name[0] == 'r' && name[1] > '9' {
			name = name[1:] // as struct pt_regs has it
		}
		return name, reg <= 16
	}
	return name, strings.HasPrefix(name, "x") || name == "sp"
}

// Text returns the probes of queries. Those that have an error are left out; the errors are joined.
func (p *Program) Text(queries []*Query) ([]byte, error) {
	if p.Arch == nil || p.Arch.ELF != stdelf.EM_X86_64 && p.Arch.ELF != stdelf.EM_AARCH64 {
		return nil, errors.New("probes are written for x86-64 and arm64 only")
	}
	if err := p.readFunctions(); err != nil {
		return nil, err
	}
	var list []*site
	var errs []error
	names := make(map[string]int)
	for _, q := range queries {
		found, err := p.query(q, names)
		if err != nil {
			errs = append(errs, err)
		}
		list = append(list, found...)
	}
	if len(list) == 0 {
		return nil, errors.Join(errs...)
	}
	var b strings.Builder
	if p.Vars != nil && p.Vars.FromBTF() {
		b.WriteString("# by BTF: parameters are where the ABI has them\n\n")
	}
	p.tracefs(&b, list)
	p.bpftrace(&b, list)
	p.c(&b, list)
	return []byte(b.String()), errors.Join(errs...)
}

// query finds the probes of a query. names counts the names of events.
func (p *Program) query(q *Query, names map[string]int) (list []*site, err error) {
	if p.Vars != nil {
		if list, err = p.sites(q); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		if list, err = p.symbolSites(q); err != nil {
			return nil, err
		}
	}
	for _, s := range list {
		if err = s.checkStart(q); err != nil {
			return nil, err
		}
	}
	if list, err = p.complete(q, list, names); err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.place, err = s.where(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readFunctions reads the functions of the debug information.
func (p *Program) readFunctions() error {
	p.called = make(map[string][]int)
	if p.Vars == nil {
		return nil
	}
	for i := range p.Vars.Len() {
		f, err := p.Vars.Function(i)
		if err != nil {
			return err
		}
		p.funcs = append(p.funcs, f)
		note := func(name, linkage string) {
			for _, n := range dwarfvar.Names(name, linkage) {
				if list := p.called[n]; len(list) == 0 || list[len(list)-1] != i {
					p.called[n] = append(list, i)
				}
			}
		}
		note(f.Name, f.Linkage)
		for k := range f.Scopes {
			if sc := &f.Scopes[k]; sc.Inline != "" {
				note(sc.Inline, sc.Linkage)
			}
		}
	}
	return nil
}

// candidates returns the numbers of the functions that can have places of a query.
func (p *Program) candidates(q *Query) []int {
	if q.Function != "" && !dwarfvar.IsPattern(q.Function) {
		return p.called[q.Function]
	}
	all := make([]int, len(p.funcs))
	for i := range all {
		all[i] = i
	}
	return all
}

// NoPlaceError reports a query without a place.
type NoPlaceError struct {
	Query   *Query
	In      string // where it was looked for
	Inlined bool   // of a function that has calls inlined
}

// Error implements error.
func (e *NoPlaceError) Error() string {
	q := e.Query
	switch {
	case q.Function == "" && q.Line > 0:
		return fmt.Sprintf("no statement begins in line %d of %s", q.Line, q.File)
	case q.Function == "":
		return fmt.Sprintf("no function at %#x in %s", q.Offset, e.In)
	case q.Relative:
		return fmt.Sprintf("no statement begins %d lines behind the declaration of %s", q.Line, q.Function)
	case q.Return && e.Inlined:
		return fmt.Sprintf("%s is inlined wherever it is called, and has no return", q.Function)
	case q.File != "":
		return fmt.Sprintf("no function %s of %s in %s", q.Function, q.File, e.In)
	}
	return fmt.Sprintf("no function %s in %s", q.Function, e.In)
}

// source describes where functions are looked for.
func (p *Program) source() string {
	switch {
	case p.Vars == nil:
		return "the symbol table"
	case p.Vars.FromBTF():
		return "BTF"
	}
	return "the debug information"
}

// symbolSites finds the places of a function that has only a symbol.
func (p *Program) symbolSites(q *Query) (list []*site, err error) {
	if q.Function == "" || q.Relative || q.File != "" {
		return nil, &NoPlaceError{Query: q, In: p.source()}
	}
	for _, x := range p.Symbols.named(q.Function) {
		if q.Offset >= uint64(x.End-x.Start) && q.Offset > 0 {
			return nil, fmt.Errorf("offset %#x is not in the code of %s", q.Offset, x.Name)
		}
		list = append(list, &site{p: p, at: x.Start + addr.Addr(q.Offset) + p.Base, symbol: x.Name, off: q.Offset})
	}
	if len(list) == 0 {
		return nil, &NoPlaceError{q, p.source(), len(p.called[q.Function]) > 0}
	}
	return list, nil
}

// complete finds the arguments at all places, and names the events. It returns the places that have the variables.
func (p *Program) complete(q *Query, list []*site, names map[string]int) (found []*site, err error) {
	name := q.Event
	if name == "" {
		name = q.Function
	}
	if name == "" || dwarfvar.IsPattern(name) {
		name = ""
	}
	var missing error
	for _, s := range list {
		if s.f == nil {
			if err := s.withoutVariables(q); err != nil {
				return nil, err
			}
		} else if err := s.arguments(q); err != nil {
			missing = err
			continue
		}
		found = append(found, s)
		event := cmp.Or(name, s.symbol)
		if event = notWord.ReplaceAllString(event, "_"); q.Return && q.Event == "" {
			event += "__return"
		}
		s.group = cmp.Or(q.Group, "symbolize")
		if s.event = event; names[event] > 0 {
			s.event = fmt.Sprintf("%s_%d", event, names[event])
		}
		names[event]++
	}
	if missing != nil && found == nil {
		return nil, missing
	}
	return found, p.unread(q, found)
}

// unread returns the error of an argument that can be read at no place.
func (p *Program) unread(q *Query, list []*site) error {
	for i := range q.Args {
		a := &q.Args[i]
		if a.Raw || strings.HasPrefix(a.Var, "$") {
			continue
		}
		var last error
		for _, s := range list {
			if s.f == nil {
				continue
			}
			if _, last = s.argument(a); last == nil {
				break
			}
		}
		if last == nil {
			continue
		}
		s := list[0]
		err := fmt.Errorf("%s is not readable at %s+%#x: %w", texts.Printable(a.Var), s.name(), uint64(s.at-s.f.Entry), last)
		if r := s.ranges(a.Var); r != "" && errors.Is(last, errGone) {
			err = texts.WithHint(err, "it has a place at %s", r)
		}
		return err
	}
	return nil
}

// withoutVariables finds the arguments of a function without debug information.
func (s *site) withoutVariables(q *Query) error {
	for i := range q.Args {
		switch a := &q.Args[i]; {
		case a.Raw:
			s.raw(a)
		case a.Var != "$params" && a.Var != "$vars":
			return fmt.Errorf("%s: %s has no debug information, and without it variables have no places", a.Var, s.symbol)
		}
	}
	return nil
}
