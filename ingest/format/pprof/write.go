package pprof

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// UnresolvedPrefix begins the SystemName of the Function that a pprof file has for an unresolved
// location; a Reason's text follows. Reading such a file restores the reason, so that resolve tries
// again.
const UnresolvedPrefix = "symbolize:unresolved:"

// Segment is an executable segment of an object's runtime file: its p_offset and p_memsz.
type Segment struct {
	Offset addr.Offset
	Size   uint64
}

// WriteOptions are the options of Write. The zero value is valid.
type WriteOptions struct {
	// Layout returns the executable segments of an object, in any order; nil or an
	// empty result keeps the segments that the capture observed.
	Layout func(ingest.ObjectID) []Segment
	// RefShift returns the distance of a kernel object's RefSymbol from `_text`. If it is unknown
	// the mapping is named after the RefSymbol.
	RefShift func(ingest.ObjectID) (addr.Offset, bool)
	// Demangle returns Function.name for a SystemName; nil keeps the latter.
	Demangle func(string) string
	// Count weighs frames by samples instead of periods, for the comment on the share of named
	// frames.
	Count bool
	// Comments follow those of the profile; every text report of pprof prints them.
	Comments []string
}

// Write writes p as a gzipped pprof profile.proto
// (https://github.com/google/pprof/blob/main/proto/profile.proto), in the layout of DESIGN.md
// section 6. Equal profiles give equal bytes. Two columns per event: samples and weight. Strings
// are valid UTF-8 without control characters.
//
// The encoder is our own, for speed and flat memory: google/pprof's profile package needs about 1
// KB per sample; it is the oracle of the tests.
func Write(w io.Writer, p *ingest.Profile, opts WriteOptions) error {
	if p.Names != nil && len(p.Names.FrameEnds) != len(p.Locations) {
		return fmt.Errorf("names of %d locations for a profile of %d", len(p.Names.FrameEnds),
			len(p.Locations))
	}
	out := newBlockWriter(w)
	e := &encoder{p: p, opts: opts, out: out, strings: map[string]uint64{"": 0}}
	e.encode()
	if err := out.Close(); err != nil {
		return fmt.Errorf("pprof output: %w", err)
	}
	return nil
}

// column is one sample type of a pprof file.
type column struct {
	typ, unit string
	event     int
	count     bool // samples; else weight
}

// columnsOf returns the sample types of a profile's events. A lone event, or the only clock among
// several, is `samples/count` and its weight, because Go's PGO and most readers look for that;
// others have the event's name in front, as perf_data_converter does.
func columnsOf(events []ingest.Event) []column {
	clocks := 0
	for i := range events {
		if isClock(&events[i]) {
			clocks++
		}
	}
	cols := make([]column, 0, 2*len(events))
	for i := range events {
		ev := &events[i]
		plain := len(events) == 1 || clocks == 1 && isClock(ev)
		weight := ingest.Printable(ev.Name)
		if plain && isClock(ev) {
			weight = "cpu"
		}
		count := ev.CountColumn
		switch {
		case ev.OneColumn:
			cols = append(cols, column{typ: weight, unit: ev.Unit, event: i})
			continue
		case count != "":
		case plain:
			count = "samples"
		default:
			count = ingest.Printable(ev.Name) + "_samples"
		}
		cols = append(cols, column{typ: count, unit: "count", event: i, count: true},
			column{typ: weight, unit: ev.Unit, event: i})
	}
	return cols
}

// isClock reports whether an event is one of perf's software clocks, with any modifiers
// ("cpu-clock:u").
func isClock(ev *ingest.Event) bool {
	name, _, _ := strings.Cut(ev.Name, ":")
	return name == "cpu-clock" || name == "task-clock"
}

// defaultEvent is the event that reports show when none is named: the first that has samples.
func defaultEvent(p *ingest.Profile) int {
	if len(p.Samples) == 0 {
		return 0
	}
	return int(slices.MinFunc(p.Samples, func(a, b ingest.Sample) int {
		return int(a.Event) - int(b.Event)
	}).Event)
}

// header returns the head of the file: kept from a pprof input where its default column still
// exists, else made from the default event.
func (e *encoder) header(cols []column) ingest.PprofHeader {
	var h ingest.PprofHeader
	def := ""
	if len(cols) > 0 {
		ev := defaultEvent(e.p)
		i := slices.IndexFunc(cols, func(c column) bool { return c.event == ev && !c.count })
		def = cols[i].typ
		h.PeriodType, h.PeriodUnit = def, cols[i].unit
		h.Period = int64(e.p.Events[ev].Period)
	}
	if e.p.Meta.Pprof != nil {
		h = *e.p.Meta.Pprof
	} else {
		h.DefaultType = def
	}
	if h.DefaultType != "" && !slices.ContainsFunc(cols,
		func(c column) bool { return c.typ == h.DefaultType }) {
		h.DefaultType = def
	}
	return h
}

// The forms in which perf_data_converter writes these comments.
const (
	commentCommand = "perf-command:"
	commentVersion = "perf-version:"
	// commentCoverage begins the line that is rewritten at every writing.
	commentCoverage = "symbolize: "
)

func (e *encoder) comments() []string {
	var c []string
	m := &e.p.Meta
	if m.Command != "" {
		c = append(c, commentCommand+m.Command)
	}
	if m.Recorder != "" {
		c = append(c, commentVersion+m.Recorder)
	}
	c = append(c, m.Comments...)
	c = append(c, e.opts.Comments...)
	innermost, samples := e.p.WeighInnermost(e.opts.Count)
	namedSamples, _ := e.p.NamedFrames(innermost)
	named, all := e.p.NamedFrames(e.p.WeighFrames(e.opts.Count))
	if all.Weight > 0 {
		c = append(c, fmt.Sprintf("%s%.1f%% of samples named by their innermost frame, "+
			"%.1f%% of frames", commentCoverage, 100*namedSamples.Weight/samples.Weight,
			100*named.Weight/all.Weight))
	}
	return c
}
