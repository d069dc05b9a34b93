package input

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/texts"
)

// derivedKind is an event that no record has: its samples are times between two records.
type derivedKind uint8

const (
	notDerived derivedKind = iota
	offCPU                 // threads that do not run
	wallClock              // the same, and the samples of threads that run, in ns
	runQueue               // threads that are ready to run, and do not
	pairOf                 // the time between a start and an end
)

// role is the part of an event of the file in a derived event.
type role uint8

const (
	noRole     role = iota
	roleSwitch      // sched_switch
	roleWake        // sched_waking or sched_wakeup
	roleStart       // of a pair
	roleEnd
	roleOnCPU // samples of running threads
)

// derivation says how a derived event is made of the events of a file.
type derivation struct {
	kind   derivedKind
	roles  []eventRole // by event of the file
	wakers bool        // waits have the label of who woke them
	depth  int         // of the chain of wakers that is added to stacks
	// ofThreads and ofCPUs are set if the key of a pair has the thread, and the CPU.
	ofThreads, ofCPUs bool
}

// eventRole is the role of an event, with the fields that are read.
type eventRole struct {
	role role
	// remote is set for a waking that may be of another CPU, which interrupts this one: sched_wakeup.
	remote bool
	// Of sched_switch: prev_pid, next_pid, prev_state; of a waking: pid.
	thread, next, state *perfdata.TracepointField
	keys                []keyField                // of a pair
	name                string                    // of a pair: what * matched in the event's name
	call                *perfdata.TracepointField // of a pair: the number of a system call that names it
}

// keyField is a field of a key: of the tracepoint, or of all samples.
type keyField struct {
	name  string // tid, pid or cpu if field is nil
	field *perfdata.TracepointField
}

// Tracepoints of the scheduler.
const (
	schedSwitch = "sched:sched_switch"
	schedWaking = "sched:sched_waking"
	schedWakeup = "sched:sched_wakeup"
	schedNew    = "sched:sched_wakeup_new"
)

// pairPresets are the pairs that have a name, as PAIR:KEY; the first whose events are in the file
// is used.
var pairPresets = map[string][]string{
	"syscalls": {"syscalls:sys_enter_*,syscalls:sys_exit_*:tid",
		"raw_syscalls:sys_enter,raw_syscalls:sys_exit:tid,id"},
	"block": {"block:block_rq_issue,block:block_rq_complete:dev,sector"},
	"lock":  {"lock:contention_begin,lock:contention_end:tid,lock_addr"},
}

// derive makes the event of Selection.Event of other events. ok is false for other names.
func (c *collector) derive() (ok bool, err error) {
	d := &derivation{roles: make([]eventRole, len(c.Records.File.Events))}
	name := c.want.Event
	spec, pair := strings.CutPrefix(name, ingest.PairEvent)
	switch {
	case name == ingest.OffCPUEvent && c.eventNamed(schedSwitch) < 0 && c.eventNamed(perfdata.OffCPUEvent) >= 0:
		c.renameOffCPU()
		return true, nil
	case name == ingest.OffCPUEvent:
		d.kind = offCPU
	case name == ingest.WallEvent:
		d.kind = wallClock
	case name == ingest.RunQueueEvent:
		d.kind = runQueue
	case pair:
		d.kind = pairOf
	default:
		return false, nil
	}
	if pair {
		err = c.choosePair(d, spec)
	} else {
		err = c.chooseScheduler(d)
	}
	if err == nil && !c.allHave(perfdata.SampleTime) {
		err = fmt.Errorf("%s: its records have no times, of which %s is made", c.Records.File.Name, name)
	}
	if err == nil && (c.want.Branches != NoBranches || c.want.Weight != "") {
		err = fmt.Errorf("%s: samples of %s have no branches and no weights of fields",
			c.Records.File.Name, name)
	}
	c.derived = d
	c.states = c.stateNames()
	c.events = []ingest.Event{{Name: name, Unit: "nanoseconds"}}
	return true, err
}

// eventNamed returns the index of an event of the file, -1 if there is none.
func (c *collector) eventNamed(name string) int {
	return slices.IndexFunc(c.Records.File.Events,
		func(e perfdata.Event) bool { return e.Name == name })
}

// renameOffCPU selects the event of perf record --off-cpu.
func (c *collector) renameOffCPU() {
	for i := range c.event {
		if c.Records.File.Events[i].Name == perfdata.OffCPUEvent {
			c.event[i] = 0
		}
	}
	c.events = []ingest.Event{{Name: ingest.OffCPUEvent, Unit: "nanoseconds"}}
}

// chooseScheduler sets the roles of the scheduler's events.
func (c *collector) chooseScheduler(d *derivation) error {
	file := c.Records.File
	if c.eventNamed(schedSwitch) < 0 {
		if err := c.namelessEvents(schedSwitch); err != nil {
			return err
		}
		return texts.WithHint(fmt.Errorf("%s: it has no samples of %s, of which %s is made", file.Name,
			schedSwitch, c.want.Event), "record it with `perf record -a -g -e %s`", c.recordedEvents(d))
	}
	prev, err1 := c.tracepointFields("prev_pid")
	next, err2 := c.tracepointFields("next_pid")
	state, err3 := c.tracepointFields("prev_state")
	if err := cmp.Or(err1, err2, err3); err != nil {
		return err
	}
	woken, errWake := c.tracepointFields("pid")
	wake := schedWaking
	if c.eventNamed(wake) < 0 {
		wake = schedWakeup
	}
	wakes := false
	for i := range file.Events {
		r := &d.roles[i]
		switch name := file.Events[i].Name; {
		case name == schedSwitch && prev[i] != nil:
			*r = eventRole{role: roleSwitch, thread: prev[i], next: next[i], state: state[i]}
		case (name == wake || name == schedNew) && errWake == nil && woken[i] != nil:
			*r = eventRole{role: roleWake, thread: woken[i], remote: name == schedWakeup}
			wakes = true
		}
	}
	d.wakers = slices.Contains(c.want.Keep.TagList(), ingest.WakerTag)
	d.depth = c.want.WakerDepth
	if needs := d.kind == runQueue || d.wakers || d.depth > 0; needs && !wakes {
		return texts.WithHint(fmt.Errorf("%s: it has no samples of %s: who wakes threads is unknown",
			file.Name, schedWaking), "record it with `perf record -a -g -e %s,%s`", schedSwitch, schedWaking)
	}
	if d.kind == wallClock {
		return c.chooseOnCPU(d)
	}
	return nil
}

// namelessEvents returns the error for a recording of which perf record was killed, if any of its
// events are tracepoints: their names and fields are written at the end. nil for others.
func (c *collector) namelessEvents(wanted string) error {
	var names []string
	for i := range c.Records.File.Events {
		if e := &c.Records.File.Events[i]; strings.HasPrefix(e.Name, perfdata.NamelessTracepoint) {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return texts.WithHint(fmt.Errorf("%s: its events %s have no names and no fields, which perf record "+
		"writes at its end: whether one is %s is unknown", c.Records.File.Name, strings.Join(names, ", "), wanted),
		"end perf record by SIGINT or SIGTERM, not SIGKILL")
}

// recordedEvents are the events that a derived event needs.
func (c *collector) recordedEvents(d *derivation) string {
	switch d.kind {
	case wallClock:
		return "cpu-clock," + schedSwitch
	case runQueue:
		return schedSwitch + "," + schedWaking
	}
	return schedSwitch
}

// chooseOnCPU sets the role of the samples of running threads: those of a clock, otherwise of
// cycles, otherwise of the first event of the processor.
func (c *collector) chooseOnCPU(d *derivation) error {
	events := c.Records.File.Events
	best, name := 0, ""
	for i := range events {
		a, rank := &events[i].Attr, 0
		switch {
		case newEvent(&events[i]).Unit == "nanoseconds" && a.Type == perfdata.AttrSoftware:
			rank = 3
		case a.Type == perfdata.AttrHardware && a.Config == 0: // cycles
			rank = 2
		case a.Type == perfdata.AttrHardware || a.Type == perfdata.AttrRaw:
			rank = 1
		}
		if rank > best {
			best, name = rank, events[i].Name
		}
	}
	if best == 0 {
		return texts.WithHint(fmt.Errorf("%s: it has no samples of threads that run, of which %s is made",
			c.Records.File.Name, c.want.Event), "record it with `perf record -a -g -e %s`",
			c.recordedEvents(d))
	}
	for i := range events {
		if events[i].Name == name {
			d.roles[i].role = roleOnCPU
		}
	}
	return nil
}

// choosePair sets the roles of the events of a pair.
func (c *collector) choosePair(d *derivation, spec string) error {
	specs := pairPresets[spec]
	if specs == nil {
		specs = []string{spec}
	}
	for _, spec := range specs {
		start, end, keys, err := parsePair(spec)
		if err != nil {
			return err
		}
		starts := c.setRoles(d, start, roleStart)
		if ends := c.setRoles(d, end, roleEnd); starts && ends {
			if strings.HasPrefix(start, "raw_syscalls:") {
				c.nameCalls(d)
			}
			return c.chooseKeys(d, keys)
		}
		clear(d.roles)
	}
	start, end, _, _ := parsePair(specs[0])
	if err := c.namelessEvents(start); err != nil {
		return err
	}
	return texts.WithHint(fmt.Errorf("%s: it has no samples of %s and %s", c.Records.File.Name, start, end),
		"record it with `perf record -a -g -e '%s' -e '%s'`", start, end)
}

// nameCalls sets the fields by which pairs of raw_syscalls are named.
func (c *collector) nameCalls(d *derivation) {
	fields, err := c.tracepointFields("id")
	for i := range d.roles {
		if err == nil && fields[i] != nil && isSyscall(c.format(i).Tracepoint, "id") {
			d.roles[i].call = fields[i]
		}
	}
}

// parsePair parses "START,END[:KEY,…]". Names of tracepoints have a colon.
func parsePair(spec string) (start, end string, keys []string, err error) {
	start, rest, ok := strings.Cut(spec, ",")
	parts := strings.Split(rest, ":")
	switch {
	case !ok || start == "" || len(parts) > 3 || slices.Contains(parts, ""):
		return "", "", nil, fmt.Errorf("%q is not a pair: it is START,END[:KEY], as "+
			"block:block_rq_issue,block:block_rq_complete:dev,sector, or syscalls, block or lock", spec)
	case len(parts) == 3:
		return start, parts[0] + ":" + parts[1], strings.Split(parts[2], ","), nil
	}
	return start, rest, []string{"tid"}, nil
}

// setRoles gives a role to the events of a name, in which * stands for any text.
func (c *collector) setRoles(d *derivation, pattern string, r role) (found bool) {
	before, after, star := strings.Cut(pattern, "*")
	for i := range c.Records.File.Events {
		name := c.Records.File.Events[i].Name
		middle, ok := strings.CutPrefix(name, before)
		if ok && star {
			middle, ok = strings.CutSuffix(middle, after)
		} else {
			ok = name == pattern
			middle = ""
		}
		if ok {
			d.roles[i] = eventRole{role: r, name: middle}
			found = true
		}
	}
	return found
}

// chooseKeys sets the fields of the keys of a pair.
func (c *collector) chooseKeys(d *derivation, names []string) error {
	d.ofThreads, d.ofCPUs = slices.Contains(names, "tid"), slices.Contains(names, "cpu")
	for _, name := range names {
		var fields []*perfdata.TracepointField
		if name != "tid" && name != "pid" && name != "cpu" {
			var err error
			if fields, err = c.tracepointFields(name); err != nil {
				return err
			}
		}
		for i := range d.roles {
			r := &d.roles[i]
			switch {
			case r.role == noRole:
			case fields == nil:
				r.keys = append(r.keys, keyField{name: name})
			case fields[i] == nil:
				return fmt.Errorf("%s: %s has no field %s", c.Records.File.Name,
					c.Records.File.Events[i].Name, name)
			default:
				r.keys = append(r.keys, keyField{field: fields[i]})
			}
		}
	}
	return nil
}
