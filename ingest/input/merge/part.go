package merge

import (
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
)

// Part returns the profile of some samples of p, in the order of p.Samples, with only the table
// entries that they use. The description, and counts of Stats other than of samples, are p's.
func Part(p *ingest.Profile, samples []ingest.Sample) *ingest.Profile {
	c := &cutter{in: p, out: &ingest.Profile{Meta: p.Meta, Stats: p.Stats,
		Samples: slices.Clone(samples)}}
	c.stacks()
	c.events()
	c.strings()
	c.objects()
	if p.Names != nil {
		c.names()
	}
	c.count()
	return c.out
}

// cutter is one call of Part.
type cutter struct {
	in, out   *ingest.Profile
	locations []ingest.LocationID // used ones of in
}

// unused is the number of unused entries.
const unused = ^uint32(0)

// renumber numbers the used entries in their order, and lists them.
func renumber[T ~uint32](used []bool) (number []uint32, list []T) {
	number = make([]uint32, len(used))
	for i := range used {
		number[i] = unused
		if used[i] {
			number[i] = uint32(len(list))
			list = append(list, T(i))
		}
	}
	return number, list
}

// stacks copies the stacks of the samples, and their locations.
func (c *cutter) stacks() {
	p, q := c.in, c.out
	used := make([]bool, max(1, len(p.Callers)))
	used[0] = true
	for i := range q.Samples {
		for s := q.Samples[i].Stack; !used[s]; s = p.Callers[s] {
			used[s] = true
		}
	}
	stacks, list := renumber[ingest.StackID](used)
	usedLocs := make([]bool, len(p.Locations))
	for _, s := range list[1:] {
		usedLocs[p.Leaves[s]] = true
	}
	var number []uint32
	number, c.locations = renumber[ingest.LocationID](usedLocs)
	q.Callers, q.Leaves = make([]ingest.StackID, len(list)), make([]ingest.LocationID, len(list))
	for i, s := range list[1:] {
		q.Callers[i+1] = ingest.StackID(stacks[p.Callers[s]])
		q.Leaves[i+1] = ingest.LocationID(number[p.Leaves[s]])
	}
	for i := range q.Samples {
		s := &q.Samples[i].Stack
		*s = ingest.StackID(stacks[*s])
	}
	for _, l := range c.locations {
		q.Locations = append(q.Locations, p.Locations[l])
	}
}

// events copies the events of the samples; without samples the first event.
func (c *cutter) events() {
	used := make([]bool, len(c.in.Events))
	for i := range c.out.Samples {
		used[c.out.Samples[i].Event] = true
	}
	if !slices.Contains(used, true) && len(used) > 0 {
		used[0] = true
	}
	number, list := renumber[uint32](used)
	for _, e := range list {
		c.out.Events = append(c.out.Events, c.in.Events[e])
	}
	for i := range c.out.Samples {
		e := &c.out.Samples[i].Event
		*e = uint16(number[*e])
	}
}

// strings copies the comms and tags of the samples, and "".
func (c *cutter) strings() {
	used := make([]bool, len(c.in.Strings))
	used[0] = true
	for i := range c.out.Samples {
		used[c.out.Samples[i].Comm], used[c.out.Samples[i].Tags] = true, true
	}
	number, list := renumber[ingest.StringID](used)
	for _, s := range list {
		c.out.Strings = append(c.out.Strings, c.in.Strings[s])
	}
	for i := range c.out.Samples {
		s := &c.out.Samples[i]
		s.Comm, s.Tags = ingest.StringID(number[s.Comm]), ingest.StringID(number[s.Tags])
	}
}

// objects copies the objects of the locations and of their functions, and the kernels of modules
// among them.
func (c *cutter) objects() {
	p, q := c.in, c.out
	used := make([]bool, len(p.Objects))
	for i, l := range q.Locations {
		used[l.Object] = true
		if p.Names != nil {
			for _, f := range p.Names.At(c.locations[i]) {
				used[p.Names.Functions[f.Func].Object] = true
			}
		}
	}
	for i := range p.Objects {
		if k := p.Objects[i].Kernel; used[i] && k != ingest.NoObject {
			used[k] = true
		}
	}
	number, list := renumber[ingest.ObjectID](used)
	for _, o := range list {
		object := p.Objects[o]
		if object.Kernel != ingest.NoObject {
			object.Kernel = ingest.ObjectID(number[object.Kernel])
		}
		q.Objects = append(q.Objects, object)
	}
	for i := range q.Locations {
		o := &q.Locations[i].Object
		*o = ingest.ObjectID(number[*o])
	}
	if p.Names == nil {
		return
	}
	q.Names = &ingest.Names{Warnings: p.Names.Warnings, Found: keep(p.Names.Found, number),
		Probable: keep(p.Names.Probable, number)}
	for _, fn := range p.Names.Functions { // names removes unused ones
		if number[fn.Object] != unused {
			fn.Object = ingest.ObjectID(number[fn.Object])
		}
		q.Names.Functions = append(q.Names.Functions, fn)
	}
}

// keep returns the entries of used objects.
func keep(m map[ingest.ObjectID]buildid.ID, number []uint32) map[ingest.ObjectID]buildid.ID {
	var out map[ingest.ObjectID]buildid.ID
	for o, id := range m {
		if number[o] == unused {
			continue
		}
		if out == nil {
			out = make(map[ingest.ObjectID]buildid.ID)
		}
		out[ingest.ObjectID(number[o])] = id
	}
	return out
}

// names copies the names of the locations.
func (c *cutter) names() {
	n, out := c.in.Names, c.out.Names
	used := make([]bool, len(n.Functions))
	for _, l := range c.locations {
		for _, f := range n.At(l) {
			used[f.Func] = true
			out.Frames = append(out.Frames, f)
		}
		out.FrameEnds = append(out.FrameEnds, uint32(len(out.Frames)))
		out.Reasons, out.SymOff = append(out.Reasons, n.Reasons[l]), append(out.SymOff, n.SymOff[l])
	}
	number, list := renumber[ingest.FuncID](used)
	functions := out.Functions
	out.Functions = nil
	for _, f := range list {
		out.Functions = append(out.Functions, functions[f])
	}
	for i := range out.Frames {
		f := &out.Frames[i].Func
		*f = ingest.FuncID(number[*f])
	}
}

// count sets the counts that follow from the samples.
func (c *cutter) count() {
	p := c.out
	p.Stats.Samples, p.Stats.Weight = 0, 0
	for i := range p.Samples {
		s := &p.Samples[i]
		p.Stats.Samples += s.Count
		p.Stats.Weight += s.Weight
	}
	p.Meta.MainProgram = p.MainProgram(func(s *ingest.Sample) uint64 { return s.Count })
}
