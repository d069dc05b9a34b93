package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/testscript"
)

// nightStart is when the first night of cmdNights begins.
var nightStart = time.Date(2026, time.October, 1, 2, 0, 0, 0, time.UTC)

// nightSamples is how many samples a night of cmdNights has.
const nightSamples = 400_000

// cmdNights is `nights DIR FIRST LAST`: writes the profiles of these nights as DIR/DAY/web.pb.gz.
// From night 9 on compress has a fifth more samples than before, and copy_new does the work of
// copy_old from night 5 on; 40 other functions differ by chance.
func cmdNights(ts *testscript.TestScript, neg bool, args []string) {
	var first, last int
	if _, err := fmt.Sscan(args[1]+" "+args[2], &first, &last); neg || len(args) != 3 || err != nil {
		ts.Fatalf("usage: nights DIR FIRST LAST")
	}
	for night := first; night <= last; night++ {
		day := nightStart.AddDate(0, 0, night)
		path := filepath.Join(ts.MkAbs(args[0]), day.Format(time.DateOnly), "web.pb.gz")
		ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
		f, err := os.Create(path)
		ts.Check(err)
		ts.Check(nightProfile(night, day).Write(f))
		ts.Check(f.Close())
	}
}

// nightProfile makes the profile of a night. Its functions are called by main.
func nightProfile(night int, day time.Time) *profile.Profile {
	rng := rand.New(rand.NewPCG(uint64(night), 4))
	unit := &profile.ValueType{Type: "samples", Unit: "count"}
	mapping := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x100000, File: "/srv/app/web",
		HasFunctions: true}
	p := &profile.Profile{SampleType: []*profile.ValueType{unit}, TimeNanos: day.UnixNano(),
		Mapping: []*profile.Mapping{mapping}}
	add := func(name string, share float64, callers ...*profile.Location) *profile.Location {
		fn := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, SystemName: name}
		loc := &profile.Location{ID: fn.ID, Mapping: mapping, Address: 0x1000 + 16*fn.ID,
			Line: []profile.Line{{Function: fn}}}
		p.Function, p.Location = append(p.Function, fn), append(p.Location, loc)
		if mean := share * nightSamples; mean > 0 {
			count := math.Round(mean + math.Sqrt(mean)*rng.NormFloat64())
			p.Sample = append(p.Sample, &profile.Sample{Value: []int64{int64(count)},
				Location: append([]*profile.Location{loc}, callers...)})
		}
		return loc
	}
	root := add("main", 0)
	copied, compressed := "copy_old", 0.1
	if night >= 5 {
		copied = "copy_new"
	}
	if night >= 9 {
		compressed *= 1.2
	}
	add(copied, 0.05, root)
	add("compress", compressed, root)
	for i := range 40 {
		add(fmt.Sprint("step", i), 0.02, root)
	}
	return p
}
