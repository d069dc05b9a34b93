package input

import (
	"bytes"
	"encoding/binary"
	"os"
	"reflect"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/perfdata"
)

// openReader opens a capture that lies in memory, with small chunks.
func openReader(data []byte, workers int) (*Capture, error) {
	r := bytes.NewReader(data)
	f, err := perfdata.Open("fuzz", r, int64(len(data)))
	if err != nil {
		return nil, err
	}
	in := &file{path: "fuzz", r: r, size: int64(len(data))}
	return &Capture{file: in, source: &perfSource{file: in, data: f,
		opts: Options{Workers: workers}, chunkSize: 700}}, nil
}

// setChunkSize sets the chunk size of a perf.data.
func (c *Capture) setChunkSize(size int64) { c.source.records().chunkSize = size }

// FuzzCollect holds for any bytes that a profile keeps its promises, that workers make no
// difference, and that a replay sees the same samples.
func FuzzCollect(f *testing.F) {
	f.Add(manyThings(false)[:6000])
	f.Add(manyThings(true)[:3000])
	f.Add(longGroup(false)[:4000])
	f.Add(longGroup(true)[:2000])
	c := branchCapture(false, branchCallStack)
	c.Sample(perfbuild.Sample{PID: 7, Chain: []uint64{cU, 0x402018},
		Branches: []perfbuild.Branch{{From: 0x401000, To: 0x402000}}})
	f.Add(c.Bytes())
	for _, big := range []bool{false, true} {
		f.Add(manyPrograms(big))
	}
	for _, tc := range stackScenarios[:6] {
		c := newCapture()
		tc.build(c)
		f.Add(c.Bytes())
	}
	for _, name := range []string{"clock", "killed"} {
		data, err := os.ReadFile("../../fixtures/captures/" + name + ".data")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 8000)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		one, err := openReader(data, 1)
		if err != nil {
			return
		}
		p, err := one.Profile(t.Context())
		if err != nil {
			return
		}
		checkProfile(t, p)
		two, err := openReader(data, 3)
		if err != nil {
			t.Fatal(err)
		}
		q, err := two.Profile(t.Context())
		if err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("three workers: another profile, %v", err)
		}
		var samples, frames, weight uint64
		if err := one.Replay(t.Context(), func(s *ReplaySample) error {
			samples++
			weight += s.Period
			frames += uint64(len(s.Frames))
			for _, fr := range s.Frames {
				if int(fr.Location) >= len(p.Locations) {
					t.Fatalf("replay refers to location %d of %d", fr.Location, len(p.Locations))
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if st := p.Stats; samples != st.Samples || weight != st.Weight || frames != st.Frames {
			t.Errorf("replay: %d samples, weight %d, %d frames; profile: %d, %d, %d", samples,
				weight,
				frames,
				st.Samples, st.Weight, st.Frames)
		}
		merged, err := merge.Profiles([]*ingest.Profile{p})
		if err != nil || !reflect.DeepEqual(merged, p) {
			t.Errorf("merged alone: another profile, %v", err)
		}
	})
}

// BenchmarkProfile folds a capture of many forks, execs, libraries and BPF programs, where the
// fixtures' busy host goes on for a while.
func BenchmarkProfile(b *testing.B) {
	data := busyHost(4000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		c, err := openReader(data, 0)
		if err != nil {
			b.Fatal(err)
		}
		c.setChunkSize(0) // the default
		if _, err := c.Profile(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplay reads the same capture sample by sample.
func BenchmarkReplay(b *testing.B) {
	data := busyHost(4000)
	c, err := openReader(data, 0)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Profile(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Replay(b.Context(), func(*ReplaySample) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzBranches takes any bytes for the branch stack of samples, in one of the ways of reading it.
func FuzzBranches(f *testing.F) {
	entry := func(words ...uint64) (b []byte) {
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	f.Add(entry(0x401000, 0x402000, 1, 0x401000, 0x402000, 2), uint64(0x401234), uint16(branchAny), uint8(1))
	f.Add(entry(0xffffffff81000000, 0x402000, 0, 0, 0, 0, cU, 1, 1<<24), uint64(0), uint16(branchCallStack), uint8(0))
	f.Fuzz(func(t *testing.T, stack []byte, ip uint64, kind uint16, way uint8) {
		if len(stack) > 1<<12 {
			return
		}
		var branches []perfbuild.Branch
		for ; len(stack) >= 24; stack = stack[24:] {
			branches = append(branches, perfbuild.Branch{From: binary.LittleEndian.Uint64(stack),
				To: binary.LittleEndian.Uint64(stack[8:]), Flags: binary.LittleEndian.Uint64(stack[16:])})
		}
		c := branchCapture(kind&1 != 0, uint64(kind)&^1)
		for i := range uint64(3) {
			c.Sample(perfbuild.Sample{PID: 7, Time: i, IP: ip, Chain: []uint64{cU, ip}, Branches: branches})
		}
		in, err := openReader(c.Bytes(), 1)
		if err != nil {
			return
		}
		opts := &in.source.(*perfSource).opts
		opts.Branches, opts.Runs = way%3 > 0, way%3 > 1
		p, err := in.Profile(t.Context())
		if err != nil {
			return
		}
		checkProfile(t, p)
		runs := uint64(0)
		for i := range p.Samples {
			runs += p.Samples[i].Count
		}
		if most := uint64(3 * (2*len(branches) + 1)); runs > most {
			t.Fatalf("%d samples of %d branches", runs, len(branches))
		}
	})
}
