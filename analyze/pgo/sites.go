package pgo

import (
	"cmp"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
)

// sites are the counts of one object by place in the source. unit adds the units of its debug
// information.
type sites struct {
	counts *counts
	coding Discriminators
	branch bool
	steps  []step      // of branch profiles: how often code ran
	at     []addr.Addr // sampled addresses, sources and targets of branches, ascending

	functions map[string]*function // outermost ones, by name
	starts    map[addr.Addr]string // functions by entry, of targets
	sources   map[addr.Addr]*body  // sites of branches by address
	done      map[addr.Addr]bool   // entries of functions that were added
}

// step is how often the code from an address to the next step ran.
type step struct {
	at    addr.Addr
	count uint64
}

// function is the counts of a function, or of an inlined call.
type function struct {
	name  string
	head  uint64 // calls of it
	total uint64 // of its lines and inlined calls
	body  map[line]*body
	calls map[line]map[string]*function // inlined
}

// body is the counts of a line.
type body struct {
	count   uint64
	samples uint64
	called  uint64            // sum of targets; the line ran at least as often
	targets map[string]uint64 // functions that are called, by name
}

// sites returns the counts of an object without any place yet.
func (t *Profile) sites(object int, coding Discriminators) *sites {
	c := t.count(object)
	s := &sites{counts: c, coding: coding, branch: c.stats.Traces > 0, functions: make(map[string]*function),
		starts: make(map[addr.Addr]string), sources: make(map[addr.Addr]*body), done: make(map[addr.Addr]bool)}
	delta := make(map[addr.Addr]uint64) // wraps; the sums do not
	note := func(x place) {
		if x != external {
			s.at = append(s.at, x.at)
		}
	}
	for x := range c.samples {
		note(x)
	}
	for x, n := range c.traces {
		note(x.from)
		note(x.to)
		if x.end.at >= x.to.at && x.end.at-x.to.at <= longestTrace {
			delta[x.to.at] += n
			delta[x.end.at+1] -= n
		}
	}
	for x := range c.branches {
		note(x.from)
		note(x.to)
	}
	slices.Sort(s.at)
	s.at = slices.Compact(s.at)
	runs := uint64(0)
	for _, at := range sorted(delta, cmp.Compare[addr.Addr]) {
		runs += delta[at]
		s.steps = append(s.steps, step{at, runs})
	}
	return s
}

// longestTrace bounds the code between two branches: a longer one is an error of the recording.
const longestTrace = 1 << 20

// unit adds the counts in the functions of a unit.
func (s *sites) unit(u *dwarf.Unit) {
	var code *unitCode
	for i := range u.Functions {
		f := &u.Functions[i]
		if !slices.ContainsFunc(f.Ranges, s.hit) || s.done[f.Ranges[0].Start] {
			continue // others have no counts, or were already added by another unit
		}
		s.done[f.Ranges[0].Start] = true
		if code == nil {
			code = newUnitCode(u)
		}
		s.starts[f.Ranges[0].Start] = code.name(f.Sub)
		pieces := code.pieces(f)
		s.add(pieces)
		s.enter(f.Ranges[0].Start, pieces)
	}
}

// enter estimates the entries of a function without branch stacks: the samples of its first line, and
// one at least. gcc optimizes functions without entries for size, as code that never runs.
func (s *sites) enter(start addr.Addr, pieces []piece) {
	i := slices.IndexFunc(pieces, func(p piece) bool { return p.Start == start })
	if s.branch || i < 0 {
		return
	}
	p := &pieces[i]
	f := child(s.functions, p.site.frames[0].name)
	f.head = 1
	if b := f.body[s.coding.line(p.site.line)]; len(p.site.frames) == 1 && b != nil {
		f.head = max(f.head, b.count)
	}
}

// hit reports whether a range has counts.
func (s *sites) hit(r addr.Range) bool {
	i, _ := slices.BinarySearch(s.at, r.Start)
	return i < len(s.at) && s.at[i] < r.End
}

// add adds the counts in the code of one function.
func (s *sites) add(pieces []piece) {
	for i := range pieces {
		p := &pieces[i]
		first, _ := slices.BinarySearch(s.at, p.Start)
		b := s.body(&p.site)
		if s.branch {
			b.count = max(b.count, times(s.most(p.Range), s.coding.copies(p.site.line.discriminator)))
		}
		for _, at := range s.at[first:] {
			if at >= p.End {
				break
			}
			s.sources[at] = b
			n := s.counts.samples[place{s.counts.object, at, true}]
			b.count, b.samples = max(b.count, n), b.samples+n
		}
	}
}

// most returns how often the most frequent code of a range ran. Steps that begin in the middle of an
// instruction, behind the start of the last one of a trace, are lower than the step before.
func (s *sites) most(r addr.Range) (most uint64) {
	i, found := slices.BinarySearchFunc(s.steps, r.Start, func(x step, a addr.Addr) int { return cmp.Compare(x.at, a) })
	if !found {
		i--
	}
	for ; i < len(s.steps) && (i < 0 || s.steps[i].at < r.End); i++ {
		if i >= 0 {
			most = max(most, s.steps[i].count)
		}
	}
	return most
}

// times multiplies a count, up to maxTotal.
func times(n uint64, copies uint32) uint64 {
	if n > maxTotal/uint64(copies) {
		return maxTotal
	}
	return n * uint64(copies)
}

// body returns the counts of a site.
func (s *sites) body(x *site) *body {
	f := child(s.functions, x.frames[0].name)
	for _, in := range x.frames[1:] {
		call := s.coding.line(in.call)
		if f.calls == nil {
			f.calls = make(map[line]map[string]*function)
		}
		if f.calls[call] == nil {
			f.calls[call] = make(map[string]*function)
		}
		f = child(f.calls[call], in.name)
	}
	if f.body == nil {
		f.body = make(map[line]*body)
	}
	at := s.coding.line(x.line)
	b := f.body[at]
	if b == nil {
		b = new(body)
		f.body[at] = b
	}
	return b
}

func child(m map[string]*function, name string) *function {
	f := m[name]
	if f == nil {
		f = &function{name: name}
		m[name] = f
	}
	return f
}

// joinTargets joins branches to the entries of functions with the lines that they are at. All units must
// have been added.
func (s *sites) joinTargets() {
	c := s.counts
	add := func(from, to place, n uint64) {
		if s.sources[from.at] == nil && from != external {
			c.stats.NoLine += n
		}
		name, ok := s.starts[to.at]
		if to == external || !ok || name == "" {
			return
		}
		if f := s.functions[name]; f != nil {
			f.head += n
		}
		if b := s.sources[from.at]; b != nil && from != external {
			if b.targets == nil {
				b.targets = make(map[string]uint64)
			}
			b.targets[name] += n
			b.called += n
		}
	}
	for x, n := range c.traces {
		add(x.from, x.to, n)
	}
	for x, n := range c.branches {
		add(x.from, x.to, n.count)
	}
	for x, n := range c.samples {
		if s.sources[x.at] == nil {
			c.stats.NoLine += n
		}
	}
}
