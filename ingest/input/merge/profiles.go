package merge

import (
	"errors"
	"fmt"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/intern"
)

// Profiles makes one profile of several, which are not changed. Objects with the same build ID are
// joined, as are events of the same name; other events are added in the order of the profiles.
// Names are kept if all profiles have them. Merging one profile gives an equal profile.
func Profiles(profiles []*ingest.Profile) (*ingest.Profile, error) {
	if len(profiles) == 0 {
		return nil, errors.New("no profiles to merge")
	}
	m := merger{in: profiles, p: &ingest.Profile{}}
	m.objects()
	m.events()
	m.strings()
	for i := range profiles {
		m.shards = append(m.shards, m.shard(i))
	}
	Assemble(m.p, m.shards)
	m.names()
	m.meta()
	for _, p := range profiles {
		m.p.Stats.Add(&p.Stats)
	}
	return m.p, nil
}

type merger struct {
	in     []*ingest.Profile
	p      *ingest.Profile
	number [][]ingest.ObjectID // by profile and object
	event  [][]uint16          // by profile and event
	str    [][]ingest.StringID // by profile and string
	shards []*Shard

	// Of objects without a build ID, for place: the names of each location; the offset of each
	// location that was moved; the offset after the last.
	namedAt map[ingest.Location]string
	moved   map[movedNames]addr.Offset
	free    map[ingest.ObjectID]addr.Offset
}

// movedNames are the names of a location that is at another offset than in its profile.
type movedNames struct {
	object ingest.ObjectID
	names  string
}

func (m *merger) objects() {
	var all []ingest.Object
	var used []bool
	for _, p := range m.in {
		for i := range p.Objects {
			all = append(all, p.Objects[i])
			used = append(used, true)
		}
	}
	joined, number := Objects(all, used)
	kernels := make([]ingest.ObjectID, len(joined))
	for i := range kernels {
		kernels[i] = ingest.NoObject
	}
	for _, p := range m.in {
		own := number[:len(p.Objects)]
		number = number[len(p.Objects):]
		m.number = append(m.number, own)
		for i := range p.Objects {
			if k := p.Objects[i].Kernel; k != ingest.NoObject && int(k) < len(own) {
				kernels[own[i]] = min(kernels[own[i]], own[k])
			}
		}
	}
	for i := range joined {
		joined[i].Kernel = kernels[i]
	}
	m.p.Objects = joined
}

func (m *merger) events() {
	for _, p := range m.in {
		var number []uint16
		for _, ev := range p.Events {
			at := slices.IndexFunc(m.p.Events, func(e ingest.Event) bool {
				return e.Name == ev.Name && e.Unit == ev.Unit
			})
			if at < 0 {
				at = len(m.p.Events)
				m.p.Events = append(m.p.Events, ev)
			} else if e := &m.p.Events[at]; *e != ev {
				if e.Period != ev.Period {
					e.Period = 0
				}
				e.OneColumn = e.OneColumn && ev.OneColumn
				if e.CountColumn != ev.CountColumn {
					e.CountColumn = ""
				}
			}
			number = append(number, uint16(at))
		}
		m.event = append(m.event, number)
	}
}

func (m *merger) strings() {
	all := []string{""}
	for _, p := range m.in {
		all = append(all, p.Strings...)
	}
	slices.Sort(all)
	m.p.Strings = slices.Clip(slices.Compact(all))
	for _, p := range m.in {
		number := make([]ingest.StringID, len(p.Strings))
		for i, s := range p.Strings {
			at, _ := slices.BinarySearch(m.p.Strings, s)
			number[i] = ingest.StringID(at)
		}
		m.str = append(m.str, number)
	}
}

// shard converts a profile to the form of a worker's result.
func (m *merger) shard(i int) *Shard {
	p := m.in[i]
	s := &Shard{
		Objects: m.number[i], Events: m.event[i],
		Comms: func(code uint32) ingest.StringID { return m.str[i][code] },
		Tags:  func(code uint32) ingest.StringID { return m.str[i][code] },
	}
	for l := range p.Locations {
		s.Places = append(s.Places, intern.Pair{Object: uint32(p.Locations[l].Object),
			Offset: uint64(m.place(i, ingest.LocationID(l)))})
	}
	nodes := make([]intern.Node, max(1, len(p.Callers)))
	for n := 1; n < len(nodes); n++ {
		nodes[n] = intern.Node{Parent: uint32(p.Callers[n]), Value: uint32(p.Leaves[n])}
	}
	s.Stacks = []intern.Tree{intern.Pack(nodes)}
	rows := make([]Row, 0, len(p.Samples))
	var set Numbers[Labels]
	for _, sm := range p.Samples {
		rows = append(rows, Row{Stack: uint32(sm.Stack), Count: sm.Count, Weight: sm.Weight,
			Label: set.Number(Labels{Comm: uint32(sm.Comm), PID: sm.PID, TID: sm.TID, CPU: sm.CPU,
				Event: sm.Event, Tags: uint32(sm.Tags)})})
	}
	s.Rows, s.Labels = slices.Values(rows), set.List
	return s
}

// place returns the offset of a location of profile i. If an object has no build ID, an address that
// has other names in a profile before is moved behind all addresses: files without real addresses
// number their locations, and a file of a path can be another one.
func (m *merger) place(i int, l ingest.LocationID) addr.Offset {
	p := m.in[i]
	loc := p.Locations[l]
	loc.Object = m.number[i][loc.Object]
	o := &m.p.Objects[loc.Object]
	if len(m.in) == 1 || p.Names == nil || !o.ID.IsZero() ||
		len(p.Names.At(l)) == 0 && o.File.Path != "" {
		return loc.Offset
	}
	if m.free == nil {
		m.namedAt, m.moved = make(map[ingest.Location]string), make(map[movedNames]addr.Offset)
		m.free = m.ends()
	}
	names := namesText(p, l)
	have, ok := m.namedAt[loc]
	switch {
	case !ok:
		m.namedAt[loc] = names
	case have != names:
		k := movedNames{loc.Object, names}
		if _, ok := m.moved[k]; !ok {
			m.moved[k] = m.free[loc.Object]
			m.free[loc.Object]++
		}
		return m.moved[k]
	}
	return loc.Offset
}

// ends returns for each object the offset after its last location.
func (m *merger) ends() map[ingest.ObjectID]addr.Offset {
	ends := make(map[ingest.ObjectID]addr.Offset)
	for i, p := range m.in {
		for _, l := range p.Locations {
			id := m.number[i][l.Object]
			ends[id] = max(ends[id], l.Offset+1)
		}
	}
	return ends
}

// namesText is equal for locations with equal frames.
func namesText(p *ingest.Profile, l ingest.LocationID) string {
	var b []byte
	for _, f := range p.Names.At(l) {
		fn := &p.Names.Functions[f.Func]
		b = fmt.Appendf(b, "%q %q %d %d %d %t\n", fn.SystemName, fn.File, fn.StartLine, f.Line, f.Column,
			f.Inlined)
	}
	return string(b)
}

// names joins the names of all profiles: a location has the names of the first profile that names
// it.
func (m *merger) names() {
	for _, p := range m.in {
		if p.Names == nil {
			return
		}
	}
	type origin struct{ profile, location int }
	from := make([]origin, len(m.p.Locations))
	for i := range from {
		from[i].profile = -1
	}
	for i, p := range m.in {
		for l := range p.Locations {
			at := &from[m.shards[i].Location[l]]
			if at.profile < 0 ||
				len(m.in[at.profile].Names.At(ingest.LocationID(at.location))) == 0 &&
					len(p.Names.At(ingest.LocationID(l))) > 0 {
				*at = origin{i, l}
			}
		}
	}
	out := &ingest.Names{}
	var funcs []ingest.Function
	base := make([]ingest.FuncID, len(m.in)) // of each profile's functions in funcs
	for i, p := range m.in {
		base[i] = ingest.FuncID(len(funcs))
		for _, fn := range p.Names.Functions {
			fn.Object = m.number[i][fn.Object]
			funcs = append(funcs, fn)
		}
	}
	for _, o := range from {
		n, l := m.in[o.profile].Names, ingest.LocationID(o.location)
		for _, fr := range n.At(l) {
			fr.Func += base[o.profile]
			out.Frames = append(out.Frames, fr)
		}
		out.FrameEnds = append(out.FrameEnds, uint32(len(out.Frames)))
		out.Reasons = append(out.Reasons, n.Reasons[l])
		out.SymOff = append(out.SymOff, n.SymOff[l])
	}
	out.Functions = ingest.SortFunctions(funcs, out.Frames)
	m.p.Names = out
}

// meta keeps the values that all profiles have in common. The start is the first of all; durations
// add up as in pprof.
func (m *merger) meta() {
	out := &m.p.Meta
	*out = m.in[0].Meta
	out.Captures, out.Comments = nil, nil
	out.Duration = 0
	for _, p := range m.in {
		x := &p.Meta
		out.Captures = append(out.Captures, x.Captures...)
		for _, c := range x.Comments {
			if !slices.Contains(out.Comments, c) {
				out.Comments = append(out.Comments, c)
			}
		}
		for _, f := range []struct{ all, one *string }{
			{&out.Host, &x.Host}, {&out.OSRelease, &x.OSRelease}, {&out.Arch, &x.Arch},
			{&out.Command, &x.Command}, {&out.Recorder, &x.Recorder},
		} {
			if *f.all != *f.one {
				*f.all = ""
			}
		}
		if x.StartNanos != 0 && (out.StartNanos == 0 || x.StartNanos < out.StartNanos) {
			out.StartNanos = x.StartNanos
		}
		out.Duration += x.Duration
		out.MapsIDs = out.MapsIDs && x.MapsIDs
		if x.Pprof == nil || out.Pprof == nil || *x.Pprof != *out.Pprof {
			out.Pprof = nil
		}
	}
}
