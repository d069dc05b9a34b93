package input

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// folder makes a Profile of the tables of all workers.
type folder struct {
	assembly
	workers []*worker
	shards  []*merge.Shard
	counts  [merge.NumRoles]chainCount
}

func (f *folder) profile() (*ingest.Profile, []ingest.ObjectID) {
	f.p = &ingest.Profile{}
	var places [][]intern.Pair
	for _, w := range f.workers {
		w.places = w.numbers.List()
		w.numbers = nil
		places = append(places, w.places)
	}
	f.from, f.to = f.firstTime(), f.lastTime()
	end, _ := f.wall(f.to)
	number := f.objects(f.query(end), places...)
	number = f.separateUndecided(number, places...)
	f.exact = f.correctReturns(number, places...)
	f.joinChains()
	comms, tags := f.strings()
	events := f.eventsUsed()
	tagOf := func(code uint32) ingest.StringID { return tags[code] }
	if len(tags) == 0 {
		tagOf = nil
	}
	for _, w := range f.workers {
		f.shards = append(f.shards, &merge.Shard{
			Places: w.places, Rows: w.rows.Lists(), Labels: f.labels.List, Objects: number,
			Parts:  [merge.NumRoles]*intern.Lists{w.kernelChains.parts, w.userChains.parts},
			Comms:  func(code uint32) ingest.StringID { return comms[code] },
			Events: events,
			Tags:   tagOf,
		})
		// Assemble empties the shard step by step; the rest is freed here.
		w.kernelChains, w.userChains, w.rows, w.places = nil, nil, nil, nil
	}
	merge.Assemble(f.p, f.shards)
	f.stats()
	f.meta()
	return f.p, number
}

// stats adds up the counts of both passes.
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
	}
	st.NoReturns = f.opts.Branches || slices.ContainsFunc(f.Records.File.Events,
		func(e perfdata.Event) bool { return e.Attr.BranchSampleType&perfdata.BranchCallStack != 0 })
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

// warn adds the warnings of the file, then those of its records in the order of the file.
// Each worker keeps its first ones, so that the first of all are among them, and one that is
// not shown.
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
			"%s: %d bad records in all, the first are shown", f.Records.File.Name, st.BadRecords),
			Partial: true})
	}
	if st.UnknownIDs > 0 {
		st.Warnings = append(st.Warnings, ingest.Warning{Text: fmt.Sprintf(
			"%s: %d samples belong to no event of the file and are left out", f.Records.File.Name,
			st.UnknownIDs)})
	}
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
	first := uint64(sideband.NoTime)
	for _, w := range f.workers {
		first = min(first, w.first)
	}
	if first == sideband.NoTime {
		return 0
	}
	return first
}

// wall converts a time of the recording's clock to wall time, if the recorder wrote both
// clocks (perf record -k).
func (f *assembly) wall(t uint64) (nanos int64, ok bool) {
	cd := f.Records.File.Features.ClockData
	if cd == nil || t == 0 {
		return 0, false
	}
	return int64(cd.WallNanos + (t - cd.ClockNanos)), true
}

// meta sets the description of the capture. Most recordings have no wall clock. The file's
// time of modification is no substitute: a copy of a capture has to give the same profile.
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
	first, last := f.firstTime(), f.lastTime()
	if last != sideband.NoTime && last-first < 1<<62 {
		m.Duration = int64(last - first)
	}
	if start, ok := f.wall(first); ok {
		m.StartNanos = start
	}
}
