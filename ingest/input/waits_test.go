package input

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// Events of perfbuild.SwitchEvents.
const (
	switchEvent = iota
	wakingEvent
	clockEvent
)

// waitsCapture has the scheduler's tracepoints and a clock.
func waitsCapture(big bool) capture {
	b := perfbuild.NewOrder(big)
	b.Events = perfbuild.SwitchEvents()
	b.EventDesc()
	b.TracingData("sched", perfbuild.SwitchFormat, perfbuild.WakingFormat)
	c := capture{b}
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	return c
}

var stateBits = map[string]uint64{"S": 1, "D": 2, "X": 0x10, "I": 0x80, "R": 0, "R+": 0x100}

// record adds the event of a line: "TIME CPU switch PREV STATE NEXT", "TIME CPU waking BY WOKEN",
// "TIME CPU irq BY WOKEN", "TIME CPU clock TID", "TIME CPU fork TID", "TIME CPU exit TID", "TIME CPU
// exec PID", "TIME CPU in TID", "TIME CPU out TID", "TIME CPU lost", "round".
// The stack of thread N is kernel code at offset N.
func (c capture) record(t testing.TB, line string) {
	t.Helper()
	c.recordIn(t, line, func(tid int32) (recorded, machine int32) { return tid, tid })
}

// recordIn is record of a perf in a PID namespace. numbers returns the number of a thread in records
// and in the fields of tracepoints.
func (c capture) recordIn(t testing.TB, line string, numbers func(tid int32) (recorded, machine int32)) {
	t.Helper()
	words := strings.Fields(line)
	if words[0] == "round" {
		c.FinishedRound()
		return
	}
	var time uint64
	var cpu uint32
	var what string
	var tid, other int32
	var err error
	state := ""
	switch words[2] {
	case "switch":
		_, err = fmt.Sscan(line, &time, &cpu, &what, &tid, &state, &other)
	case "waking", "irq":
		_, err = fmt.Sscan(line, &time, &cpu, &what, &tid, &other)
	case "lost":
		_, err = fmt.Sscan(line, &time, &cpu, &what)
	default:
		_, err = fmt.Sscan(line, &time, &cpu, &what, &tid)
	}
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	stack := uint64(tid)
	tid, machine := numbers(tid)
	_, other = numbers(other)
	s := perfbuild.Sample{PID: tid / 10 * 10, TID: tid, Time: time, CPU: cpu,
		Chain: []uint64{cK, 0xffffffff81000000 + stack}}
	at := perfbuild.At{Time: time, CPU: cpu, PID: s.PID, TID: tid}
	switch what {
	case "switch":
		s.Raw = c.SwitchRaw(machine, stateBits[state], other)
	case "waking":
		s.Event, s.Raw = wakingEvent, c.WakingRaw(0, machine, other)
	case "irq":
		s.Event, s.Raw = wakingEvent, c.WakingRaw(0x08, machine, other)
	case "clock":
		s.Event, s.Period = clockEvent, 100
	case "fork":
		c.Fork(s.PID, s.PID, tid, s.PID, at)
		return
	case "exit":
		c.Exit(s.PID, s.PID, tid, s.PID, at)
		return
	case "exec":
		c.Comm(tid, tid, "new", true, at)
		return
	case "in", "out":
		c.Switch(what == "out", false, at)
		return
	case "lost":
		c.Lost(11, 3, at)
		return
	}
	c.Sample(s)
}

// waitLines is a profile of waits: thread, tags, stack, count and weight of each sample.
func waitLines(p *ingest.Profile) (lines []string) {
	for i := range p.Samples {
		s := &p.Samples[i]
		line := fmt.Sprintf("%d", s.TID)
		for tag := range p.AllTags(s) {
			line += " " + tag.Key + "=" + tag.Value()
		}
		for l := range p.Frames(s.Stack) {
			o := &p.Objects[p.Locations[l].Object]
			if o.Kind == ingest.Kernel {
				line += fmt.Sprintf(" k%d", p.Locations[l].Offset)
			} else {
				line += " " + cmp.Or(o.Symbol, o.File.Path)
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %d %d", line, s.Count, s.Weight))
	}
	slices.Sort(lines)
	return lines
}

func TestWaits(t *testing.T) {
	// 11 sleeps on CPU 0 and wakes on CPU 1; 12 is preempted by 13.
	const two = "1 0 clock 11;2 0 switch 11 S 12;5 1 switch 0 R 11;6 0 switch 12 R+ 13;9 0 switch 13 D 12;" +
		"12 1 switch 11 S 0;15 0 clock 12;20 0 switch 12 S 0"
	for _, tt := range []struct {
		name, event, records string
		opts                 Options
		want                 []string
		warnings             []string
	}{
		{name: "states and migration", event: ingest.OffCPUEvent, records: two,
			want: []string{"11 state=S k11: 2 11", "12 state=R+ k12: 1 3", "12 state=S k12: 1 0",
				"13 state=D k13: 1 11"},
			warnings: []string{"2 of 7 waits (0.000 s) are left out, as they began before",
				"3 of 7 waits (0.000 s) had not ended"}},
		{name: "wall", event: ingest.WallEvent, records: two,
			want: []string{"11 state=S k11: 2 11", "11 state=running k11: 1 8", "12 state=? " +
				"[waited since before the recording]: 1 1", "12 state=R+ k12: 1 3", "12 state=S k12: 1 0",
				"12 state=running k12: 1 15", "13 state=? [waited since before the recording]: 1 5",
				"13 state=D k13: 1 11", "13 state=running [ran, not sampled]: 1 3"},
			warnings: []string{"3 of 7 waits (0.000 s) had not ended"}},
		{name: "one thread", event: ingest.OffCPUEvent, records: two, opts: Options{Selection: Selection{TIDs: []int32{12}}},
			want: []string{"12 state=R+ k12: 1 3", "12 state=S k12: 1 0"}},
		{name: "part of the time", event: ingest.OffCPUEvent, records: two,
			opts: Options{Selection: Selection{Time: TimeRange{From: 3, To: 7, set: true}}},
			want: []string{"11 state=S k11: 1 2", "12 state=R+ k12: 1 1"}},
		{name: "lost", event: ingest.OffCPUEvent,
			records: "1 0 switch 11 S 12;2 1 switch 21 S 0;3 1 clock 0;8 1 lost;9 0 switch 12 S 11;" +
				"10 0 switch 11 S 12;11 1 switch 0 R 21;12 0 switch 12 S 0",
			want:     []string{"11 state=S k11: 1 2", "12 state=S k12: 2 1"},
			warnings: []string{"2 of 5 waits (0.000 s) are left out, as records were lost meanwhile"}},
		{name: "lost while it runs", event: ingest.WallEvent,
			records:  "1 0 switch 0 R 11;2 1 clock 0;4 1 lost;6 0 switch 11 S 0;9 0 switch 0 R 11;10 0 clock 11",
			want:     []string{"11 state=S k11: 1 3", "11 state=running k11: 1 1"},
			warnings: []string{"1 times in which a thread ran (0.000 s) are left out"}},
		{name: "reordered by rounds", event: ingest.OffCPUEvent,
			records: "1 0 switch 11 S 12;9 0 switch 12 S 0;round;4 1 switch 0 R 11;8 1 switch 11 S 0;round",
			want:    []string{"11 state=S k11: 2 4", "12 state=S k12: 1 0"}},
		{name: "a thread's number again", event: ingest.WallEvent,
			records: "1 0 switch 0 R 11;3 0 switch 11 X 0;5 1 fork 11;6 0 switch 0 R 11;8 0 clock 11;" +
				"9 0 switch 11 S 0;10 0 clock 0",
			want: []string{"11 state=S k11: 1 1", "11 state=new [made, not yet run]: 1 1",
				"11 state=running [ran, not sampled]: 1 2", "11 state=running k11: 1 3"}},
		{name: "one process", event: ingest.OffCPUEvent,
			records:  "1 0 switch 11 S 99;5 0 switch 11 S 99;9 0 switch 11 D 98",
			want:     []string{"11 state=D k11: 1 0"},
			warnings: []string{"2 of 3 waits (0.000 s) are left out, as their end was not recorded"}},
		{name: "one process, and switch records", event: ingest.OffCPUEvent,
			records: "1 0 switch 11 S 99;4 0 in 11;5 0 switch 11 S 99;8 0 in 11;9 0 switch 11 D 98",
			want:    []string{"11 state=D k11: 1 0", "11 state=S k11: 2 6"}},
		{name: "a thread that ends, in a recording of its process", event: ingest.WallEvent,
			records: "1 0 fork 11;2 0 in 11;3 0 clock 11;5 0 exit 11;6 0 in 12;8 0 switch 12 S 0;9 0 out 12;" +
				"20 0 in 12;21 1 clock 0",
			want: []string{"11 state=new [made, not yet run]: 1 1", "11 state=running k11: 1 3",
				"12 state=? [waited since before the recording]: 1 5", "12 state=S k12: 1 12",
				"12 state=running [ran, not sampled]: 1 3"}},
		{name: "a thread that ends, in a recording of the machine", event: ingest.WallEvent,
			records: "1 0 switch 0 R 11;3 0 clock 11;5 0 exit 11;6 0 switch 11 D 0;8 0 switch 0 R 11;" +
				"9 0 switch 11 X 0;21 1 clock 0",
			want: []string{"11 state=D k11: 1 2", "11 state=running k11: 1 6"}},
		{name: "a thread executes a program", event: ingest.WallEvent,
			records: "1 0 in 10;1 1 fork 11;2 1 in 11;3 0 exit 10;5 1 exec 10;9 1 switch 10 S 0;12 1 in 10;14 1 exit 10;21 1 clock 0",
			want: []string{"10 state=S k10: 1 3", "10 state=running [ran, not sampled]: 1 2", "10 state=running [ran, not sampled]: 1 6",
				"11 state=new [made, not yet run]: 1 1", "11 state=running [ran, not sampled]: 1 3"}},
		{name: "records before the first and after the last sample", event: ingest.WallEvent,
			opts:    Options{Selection: Selection{Time: TimeRange{To: 1_000_000, Percent: true, set: true}}},
			records: "2 0 in 11;5 0 clock 11;6 0 switch 11 S 0;9 0 in 11;12 0 exit 11;20 1 in 12",
			want: []string{"11 state=S k11: 1 3", "11 state=running k11: 1 7",
				"12 state=? [waited since before the recording]: 1 18"}},
		{name: "back", event: ingest.OffCPUEvent, records: "9 0 switch 11 S 12;round;9 0 clock 12;round;" +
			"4 0 switch 12 S 11;round;8 0 clock 0;round",
			want:     []string{"12 state=S k12: 1 5"},
			warnings: []string{"1 records came later", "1 of 2 waits (0.000 s) are left out, as they end"}},
		{name: "run queue", event: ingest.RunQueueEvent,
			records: "1 0 switch 11 S 12;3 1 waking 21 11;7 0 switch 12 R+ 11;9 0 switch 11 S 12;10 0 clock 12",
			want:    []string{"11 state=S instead=:12 k12: 1 4", "12 state=R+ instead=:11 k11: 1 2"}},
		{name: "wakers", event: ingest.OffCPUEvent,
			opts: Options{Selection: Selection{Keep: ingest.Keep{TID: true, Tags: "waker"}, WakerDepth: 5}},
			records: "1 0 switch 11 S 12;2 0 switch 12 S 0;3 1 irq 21 12;4 0 switch 0 R 12;5 0 waking 12 11;" +
				"6 1 switch 21 S 11;7 1 clock 11",
			want: []string{"11 state=S waker=:12 k21 [woken by an interrupt] k12 [woken by] k11: 1 5",
				"12 state=S waker=[interrupt] k21 [woken by an interrupt] k12: 1 2", "21 state=S k21: 1 1"}},
	} {
		for _, big := range []bool{false, true} {
			c := waitsCapture(big)
			for line := range strings.SplitSeq(tt.records, ";") {
				c.record(t, line)
			}
			opts := tt.opts
			opts.Event, opts.Keep.TID = tt.event, true
			p := fold(t, c.Bytes(), opts)
			if got := waitLines(p); !slices.Equal(got, tt.want) {
				t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
			}
			for _, want := range tt.warnings {
				if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
					return strings.Contains(w.Text, tt.event+": "+want)
				}) {
					t.Errorf("%s: no warning %q in %v", tt.name, want, p.Stats.Warnings)
				}
			}
		}
	}
}

// TestWaitsInNamespace: the fields of tracepoints have other numbers than records and samples. 31 is
// outside of the namespace, and has no number in it.
func TestWaitsInNamespace(t *testing.T) {
	numbers := func(tid int32) (recorded, machine int32) {
		switch tid {
		case 0:
			return 0, 0
		case 31:
			return 0, 1031
		case 41: // ended, which only records tell: 11
			return -1, 1011
		}
		return tid, 1000 + tid
	}
	for _, tt := range []struct {
		event, records string
		opts           Options
		want           []string
	}{
		{event: ingest.OffCPUEvent, records: "1 0 switch 11 S 31;2 0 out 11;3 0 in 31;5 1 switch 0 R 11;6 1 out 0;" +
			"7 1 in 11;8 0 switch 31 S 12;8 0 out 31;9 0 in 12;10 0 switch 12 D 0;12 1 switch 11 S 31;14 1 switch 31 S 0",
			want: []string{"1031 state=S k31: 2 4", "11 state=S k11: 2 6", "12 state=D k12: 1 4"}},
		{event: ingest.WallEvent, records: "1 0 fork 11;2 0 in 11;3 0 clock 11;5 0 switch 11 S 0;6 0 out 11;9 0 in 11;" +
			"10 0 exit 11;11 0 waking 41 12;12 1 in 12;14 1 switch 12 S 0;15 0 switch 41 X 0;16 0 out 41",
			want: []string{"11 state=S k11: 1 4", "11 state=new [made, not yet run]: 1 1", "11 state=running k11: 1 9",
				"12 state=? [waited since before the recording]: 1 11", "12 state=S k12: 1 2",
				"12 state=running [ran, not sampled]: 1 2"}},
		{event: ingest.OffCPUEvent, opts: Options{Selection: Selection{Keep: ingest.Keep{Tags: "waker"}}},
			records: "1 0 switch 11 S 12;2 0 waking 12 11;3 0 switch 12 S 11;4 0 waking 31 12;5 0 switch 11 S 12",
			want: []string{"11 state=S k11: 1 0", "11 state=S waker=:12 k11: 1 2",
				"12 state=S waker=:1031 k12: 1 2"}},
	} {
		c := waitsCapture(false)
		for line := range strings.SplitSeq(tt.records, ";") {
			c.recordIn(t, line, numbers)
		}
		tt.opts.Event, tt.opts.Keep.TID = tt.event, true
		if got := waitLines(fold(t, c.Bytes(), tt.opts)); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.records, got, tt.want)
		}
	}
}

// TestSomeCPUs: in a recording of some CPUs it is unknown what a thread did between two runs on them.
func TestSomeCPUs(t *testing.T) {
	const records = "1 0 clock 11;2 0 switch 11 D 12;3 0 waking 12 11;5 0 switch 12 S 11;9 0 switch 11 S 0;10 0 clock 0"
	for _, tt := range []struct {
		form, cpus uint16
		online     uint32
		event      string
		want       []string
		warning    string
	}{
		{perfbuild.CPUList, 1, 2, ingest.WallEvent, []string{"11 state=running k11: 1 5",
			"12 state=running [ran, not sampled]: 1 3"}, "4 of 4 waits (0.000 s) are left out: only 1 of 2 CPUs"},
		{perfbuild.CPURange, 3, 4, ingest.OffCPUEvent, nil, "4 of 4 waits (0.000 s) are left out: only 3 of 4 CPUs"},
		{perfbuild.CPUMask, 1, 2, ingest.RunQueueEvent, nil, "4 of 4 waits (0.000 s) are left out: only 1 of 2 CPUs"},
		{perfbuild.CPUMask, 2, 2, ingest.OffCPUEvent, []string{"11 state=D k11: 1 3", "11 state=S k11: 1 1",
			"12 state=S k12: 1 5"}, ""},
	} {
		for _, big := range []bool{false, true} {
			c := waitsCapture(big)
			c.NrCPUs(tt.online, tt.online)
			c.CPUMap(tt.form, tt.cpus)
			for line := range strings.SplitSeq(records, ";") {
				c.record(t, line)
			}
			p := fold(t, c.Bytes(), Options{Selection: Selection{Event: tt.event, Keep: ingest.Keep{TID: true}}})
			if got := waitLines(p); !slices.Equal(got, tt.want) {
				t.Errorf("%+v:\n got %q\nwant %q", tt, got, tt.want)
			}
			found := slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
				return strings.Contains(w.Text, cmp.Or(tt.warning, "CPUs were recorded"))
			})
			if found != (tt.warning != "") {
				t.Errorf("%+v: warnings %v", tt, p.Stats.Warnings)
			}
		}
	}
}

// TestWakeupsOfOtherCPUs: sched_wakeup of a thread on another CPU is in an interrupt there, in the
// time of any thread.
func TestWakeupsOfOtherCPUs(t *testing.T) {
	c := waitsCapture(false)
	c.Events[wakingEvent].Name = "sched:sched_wakeup"
	c.EventDesc()
	for line := range strings.SplitSeq("1 0 switch 11 S 12;2 0 switch 12 S 13;3 1 irq 21 12;4 1 waking 0 11;"+
		"5 1 switch 21 S 12;6 1 waking 12 21;7 1 switch 12 S 21;8 0 switch 13 S 11", ";") {
		c.record(t, line)
	}
	p := fold(t, c.Bytes(), Options{Selection: Selection{Event: ingest.OffCPUEvent, WakerDepth: 3,
		Keep: ingest.Keep{TID: true, Tags: "waker"}}})
	want := []string{"11 state=S k11: 1 7", "12 state=S k12: 2 4", "13 state=S k13: 1 0",
		"21 state=S waker=:12 k12 [woken by] k21: 1 2"}
	if got := waitLines(p); !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return strings.Contains(w.Text, "2 wake-ups have no waker") && strings.Contains(w.Hint, "sched_waking")
	}) {
		t.Errorf("warnings %v", p.Stats.Warnings)
	}
}

// simulation is a machine that switches between threads at random.
type simulation struct {
	rng     *rand.Rand
	running []int32 // by CPU
	waiting []int32
	free    []int32          // numbers of threads that ended
	born    map[int32]uint64 // of living threads
	stopped map[int32]uint64 // of threads that do not run
	life    map[int32]uint64 // by number, of all threads that had it
	waits   map[int32]uint64 // that began with a switch
	buffers [][]timedWrite   // by CPU
}

// timedWrite writes a record of a time.
type timedWrite struct {
	time  uint64
	write func(capture)
}

// step switches the threads of a CPU.
func (x *simulation) step(t testing.TB, time uint64) {
	cpu := x.rng.IntN(len(x.running))
	prev, next, state := x.running[cpu], int32(0), []string{"S", "D", "R+", "X"}[x.rng.IntN(4)]
	if n := len(x.waiting); n > 0 {
		i := x.rng.IntN(n)
		next = x.waiting[i]
		x.waiting = slices.Delete(x.waiting, i, i+1)
	}
	write := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		x.buffers[cpu] = append(x.buffers[cpu], timedWrite{time, func(c capture) { c.record(t, line) }})
	}
	if prev != 0 && x.rng.IntN(2) == 0 {
		write("%d %d clock %d", time-1, cpu, prev)
	}
	if n := len(x.free); prev != 0 && n > 0 && x.rng.IntN(3) == 0 {
		tid := x.free[n-1]
		x.free = x.free[:n-1]
		write("%d %d fork %d", time-1, cpu, tid)
		x.born[tid], x.waiting = time-1, append(x.waiting, tid)
	}
	write("%d %d switch %d %s %d", time, cpu, prev, state, next)
	if at, ok := x.stopped[next]; ok {
		x.waits[next] += time - at
		delete(x.stopped, next)
	}
	switch {
	case prev == 0:
	case state == "X":
		x.life[prev] += time - x.born[prev]
		delete(x.born, prev)
		x.free = append(x.free, prev)
	default:
		x.stopped[prev], x.waiting = time, append(x.waiting, prev)
	}
	x.running[cpu] = next
}

// TestWaitsOfMachine compares with a simulated machine of three CPUs: each thread's waits, and that
// its wall-clock time is its life in the recording, also if its number is given again.
func TestWaitsOfMachine(t *testing.T) {
	for seed := range uint64(10) {
		x := simulation{rng: rand.New(rand.NewPCG(seed, 1)), running: []int32{11, 12, 13},
			waiting: []int32{14, 15, 16, 17}, born: make(map[int32]uint64), life: make(map[int32]uint64),
			waits: make(map[int32]uint64), stopped: make(map[int32]uint64), buffers: make([][]timedWrite, 3)}
		for tid := int32(11); tid <= 17; tid++ {
			x.born[tid] = 100
		}
		c := waitsCapture(seed%2 != 0)
		for tid := range x.born {
			c.Comm(tid/10*10, tid, "t", false, perfbuild.At{})
		}
		c.record(t, "100 0 clock 11")
		time := uint64(100)
		for round := range 60 {
			start := time
			for range 20 {
				time += 2 + x.rng.Uint64N(9)
				x.step(t, time)
			}
			for cpu, list := range x.buffers {
				// The buffer is read at some time of the round, and whole in the last.
				read := start + x.rng.Uint64N(time-start+1)
				for len(list) > 0 && (list[0].time <= read || round == 59) {
					list[0].write(c)
					list = list[1:]
				}
				x.buffers[cpu] = list
			}
			c.FinishedRound()
		}
		for tid, from := range x.born {
			x.life[tid] += time - from
		}
		for tid, from := range x.stopped {
			x.waits[tid] += time - from
		}
		for event, want := range map[string]map[int32]uint64{ingest.WallEvent: x.life,
			ingest.OffCPUEvent: x.waits} {
			p := fold(t, c.Bytes(), Options{Selection: Selection{Event: event, Keep: ingest.Keep{TID: true}}})
			got := make(map[int32]uint64)
			for i := range p.Samples {
				if p.Tag(&p.Samples[i], ingest.StateTag) != "new" || event == ingest.WallEvent {
					got[p.Samples[i].TID] += p.Samples[i].Weight
				}
			}
			for tid, ns := range want {
				if got[tid] != ns {
					t.Errorf("seed %d: %s of thread %d: %d, want %d", seed, event, tid, got[tid], ns)
				}
			}
		}
	}
}

// TestWaitsReplay: a replay of a derived event has the samples of its profile.
func TestWaitsReplay(t *testing.T) {
	for _, event := range []string{ingest.OffCPUEvent, ingest.WallEvent} {
		c := waitsCapture(false)
		for line := range strings.SplitSeq("1 0 clock 11;2 0 switch 11 S 12;3 0 clock 12;4 0 clock 12;"+
			"5 0 switch 12 S 11;6 0 clock 11;9 0 switch 11 S 12;9 0 clock 12", ";") {
			c.record(t, line)
		}
		cp, err := openBytes(t, c.Bytes(), Options{Selection: Selection{Event: event}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := cp.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var count, weight, last uint64
		err = cp.Replay(t.Context(), func(s *ReplaySample) error {
			if count++; s.Time < last || s.CPU < -1 {
				t.Errorf("%s: %+v after %d", event, s, last)
			}
			weight += s.Period
			last = s.Time
			for _, f := range s.Frames {
				if int(f.Location) >= len(p.Locations) {
					t.Errorf("location %d", f.Location)
				}
			}
			return nil
		})
		if err != nil || count != p.Stats.Samples || weight != p.Stats.Weight {
			t.Errorf("%s: %d samples, weight %d, %v; want %d, %d", event, count, weight, err, p.Stats.Samples,
				p.Stats.Weight)
		}
	}
}

// pairCapture has system calls and requests of a disk.
func pairCapture(big bool) capture {
	b := perfbuild.NewOrder(big)
	format := func(id int, fields string) string {
		return fmt.Sprintf("name: n%d\nID: %d\nformat:\n%s\nprint fmt: \"\"\n", id, id, fields)
	}
	of := func(config, id uint64, name string) perfbuild.Event {
		e := perfbuild.SwitchEvents()[0]
		e.Config, e.IDs, e.Name = config, []uint64{id}, name
		return e
	}
	b.Events = []perfbuild.Event{of(1, 11, "syscalls:sys_enter_read"), of(2, 12, "syscalls:sys_exit_read"),
		of(3, 13, "syscalls:sys_enter_write"), of(4, 14, "syscalls:sys_exit_write"),
		of(5, 15, "block:block_rq_issue"), of(6, 16, "block:block_rq_complete")}
	b.EventDesc()
	disk := "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n"
	b.TracingData("any", format(1, ""), format(2, ""), format(3, ""), format(4, ""), format(5, disk),
		format(6, disk))
	c := capture{b}
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	hit := func(time uint64, event int, tid int32, dev uint32, sector uint64) {
		raw := c.Order().AppendUint64(make([]byte, 8), 0)
		c.Order().(interface{ PutUint32([]byte, uint32) }).PutUint32(raw[8:], dev)
		c.Sample(perfbuild.Sample{Event: event, PID: 10, TID: tid, Time: time,
			Chain: []uint64{cK, 0xffffffff81000000 + uint64(tid)}, Raw: c.Order().AppendUint64(raw, sector)})
	}
	for _, h := range []struct {
		time   uint64
		event  int
		tid    int32
		dev    uint32
		sector uint64
	}{{1, 0, 11, 0, 0}, {2, 0, 12, 0, 0}, {3, 1, 12, 0, 0}, {4, 4, 11, 8, 100}, {5, 4, 11, 8, 200},
		{6, 2, 12, 0, 0}, {7, 5, 13, 8, 200}, {8, 5, 13, 9, 100}, {9, 5, 13, 8, 100}, {11, 1, 11, 0, 0},
		{12, 1, 12, 0, 0}, {15, 3, 12, 0, 0}, {16, 0, 11, 0, 0}, {20, 1, 13, 0, 0}} {
		hit(h.time, h.event, h.tid, h.dev, h.sector)
	}
	c.Fork(10, 10, 19, 11, perfbuild.At{Time: 17, PID: 10, TID: 11}) // it has no part in any pair
	// System calls of a thread that ends, and of one that executes a program.
	hit(21, 0, 14, 0, 0)
	c.Exit(10, 10, 14, 10, perfbuild.At{Time: 23, PID: 10, TID: 14})
	hit(24, 2, 15, 0, 0)
	c.Comm(10, 15, "t", false, perfbuild.At{})
	c.Comm(10, 10, "new", true, perfbuild.At{Time: 26, PID: 10, TID: 10})
	return c
}

func TestPairs(t *testing.T) {
	for _, tt := range []struct {
		spec     string
		want     []string
		warnings []string
	}{
		{spec: "syscalls", want: []string{"11 pair=read k11: 1 10", "12 pair=read k12: 1 1",
			"12 pair=write k12: 1 9"}, warnings: []string{"3 of 6 pairs (0.000 s) never returned, and are left out",
			"2 ends of pairs have no recorded start"}},
		{spec: "block", want: []string{"11 k11: 2 7"}, warnings: []string{"1 ends of pairs"}},
		{spec: "block:block_rq_issue,block:block_rq_complete:sector", want: []string{"11 k11: 2 6"},
			warnings: []string{"1 ends of pairs"}},
		{spec: "syscalls:sys_enter_read,syscalls:sys_enter_write", want: []string{"12 k12: 1 4"},
			warnings: []string{"1 of 4 pairs (0.000 s) are left out, as their end"}},
	} {
		for _, big := range []bool{false, true} {
			p := fold(t, pairCapture(big).Bytes(), Options{Selection: Selection{Event: ingest.PairEvent + tt.spec,
				Keep: ingest.Keep{TID: true}}})
			if got := waitLines(p); !slices.Equal(got, tt.want) {
				t.Errorf("%s:\n got %q\nwant %q", tt.spec, got, tt.want)
			}
			for _, want := range tt.warnings {
				if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
					return strings.Contains(w.Text, want)
				}) {
					t.Errorf("%s: no warning %q in %v", tt.spec, want, p.Stats.Warnings)
				}
			}
		}
	}
}

func TestDerivedErrors(t *testing.T) {
	plain := newCapture()
	plain.hit(7, 1, cU, 0x400010)
	noTimes := waitsCapture(false)
	for i := range noTimes.Events {
		noTimes.Events[i].SampleType &^= perfbuild.Time
	}
	killed := waitsCapture(false) // perf record had no time to write features
	killed.Killed = true
	for _, tt := range []struct {
		name, want, hint string
		c                capture
		opts             Options
	}{
		{name: "no switches", c: plain, opts: Options{Selection: Selection{Event: "off-cpu"}},
			want: "it has no samples of sched:sched_switch, of which off-cpu is made",
			hint: "perf record -a -g -e sched:sched_switch"},
		{name: "killed", c: killed, opts: Options{Selection: Selection{Event: "wall"}}, hint: "SIGINT",
			want: "its events tracepoint:91, tracepoint:92 have no names and no fields"},
		{name: "no clock", c: pairCapture(false), opts: Options{Selection: Selection{Event: "wall"}},
			want: "no samples of sched:sched_switch", hint: "-e cpu-clock,sched:sched_switch"},
		{name: "no pair", c: plain, opts: Options{Selection: Selection{Event: "pair:lock"}},
			want: "no samples of lock:contention_begin and lock:contention_end"},
		{name: "a bad pair", c: plain, opts: Options{Selection: Selection{Event: "pair:a"}}, want: `"a" is not a pair`},
		{name: "no key", c: pairCapture(false), opts: Options{
			Selection: Selection{Event: "pair:block:block_rq_issue,block:block_rq_complete:nr"}}, want: "no field nr"},
		{name: "no times", c: noTimes, opts: Options{Selection: Selection{Event: "off-cpu"}}, want: "its records have no times"},
		{name: "a weight", c: waitsCapture(false), opts: Options{Selection: Selection{Event: "off-cpu", Weight: "pid"}},
			want: "no weights of fields"},
		{name: "a label", c: plain, opts: Options{Selection: Selection{Keep: ingest.Keep{Tags: "state"}}},
			want: "its samples have no state", hint: "--event off-cpu"},
		{name: "neither", c: plain, opts: Options{Selection: Selection{Event: "offcpu"}}, want: `no event "offcpu" in it`},
	} {
		cp, err := openBytes(t, tt.c.Bytes(), tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		var hinted interface{ Hint() string }
		hint := ""
		_, err = cp.Profile(t.Context())
		if errors.As(err, &hinted) {
			hint = hinted.Hint()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(hint, tt.hint) {
			t.Errorf("%s: %v, hint %q", tt.name, err, hint)
		}
	}
}

// TestOffCPUOfPerf: samples of perf record --off-cpu, single waits and sums at the end of the file,
// are those of perf script, which exchanges process and thread of single waits, and knows nothing of
// the processes of sums, as they have ended.
func TestOffCPUOfPerf(t *testing.T) {
	const dir = "../../fixtures/waits/"
	want, sums := parseScript(gunzip(t, dir+"direct.script.gz")), 0
	for i := range want {
		w := &want[i]
		if w.event = ingest.OffCPUEvent; !strings.HasPrefix(w.comm, ":") {
			w.pid, w.tid = w.tid, w.pid
			continue
		}
		sums++
		w.comm, w.time, w.dsos = "waits", "", nil
	}
	c, err := Open(t.Context(), dir+"direct.data", Options{Selection: Selection{Event: ingest.OffCPUEvent}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	compareScript(t, c, want, 0)
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lasted := time.Duration(p.Meta.Duration)
	if e := p.Events[0]; e.Unit != "nanoseconds" || sums != 4 || lasted < time.Second/5 || lasted > time.Second {
		t.Errorf("event %v, %d sums, lasted %v", e, sums, lasted)
	}
}
