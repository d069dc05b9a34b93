package advice

import (
	"bytes"
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// TestUncalled counts callers at first bytes of functions, which no call returns to.
func TestUncalled(t *testing.T) {
	for _, tc := range []struct {
		name  string
		stack []string // leaf first; a leading "+" is inside of the function, "k:" in the kernel
		stats ingest.Stats
		want  uint64
	}{
		{name: "a word that was taken for a return address", stack: []string{"+leaf", "dtors"}, want: 1},
		{name: "behind a rubbish address", stack: []string{"+leaf", "?", "thunk"}, want: 1},
		{name: "two", stack: []string{"+leaf", "dtors", "thunk"}, want: 2},
		{name: "calls", stack: []string{"+leaf", "+main", "+_start"}},
		{name: "the sampled place", stack: []string{"leaf", "+main"}},
		{name: "where the kernel came", stack: []string{"k:+irq", "leaf", "+main"}},
		{name: "a kernel function", stack: []string{"k:+irq", "k:pfx"}},
		{name: "a signal handler's return", stack: []string{"+handler", "__restore_rt", "+main"}},
		{name: "where a signal came", stack: []string{"+handler", "__restore_rt", "leaf", "+main"}},
		{name: "Go's outermost", stack: []string{"+main.main", "+runtime.main", "runtime.goexit.abi0"}},
		{name: "glibc's outermost of a context", stack: []string{"+run", "__start_context"}},
		{name: "names of a pprof file", stack: []string{"+leaf", "main"},
			stats: ingest.Stats{NoStarts: true}},
		{name: "places of calls", stack: []string{"+leaf", "main"},
			stats: ingest.Stats{NoReturns: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := profilebuild.New(profilebuild.Clock())
			b.Stats = tc.stats
			b.Row(profilebuild.Row{Count: 1, Weight: 10, Stack: namedPlaces(b, tc.stack)})
			b.Row(profilebuild.Row{Count: 3, Weight: 30, Stack: namedPlaces(b, []string{"+leaf"})})
			p := b.Profile()
			got := Uncalled{}
			if u := NewCoverage(p, CoverageOptions{}).Uncalled; u != nil {
				got = *u
			}
			if got.Frames != tc.want || got.Samples != min(tc.want, 1) {
				t.Errorf("%+v, want %d frames", got, tc.want)
			}
			warned := ""
			for _, w := range Warnings(p, false) {
				if strings.Contains(w.Text, "called nothing") {
					warned = w.Text
				}
			}
			if (tc.want > 0) != strings.HasPrefix(warned, "25.00% of the samples") {
				t.Errorf("warning %q", warned)
			}
		})
	}
}

// TestUncalledText has the counts in the summary, the table and JSON.
func TestUncalledText(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	b.Row(profilebuild.Row{Count: 1, Weight: 10, Stack: namedPlaces(b, []string{"+leaf", "dtors"})})
	b.Row(profilebuild.Row{Count: 999, Weight: 9990, Stack: namedPlaces(b, []string{"+leaf", "+main"})})
	p := b.Profile()
	c := NewCoverage(p, CoverageOptions{})
	var summary, table, asJSON bytes.Buffer
	if c.WriteSummary(&summary) != nil || c.WriteMissing(&table) != nil ||
		c.WriteMissingJSON(&asJSON) != nil {
		t.Fatal("cannot write")
	}
	for _, tc := range []struct{ name, text, want string }{
		{"summary", summary.String(), "losses     1 frame that no call led to (0.05%)\n"},
		{"missing", table.String(), "callers: 1 frame that no call led to (0.05%)"},
		{"JSON", strings.Join(strings.Fields(asJSON.String()), " "),
			`"uncalled": { "frames": 1, "frames_percent": 0.05, "samples": 1,`},
	} {
		if !strings.Contains(tc.text, tc.want) {
			t.Errorf("%s: no %q in:\n%s", tc.name, tc.want, tc.text)
		}
	}
	for _, w := range Warnings(p, false) {
		t.Errorf("few frames are warned about: %s", w.Text)
	}
}

// namedPlaces returns the places of functions by their names, as TestUncalled writes them.
func namedPlaces(b *profilebuild.Builder, stack []string) (places []profilebuild.Place) {
	for _, text := range stack {
		o := ingest.Object{File: ingest.FileRef{Path: "/bin/" + text}}
		if text == "?" {
			pl := profilebuild.Place{Object: b.Object(ingest.Object{Kind: ingest.Unmapped})}
			b.Unresolved(pl, ingest.OutsideMapping)
			places = append(places, pl)
			continue
		}
		name, kernel := strings.CutPrefix(text, "k:")
		if kernel {
			o.Kind, o.RefSymbol = ingest.Kernel, "_text"
		}
		name, inside := strings.CutPrefix(name, "+")
		pl := profilebuild.Place{Object: b.Object(o), Offset: 0x100}
		if inside {
			pl.Offset += 5
		}
		b.Name(pl, uint64(pl.Offset-0x100), profilebuild.Frame{Name: name})
		places = append(places, pl)
	}
	return places
}
