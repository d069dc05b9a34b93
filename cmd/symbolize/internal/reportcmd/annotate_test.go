package reportcmd

import (
	"testing"

	"symbolize/analyze/code"
	"symbolize/analyze/report"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

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
