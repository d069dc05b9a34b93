package input

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/perfdata"
)

// folder makes a Profile of what the workers have collected.
type folder struct {
	*collector
	capture *Capture
	// contentID tells the capture from others, for objects that belong to it alone.
	contentID string
	workers   []*worker
	p         *ingest.Profile
	shards    []*merge.Shard
	counts    [merge.NumRoles]chainCount
}

func (f *folder) profile() (*ingest.Profile, []ingest.ObjectID) {
	f.p = &ingest.Profile{}
	for _, w := range f.workers {
		w.places = w.numbers.List()
		w.numbers = nil
	}
	number := f.objects()
	f.joinChains()
	comms := f.strings()
	events := f.eventsUsed()
	for _, w := range f.workers {
		f.shards = append(f.shards, &merge.Shard{
			Places: w.places, Rows: w.rows.Lists(), Labels: f.labels.List, Objects: number,
			Parts:  [merge.NumRoles]*intern.Lists{w.kernelChains.parts, w.userChains.parts},
			Comms:  func(code uint32) ingest.StringID { return comms[code] },
			Events: events,
		})
		// What is not in the shard, which is emptied step by step, is let go.
		w.kernelChains, w.userChains, w.rows, w.places = nil, nil, nil, nil
	}
	merge.Assemble(f.p, f.shards)
	f.stats()
	f.meta()
	return f.p, number
}

// objects makes the objects of the profile of the raw ones that samples lie in,
// and gives the number by raw object.
func (f *folder) objects() []ingest.ObjectID {
	raw := f.raw.list
	used := make([]bool, len(raw))
	belongs := false // something belongs to the kernel
	for _, w := range f.workers {
		for _, pl := range w.places {
			used[pl.Object] = true
		}
	}
	x := newIdentifier(f.sideband, f.query(), f.opts.Identify)
	for i := range raw {
		if used[i] {
			x.identify(&raw[i])
			belongs = belongs || raw[i].Kind == ingest.VDSO || raw[i].Kind == ingest.Module
		}
		if raw[i].Kind == ingest.PerfMap && used[i] {
			raw[i].Capture = f.contentID
		}
	}
	if belongs {
		f.useKernel(x, used)
	}
	if len(x.disowned) > 0 {
		f.sideband.warn(math.MaxInt64, disownedWarning(x.disowned))
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

// useKernel makes sure that the kernel is among the objects, because others refer
// to it.
func (f *folder) useKernel(x *identifier, used []bool) {
	for i := range f.raw.list {
		if o := &f.raw.list[i]; o.Kind == ingest.Kernel && i != rawHiddenKernel {
			x.identify(o)
			used[i] = true
			return
		}
	}
}

func (f *folder) query() ObjectQuery {
	q := ObjectQuery{Host: f.file.Features.Hostname}
	if end, ok := f.wall(f.lastTime()); ok {
		q.EndNanos = end
	} else if !f.capture.mtime.IsZero() {
		q.EndNanos = f.capture.mtime.UnixNano()
	}
	return q
}

// strings fills the string table with the comms of the rows, sorted, and gives
// the string of each comm code.
func (f *folder) strings() map[uint32]ingest.StringID {
	ids := make(map[uint32]ingest.StringID)
	for _, l := range f.labels.List {
		ids[l.Comm] = 0
	}
	f.p.Strings = []string{""}
	for c := range ids {
		f.p.Strings = append(f.p.Strings, f.commName(c))
	}
	slices.Sort(f.p.Strings)
	f.p.Strings = slices.Compact(f.p.Strings)
	for c := range ids {
		at, _ := slices.BinarySearch(f.p.Strings, f.commName(c))
		ids[c] = ingest.StringID(at)
	}
	return ids
}

// eventsUsed leaves out events without samples: perf opens some only to hear of
// mappings. The order stays that of the file.
func (f *folder) eventsUsed() []uint16 {
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

// stats adds up what the passes counted.
func (f *folder) stats() {
	st := &f.p.Stats
	*st = f.sideband.stats
	st.RecordTypes = make(map[string]uint64)
	for t, n := range f.types {
		f.recordType(perfdata.Type(t), n)
	}
	for t, n := range f.types2 {
		f.recordType(t, n)
	}
	warnings := f.warnings
	for _, w := range f.workers {
		s := &w.stats
		st.Samples += s.Samples
		st.Weight += s.Weight
		st.Frames += s.Frames
		st.FilteredOut += s.FilteredOut
		st.CutChains += s.CutChains
		st.BadRecords += s.BadRecords
		st.UnknownIDs += s.UnknownIDs
		warnings = append(warnings, w.warnings...)
	}
	f.distinct(st)
	f.sources()
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

// warn puts the warnings of the file and of its records in the order of the file.
// Each worker keeps its first ones, so that the first of all are always there.
func (f *folder) warn(records []warningAt) {
	st := &f.p.Stats
	for _, err := range f.file.Warnings {
		st.Warnings = append(st.Warnings, ingest.Warning{Text: err.Error(), Partial: true})
	}
	slices.SortStableFunc(records, func(a, b warningAt) int {
		return cmp.Compare(a.offset,
			b.offset)
	})
	for _, w := range records[:min(len(records), maxWarnings)] {
		st.Warnings = append(st.Warnings, w.Warning)
	}
	if more := len(records) - maxWarnings; more > 0 {
		st.Warnings = append(st.Warnings, ingest.Warning{Text: fmt.Sprintf(
			"%s: %d bad records in all, the first are shown", f.file.Name, st.BadRecords),
			Partial: true})
	}
	if st.UnknownIDs > 0 {
		st.Warnings = append(st.Warnings, ingest.Warning{Text: fmt.Sprintf(
			"%s: %d samples belong to no event of the file and are left out", f.file.Name,
			st.UnknownIDs)})
	}
}

// sources counts frames by how their object got its build ID, and finds the main
// program.
func (f *folder) sources() {
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
		if o := &p.Objects[p.Locations[l].Object]; needsID(o.Kind) || o.Kind == ingest.JIT {
			p.Stats.ByIDSource[o.IDSource] += n
		}
	}
	p.Meta.MainProgram = mainProgram(p.Objects, leaves)
}

// mainProgram is the executable with most leaf samples: of the files that are not
// named like a shared library.
func mainProgram(objects []ingest.Object, leaves []uint64) string {
	best := -1
	for i := range objects {
		o := &objects[i]
		base := o.File.Path[strings.LastIndexByte(o.File.Path, '/')+1:]
		if o.Kind != ingest.ELF || leaves[i] == 0 || strings.HasSuffix(base, ".so") ||
			strings.Contains(base, ".so.") || o.File.Path == ingest.VsyscallPath {
			continue
		}
		if best < 0 || leaves[i] > leaves[best] {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return objects[best].File.Path
}

// lastTime returns the recorded time of the last sample, 0 if there is none.
func (f *folder) lastTime() uint64 {
	last := uint64(0)
	for _, w := range f.workers {
		last = max(last, w.last)
	}
	return last
}

func (f *folder) firstTime() uint64 {
	first := uint64(noTime)
	for _, w := range f.workers {
		first = min(first, w.first)
	}
	if first == noTime {
		return 0
	}
	return first
}

// wall turns a time of the recording's clock into wall time, where the recorder
// wrote how they hang together (perf record -k).
func (f *folder) wall(t uint64) (nanos int64, ok bool) {
	cd := f.file.Features.ClockData
	if cd == nil || t == 0 {
		return 0, false
	}
	return int64(cd.WallNanos + (t - cd.ClockNanos)), true
}

// meta fills in what the capture says about itself. Most recordings do not say
// when they were made: the file's modification time is no substitute, since a
// copy of a capture has to give the same profile.
func (f *folder) meta() {
	x := &f.file.Features
	m := &f.p.Meta
	m.Captures = []string{f.capture.path}
	m.Host, m.OSRelease, m.Arch = x.Hostname, x.OSRelease, x.Arch
	m.Command = strings.Join(x.CmdLine, " ")
	m.Comments = f.comments
	if x.Version != "" {
		m.Recorder = "perf " + x.Version
	}
	first, last := f.firstTime(), f.lastTime()
	if last != noTime && last-first < 1<<62 {
		m.Duration = int64(last - first)
	}
	if start, ok := f.wall(first); ok {
		m.StartNanos = start
	}
}
