package perfdata

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// applyFeatures adopts the events' names in the EVENT_DESC feature, and IDs that the
// attrs lack, and derives the other names.
func (f *File) applyFeatures() {
	f.simpleperfTypes()
	descs := f.Features.EventDesc
	for i := range f.Events {
		ev := &f.Events[i]
		if d := findDesc(descs, ev, i, len(f.Events)); d != nil {
			ev.Name = d.Name
			if len(ev.IDs) == 0 {
				ev.IDs = d.IDs
			}
		}
	}
	f.tracepointTypes()
	for i := range f.Events {
		if ev := &f.Events[i]; ev.Name == "" {
			ev.Name = f.eventName(&ev.Attr)
		}
	}
}

// tracepointTypes names unnamed tracepoints by their formats, as perf does: recordings in pipe
// mode have no other names.
func (f *File) tracepointTypes() {
	if !slices.ContainsFunc(f.Events, func(ev Event) bool {
		return ev.Name == "" && ev.Attr.Type == AttrTracepoint && f.types[ev.Attr.Config] == ""
	}) {
		return
	}
	formats, _ := f.Tracepoints() // an error is reported by callers that need the fields
	for i := range formats {
		if x := &formats[i]; x.Name != "" && f.types[x.ID] == "" {
			f.types[x.ID] = x.System + ":" + x.Name
		}
	}
}

// findDesc returns the description of an event: the one with its first ID, else the one with its
// index if there are as many descriptions as events.
func findDesc(descs []EventDesc, ev *Event, i, events int) *EventDesc {
	if len(ev.IDs) > 0 {
		for j := range descs {
			if slices.Contains(descs[j].IDs, ev.IDs[0]) {
				return &descs[j]
			}
		}
	}
	if len(descs) == events && descs[i].Attr.Type == ev.Attr.Type &&
		descs[i].Attr.Config == ev.Attr.Config {
		return &descs[i]
	}
	return nil
}

// The names of perf's own tables (tools/perf/util/evsel.c), by Config.
var (
	hardwareNames = []string{"cycles", "instructions", "cache-references", "cache-misses",
		"branches", "branch-misses", "bus-cycles", "stalled-cycles-frontend",
		"stalled-cycles-backend", "ref-cycles"}
	softwareNames = []string{"cpu-clock", "task-clock", "page-faults", "context-switches",
		"cpu-migrations", "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy", "bpf-output", "cgroup-switches"}
	cacheNames = []string{"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"}
	cacheOps   = []string{"load", "store", "prefetch"}
	// cacheOpsPlural name the accesses; misses take the singular.
	cacheOpsPlural = []string{"loads", "stores", "prefetches"}
)

// eventName derives a name from an attr as perf does (evsel__name in tools/perf/util/evsel.c): by
// type and config, with the modifiers ":u", ":k" and ":p" where the attr has them.
func (f *File) eventName(a *Attr) string {
	return f.baseName(a) + modifiers(a)
}

// Name returns perf's name of an event, as far as its attr alone has it: without modifiers, and
// numbers for tracepoints and PMUs.
func (a *Attr) Name() string { return new(File).baseName(a) }

func (f *File) baseName(a *Attr) string {
	// The upper half of config can hold the number of a PMU (hybrid machines).
	config := a.Config & 0xffffffff
	switch a.Type {
	case AttrHardware:
		return f.hybrid(a) + tableName(hardwareNames, config, "unknown-hardware")
	case AttrSoftware:
		return tableName(softwareNames, a.Config, "unknown-software")
	case AttrTracepoint:
		if name := f.types[a.Config]; name != "" {
			return name
		}
		return "tracepoint:" + strconv.FormatUint(a.Config, 10)
	case AttrHWCache:
		return f.hybrid(a) + cacheName(config)
	case AttrRaw:
		return rawName(a)
	case AttrBreakpoint:
		return breakpointName(a)
	}
	if name := f.pmuName(a.Type); name != "" {
		return fmt.Sprintf("%s/config=%#x/", name, a.Config)
	}
	return fmt.Sprintf("unknown attr type: %d", a.Type)
}

// hybrid returns the prefix "cpu_core/" style PMU of a hybrid machine's event, "" elsewhere.
func (f *File) hybrid(a *Attr) string {
	if pmu := a.Config >> 32; pmu != 0 {
		if name := f.pmuName(AttrType(pmu)); name != "" {
			return name + "/"
		}
	}
	return ""
}

func (f *File) pmuName(t AttrType) string {
	for _, p := range f.Features.PMUMappings {
		if p.Type == t {
			return p.Name
		}
	}
	return ""
}

func tableName(names []string, config uint64, unknown string) string {
	if config < uint64(len(names)) {
		return names[config]
	}
	return unknown
}

func rawName(a *Attr) string { return "r" + strconv.FormatUint(a.Config, 16) }

// cacheName names a cache event: config holds cache, operation and result, a byte each.
func cacheName(config uint64) string {
	cache, op, result := config&0xff, config>>8&0xff, config>>16&0xff
	if cache >= uint64(len(cacheNames)) || op >= uint64(len(cacheOps)) || result > 1 {
		return "invalid-cache"
	}
	if result == 1 {
		return cacheNames[cache] + "-" + cacheOps[op] + "-misses"
	}
	return cacheNames[cache] + "-" + cacheOpsPlural[op]
}

func breakpointName(a *Attr) string {
	access := ""
	for i, c := range []string{"r", "w", "x"} {
		if a.BPType>>i&1 != 0 {
			access += c
		}
	}
	return fmt.Sprintf("mem:%#x:%s", a.Config1, access)
}

// modifiers returns ":u" and the like. Those for host and guest are left out: a derived name should
// be the requested one, and users do not request them.
func modifiers(a *Attr) string {
	var b strings.Builder
	if a.Flags&(FlagExcludeKernel|FlagExcludeUser|FlagExcludeHV) != 0 {
		for _, m := range []struct {
			exclude AttrFlags
			letter  byte
		}{{FlagExcludeKernel, 'k'}, {FlagExcludeUser, 'u'}, {FlagExcludeHV, 'h'}} {
			if !a.Has(m.exclude) {
				b.WriteByte(m.letter)
			}
		}
	}
	b.WriteString(strings.Repeat("p", a.PreciseIP()))
	if b.Len() == 0 {
		return ""
	}
	return ":" + b.String()
}
