package input

import (
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/sideband"
)

// assembly makes the objects, strings, events and sources of build IDs of a Profile, for
// samples of any kind of capture.
type assembly struct {
	*collector
	file  *file
	p     *ingest.Profile
	exact map[ingest.Location]struct{} // see correctReturns
	// The recorded times of the first and the last sample, 0 if they have none.
	from, to uint64
}

// objects makes the profile's objects of the raw ones that samples lie in, and returns
// their numbers by raw object. lists has the places of the samples.
func (f *assembly) objects(query sideband.ObjectQuery, lists ...[]intern.Pair) []ingest.ObjectID {
	raw := f.Objects.List
	used := make([]bool, len(raw))
	belongs := false // an object belongs to the kernel
	for _, places := range lists {
		for _, pl := range places {
			used[pl.Object&^returned] = true
		}
	}
	x := sideband.NewIdentifier(f.State, query, f.opts.Identify)
	if f.Clock.Timed {
		x.From, x.To = f.from, f.to
	}
	for i := range raw {
		if used[i] {
			x.Identify(&raw[i])
			belongs = belongs || raw[i].Kind == ingest.VDSO || raw[i].Kind == ingest.Module
		}
	}
	if belongs {
		f.useKernel(x, used)
	}
	if len(x.Disowned) > 0 {
		f.State.Warn(sideband.AtEnd, sideband.DisownedWarning(x.Disowned))
	}
	if w, ok := x.RefutedWarning(); ok {
		f.State.Warn(sideband.AtEnd, w)
	}
	var number []ingest.ObjectID
	f.p.Objects, number = merge.Objects(raw, used)
	kernel := ingest.NoObject
	for i := range f.p.Objects {
		if f.p.Objects[i].Kind == ingest.Kernel && (kernel == ingest.NoObject ||
			f.p.Objects[kernel].Reason == ingest.KernelHidden) {
			kernel = ingest.ObjectID(i)
		}
	}
	for i := range f.p.Objects {
		if o := &f.p.Objects[i]; o.Kind == ingest.VDSO || o.Kind == ingest.Module {
			o.Kernel = kernel
		}
	}
	return number
}

// useKernel keeps the kernel among the objects, because modules and the vdso refer to it.
func (f *assembly) useKernel(x *sideband.Identifier, used []bool) {
	for i := range f.Objects.List {
		if o := &f.Objects.List[i]; o.Kind == ingest.Kernel && i != sideband.HiddenKernel {
			x.Identify(o)
			used[i] = true
			return
		}
	}
}

// query returns the common part of all queries. endNanos is the wall clock of the end of
// the recording; 0 takes the file's time of modification.
func (f *assembly) query(endNanos int64) sideband.ObjectQuery {
	q := sideband.ObjectQuery{Host: f.Host.Name, EndNanos: endNanos}
	if file := f.Records.File; file != nil {
		q.Release = file.Features.OSRelease
	}
	if endNanos == 0 && !f.file.mtime.IsZero() {
		q.EndNanos = f.file.mtime.UnixNano()
	}
	return q
}

// strings fills the string table with the comms and tags of the labels, sorted, and returns the
// string of each comm code, and of each number of tags.
func (f *assembly) strings() (comms map[uint32]ingest.StringID, tags []ingest.StringID) {
	ids := make(map[uint32]ingest.StringID)
	for _, l := range f.labels.List {
		ids[l.Comm] = 0
	}
	f.p.Strings = []string{""}
	for c := range ids {
		f.p.Strings = append(f.p.Strings, f.CommName(c))
	}
	f.p.Strings = append(f.p.Strings, f.tags.list...)
	slices.Sort(f.p.Strings)
	f.p.Strings = slices.Compact(f.p.Strings)
	for c := range ids {
		at, _ := slices.BinarySearch(f.p.Strings, f.CommName(c))
		ids[c] = ingest.StringID(at)
	}
	for _, text := range f.tags.list {
		at, _ := slices.BinarySearch(f.p.Strings, text)
		tags = append(tags, ingest.StringID(at))
	}
	return ids, tags
}

// eventsUsed enters the events that have samples, in the order of the file, and returns
// their numbers: perf opens some events only for records of mappings.
func (f *assembly) eventsUsed() []uint16 {
	used := make([]bool, len(f.events))
	for _, l := range f.labels.List {
		used[l.Event] = true
	}
	if !slices.Contains(used, true) && len(used) > 0 {
		used[0] = true
	}
	number := make([]uint16, len(f.events))
	for i, ev := range f.events {
		if used[i] {
			number[i] = uint16(len(f.p.Events))
			f.p.Events = append(f.p.Events, ev)
		}
	}
	return number
}

// sources counts frames by the source of their object's build ID, and finds the main
// program.
func (f *assembly) sources() {
	p := f.p
	frames := make([]uint64, len(p.Locations))
	leaves := make([]uint64, len(p.Objects))
	stacks := make([]uint64, len(p.StackEnds))
	for i := range p.Samples {
		stacks[p.Samples[i].Stack] += p.Samples[i].Count
	}
	for s, n := range stacks {
		locs := p.Stack(ingest.StackID(s))
		for _, l := range locs {
			frames[l] += n
		}
		if len(locs) > 0 {
			leaves[p.Locations[locs[0]].Object] += n
		}
	}
	for l, n := range frames {
		if o := &p.Objects[p.Locations[l].Object]; sideband.NeedsID(o.Kind) || o.Kind == ingest.JIT {
			p.Stats.ByIDSource[o.IDSource] += n
		}
	}
	p.Meta.MainProgram = ingest.MainProgram(p.Objects, leaves)
}
