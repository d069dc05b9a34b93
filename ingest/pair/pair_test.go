package pair

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// play passes events to Threads, each "TIME EVENT TID [TID]", and returns the waits and runs. A CPU
// other than 0 follows the event: "EVENT@CPU".
func play(t *testing.T, x *Threads, events string) (lines []string) {
	t.Helper()
	x.Emit = func(w *Wait) {
		line := fmt.Sprintf("wait %d: %d-%d ready %d", w.Out.TID, w.Out.Time, w.In.Time, w.Ready)
		for _, f := range []struct {
			set  bool
			name string
		}{{w.CutStart, "cut-start"}, {w.In.Stack == NoStack, "cut-end"}, {w.New, "new"},
			{w.Out.Stack == NoStack, "no-stack"}} {
			if f.set {
				line += " " + f.name
			}
		}
		for _, s := range w.Wakers {
			line += fmt.Sprintf(" <%d", s.TID)
			if s.Interrupt {
				line += "!"
			}
			if s.Cycle {
				line += "*"
			}
		}
		lines = append(lines, line)
	}
	x.Run = func(from Point, to uint64) {
		lines = append(lines, fmt.Sprintf("run %d: %d-%d", from.TID, from.Time, to))
	}
	for _, text := range strings.Split(events, ";") {
		var time uint64
		var what string
		var tid, other int32
		if n, _ := fmt.Sscan(text, &time, &what, &tid, &other); n < 2 {
			t.Fatalf("%q", text)
		}
		what, cpu, _ := strings.Cut(what, "@")
		p := Point{Time: time, TID: tid, Stack: 1}
		if cpu != "" {
			if _, err := fmt.Sscan(cpu, &p.CPU); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
		switch what {
		case "out":
			x.Out(p, Blocked)
		case "preempt":
			x.Out(p, Preempted)
		case "dead":
			x.Out(p, Dead)
		case "in":
			x.In(p)
		case "again":
			x.Again(p)
		case "outagain":
			x.OutAgain(p, Blocked)
		case "ran":
			x.Ran(tid, time)
		case "wake": // tid wakes other
			x.Wake(Point{Time: time, TID: other}, p, false)
		case "irq":
			x.Wake(Point{Time: time, TID: other}, p, true)
		case "new":
			x.New(p)
		case "exit":
			x.Exit(p)
		case "rename": // tid goes on as other
			p.TID = other
			x.Rename(tid, p)
		case "end":
			x.Finish(time)
		}
	}
	return lines
}

func TestThreads(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   uint64
		losses []Span
		depth  int
		events string
		want   string // lines, joined by "; "
		waits  Stats
	}{
		{name: "a wait", from: 1, events: "5 out 7;9 in 7;12 out 7;20 end",
			want:  "run 7: 1-5; wait 7: 5-9 ready 0; run 7: 9-12; wait 7: 12-20 ready 0 cut-end",
			waits: Stats{Emitted: Sum{2, 12}, CutEnd: Sum{1, 8}}},
		{name: "preempted", events: "5 preempt 7;9 in 7", want: "run 7: 0-5; wait 7: 5-9 ready 5",
			waits: Stats{Emitted: Sum{1, 4}}},
		{name: "began before", from: 2, events: "9 in 7;12 end",
			want:  "wait 7: 2-9 ready 0 cut-start no-stack; run 7: 9-12",
			waits: Stats{Emitted: Sum{1, 7}, CutStart: Sum{1, 7}}},
		{name: "only woken", from: 2, events: "6 wake 8 7;9 end",
			want:  "wait 7: 2-9 ready 6 cut-start cut-end no-stack",
			waits: Stats{Emitted: Sum{1, 7}, CutStart: Sum{1, 7}, CutEnd: Sum{1, 7}}},
		{name: "the first waking counts", depth: 5, events: "1 out 7;2 wake 8 7;3 wake 9 7;4 in 7",
			want: "run 7: 0-1; wait 7: 1-4 ready 2 <8", waits: Stats{Emitted: Sum{1, 3}}},
		{name: "woken while it runs", depth: 5, events: "1 in 7;2 wake 8 7;3 out 7;4 in 7",
			want:  "wait 7: 0-1 ready 0 cut-start no-stack; run 7: 1-3; wait 7: 3-4 ready 0",
			waits: Stats{Emitted: Sum{2, 2}, CutStart: Sum{1, 1}}},
		{name: "lost while it waits", losses: []Span{{6, 7}}, events: "5 out 7;9 in 7;12 out 7",
			want: "run 7: 0-5; run 7: 9-12", waits: Stats{Lost: Sum{1, 4}}},
		{name: "lost before and after", losses: []Span{{6, 7}, {1, 3}, {2, 4}},
			events: "5 in 7;5 out 7;5 in 7;8 out 7;9 in 7",
			want:   "run 7: 5-5; wait 7: 5-5 ready 0; wait 7: 8-9 ready 0",
			waits:  Stats{Emitted: Sum{2, 1}, Lost: Sum{1, 5}}},
		{name: "its end was lost", losses: []Span{{6, 7}}, events: "5 out 7;9 out 7;10 in 7",
			want:  "run 7: 0-5; wait 7: 9-10 ready 0",
			waits: Stats{Emitted: Sum{1, 1}, Lost: Sum{1, 4}}},
		{name: "one process only", events: "5 out 7;9 out 7;11 out 7", want: "run 7: 0-5",
			waits: Stats{NoEnd: Sum{2, 6}}},
		{name: "two records of a switch", events: "1 out 7;2 in 7;2 again 7;3 outagain 7;4 outagain 7;4 again 7;5 end",
			want:  "run 7: 0-1; wait 7: 1-2 ready 0; run 7: 2-3; wait 7: 3-4 ready 0; run 7: 4-5",
			waits: Stats{Emitted: Sum{2, 2}}},
		{name: "seen running", events: "1 out 7;1 ran 7;3 ran 7;4 ran 7;9 out 7;11 in 7;12 ran 7;13 out 7",
			want:  "run 7: 0-1; wait 7: 9-11 ready 0; run 7: 11-13",
			waits: Stats{Emitted: Sum{1, 2}, NoEnd: Sum{1, 2}}},
		{name: "its switch-out was not recorded", events: "1 in 7;3 out 8;5 in 7;6 out 7",
			want:  "wait 7: 0-1 ready 0 cut-start no-stack; run 7: 5-6",
			waits: Stats{Emitted: Sum{1, 1}, CutStart: Sum{1, 1}, NoStart: Sum{1, 0}}},
		{name: "back", events: "5 out 7;3 in 7", want: "run 7: 0-5", waits: Stats{Back: Sum{1, 0}}},
		{name: "no start", events: "5 in 7;9 in 7",
			want:  "wait 7: 0-5 ready 0 cut-start no-stack",
			waits: Stats{Emitted: Sum{1, 5}, CutStart: Sum{1, 5}, NoStart: Sum{1, 0}}},
		{name: "the number reused", events: "1 in 7;3 dead 7;9 new 7;11 in 7;12 out 7;14 end",
			want: "wait 7: 0-1 ready 0 cut-start no-stack; run 7: 1-3; " +
				"wait 7: 9-11 ready 9 new no-stack; run 7: 11-12; wait 7: 12-14 ready 0 cut-end",
			waits: Stats{Emitted: Sum{3, 5}, CutStart: Sum{1, 1}, CutEnd: Sum{1, 2}}},
		{name: "reused unseen", events: "1 out 7;9 new 7;11 in 7",
			want:  "run 7: 0-1; wait 7: 9-11 ready 9 new no-stack",
			waits: Stats{Emitted: Sum{1, 2}, NoEnd: Sum{1, 8}}},
		{name: "dead, and again without a record", events: "1 dead 7;9 in 7;10 out 7;12 end",
			want:  "run 7: 0-1; run 7: 9-10; wait 7: 10-12 ready 0 cut-end",
			waits: Stats{Emitted: Sum{1, 2}, CutEnd: Sum{1, 2}}},
		{name: "dead, and runs the rest of its exit without a record", events: "1 dead 7;9 in 7;10 in 8;12 end",
			want:  "run 7: 0-1; run 7: 9-9; wait 8: 0-10 ready 0 cut-start no-stack; run 8: 10-12",
			waits: Stats{Emitted: Sum{1, 10}, CutStart: Sum{1, 10}}},
		{name: "records without the number of a dead thread",
			events: "1 out 8;1 in 7;2 exit 7;3 outagain -1;3 in@1 9;4 again@1 -1;5 again 8;9 end",
			want: "run 8: 0-1; wait 7: 0-1 ready 0 cut-start no-stack; wait 9: 0-3 ready 0 cut-start no-stack; " +
				"run 7: 1-2; wait 8: 1-5 ready 0; run 8: 5-9; run 9: 3-9",
			waits: Stats{Emitted: Sum{3, 8}, CutStart: Sum{2, 4}}},
		{name: "the second record of the last switch", events: "1 in 7;3 dead 7;3 outagain 7;9 in 8;12 end",
			want: "wait 7: 0-1 ready 0 cut-start no-stack; run 7: 1-3; " +
				"wait 8: 0-9 ready 0 cut-start no-stack; run 8: 9-12",
			waits: Stats{Emitted: Sum{2, 10}, CutStart: Sum{2, 10}}},
		{name: "the idle thread", events: "1 out 0;2 in 0;3 wake 7 0;4 new 0;9 end"},
		{name: "a chain of wakers", depth: 3,
			events: "1 out@7 7;2 out@8 8;3 out@9 9;4 irq 5 9;5 in@9 9;6 wake 9 8;7 in@8 8;8 wake 8 7;9 in@7 7",
			want: "run 7: 0-1; run 8: 0-2; run 9: 0-3; wait 9: 3-5 ready 4 <5!; " +
				"wait 8: 2-7 ready 6 <9 <5!; wait 7: 1-9 ready 8 <8 <9 <5!",
			waits: Stats{Emitted: Sum{3, 15}}},
		{name: "limited", depth: 2,
			events: "1 out@7 7;2 out@8 8;3 out@9 9;4 irq 5 9;5 in@9 9;6 wake 9 8;7 in@8 8;8 wake 8 7;9 in@7 7",
			want: "run 7: 0-1; run 8: 0-2; run 9: 0-3; wait 9: 3-5 ready 4 <5!; " +
				"wait 8: 2-7 ready 6 <9 <5!; wait 7: 1-9 ready 8 <8 <9",
			waits: Stats{Emitted: Sum{3, 15}}},
		{name: "the waker was woken before", depth: 5,
			events: "1 out 8;2 wake 9 8;3 in 8;4 out 7;5 wake 8 7;6 in 7",
			want:   "run 8: 0-1; wait 8: 1-3 ready 2 <9; wait 7: 4-6 ready 5 <8",
			waits:  Stats{Emitted: Sum{2, 4}}},
		{name: "a cycle", depth: 5,
			events: "1 out@7 7;2 out@8 8;3 out@9 9;4 wake 8 9;5 in@9 9;6 wake 9 8;7 in@8 8;8 wake 8 7;9 in@7 7",
			want: "run 7: 0-1; run 8: 0-2; run 9: 0-3; wait 9: 3-5 ready 4 <8; " +
				"wait 8: 2-7 ready 6 <9 <8*; wait 7: 1-9 ready 8 <8 <9 <8*",
			waits: Stats{Emitted: Sum{3, 15}}},
		{name: "the waker was preempted meanwhile", depth: 5,
			events: "1 out@7 7;2 out@8 8;3 wake 9 8;4 in@8 8;5 preempt@8 8;6 in@8 8;7 wake 8 7;8 in@7 7",
			want: "run 7: 0-1; run 8: 0-2; wait 8: 2-4 ready 3 <9; run 8: 4-5; wait 8: 5-6 ready 5; " +
				"wait 7: 1-8 ready 7 <8 <9", waits: Stats{Emitted: Sum{3, 10}}},
		{name: "an exit, and then another thread", events: "1 in 7;3 exit 7;9 in 8;12 end",
			want: "wait 7: 0-1 ready 0 cut-start no-stack; run 7: 1-3; " +
				"wait 8: 0-9 ready 0 cut-start no-stack; run 8: 9-12",
			waits: Stats{Emitted: Sum{2, 10}, CutStart: Sum{2, 10}}},
		{name: "an exit, and nothing more", events: "1 in 7;3 exit 7;9 end",
			want:  "wait 7: 0-1 ready 0 cut-start no-stack; run 7: 1-3",
			waits: Stats{Emitted: Sum{1, 1}, CutStart: Sum{1, 1}}},
		{name: "an exit, and the last switch-out", events: "1 in 7;3 exit 7;5 out 7;8 in 7;9 dead 7;12 in 0;14 end",
			want:  "wait 7: 0-1 ready 0 cut-start no-stack; run 7: 1-5; wait 7: 5-8 ready 0; run 7: 8-9",
			waits: Stats{Emitted: Sum{2, 4}, CutStart: Sum{1, 1}}},
		{name: "the exit of a thread that always ran", events: "3 exit 7;12 end", want: "run 7: 0-3"},
		{name: "the exit of a thread that waits", events: "1 out 7;3 exit 7;5 new 7;6 in 7;12 end",
			want:  "run 7: 0-1; wait 7: 5-6 ready 5 new no-stack; run 7: 6-12",
			waits: Stats{Emitted: Sum{1, 1}, NoEnd: Sum{1, 2}}},
		{name: "an exit, and the number again", events: "1 in 7;3 exit 7;5 new 7;6 in@1 7;12 end",
			want: "wait 7: 0-1 ready 0 cut-start no-stack; run 7: 1-3; " +
				"wait 7: 5-6 ready 5 new no-stack; run 7: 6-12",
			waits: Stats{Emitted: Sum{2, 2}, CutStart: Sum{1, 1}}},
		{name: "a switch-in ends the run of the thread before", events: "1 in 7;5 in 8;9 end",
			want: "wait 7: 0-1 ready 0 cut-start no-stack; wait 8: 0-5 ready 0 cut-start no-stack; " +
				"run 8: 5-9",
			waits: Stats{Emitted: Sum{2, 6}, CutStart: Sum{2, 6}}},
		{name: "it stops on another CPU", events: "1 in 7;5 out@1 7;9 end",
			want:  "wait 7: 0-1 ready 0 cut-start no-stack; wait 7: 5-9 ready 0 cut-end",
			waits: Stats{Emitted: Sum{2, 5}, CutStart: Sum{1, 1}, CutEnd: Sum{1, 4}}},
		{name: "a thread executes a program as its process",
			events: "1 in 7;2 in@1 8;3 exit 7;5 rename@1 8 7;9 out@1 7;12 end",
			want: "wait 7: 0-1 ready 0 cut-start no-stack; wait 8: 0-2 ready 0 cut-start no-stack; " +
				"run 8: 2-5; run 7: 1-3; run 7: 5-9; wait 7: 9-12 ready 0 cut-end",
			waits: Stats{Emitted: Sum{3, 6}, CutStart: Sum{2, 3}, CutEnd: Sum{1, 3}}},
		{name: "two records of a switch from the idle thread",
			events: "1 out 7;1 in 0;5 out 0;5 in 7;6 outagain 0;7 again 7;9 out 7;9 in 0;10 outagain 7;11 again 0;12 end",
			want:   "run 7: 0-1; wait 7: 1-5 ready 0; run 7: 5-9; wait 7: 9-12 ready 0 cut-end",
			waits:  Stats{Emitted: Sum{2, 7}, CutEnd: Sum{1, 3}}},
		{name: "the idle thread stops, and its start was not recorded",
			events: "1 out 0;1 in 7;2 outagain 0;3 again 7;9 outagain 0;10 again 8;12 end",
			want:   "wait 7: 0-1 ready 0 cut-start no-stack; wait 8: 0-10 ready 0 cut-start no-stack; run 8: 10-12",
			waits:  Stats{Emitted: Sum{2, 11}, CutStart: Sum{2, 11}}},
		{name: "woken by an interrupt of the idle thread", depth: 5,
			events: "1 out 7;2 wake 0 7;3 in 7", want: "run 7: 0-1; wait 7: 1-3 ready 2 <0!",
			waits: Stats{Emitted: Sum{1, 2}}},
	} {
		x := Threads{From: tt.from, Losses: NewLosses(tt.losses), WakerDepth: tt.depth}
		if got := strings.Join(play(t, &x, tt.events), "; "); got != tt.want || x.Waits != tt.waits {
			t.Errorf("%s:\n got %s\nwant %s\n got %+v\nwant %+v", tt.name, got, tt.want, x.Waits, tt.waits)
		}
	}
}

func TestTable(t *testing.T) {
	var lines []string
	x := Table{Losses: NewLosses([]Span{{20, 30}}), OfThreads: true, Emit: func(start Point, end uint64) {
		lines = append(lines, fmt.Sprintf("%d: %d-%d", start.TID, start.Time, end))
	}}
	a, b, c := Key{1, 1}, Key{1, 2}, Key{2, 1}
	x.Start(a, Point{Time: 1, TID: 1})
	x.Start(b, Point{Time: 2, TID: 2})
	x.End(c, 3)
	x.End(a, 4)
	x.Start(b, Point{Time: 5, TID: 3})
	x.End(b, 3)
	x.Start(a, Point{Time: 19, TID: 4})
	x.End(a, 31)
	x.Start(a, Point{Time: 18, TID: 5})
	x.Start(a, Point{Time: 41, TID: 6})
	x.Start(b, Point{Time: 40, TID: 7})
	x.Start(c, Point{Time: 25, TID: 8})
	d := Key{2, 2}
	x.Start(d, Point{Time: 42, TID: 9})
	x.Exit(9, 44)
	x.End(d, 45)
	x.Start(d, Point{Time: 46, TID: 9})
	x.End(d, 47)
	x.Exit(9, 48)
	x.Exit(8, 49)
	x.Finish(50)
	want := []string{"1: 1-4", "9: 46-47"} // no open one
	stats := Stats{Emitted: Sum{2, 4}, Open: Sum{2, 19}, Lost: Sum{3, 59}, NoStart: Sum{2, 0},
		NoEnd: Sum{1, 3}, Back: Sum{1, 0}, Ended: Sum{1, 2}}
	if !slices.Equal(lines, want) || x.Stats != stats {
		t.Errorf("%q, want %q\n%+v, want\n%+v", lines, want, x.Stats, stats)
	}
}

func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events string // times; "|" ends a round
		want   string
		late   uint64
	}{
		{name: "two buffers", events: "1 4 2 3 | 6 5 |", want: "1 2 3 4 5 6"},
		{name: "late", events: "5 | 6 | 4 7 |", want: "5 4 6 7", late: 1},
		{name: "no rounds", events: "3 1 2", want: "1 2 3"},
	} {
		var got []string
		w := Window[int]{Emit: func(time uint64, _ int) error {
			got = append(got, fmt.Sprint(time))
			return nil
		}}
		for i, word := range strings.Fields(tt.events) {
			var time uint64
			if _, err := fmt.Sscan(word, &time); err != nil {
				_ = w.Round()
				continue
			}
			_ = w.Add(time, i)
		}
		_ = w.Rest()
		if s := strings.Join(got, " "); s != tt.want || w.Late != tt.late {
			t.Errorf("%s: %s, late %d", tt.name, s, w.Late)
		}
	}
}

// TestWindowRounds: with rounds as perf makes them every event comes once and in order, and no more
// than two rounds are kept.
func TestWindowRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	type event struct {
		time uint64
		at   int64
	}
	var got, all []event
	w := Window[event]{Emit: func(_ uint64, e event) error {
		got = append(got, e)
		return nil
	}}
	const perRound = 400
	for round := range uint64(50) {
		for cpu := range uint64(4) { // read one after the other, each a little later
			at := round * 1000
			for range perRound / 4 {
				at += rng.Uint64N(10)
				e := event{at + cpu*40, int64(len(all))}
				all = append(all, e)
				_ = w.Add(e.time, e)
			}
		}
		_ = w.Round()
		if len(w.pending) > 2*perRound {
			t.Fatalf("%d events are kept", len(w.pending))
		}
	}
	_ = w.Rest()
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.time, b.time) })
	if !slices.Equal(got, all) {
		t.Error("the events are not those that came, in order of time")
	}
}

// TestWindowBound: a recording without rounds is emitted before its end, and disorder within the
// window is sorted.
func TestWindowBound(t *testing.T) {
	last, emitted := uint64(0), 0
	w := Window[struct{}]{Emit: func(time uint64, _ struct{}) error {
		if time < last {
			t.Fatalf("%d after %d", time, last)
		}
		last = time
		emitted++
		return nil
	}}
	for i := range uint64(3 * maxPending) {
		_ = w.Add(i^511, struct{}{})
	}
	if emitted < maxPending || len(w.pending) >= maxPending {
		t.Errorf("%d emitted, %d pending", emitted, len(w.pending))
	}
	if err := w.Rest(); err != nil || emitted != 3*maxPending || w.Late != 0 {
		t.Errorf("%d emitted, %d late", emitted, w.Late)
	}
}
