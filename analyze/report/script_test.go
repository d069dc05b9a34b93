package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

var sampleID = buildid.New(bytes.Repeat([]byte{1}, 20))

// replayOf replays the folded rows of a profile as one sample each, as if every
// object were loaded at 1 MiB.
func replayOf(p *ingest.Profile) func(func(*ingest.ReplaySample) error) error {
	return func(visit func(*ingest.ReplaySample) error) error {
		for i, s := range p.Samples {
			r := ingest.ReplaySample{Event: s.Event, Comm: p.Strings[s.Comm], PID: s.PID,
				TID:  s.PID,
				Time: uint64(i)*1_000_000_007 + 5_999, Period: s.Weight}
			for k, l := range p.Stack(s.Stack) {
				pc := addr.PC(p.Locations[l].Offset) + 1<<20
				if k > 0 {
					pc++ // a return address
				}
				r.Frames = append(r.Frames, ingest.ReplayFrame{PC: pc, Location: l})
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
	golden(t, "chains.script", func(w io.Writer) error {
		return Script(w, p, replayOf(p),
			ScriptOptions{})
	})
	golden(t, "flat.script", func(w io.Writer) error {
		return Script(w, p, replayOf(p), ScriptOptions{Chains: []bool{false, true},
			Demangler: NewDemangler(None)})
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
	replay := func(visit func(*ingest.ReplaySample) error) error {
		r := ingest.ReplaySample{Comm: "perf-exec", PID: 10304, TID: 10304, Time: 1061_980_973_999}
		for i, l := range p.Stack(0) {
			r.Frames = append(r.Frames, ingest.ReplayFrame{PC: pcs[i], Location: l})
		}
		if err := visit(&r); err != nil {
			return err
		}
		return visit(&ingest.ReplaySample{Comm: "swapper", Time: 5_000})
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
