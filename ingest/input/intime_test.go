package input

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input/container"
	"symbolize/ingest/pair"
	"symbolize/ingest/sideband"
)

// writeParts writes a directory as perf record --threads makes it: the tables are in one file, the
// records of each reading thread in another.
func writeParts(t *testing.T, parts []capture) string {
	t.Helper()
	dir := t.TempDir()
	for i, c := range append([]capture{waitsCapture(false)}, parts...) {
		name, b := fmt.Sprintf("data.%d", i-1), c.Raw()
		if i == 0 {
			name, b = container.DataFile, c.Bytes()
		}
		must.Write(t, filepath.Join(dir, name), b)
	}
	return dir
}

// partsOf returns files with samples of the given CPUs. Those of a file are read in passes, one CPU
// after the other.
func partsOf(t *testing.T, cpus [][]uint32) (parts []capture, samples int) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, list := range cpus {
		c := waitsCapture(false)
		for pass := range uint64(40) {
			for k, cpu := range list {
				at := 1e9 + pass*100e6 + uint64(k)*1e6 // the buffer is read a little later than the one before
				for range rng.IntN(60) {
					at += rng.Uint64N(1e6)
					c.record(t, fmt.Sprintf("%d %d clock %d", at, cpu, 11+cpu))
					samples++
				}
			}
		}
		parts = append(parts, c)
	}
	return parts, samples
}

// TestMergeParts: the files of a directory are read side by side, in bounded memory.
func TestMergeParts(t *testing.T) {
	parts, samples := partsOf(t, [][]uint32{{0}, {1, 2, 3}, {4}, {}, {5, 6}})
	p, err := container.OpenDir(t.Context(), writeParts(t, parts), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sb, err := sideband.Scan(t.Context(), p.File, &sideband.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCollector(sb, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	added, emitted, most := 0, 0, 0
	w := pair.Window[struct{}]{Emit: func(uint64, struct{}) error {
		emitted++
		return nil
	}}
	err = c.mergeParts(t.Context(), p.File.Parts, 100, func(rec *perfdata.Record) error {
		if rec.Type != perfdata.TypeSample {
			return nil
		}
		id, err := p.File.SampleID(rec)
		added++
		most = max(most, added-emitted)
		_ = w.Add(id.Time, struct{}{})
		return err
	}, w.Upto)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Rest()
	// Three passes of 7 CPUs have 630 samples.
	if emitted != samples || w.Late != 0 || most > 1000 {
		t.Errorf("%d of %d samples, %d of them late, at most %d kept", emitted, samples, w.Late, most)
	}
}

// TestWaitsOfParts: a thread that moves between CPUs has its records in several files.
func TestWaitsOfParts(t *testing.T) {
	parts := []capture{waitsCapture(false), waitsCapture(false)}
	for at := uint64(10); at < 1000; at += 10 {
		cpu := int(at / 10 % 2)
		parts[cpu].record(t, fmt.Sprintf("%d %d switch 0 R 11", at, cpu))
		parts[cpu].record(t, fmt.Sprintf("%d %d switch 11 S 0", at+4, cpu))
	}
	c, err := Open(t.Context(), writeParts(t, parts), Options{Selection: Selection{Event: ingest.OffCPUEvent}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Profile(t.Context())
	if err != nil || p.Stats.Weight != 98*6 || len(p.Stats.Warnings) != 1 {
		t.Errorf("weight %d, want %d; %v, %v", p.Stats.Weight, 98*6, p.Stats.Warnings, err)
	}
	last := uint64(0)
	err = c.Replay(t.Context(), func(s *ReplaySample) error {
		if s.Time < last {
			t.Errorf("%d after %d", s.Time, last)
		}
		last = s.Time
		return nil
	})
	if err != nil || last == 0 {
		t.Error(err)
	}
}
