package input

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"symbolize/buildid"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/ingest"
)

// TestLoad: a load comes to the same stacks of the same places by both recorders' files and
// by the dumps that are not in a bundle.
func TestLoad(t *testing.T) {
	l := bundlebuild.NewLoad(3000)
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		must.Write(t, path, data)
		return path
	}
	_, bundle := foldPath(t, file("stacks.data", l.Bundle(bundlebuild.NewHost())), Options{})
	_, perf := foldPath(t, file("perf.data", l.PerfData(bundlebuild.NewHost())), Options{})
	want := weightedStacks(perf)
	if len(want) < 2900 || perf.Stats.Samples != 3000 {
		t.Fatalf("%d stacks, %d samples", len(want), perf.Stats.Samples)
	}
	got := weightedStacks(bundle)
	if len(got) != len(want) {
		t.Errorf("%d stacks in the bundle, %d in perf.data", len(got), len(want))
	}
	different := 0
	for stack, n := range want {
		if got[stack] != n {
			if different++; different < 4 {
				t.Errorf("weight %d in the bundle, %d in perf.data: %s", got[stack], n, stack)
			}
		}
	}
	if different > 0 {
		t.Errorf("%d stacks differ", different)
	}
	a, b := &bundle.Stats, &perf.Stats
	if a.Samples != b.Samples || a.Weight != b.Weight || a.Frames != b.Frames {
		t.Errorf("%d samples, weight %d, %d frames; perf.data has %d, %d, %d", a.Samples, a.Weight,
			a.Frames, b.Samples, b.Weight, b.Frames)
	}
}

// TestCutWhileOpen: the records before the end are used of a file that becomes shorter after it was
// opened.
func TestCutWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perf.data")
	must.Write(t, path, bundlebuild.NewLoad(3000).PerfData(bundlebuild.NewHost()))
	c, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.Truncate(path, c.Size()*9/10); err != nil {
		t.Fatal(err)
	}
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Stats.Samples; n == 0 || n >= 3000 {
		t.Errorf("%d of 3000 samples", n)
	}
	if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return w.Partial && strings.Contains(w.Text, "file ends here")
	}) {
		t.Errorf("warnings %v", p.Stats.Warnings)
	}
}

// weightedStacks returns the weights of stacks by their comm and places.
func weightedStacks(p *ingest.Profile) map[string]uint64 {
	out := make(map[string]uint64)
	for i := range p.Samples {
		s := &p.Samples[i]
		key := p.Strings[s.Comm]
		for _, l := range p.Stack(nil, s.Stack) {
			loc := p.Locations[l]
			o := &p.Objects[loc.Object]
			key += fmt.Sprintf(";%s+%#x", o.File.Path, loc.Offset)
		}
		out[key] += s.Weight
	}
	return out
}

// TestManyFiles: paths of files are found by their build IDs, however many there are.
func TestManyFiles(t *testing.T) {
	l := bundlebuild.NewLoad(8000)
	l.Objects, l.NoID, l.Processes = 30_000, 0, 1
	path := filepath.Join(t.TempDir(), "stacks.data")
	must.Write(t, path, l.Bundle(bundlebuild.NewHost()))
	_, p := foldPath(t, path, Options{})
	files := make(map[buildid.ID]string)
	for i := range l.Objects {
		id := bundlebuild.ObjectID(i)
		files[buildid.Padded(id[:])] = bundlebuild.ObjectPath(i)
	}
	found := 0
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Kind == ingest.ELF {
			if o.File.Path != files[o.ID] {
				t.Fatalf("%s has the path %q, want %q", o.ID, o.File.Path, files[o.ID])
			}
			found++
		}
	}
	if found < l.Objects*9/10 {
		t.Errorf("%d of %d files are used", found, l.Objects)
	}
}

// TestHostileCounts: the content of a bundle of a few KB is not kept without bound, and
// left-out samples are a warning.
func TestHostileCounts(t *testing.T) {
	l, h := bundlebuild.NewLoad(2), bundlebuild.NewHost()
	l.Fill(h)
	const many = 400_000
	pair := make([]byte, 28+16)
	pair[28] = 3 // samples
	pairs := bytes.Repeat(pair, many)
	for i := range many { // all of one stack, each of a process of its own
		binary.LittleEndian.PutUint32(pairs[i*len(pair)+8:], uint32(i))
	}
	h.Entries["dumps/counts"] = bundlebuild.ColumnDump("counts", 28, 16, pairs)
	pairs = nil
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := enc.EncodeAll(h.Bundle(), nil)
	h = nil
	if len(packed) > 50_000 {
		t.Fatalf("%d bytes", len(packed))
	}
	path := filepath.Join(t.TempDir(), "stacks.data")
	must.Write(t, path, packed)
	_, p := foldPath(t, path, Options{Selection: Selection{Keep: ingest.Keep{PID: true}}})
	kept := uint64(len(p.Samples))
	if kept < 1<<18 || kept > 1<<18+4*uint64(len(packed)) || p.Stats.Samples != 3*kept {
		t.Errorf("%d rows of %d, %d samples", kept, many, p.Stats.Samples)
	}
	want := fmt.Sprintf("more than %d pairs of stack and labels: %d samples are left out", kept,
		3*(many-kept))
	if !slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
		return w.Partial && strings.Contains(w.Text, want)
	}) {
		t.Errorf("warnings %+v, want %q", p.Stats.Warnings, want)
	}
}

// BenchmarkLoad folds a bundle of stacks, and the perf.data of the same load.
func BenchmarkLoad(b *testing.B) {
	l := bundlebuild.NewLoad(30_000)
	for _, bb := range []struct {
		name string
		data []byte
	}{
		{name: "bundle", data: l.Bundle(bundlebuild.NewHost())}, {name: "perf.data",
			data: l.PerfData(bundlebuild.NewHost())},
	} {
		b.Run(bb.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "capture.data")
			must.Write(b, path, bb.data)
			b.SetBytes(int64(len(bb.data)))
			b.ReportAllocs()
			for b.Loop() {
				c, err := Open(b.Context(), path, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := c.Profile(b.Context()); err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
	}
}
