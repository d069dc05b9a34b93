package flame_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/analyze/flame"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// formats are the forms of a graph besides the page.
var formats = []struct {
	name  string
	write func(*flame.Graph, io.Writer) error
}{
	{name: "svg", write: (*flame.Graph).WriteSVG},
	{name: "speedscope.json", write: (*flame.Graph).WriteSpeedscope}, {name: "gecko.json",
		write: (*flame.Graph).WriteGecko},
}

func written(t *testing.T, p *ingest.Profile, write func(*flame.Graph, io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(flame.New(p, options()), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoldenFormats(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			got := written(t, profilebuild.EveryKind(), f.write)
			if strings.HasSuffix(f.name, ".json") && !json.Valid(got) {
				t.Error("no valid JSON")
			}
			golden.Compare(t, "everykind."+f.name, got)
		})
	}
}

// TestFormatsOfHostileNames: names stay texts, and texts are fit for a terminal.
func TestFormatsOfHostileNames(t *testing.T) {
	all := append(formats, struct {
		name  string
		write func(*flame.Graph, io.Writer) error
	}{"html", (*flame.Graph).WriteHTML})
	for _, f := range all {
		got := written(t, profilebuild.Hostile(), f.write)
		if !utf8.Valid(got) {
			t.Errorf("%s: no valid UTF-8", f.name)
		}
		for _, bad := range []string{"\x1b", "\u202e", "\u2028", "\x00", "onerror=pwned=1>",
			"<script>pwned"} {
			if !strings.HasSuffix(f.name, "json") || bad[0] < ' ' {
				if bytes.Contains(got, []byte(bad)) {
					t.Errorf("%s contains %q", f.name, bad)
				}
			}
		}
		if f.name == "svg" {
			checkXML(t, got)
		}
		if len(got) > 200_000 {
			t.Errorf("%s has %d bytes", f.name, len(got))
		}
	}
}

// checkXML parses a picture, and looks for elements that no picture has.
func checkXML(t *testing.T, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	elements := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements++
			switch e.Name.Local {
			case "svg", "g", "rect", "text", "title", "style":
			default:
				t.Errorf("the picture has an element %s", e.Name.Local)
			}
		}
	}
	if elements < 10 {
		t.Errorf("%d elements", elements)
	}
}

// speedscopeFile is a file in speedscope's format.
type speedscopeFile struct {
	Schema string `json:"$schema"`
	Shared struct{ Frames []struct{ Name string } }
	Active int `json:"activeProfileIndex"`

	Profiles []struct {
		Type, Name, Unit     string
		StartValue, EndValue uint64
		Samples              [][]int
		Weights              []uint64
	}
}

// TestSpeedscope checks a file by the rules of speedscope's schema: numbers of frames that exist,
// a weight for each sample, and the sum of weights as the end.
func TestSpeedscope(t *testing.T) {
	var f speedscopeFile
	if err := json.Unmarshal(written(t, profilebuild.Shop(), (*flame.Graph).WriteSpeedscope), &f); err != nil {
		t.Fatal(err)
	}
	if f.Schema != "https://www.speedscope.app/file-format-schema.json" || len(f.Profiles) != 2 {
		t.Fatalf("%+v", f)
	}
	units := map[string]bool{"none": true, "nanoseconds": true, "bytes": true}
	for _, p := range f.Profiles {
		sum := uint64(0)
		for _, w := range p.Weights {
			sum += w
		}
		if p.Type != "sampled" || !units[p.Unit] || sum != p.EndValue ||
			len(p.Samples) != len(p.Weights) {
			t.Errorf("%+v", p)
		}
		for _, s := range p.Samples {
			if f.Shared.Frames[s[0]].Name != "main" {
				t.Errorf("stack %v does not begin in main", s)
			}
		}
	}
}

// geckoFile is the part of a file that TestGecko looks at.
type geckoFile struct {
	Meta struct {
		Categories                 []struct{ Color string }
		Interval                   float64
		PreprocessedProfileVersion int
	}
	Shared  map[string]json.RawMessage
	Threads []struct {
		Name, PID, TID string
		IsMainThread   bool
		Samples        struct {
			WeightType string
			Length     int
			Stack      []*int
			Weight     []float64
			TimeDeltas []float64
		}
	}
}

// TestGecko checks a file by the rules of the processed format, version 66: columns of equal
// length, numbers within their tables, parents before children.
func TestGecko(t *testing.T) {
	f := checkGecko(t, written(t, profilebuild.Shop(), (*flame.Graph).WriteGecko))
	sum := 0.0
	for _, th := range f.Threads {
		if th.Samples.WeightType == "tracing-ms" {
			for _, w := range th.Samples.Weight {
				sum += w
			}
		}
	}
	if len(f.Threads) != 4 || f.Threads[0].PID != "7" || sum < 999.999 || sum > 1000.001 {
		t.Errorf("%d threads, %v ms", len(f.Threads), sum)
	}
}

// checkGecko checks the structure of a file.
func checkGecko(t *testing.T, data []byte) *geckoFile {
	t.Helper()
	var f geckoFile
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	tables := make(map[string]map[string][]*float64)
	length := make(map[string]int)
	for name, text := range f.Shared {
		if name == "stringArray" {
			var strings []string
			if err := json.Unmarshal(text, &strings); err != nil {
				t.Fatal(err)
			}
			length[name] = len(strings)
			continue
		}
		length[name], tables[name] = geckoColumns(t, name, text)
	}
	within := func(table, column, of string) {
		for i, v := range tables[table][column] {
			if v != nil && int(*v) >= length[of] {
				t.Errorf("%s.%s[%d] is %v of %d", table, column, i, *v, length[of])
			}
		}
	}
	within("frameTable", "func", "funcTable")
	within("funcTable", "name", "stringArray")
	within("funcTable", "resource", "resourceTable")
	within("funcTable", "source", "sources")
	within("resourceTable", "name", "stringArray")
	within("sources", "filename", "stringArray")
	within("stackTable", "frame", "frameTable")
	for i, v := range tables["stackTable"]["prefixOffset"] {
		if int(*v) > i {
			t.Errorf("stack %d has a parent %v before it", i, *v)
		}
	}
	for _, th := range f.Threads {
		s := &th.Samples
		if len(s.Stack) != s.Length || len(s.Weight) != s.Length || len(s.TimeDeltas) != s.Length {
			t.Errorf("%s: columns of different lengths", th.Name)
		}
		for _, stack := range s.Stack {
			if stack != nil && *stack >= length["stackTable"] {
				t.Errorf("%s: stack %d", th.Name, *stack)
			}
		}
	}
	return &f
}

func geckoColumns(t *testing.T, name string, text []byte) (int, map[string][]*float64) {
	t.Helper()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	n := -1
	if err := json.Unmarshal(raw["length"], &n); err != nil {
		t.Fatal(err)
	}
	columns := make(map[string][]*float64)
	for c, text := range raw {
		if c == "length" || c == "isJS" || c == "relevantForJS" {
			continue
		}
		var values []*float64
		if err := json.Unmarshal(text, &values); err != nil {
			t.Fatal(fmt.Errorf("%s.%s: %w", name, c, err))
		}
		if len(values) != n {
			t.Errorf("%s.%s has %d values of %d", name, c, len(values), n)
		}
		columns[c] = values
	}
	return n, columns
}

// TestViewers: both viewers show the values of `symbolize top`, all events of them.
func TestViewers(t *testing.T) {
	for name, p := range map[string]*ingest.Profile{"every kind": profilebuild.EveryKind(),
		"shop": profilebuild.Shop(), "random": profilebuild.Random(3, profilebuild.Size{Objects: 5,
			Functions: 60, Locations: 300, Stacks: 400, Depth: 9})} {
		checkViewers(t, name, p, flame.New(p, options()))
	}
}

// checkViewers compares the flat values of functions with those of top. Speedscope and the Firefox
// Profiler compute them as here: from the leaf of each stack and the sample's weight, by event.
// Their own importers (importSpeedscopeProfiles; unserializeProfileOfArbitraryFormat, then
// getCallTree) compute the same of these files.
func checkViewers(t *testing.T, name string, p *ingest.Profile, g *flame.Graph) {
	t.Helper()
	want := make(map[string]map[string]float64)
	add := func(m map[string]map[string]float64, event, function string, value float64) {
		if m[event] == nil {
			m[event] = make(map[string]float64)
		}
		m[event][function] += value
	}
	scale := make(map[string]float64) // to the units of weights in the Firefox Profiler
	for i := range p.Events {
		scale[p.Events[i].Name] = 1
		if p.Events[i].Unit == "nanoseconds" {
			scale[p.Events[i].Name] = 1e6
		}
		top := calltree.NewTop(p, calltree.TopOptions{Options: calltree.Options{Event: i,
			Demangler: demangle.New(demangle.None)}})
		for _, r := range top.Rows {
			if r.Flat > 0 {
				add(want, p.Events[i].Name, r.Name, float64(r.Flat))
			}
		}
	}
	var text bytes.Buffer
	if err := g.WriteSpeedscope(&text); err != nil {
		t.Fatal(err)
	}
	var f speedscopeFile
	if err := json.Unmarshal(text.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]map[string]float64)
	for _, profile := range f.Profiles {
		for i, s := range profile.Samples {
			if len(s) > 0 {
				add(got, profile.Name, f.Shared.Frames[s[len(s)-1]].Name, float64(profile.Weights[i]))
			}
		}
	}
	if !reflect.DeepEqual(got, want) || len(want) == 0 {
		t.Errorf("%s: speedscope has %v, top %v", name, got, want)
	}
	text.Reset()
	if err := g.WriteGecko(&text); err != nil {
		t.Fatal(err)
	}
	file, samples := geckoSamples(t, text.Bytes())
	got = make(map[string]map[string]float64)
	for _, s := range samples {
		_, event, several := strings.Cut(strings.TrimSuffix(file.Threads[s.thread].Name, ")"), " (")
		if !several {
			event = p.Events[0].Name
		}
		if len(s.stack) > 0 {
			add(got, event, s.stack[0], math.Round(s.weight*scale[event]))
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: the Firefox Profiler has %v, top %v", name, got, want)
	}
}
