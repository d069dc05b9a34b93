package input

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"symbolize/ingest"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
)

// parallelism is how many of the recorded threads ran at a time, by the records of context switches.
// It counts as perf report does (machine__process_switch_event, machine__resolve): from 1, because
// the first thread has no record of its start, one more for each thread that starts to run and one
// less for each that stops or ends, and at least 1 and at most the number of CPUs. Unlike perf, it also
// counts in recordings of the whole system: there the idle thread does not run, and each CPU with a
// thread that stops first had one that ran.
type parallelism struct {
	times   []uint64 // of the changes, in order
	running []int32  // after each
	before  int32    // before the first
}

// newParallelism counts the threads that ran. cpus is the number of CPUs, 0 if unknown.
func newParallelism(switches []sideband.Switch, cpus int) *parallelism {
	slices.SortStableFunc(switches, func(a, b sideband.Switch) int { return cmp.Compare(a.Time, b.Time) })
	p := &parallelism{before: 1}
	if slices.ContainsFunc(switches, func(s sideband.Switch) bool { return s.CPUWide }) {
		switches = slices.DeleteFunc(slices.Clone(switches), func(s sideband.Switch) bool { return s.Exit })
		p.before = 0
		seen := make(map[int32]bool)
		for _, s := range switches {
			if !seen[s.CPU] && s.Out && s.TID != 0 {
				p.before++
			}
			seen[s.CPU] = true
		}
	}
	n := p.before
	limit := func(n int32) int32 {
		if cpus > 0 {
			n = min(n, int32(cpus))
		}
		return max(n, 1)
	}
	p.before = limit(p.before)
	for _, s := range switches {
		if s.CPUWide && s.TID == 0 {
			continue
		}
		if n++; s.Out {
			n -= 2
		}
		p.times, p.running = append(p.times, s.Time), append(p.running, limit(n))
	}
	return p
}

// at returns how many threads ran at a time.
func (p *parallelism) at(time uint64) int32 {
	i := sort.Search(len(p.times), func(i int) bool { return p.times[i] > time })
	if i == 0 {
		return p.before
	}
	return p.running[i-1]
}

// parallelismTag makes the tag of the number of threads that run with a sample.
func (c *collector) parallelismTag(src *tagSource) error {
	f := c.Records.File
	if c.derived != nil {
		return fmt.Errorf("%s: samples of %s have no parallelism, only those of threads that run",
			f.Name, c.want.Event)
	}
	if !slices.ContainsFunc(c.Records.Switches, func(s sideband.Switch) bool { return !s.Exit }) {
		return texts.WithHint(fmt.Errorf("%s: it has no context switches: the parallelism is unknown",
			f.Name), "record it with `perf record --switch-events`, or --latency of perf 6.15")
	}
	p := newParallelism(c.Records.Switches, int(f.Features.CPUsAvailable))
	if lost := c.Records.Stats.Lost; lost > 0 {
		c.Records.Warn(sideband.AtEnd, ingest.Warning{Text: fmt.Sprintf("%s: %d records were lost: the "+
			"parallelism may be wrong after them", f.Name, lost)})
	}
	src.value = func(x *current) uint64 { return uint64(p.at(x.sample.Time)) }
	return nil
}
