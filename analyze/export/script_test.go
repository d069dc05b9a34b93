package export

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"symbolize/analyze/demangle"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
)

// replayOf replays the folded rows of a profile as one sample each, as if every object were loaded
// at 1 MiB.
func replayOf(p *ingest.Profile) func(func(*input.ReplaySample) error) error {
	return func(visit func(*input.ReplaySample) error) error {
		for i, s := range p.Samples {
			r := input.ReplaySample{Event: s.Event, Comm: p.Strings[s.Comm], PID: s.PID,
				TID:  s.PID,
				Time: uint64(i)*1_000_000_007 + 5_999, Period: s.Weight}
			for k, l := range p.Stack(nil, s.Stack) {
				pc := addr.PC(p.Locations[l].Offset) + 1<<20
				if k > 0 {
					pc++ // a return address
				}
				r.Frames = append(r.Frames, input.ReplayFrame{PC: pc, Location: l, Return: k > 0})
			}
			if err := visit(&r); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestScriptGolden(t *testing.T) {
	p := profilebuild.EveryKind()
	golden.Text(t, "chains.script", func(w io.Writer) error {
		return Script(w, p, replayOf(p),
			ScriptOptions{})
	})
	golden.Text(t, "flat.script", func(w io.Writer) error {
		return Script(w, p, replayOf(p), ScriptOptions{Chains: []bool{false, true},
			Demangler: demangle.New(demangle.None)})
	})
}

// TestScriptLayout holds lines that perf 6.1 printed, character by character.
func TestScriptLayout(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	kernel := b.Object(ingest.Object{Kind: ingest.Kernel, RefSymbol: "_text",
		File: ingest.FileRef{Path: "[kernel.kallsyms]"}})
	libc := b.Object(ingest.Object{File: ingest.FileRef{Path: "/usr/lib/x86_64-linux-gnu/libc.so.6"}})
	perf := b.Object(ingest.Object{File: ingest.FileRef{Path: "/usr/bin/perf"}})
	lost := b.Object(ingest.Object{Kind: ingest.Unmapped,
		File: ingest.FileRef{Path: ingest.UnmappedPath}})
	anon := b.Object(ingest.Object{Kind: ingest.Anonymous, File: ingest.FileRef{Path: "//anon"}})
	at := func(o profilebuild.Object, off addr.Offset) profilebuild.Place {
		return profilebuild.Place{Object: o, Offset: off}
	}
	stack := []profilebuild.Place{at(kernel, 0x6cca02), at(kernel, 0x6d0657), at(libc, 0xd4ad7),
		at(perf, 0x149ce2), at(lost, 0), at(anon, 0)}
	b.Row(profilebuild.Row{Comm: "perf-exec", PID: 10304, Count: 1, Weight: 1, Stack: stack})
	b.Name(stack[0], 0x102, profilebuild.Frame{Name: "path_init"})
	b.Name(stack[1], 0x77, profilebuild.Frame{Name: "path_openat"})
	b.Name(stack[2], 7, profilebuild.Frame{Name: "__GI___execve"})
	p := b.Profile()
	pcs := []addr.PC{0xffffffff816cca02, 0xffffffff816d0658, 0x7f0000000000 + 0xd4ad7,
		0x550000000000 + 0x149ce3, 0x1234567, 0x7f12}
	replay := func(visit func(*input.ReplaySample) error) error {
		r := input.ReplaySample{Comm: "perf-exec", PID: 10304, TID: 10304, Time: 1061_980_973_999}
		for i, l := range p.Stack(nil, p.Samples[0].Stack) {
			r.Frames = append(r.Frames, input.ReplayFrame{PC: pcs[i], Location: l,
				Return: i == 1 || i == 3})
		}
		if err := visit(&r); err != nil {
			return err
		}
		return visit(&input.ReplaySample{Comm: "swapper", Time: 5_000})
	}
	var got strings.Builder
	if err := Script(&got, p, replay, ScriptOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `perf-exec 10304/10304  1061.980973: cpu-clock: 
	ffffffff816cca02 path_init+0x102 ([kernel.kallsyms])
	ffffffff816d0658 path_openat+0x78 ([kernel.kallsyms])
	           d4ad7 __GI___execve+0x7 (/usr/lib/x86_64-linux-gnu/libc.so.6)
	          149ce3 [unknown] (/usr/bin/perf)
	         1234567 [unknown] ([unknown])
	            7f12 [unknown] (/tmp/perf-10304.map)

swapper     0/0         0.000005: cpu-clock: 

`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// TestScriptNumbers compares every number with fmt, by the formats in perf's sources
// (perf_sample__fprintf_start, sample__fprintf_callchain).
func TestScriptNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	b := profilebuild.New(profilebuild.Clock())
	kernel := b.Object(ingest.Object{Kind: ingest.Kernel,
		File: ingest.FileRef{Path: "[kernel.kallsyms]"}})
	pl := profilebuild.Place{Object: kernel, Offset: 0x100}
	b.Row(profilebuild.Row{Count: 1, Weight: 1, Stack: []profilebuild.Place{pl}})
	p := b.Profile()
	for range 2000 {
		r := input.ReplaySample{Comm: strings.Repeat("c", rng.IntN(18)),
			PID: int32(rng.Uint32() >> rng.IntN(32)),
			TID: rng.Int32N(1 << rng.IntN(31)), Time: rng.Uint64() >> rng.IntN(64),
			Frames: []input.ReplayFrame{{PC: addr.PC(rng.Uint64() >> rng.IntN(64))}}}
		pc := r.Frames[0].PC
		start := fmt.Sprintf("%5d/%-5d %12s: cpu-clock: ", r.PID, r.TID,
			fmt.Sprintf("%d.%06d", r.Time/1e9, r.Time%1e9/1e3))
		for _, chain := range []bool{true, false} {
			want := fmt.Sprintf("%s %s\n\t%16x [unknown] ([kernel.kallsyms])\n\n", r.Comm, start,
				uint64(pc))
			if !chain {
				want = fmt.Sprintf("%16s %s %16x [unknown] ([kernel.kallsyms])\n", r.Comm, start,
					uint64(pc))
			}
			var got strings.Builder
			replay := func(visit func(*input.ReplaySample) error) error { return visit(&r) }
			if err := Script(&got, p, replay, ScriptOptions{Chains: []bool{chain}}); err != nil {
				t.Fatal(err)
			}
			if got.String() != want {
				t.Fatalf("got\n%q\nwant\n%q", got.String(), want)
			}
		}
	}
}

// TestScriptStops: an error of the replay, or of the callback, ends it.
func TestScriptStops(t *testing.T) {
	p := profilebuild.EveryKind()
	replay := func(func(*input.ReplaySample) error) error { return io.ErrUnexpectedEOF }
	if err := Script(io.Discard, p, replay, ScriptOptions{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	p.Names = nil
	var out strings.Builder
	if err := Script(&out, p, replayOf(p), ScriptOptions{}); err != nil ||
		strings.Contains(out.String(), "memcpy") {
		t.Errorf("without names: %v\n%s", err, out.String())
	}
}

func BenchmarkScript(b *testing.B) {
	p := profilebuild.Random(1, profilebuild.Size{Objects: 50, Functions: 2000, Locations: 20_000,
		Stacks: 20_000, Depth: 11})
	replay := replayOf(p)
	var size countingWriter
	if err := Script(&size, p, replay, ScriptOptions{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		if err := Script(io.Discard, p, replay, ScriptOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

type countingWriter int

func (w *countingWriter) Write(b []byte) (int, error) {
	*w += countingWriter(len(b))
	return len(b), nil
}
