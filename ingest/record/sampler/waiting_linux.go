package sampler

import (
	"os"
	"slices"
	"strings"

	"symbolize/ingest/object/kallsyms"
)

// switching are the functions of the kernel between the one that waits and the tracepoint
// sched:sched_switch: the scheduler, and how tracepoints call programs.
var switching = []string{
	"__schedule", "schedule", "schedule_idle", "schedule_preempt_disabled", "schedule_rtlock",
	"__schedule_loop", "preempt_schedule", "preempt_schedule_common", "preempt_schedule_irq",
	"preempt_schedule_notrace", "__cond_resched", "_cond_resched", "dynamic_cond_resched",
	"__traceiter_sched_switch", "__bpf_trace_sched_switch", "trace_event_raw_event_sched_switch",
	"perf_trace_sched_switch", "perf_trace_run_bpf_submit", "trace_call_bpf",
}

// switchRanges returns the addresses of the functions in switching, sorted; none where the kernel
// hides its symbols.
func switchRanges() (ranges []Range) {
	const path = "/proc/kallsyms"
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var starts, wanted []uint64
	err = kallsyms.Read(path, f, func(s kallsyms.Symbol) bool {
		if s.Module != "" || !s.IsCode() {
			return true
		}
		starts = append(starts, s.Addr)
		name, _, _ := strings.Cut(s.Name, ".") // __schedule.constprop.0, and the .cold part
		if slices.Contains(switching, name) {
			wanted = append(wanted, s.Addr)
		}
		return true
	})
	if err != nil {
		return nil
	}
	slices.Sort(starts)
	slices.Sort(wanted)
	for _, start := range slices.Compact(wanted) {
		i, _ := slices.BinarySearch(starts, start+1)
		if start != 0 && i < len(starts) {
			ranges = append(ranges, Range{start, starts[i]})
		}
	}
	return ranges
}
