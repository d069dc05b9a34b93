package main

import (
	"os"
	"strings"
	"testing"

	"symbolize/analyze/code"
	"symbolize/analyze/report"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// TestCaptureArgs: the first argument is a capture, and so are those behind it that are
// files, up to the first that is none.
func TestCaptureArgs(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.data", "b.data"} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("main", 0o777); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{"": 0, "x": 1, "x a.data": 2, "a.data b.data main": 2,
		"a.data main b.data": 1, "a.data": 1} {
		if got := cli.CaptureArgs(strings.Fields(args)); got != want {
			t.Errorf("%q: %d captures, want %d", args, got, want)
		}
	}
}

// TestInlined: a pattern that means an inlined function leads to the one with its code.
func TestInlined(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	place := profilebuild.Place{Object: b.Object(ingest.Object{})}
	b.Name(place, 0, profilebuild.Frame{Name: "_ZN1a4leafEv", Inlined: true},
		profilebuild.Frame{Name: "middle", Inlined: true}, profilebuild.Frame{Name: "outer"})
	b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
		Stack: []profilebuild.Place{place}})
	for text, want := range map[string][2]string{"middle": {"middle", "outer"},
		"a::leaf": {"_ZN1a4leafEv", "outer"}, "outer": {}, "other": {}} {
		p, err := code.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		o := &annotateOptions{patterns: []code.Pattern{p}}
		inner, outer := o.inlined(b.Profile(), report.NewDemangler(report.Simple))
		if got := [2]string{inner, outer}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
