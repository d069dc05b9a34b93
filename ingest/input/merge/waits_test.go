package merge_test

import (
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/merge"
)

// TestTrimWaits: the stack of a wait begins at the function that waited, and of each waker above it
// the part begins at the function that woke. In the test's stacks, leaf first, k: is a function of
// the kernel, "between" a frame below a waker; ^ is a stack of a thread that runs.
func TestTrimWaits(t *testing.T) {
	const waiter = " k:__schedule.constprop.0 k:schedule k:do_nanosleep k:schedule main"
	for _, tc := range []struct{ name, stack, want string }{
		{name: "waits", stack: waiter[1:], want: "k:do_nanosleep k:schedule main"},
		{name: "with its tracepoint", stack: "k:perf_trace_sched_switch" + waiter,
			want: "k:do_nanosleep k:schedule main"},
		{name: "runs", stack: "^" + waiter[1:], want: waiter[1:]},
		{name: "the same name in a program", stack: "schedule k:read", want: "schedule k:read"},
		{name: "no name", stack: "k:schedule k: k:schedule main", want: "k: k:schedule main"},
		{name: "nothing else", stack: "k:__schedule k:schedule", want: "k:__schedule k:schedule"},
		{name: "woken", stack: "main k:try_to_wake_up k:wake_up_q k:try_to_wake_up k:wake_up_process " +
			"k:__traceiter_sched_waking between" + waiter,
			want: "main k:try_to_wake_up k:wake_up_q between k:do_nanosleep k:schedule main"},
		{name: "woken by a woken thread", stack: "k:schedule main k:wake_up_q k:try_to_wake_up between " +
			"thread k:wake_up_q k:try_to_wake_up between" + waiter,
			want: "k:schedule main k:wake_up_q between thread k:wake_up_q between k:do_nanosleep k:schedule main"},
		{name: "no stack of the waker", stack: "between" + waiter,
			want: "between k:do_nanosleep k:schedule main"},
		{name: "nothing but wakes", stack: "k:try_to_wake_up between k:schedule",
			want: "k:try_to_wake_up between k:schedule"},
		{name: "a waiter that wakes", stack: "main k:wake_up_q between k:schedule k:try_to_wake_up k:wake_up_q",
			want: "main k:wake_up_q between k:try_to_wake_up k:wake_up_q"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stack, runs := strings.CutPrefix(tc.stack, "^")
			p := waitProfile(runs, stack, "main")
			merge.TrimWaits(p)
			for _, again := range []string{"", " again"} {
				got := ""
				for i := range p.Samples {
					if text := waitStack(p, p.Samples[i].Stack); text != "main" {
						got = text
					}
				}
				if got != tc.want || len(p.Samples) != 2 {
					t.Errorf("%s, %d samples%s; want %s", got, len(p.Samples), again, tc.want)
				}
				merge.TrimWaits(p)
			}
		})
	}
}

// TestTrimWaitsJoins: stacks that differ only in the scheduler's functions are one.
func TestTrimWaitsJoins(t *testing.T) {
	p := waitProfile(false, "k:schedule k:read main", "k:read main", "k:__schedule k:schedule k:read main",
		"main")
	merge.TrimWaits(p)
	if len(p.Samples) != 2 || p.Samples[1].Count != 3 || p.Samples[1].Weight != 3 || len(p.Callers) != 3 {
		t.Errorf("samples %v of stacks %v", p.Samples, p.Callers)
	}
}

// waitProfile returns a profile with a sample of each stack.
func waitProfile(runs bool, stacks ...string) *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock())
	kernel := b.Object(ingest.Object{Kind: ingest.Kernel})
	program := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/a"}})
	between := b.Object(ingest.Object{File: ingest.FileRef{Path: ingest.WakersPath}})
	offsets := make(map[string]addr.Offset)
	place := func(text string) profilebuild.Place {
		if offsets[text] == 0 {
			offsets[text] = addr.Offset(1 + len(offsets))
		}
		pl := profilebuild.Place{Object: program, Offset: offsets[text]}
		name, inKernel := strings.CutPrefix(text, "k:")
		switch {
		case inKernel:
			pl.Object = kernel
		case text == "between":
			pl.Object = between
		}
		if name != "" {
			b.Name(pl, 0, profilebuild.Frame{Name: name})
		}
		return pl
	}
	for _, stack := range stacks {
		row := profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1}
		for name := range strings.FieldsSeq(stack) {
			row.Stack = append(row.Stack, place(name))
		}
		b.Row(row)
	}
	p := b.Profile()
	state := "S"
	if runs {
		state = ingest.RunningState
	}
	p.Strings = append(p.Strings, ingest.JoinTags(ingest.StateTag, state))
	for i := range p.Samples {
		p.Samples[i].Tags = ingest.StringID(len(p.Strings) - 1)
	}
	return p
}

// waitStack returns a stack as in TestTrimWaits.
func waitStack(p *ingest.Profile, s ingest.StackID) string {
	var names []string
	for l := range p.Frames(s) {
		name := ""
		if f := p.Names.At(l); len(f) > 0 {
			name = p.Names.Functions[f[0].Func].SystemName
		}
		if p.Objects[p.Locations[l].Object].Kind == ingest.Kernel {
			name = "k:" + name
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
