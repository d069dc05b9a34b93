package input

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// collector is shared by all workers of the second pass. It is read-only but for labels
// and tags, which have locks.
type collector struct {
	*sideband.State
	opts     *Options
	events   []ingest.Event
	event    []int          // by event of the file: index in events, -1 if filtered out
	wantComm []bool         // by comm: wanted; nil for all
	pids     map[int32]bool // nil for all, as are tids and cpus
	tids     map[int32]bool
	cpus     map[int32]bool
	after    uint64 // recorded times of wanted samples, both included
	until    uint64
	labels   merge.LabelSet
	tags     tagSet
	sources  []tagSource // of the tags that are kept
	formats  []perfdata.Tracepoint
	weights  []*perfdata.TracepointField // by event of the file; nil without Options.Weight
	unwinder Unwinder                    // nil if no sample has a copied stack
	noTable  map[uint32]uint32           // see locator
}

// newCollector applies the filters to the events and comms of the file.
func newCollector(sb *sideband.State, opts *Options) (*collector, error) {
	c := &collector{State: sb, opts: opts}
	if err := cmp.Or(c.chooseEvents(), c.chooseTimes(), c.chooseWeight(), c.tagSources(),
		c.chooseBranches()); err != nil {
		return nil, err
	}
	if len(opts.Comms) > 0 {
		c.wantComm = make([]bool, len(sb.CommNames()))
		for i, name := range sb.CommNames() {
			c.wantComm[i] = slices.Contains(opts.Comms, name)
		}
	}
	c.pids, c.tids, c.cpus = setOf(opts.PIDs), setOf(opts.TIDs), setOf(opts.CPUs)
	if c.cpus != nil && !c.allHave(perfdata.SampleCPU) {
		return nil, ingest.WithHint(fmt.Errorf("%s: its samples have no CPU to choose by",
			sb.Records.File.Name), "record it with `perf record --sample-cpu`")
	}
	return c, nil
}

// setOf returns the set of a list, nil for an empty one.
func setOf(list []int32) map[int32]bool {
	if len(list) == 0 {
		return nil
	}
	set := make(map[int32]bool, len(list))
	for _, n := range list {
		set[n] = true
	}
	return set
}

// chooseEvents makes one event of the profile for all attrs with one name.
func (c *collector) chooseEvents() error {
	var names []string
	for i := range c.Records.File.Events {
		ev := &c.Records.File.Events[i]
		at := -1
		if !slices.Contains(names, ev.Name) {
			names = append(names, ev.Name)
		}
		if c.opts.Event == "" || c.opts.Event == ev.Name {
			at = slices.IndexFunc(c.events, func(e ingest.Event) bool { return e.Name == ev.Name })
			if at < 0 {
				at = len(c.events)
				c.events = append(c.events, newEvent(ev))
			} else if c.events[at].Period != newEvent(ev).Period {
				c.events[at].Period = 0
			}
		}
		c.event = append(c.event, at)
	}
	if c.opts.Event != "" && len(c.events) == 0 {
		return fmt.Errorf("%s: no event %q in it, only %s", c.Records.File.Name, c.opts.Event,
			strings.Join(names, ", "))
	}
	return nil
}

func newEvent(ev *perfdata.Event) ingest.Event {
	e := ingest.Event{Name: ev.Name, Unit: "count"}
	const cpuClock, taskClock = 0, 1
	if a := &ev.Attr; a.Type == perfdata.AttrSoftware && (a.Config == cpuClock ||
		a.Config == taskClock) {
		e.Unit = "nanoseconds"
	}
	if !ev.Attr.Has(perfdata.FlagFreq) && ev.Attr.SampleType&perfdata.SampleRead == 0 {
		e.Period = ev.Attr.SamplePeriod
	}
	return e
}

// wanted reports whether a sample of a thread with this name passes the filters.
func (c *collector) wanted(s *perfdata.Sample, comm uint32) bool {
	if c.pids != nil && !c.pids[s.PID] || c.tids != nil && !c.tids[s.TID] ||
		c.cpus != nil && !c.cpus[int32(s.CPU)] {
		return false
	}
	if c.wantComm == nil {
		return true
	}
	if comm&sideband.UnnamedThread != 0 {
		return slices.Contains(c.opts.Comms, c.CommName(comm))
	}
	return c.wantComm[comm]
}
