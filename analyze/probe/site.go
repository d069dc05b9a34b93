package probe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/ingest/texts"
)

// site is a place of a probe.
type site struct {
	p     *Program
	f     *dwarfvar.Function // nil without debug information
	scope int32              // with the variables that are meant: 0, or an inlined call
	at    addr.Addr          // of debug information

	symbol string // the function that has the code
	off    uint64 // from its start
	body   bool   // behind the prologue of a function that is not optimized
	others bool   // other functions of a kernel have the symbol, too
	event  string
	group  string
	place  string // for tracefs
	args   []fetch
	left   []unread // arguments that have no place here

	unchecked bool // the code that tells whether an instruction starts at the place is unknown
}

// unread is an argument that has no place, and why.
type unread struct {
	name string
	err  error
}

// notes lists the arguments that have no place, by reasons.
func (s *site) notes() (list []string) {
	var reasons []string
	names := make(map[string][]string)
	for _, u := range s.left {
		reason := u.err.Error()
		if names[reason] == nil {
			reasons = append(reasons, reason)
		}
		names[reason] = append(names[reason], texts.Printable(u.name))
	}
	for _, r := range reasons {
		list = append(list, strings.Join(names[r], ", ")+": "+r)
	}
	if s.unchecked {
		list = append(list, fmt.Sprintf("unchecked: an instruction must start at %s+%#x, and its code is not known here",
			texts.Printable(s.symbol), s.off))
	}
	return list
}

// name returns the function with the variables that are meant.
func (s *site) name() string { return cmp.Or(s.f.Scopes[s.scope].Inline, s.f.Name) }

// table returns the address in symbol tables.
func (s *site) table(a addr.Addr) addr.Addr { return a - s.p.Base }

// entry reports whether the place is the entry of a function.
func (s *site) entry() bool { return s.scope == 0 && s.off == 0 && (s.f == nil || s.at == s.f.Entry) }

// cfa returns the register and the distance of the canonical frame address.
func (s *site) cfa() (reg uint16, off int64, ok bool) {
	if a := s.p.Arch; s.at == s.f.Entry {
		if a.LinkRegister {
			return uint16(a.SP), 0, true
		}
		return uint16(a.SP), int64(a.Word), true
	}
	return s.p.Vars.CFA(s.at)
}

// sites finds the places of a query.
func (p *Program) sites(q *Query) ([]*site, error) {
	if p.Vars.FromBTF() && (q.Line > 0 || q.File != "") {
		return nil, texts.WithHint(errors.New("BTF has no lines and no source files"), "name the debug file with -e")
	}
	var list []*site
	var beyond error // an offset that is in none of the functions
	for _, i := range p.candidates(q) {
		f := p.funcs[i]
		switch {
		case q.Function == "":
			list = append(list, p.inFunction(q, f)...)
		default:
			found, err := p.ofFunction(q, f)
			if list = append(list, found...); err != nil {
				beyond = err
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *site) int { return cmp.Compare(a.at, b.at) })
	list = slices.CompactFunc(list, func(a, b *site) bool { return a.at == b.at })
	if len(list) == 0 && beyond != nil {
		return nil, beyond
	}
	for _, s := range list {
		s.symbol, s.off = p.Symbols.at(s.table(s.at))
		if s.symbol == "" {
			s.symbol, s.off = cmp.Or(s.f.Linkage, s.f.Name), uint64(s.at-s.f.Entry)
		}
	}
	return list, nil
}

// inFunction returns the places of a source line, or of an address, in a function.
func (p *Program) inFunction(q *Query, f *dwarfvar.Function) (list []*site) {
	places := []addr.Addr{addr.Addr(q.Offset) - p.Linked + p.Base}
	if q.Line > 0 {
		places = p.Vars.Places(dwarfvar.SourceLine{File: q.File, Line: q.Line})
	}
	for _, a := range places {
		if !f.Holds(0, a) {
			continue
		}
		s := &site{p: p, f: f, at: a}
		best := uint32(0)
		for k := range f.Scopes { // the nearest function above the line, as perf does it
			scope := int32(k)
			if q.Line == 0 || k > 0 && f.Scopes[k].Inline == "" || !f.Holds(scope, a) {
				continue
			}
			if at := p.Vars.Decl(f, scope); at.Line < q.Line && at.Line > best && dwarfvar.SamePath(at.File, q.File) {
				s.scope, best = scope, at.Line
			}
		}
		list = append(list, s)
	}
	return list
}

// ofFunction returns the places of a query in a function, and in calls inlined into it.
func (p *Program) ofFunction(q *Query, f *dwarfvar.Function) (list []*site, err error) {
	for k := range f.Scopes {
		sc := &f.Scopes[k]
		name, linkage := sc.Inline, sc.Linkage
		if k == 0 {
			name, linkage = f.Name, f.Linkage
		}
		if k > 0 && name == "" || !dwarfvar.Called(name, linkage, q.Function) || k > 0 && (q.Return || p.NoInlines) {
			continue
		}
		scope := int32(k)
		if q.File != "" && !dwarfvar.SamePath(p.Vars.Decl(f, scope).File, q.File) {
			continue
		}
		if q.Relative {
			for _, a := range p.Vars.LinesFrom(f, scope, q.Line) {
				list = append(list, &site{p: p, f: f, scope: scope, at: a})
			}
			continue
		}
		at := sc.Entry + addr.Addr(q.Offset)
		if k == 0 {
			at = f.Entry + addr.Addr(q.Offset)
		}
		if q.Offset > 0 && !f.Holds(scope, at) {
			err = fmt.Errorf("offset %#x is not in the code of %s", q.Offset, texts.Printable(name))
			continue
		}
		behind := false
		if wants := slices.ContainsFunc(q.Args, func(a Arg) bool { return !a.Raw }); k == 0 && q.Offset == 0 && wants && !p.Vars.FromBTF() {
			if body, ok := p.Vars.Body(f); ok {
				at, behind = body, true
			}
		}
		list = append(list, &site{p: p, f: f, scope: scope, at: at, body: behind})
	}
	return list, err
}

// arguments finds the arguments of a query at a place.
func (s *site) arguments(q *Query) error {
	s.args, s.left = nil, nil
	for i := range q.Args {
		a := &q.Args[i]
		switch {
		case a.Raw:
			s.raw(a)
		case a.Var == "$params" || a.Var == "$vars":
			s.all(a.Var == "$vars")
		default:
			f, err := s.argument(a)
			if err != nil {
				s.left = append(s.left, unread{a.Var, err})
				if s.missing(a.Var) {
					return &missingError{a.Var, s}
				}
				continue
			}
			s.args = append(s.args, f)
		}
	}
	distinct(s.args)
	return nil
}

// distinct gives arguments of one name different names, as events need.
func distinct(args []fetch) {
	used := make(map[string]bool)
	for i := range args {
		name := args[i].name
		for n := 1; name != "" && used[args[i].name]; n++ {
			args[i].name = fmt.Sprintf("%s_%d", name, n)
		}
		used[args[i].name] = true
	}
}

// missingError reports a variable that a function does not have.
type missingError struct {
	name string
	s    *site
}

// Error implements error.
func (e *missingError) Error() string {
	return fmt.Sprintf("%s has no parameter or variable %s", texts.Printable(e.s.name()), texts.Printable(e.name))
}

// missing reports whether there is no variable of a name.
func (s *site) missing(name string) bool {
	return s.find(name) == nil && s.global(name) == nil
}

// raw copies an argument.
func (s *site) raw(a *Arg) {
	f := fetch{name: a.Name, text: a.Var, format: a.Type}
	if a.Var == "$retval" && s.f != nil {
		t := s.p.Vars.Types()
		if f.ctype = "void"; s.f.Result != 0 {
			f.ctype = texts.Printable(t.TypeName(s.f.Result))
		}
		if f.name == "" && a.Type == "" && s.f.Result != 0 {
			f.format = formatOf(t, &value{typ: s.f.Result})
		}
	}
	s.args = append(s.args, f)
}

// all adds all parameters, or also all variables, that have a place.
func (s *site) all(variables bool) {
	names := make(map[string]bool)
	for i := range s.f.Vars {
		v := &s.f.Vars[i]
		if !v.Param && !variables || names[v.Name] || !s.own(v) || !s.f.Holds(v.Scope, s.at) {
			continue
		}
		names[v.Name] = true
		f, err := s.argument(&Arg{Var: v.Name})
		if err != nil {
			s.left = append(s.left, unread{v.Name, err})
			continue
		}
		s.args = append(s.args, f)
	}
}

// own reports whether a variable is of the function of the place, not of a call inlined into it.
func (s *site) own(v *dwarfvar.Variable) bool {
	k := v.Scope
	for k > s.scope && s.f.Scopes[k].Inline == "" {
		k = s.f.Scopes[k].Parent
	}
	return k == s.scope
}

// find returns the variable that a name means, nil if there is none: the innermost one of the function, else one of a
// call that is inlined there.
func (s *site) find(name string) (best *dwarfvar.Variable) {
	for _, own := range []bool{true, false} {
		for i := range s.f.Vars {
			v := &s.f.Vars[i]
			if v.Name != name || s.own(v) != own || !s.f.Within(v.Scope, s.scope) || !s.f.Holds(v.Scope, s.at) {
				continue
			}
			if best == nil || own && v.Scope > best.Scope {
				best = v
			}
		}
		if best != nil {
			break
		}
	}
	return best
}

// global returns the global variable of a name, nil if there is none.
func (s *site) global(name string) *dwarfvar.Global {
	if s.p.Vars.FromBTF() {
		return nil
	}
	for _, g := range s.p.Vars.Globals() {
		if dwarfvar.Called(g.Name, "", name) {
			return &g
		}
	}
	return nil
}

// argument finds a variable.
func (s *site) argument(a *Arg) (fetch, error) {
	var v value
	var err error
	if local := s.find(a.Var); local != nil {
		if v, err = s.locate(local.Name, local.Type, local.At(s.at)); errors.Is(err, errGone) && s.p.Vars.FromBTF() {
			err = errors.New("BTF has the places of parameters at the entry only")
		}
	} else if g := s.global(a.Var); g != nil {
		place := dwarfvar.Place{Kind: dwarfvar.Static, Off: int64(g.Addr)}
		if g.Local {
			place.Kind = dwarfvar.ThreadLocal
		}
		v, err = s.locate(texts.Printable(a.Var), g.Type, place)
	} else {
		err = errors.New("there is no such variable")
	}
	name := texts.Printable(a.Var)
	for i := 0; i < len(a.Fields) && err == nil; i++ {
		name, err = s.into(&v, name, a.Fields[i])
	}
	if err == nil {
		err = s.finish(&v, a)
	}
	return v.fetch, err
}

// ranges describes where a variable has a place, "" if nowhere.
func (s *site) ranges(name string) string {
	v := s.find(name)
	if v == nil {
		return ""
	}
	var list []string
	for _, w := range v.Where {
		if w.Kind == dwarfvar.Lost || w.Start < s.f.Entry || w.Start >= s.f.Entry+1<<31 {
			continue
		}
		list = append(list, fmt.Sprintf("+%#x to +%#x", uint64(w.Start-s.f.Entry), uint64(w.End-s.f.Entry)))
	}
	if len(list) > maxRanges {
		list = append(list[:maxRanges], "…")
	}
	return strings.Join(list, ", ")
}

// maxRanges bounds the ranges in a hint.
const maxRanges = 4
