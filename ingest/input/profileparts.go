package input

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/intern"
	"symbolize/ingest/sideband"
)

// profileParts makes the parts of a Profile that all kinds of captures have: objects, strings, events
// and the counts by source of build IDs.
type profileParts struct {
	*collector
	opts  *Options
	file  *file
	p     *ingest.Profile
	exact map[ingest.Location]struct{} // result of correctReturns
	// Recorded times of the first and the last sample; 0 if the samples have no times.
	from, to uint64
}

// objects makes the profile's objects from the raw objects that samples refer to. It returns the
// ObjectID of each raw object. lists has the places of the samples.
func (f *profileParts) objects(query sideband.ObjectQuery, lists ...[]intern.Pair) []ingest.ObjectID {
	raw := f.Objects.List
	used := make([]bool, len(raw))
	for _, places := range lists {
		for _, pl := range places {
			used[pl.Object&^returned] = true
		}
	}
	x := sideband.NewIdentifier(f.State, query, f.opts.Identify)
	if f.Clock.Timed {
		x.From, x.To = f.from, f.to
	}
	kernelFirst := f.useKernel(used)
	if kernelFirst >= 0 {
		x.Identify(&raw[kernelFirst])
	}
	for i := range raw {
		if used[i] && i != kernelFirst {
			x.Identify(&raw[i])
		}
	}
	if len(x.Disowned) > 0 {
		f.State.Records.Warn(sideband.AtEnd, sideband.DisownedWarning(x.Disowned))
	}
	if w, ok := x.RefutedWarning(); ok {
		f.State.Records.Warn(sideband.AtEnd, w)
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

// useKernel keeps the kernel as an object if a sampled module or vdso refers to it. It returns the
// index of the kernel, by the build ID of which the others are found; -1 for none.
func (f *profileParts) useKernel(used []bool) int {
	kernel, needed := -1, false
	for i := range f.Objects.List {
		switch f.Objects.List[i].Kind {
		case ingest.Kernel:
			if kernel < 0 && i != sideband.HiddenKernel {
				kernel = i
			}
		case ingest.VDSO, ingest.Module:
			needed = needed || used[i]
		}
	}
	if !needed || kernel < 0 {
		return -1
	}
	used[kernel] = true
	return kernel
}

// query returns the fields that all queries of a recording have in common. Its samples have the
// times from and to; 0 if these are unknown.
func (f *profileParts) query(from, to uint64) sideband.ObjectQuery {
	wall := f.Wall(from, to)
	q := sideband.ObjectQuery{Host: f.Host.Name, EndNanos: wall.End, EndKnown: wall.Known}
	if file := f.Records.File; file != nil {
		q.Release = file.Features.OSRelease
	}
	return q
}

// placed returns a text of tags with the places of their addresses.
func (f *profileParts) placed(text string) string {
	if len(f.addresses.known)+len(f.data.list) == 0 {
		return text
	}
	var tags []ingest.Tag
	for t := range ingest.DecodeTags(text) {
		tags = append(tags, f.data.add(f.addresses.add(t, f.Objects.List), f.Objects.List))
	}
	return ingest.EncodeTags(tags)
}

// strings fills the string table with the sorted comms and tags of the labels. It returns the
// StringID of each comm by comm code, and of each tag by tag number.
func (f *profileParts) strings() (comms map[uint32]ingest.StringID, tags []ingest.StringID) {
	ids := make(map[uint32]ingest.StringID)
	for _, l := range f.labels.List {
		ids[l.Comm] = 0
	}
	f.p.Strings = []string{""}
	for c := range ids {
		f.p.Strings = append(f.p.Strings, f.Threads.CommName(c))
	}
	texts := slices.Clone(f.tags.List)
	for i := range texts {
		texts[i] = f.placed(texts[i])
	}
	f.p.Strings = append(f.p.Strings, texts...)
	slices.Sort(f.p.Strings)
	f.p.Strings = slices.Compact(f.p.Strings)
	for c := range ids {
		at, _ := slices.BinarySearch(f.p.Strings, f.Threads.CommName(c))
		ids[c] = ingest.StringID(at)
	}
	for _, text := range texts {
		at, _ := slices.BinarySearch(f.p.Strings, text)
		tags = append(tags, ingest.StringID(at))
	}
	return ids, tags
}

// eventsUsed adds the events with samples to the profile, in the order of the file, or the first
// event if none has samples. It returns the number of each event in the profile. Events without
// samples are left out because perf opens some events only for records of mappings.
func (f *profileParts) eventsUsed() []uint16 {
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

// mainProgram sets the main program of the profile.
func (f *profileParts) mainProgram() {
	f.p.Meta.MainProgram = f.p.MainProgram(func(s *ingest.Sample) uint64 { return s.Count })
}

// folder makes a Profile from the tables of all workers.
type folder struct {
	profileParts
	workers []*worker
	shards  []*merge.Shard
}

func (f *folder) profile() (*ingest.Profile, []ingest.ObjectID) {
	f.p = &ingest.Profile{}
	var places [][]intern.Pair
	for _, w := range f.workers {
		w.places = w.chains.numbers.List()
		w.chains.numbers = nil
		places = append(places, w.places)
	}
	places = append(places, f.addresses.list(), f.data.objects(f.Objects.List))
	f.from, f.to = f.times()
	number := f.objects(f.query(f.from, f.to), places...)
	number = f.separateUndecided(number, places...)
	f.exact = f.correctReturns(number, places...)
	comms, tags := f.strings()
	events := f.eventsUsed()
	tagOf := func(code uint32) ingest.StringID { return tags[code] }
	if len(tags) == 0 {
		tagOf = nil
	}
	for _, w := range f.workers {
		f.shards = append(f.shards, &merge.Shard{
			Places: w.places, Rows: w.chains.rows(), Labels: f.labels.List, Objects: number,
			Stacks: w.chains.stacks.Trees(),
			Comms:  func(code uint32) ingest.StringID { return comms[code] },
			Events: events,
			Tags:   tagOf,
		})
		// merge.Assemble releases the shard step by step; the references of the worker are dropped
		// here.
		w.chains, w.places, w.reader.records = nil, nil, nil
	}
	if f.opts.NoStacks {
		merge.Count(f.p, f.shards)
	} else {
		merge.Assemble(f.p, f.shards)
	}
	f.stats()
	f.meta()
	if !f.opts.NoStacks {
		f.mainProgram()
	}
	return f.p, number
}

// stats sets the statistics of the profile: the sums of the counts of both passes.
func (f *folder) stats() {
	st := &f.p.Stats
	*st = f.State.Records.Stats
	st.RecordTypes = make(map[string]uint64)
	for t, n := range f.Records.Types {
		f.recordType(perfdata.Type(t), n)
	}
	for t, n := range f.Records.OtherTypes {
		f.recordType(t, n)
	}
	warnings := f.Records.Warnings
	for _, w := range f.workers {
		st.Add(&w.stats)
		warnings = append(warnings, w.warnings...)
		st.Warnings = append(st.Warnings, w.derivedWarnings...)
	}
	st.NoReturns = f.want.Branches != NoBranches || slices.ContainsFunc(f.Records.File.Events,
		func(e perfdata.Event) bool { return e.Attr.BranchSampleType&perfdata.BranchCallStack != 0 })
	f.warn(warnings)
}

func (f *folder) recordType(t perfdata.Type, n uint64) {
	if n == 0 {
		return
	}
	st := &f.p.Stats
	st.Records += n
	st.RecordTypes[t.String()] += n
	if !t.Known() {
		st.UnknownRecords += n
	}
}

// warn adds the warnings about the file as a whole, then the first MaxWarnings warnings about
// records, in the order of the file. Each worker keeps only its first warnings; together they
// include the first ones of the file.
func (f *folder) warn(records []sideband.Warning) {
	st := &f.p.Stats
	for _, err := range f.Records.File.Warnings {
		st.Warnings = append(st.Warnings, ingest.Warning{Text: err.Error(), Partial: true})
	}
	slices.SortStableFunc(records, func(a, b sideband.Warning) int {
		return cmp.Compare(a.At, b.At)
	})
	for _, w := range records[:min(len(records), sideband.MaxWarnings)] {
		st.Warnings = append(st.Warnings, w.Warning)
	}
	if len(records) > sideband.MaxWarnings {
		st.Warnings = append(st.Warnings, ingest.Warning{Text: fmt.Sprintf(
			"%s: %d bad records in total; only the first are shown", f.Records.File.Name, st.BadRecords),
			Partial: true})
	}
	if w, ok := st.LostWarning(f.Records.Types[perfdata.TypeSample]); ok {
		w.Text = f.Records.File.Name + ": " + w.Text
		st.Warnings = append(st.Warnings, w)
	}
	if st.UnknownIDs > 0 {
		st.Warnings = append(st.Warnings, ingest.Warning{Text: fmt.Sprintf(
			"%s: %d samples belong to no event of the file and are left out", f.Records.File.Name,
			st.UnknownIDs)})
	}
}

// times returns the recorded times of the first and the last sample; 0 if no sample has a time.
func (f *folder) times() (first, last uint64) {
	first = sideband.NoTime
	for _, w := range f.workers {
		first, last = min(first, w.first), max(last, w.last)
	}
	if first == sideband.NoTime {
		first = 0
	}
	return first, last
}

// meta sets the description of the capture. Most recordings have no wall-clock time. The
// modification time of the file is not a substitute, because a copy of a capture must give the same
// profile.
func (f *folder) meta() {
	x := &f.Records.File.Features
	m := &f.p.Meta
	m.Captures = []string{f.file.path}
	m.MapsIDs = slices.ContainsFunc(f.Records.File.Events, func(e perfdata.Event) bool {
		return e.Attr.Has(perfdata.FlagBuildID)
	})
	m.Host, m.OSRelease, m.Arch = x.Hostname, x.OSRelease, x.Arch
	m.Command = strings.Join(x.CmdLine, " ")
	m.Comments = f.Records.Comments
	if x.Version != "" {
		m.Recorder = "perf " + x.Version
		if x.Simpleperf != nil {
			m.Recorder = x.Version
		}
	}
	if f.to != sideband.NoTime && f.to-f.from < 1<<62 {
		m.Duration = int64(f.to - f.from)
	}
	if cd := x.ClockData; cd != nil && f.from != 0 {
		m.StartNanos = int64(f.from) + cd.Offset()
	}
}

// returned is the bit of Pair.Object that marks the place of a return address. Until correctReturns
// has removed the mark, Pair.Offset is the offset of the byte before the return address.
const returned = 1 << 31

// markReturned sets the bit returned in object, the object of a return address, if symbol tables
// have to confirm that a call precedes the address.
func markReturned(r *sideband.Objects, object uint32) uint32 {
	if o := &r.List[object]; sideband.NeedsID(o.Kind) && o.Symbol == "" {
		return object | returned
	}
	return object
}

// correctReturns removes the marks of return addresses. If no call can precede an address, by
// Options.Exact, its place becomes the address itself. correctReturns returns these places, which a
// replay needs.
func (f *profileParts) correctReturns(number []ingest.ObjectID, lists ...[]intern.Pair,
) map[ingest.Location]struct{} {
	exact := make(map[ingest.Location]struct{})
	if f.opts.Seen != nil {
		f.opts.Seen(f.seen(number, lists))
	}
	if f.opts.Exact != nil {
		for id, offsets := range f.exactOffsets(number, lists) {
			for _, off := range offsets {
				exact[ingest.Location{Object: ingest.ObjectID(id), Offset: off}] = struct{}{}
			}
		}
	}
	for _, list := range lists {
		for i, pl := range list {
			if pl.Object&returned == 0 {
				continue
			}
			list[i].Object &^= returned
			at := ingest.Location{Object: number[list[i].Object],
				Offset: addr.Return(addr.Offset(pl.Offset), true)}
			if _, ok := exact[at]; ok {
				list[i].Offset = uint64(at.Offset)
			}
		}
	}
	return exact
}

// exactOffsets returns the return addresses in lists that no call can precede, by object.
func (f *profileParts) exactOffsets(number []ingest.ObjectID, lists [][]intern.Pair) [][]addr.Offset {
	offsets := make([][]addr.Offset, len(f.p.Objects))
	for _, list := range lists {
		for _, pl := range list {
			if pl.Object&returned != 0 {
				id := number[pl.Object&^returned]
				offsets[id] = append(offsets[id], addr.Return(addr.Offset(pl.Offset), true))
			}
		}
	}
	exact := func(_ context.Context, id int) error {
		if list := offsets[id]; len(list) > 0 {
			slices.Sort(list)
			offsets[id] = f.opts.Exact(&f.p.Objects[id], slices.Compact(list))
		}
		return nil
	}
	// exact never fails.
	_ = files.Each(context.Background(), f.opts.Workers, len(offsets), exact)
	return offsets
}

// separateUndecided moves the marked places of each object that Options.Undecided selects to a
// second object, and returns the new ObjectIDs by raw object. The second object of raw object i has
// index len(number)+i.
func (f *profileParts) separateUndecided(number []ingest.ObjectID,
	lists ...[]intern.Pair) []ingest.ObjectID {
	if f.opts.Undecided == nil {
		return number
	}
	raw := len(number)
	selected := make([]bool, len(f.p.Objects))
	for i := range f.p.Objects {
		selected[i] = f.opts.Undecided(&f.p.Objects[i])
	}
	used := make([]bool, len(f.p.Objects))
	for _, list := range lists {
		for i, pl := range list {
			if id := number[pl.Object&^returned]; pl.Object&returned != 0 && selected[id] {
				list[i].Object = pl.Object&^returned + uint32(raw)
				used[id] = true
			}
		}
	}
	var objects []ingest.Object
	// first has the new ObjectIDs; the second object of an object has the next ID.
	first := make([]ingest.ObjectID, len(f.p.Objects))
	for i := range f.p.Objects {
		first[i] = ingest.ObjectID(len(objects))
		objects = append(objects, f.p.Objects[i])
		if used[i] {
			o := f.p.Objects[i]
			o.Undecided = true
			objects = append(objects, o)
		}
	}
	for i := range objects {
		if k := objects[i].Kernel; k != ingest.NoObject {
			objects[i].Kernel = first[k]
		}
	}
	f.p.Objects = objects
	out := make([]ingest.ObjectID, 2*raw)
	for i, id := range number {
		out[i], out[raw+i] = ingest.NoObject, ingest.NoObject
		if id != ingest.NoObject {
			out[i], out[raw+i] = first[id], first[id]+1
		}
	}
	return out
}

// seen returns the places by object, for Options.Seen. For a return address it has the address and
// the byte before it.
func (f *profileParts) seen(number []ingest.ObjectID, lists [][]intern.Pair) Seen {
	s := Seen{Host: f.Host.Name, Objects: f.p.Objects,
		Offsets: make([][]addr.Offset, len(f.p.Objects))}
	for _, list := range lists {
		for _, pl := range list {
			id, off := number[pl.Object&^returned], addr.Offset(pl.Offset)
			s.Offsets[id] = append(s.Offsets[id], off)
			if pl.Object&returned != 0 {
				s.Offsets[id] = append(s.Offsets[id], off+1)
			}
		}
	}
	return s
}
