package otlp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/input/otlp"
	"symbolize/ingest/input/pprof"
)

// TestWrite: what is written of a profile is read the same, in protobuf and JSON.
func TestWrite(t *testing.T) {
	for seed := range uint64(3) {
		p := profilebuild.Random(seed,
			profilebuild.Size{Objects: 5, Functions: 40, Locations: 300, Stacks: 200, Depth: 6})
		p.Meta.Pprof = &ingest.PprofHeader{PeriodType: "cpu", PeriodUnit: "nanoseconds", Period: 3,
			DropFrames: "^abort$", KeepFrames: "^main$", DocURL: "https://example.org/cpu"}
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			if err := otlp.Write(&out, p, pprof.WriteOptions{}, otlp.WriteOptions{JSON: asJSON}); err != nil {
				t.Fatal(err)
			}
			if asJSON && !json.Valid(out.Bytes()) {
				t.Fatal("invalid JSON")
			}
			opts := otlp.Options{Select: otlp.Select{Keep: ingest.Keep{PID: true, TID: true, CPU: true,
				Tags: ingest.AllLabels}}}
			got, err := otlp.Read("x.otlp", bytes.NewReader(out.Bytes()), int64(out.Len()), opts)
			if err != nil || len(got.Stats.Warnings) > 0 {
				t.Fatalf("%v, warnings %v", err, got.Stats.Warnings)
			}
			var viaPprof bytes.Buffer
			if err := pprof.Write(&viaPprof, p, pprof.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			want, err := pprof.Read("x.pb.gz", viaPprof.Bytes(), opts.Select)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := got.Meta.Pprof, want.Meta.Pprof; a.DropFrames != b.DropFrames ||
				a.KeepFrames != b.KeepFrames || a.DocURL != b.DocURL {
				t.Errorf("header %+v, want %+v", a, b)
			}
			if a, b := totals(got), totals(want); !reflect.DeepEqual(a, b) {
				t.Errorf("seed %d: %d stacks differ from the %d that pprof has", seed, len(a), len(b))
			}
		}
	}
}

// totals returns the counts and weights of stacks of names, with the labels of their samples.
func totals(p *ingest.Profile) map[string][2]uint64 {
	sums := make(map[string][2]uint64)
	for i := range p.Samples {
		s := &p.Samples[i]
		key := fmt.Sprint(p.Events[s.Event].Name, p.Strings[s.Comm], s.PID, s.TID, s.CPU)
		for l := range p.Frames(s.Stack) {
			key += fmt.Sprint(" ", p.Locations[l].Offset, p.Objects[p.Locations[l].Object].ID)
			if !p.Names.Named(l) {
				continue // pprof has made names for these
			}
			for _, f := range p.Names.At(l) {
				fn := p.Names.Functions[f.Func]
				key += fmt.Sprint("=", fn.SystemName, fn.File, fn.StartLine, f.Line, f.Inlined)
			}
		}
		sum := sums[key]
		sums[key] = [2]uint64{sum[0] + s.Count, sum[1] + s.Weight}
	}
	return sums
}
