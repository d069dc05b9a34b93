package report

import (
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// TestAdvice: warnings come by their shares of the samples, and only from half a percent on.
func TestAdvice(t *testing.T) {
	for _, tt := range []struct { // numbers of samples
		alone, unnamed, made uint64 // of 1,000 samples
		want                 string
	}{
		{want: ""},
		{alone: 400, unnamed: 50, made: 100, want: "have no stack, without a name, as fun_1234"},
		{alone: 310, unnamed: 550, want: "without a name, have no stack"},
		{made: 5, want: "as fun_1234"},
		{made: 4, unnamed: 4, want: ""},
	} {
		b := profilebuild.New(profilebuild.Clock())
		place := func(path string, name string) profilebuild.Place {
			pl := profilebuild.Place{Object: b.Object(ingest.Object{File: ingest.FileRef{Path: path}}),
				Offset: addr.Offset(4)}
			if name != "" {
				b.Name(pl, 4, profilebuild.Frame{Name: name})
			}
			return pl
		}
		main := place("/bin/app", "main")
		row := func(n uint64, stack ...profilebuild.Place) {
			if n > 0 {
				b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: n, Weight: n, Stack: stack})
			}
		}
		row(tt.alone, main)
		row(tt.unnamed, place("/lib/a.so", ""), main)
		row(tt.made, place("/lib/b.so", "fun_1234"), main)
		row(1000-tt.alone-tt.unnamed-tt.made, place("/bin/app", "work"), main)
		p := b.Profile()
		for l := range p.Names.Reasons {
			if frames := p.Names.At(ingest.LocationID(l)); len(frames) > 0 &&
				p.Names.Functions[frames[0].Func].SystemName == "fun_1234" {
				p.Names.Reasons[l] = ingest.Stripped
			}
		}
		var got []string
		for _, w := range Advice(p) {
			for _, words := range []string{"have no stack", "without a name", "as fun_1234"} {
				if strings.Contains(w.Text, words) {
					got = append(got, words)
				}
			}
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%+v: %q, want %q", tt, text, tt.want)
		}
	}
}
