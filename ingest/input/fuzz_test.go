package input

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input/merge"
)

// openReader opens a capture in memory, with small chunks.
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
func (c *Capture) setChunkSize(size int64) { recordsOf(c).chunkSize = size }

// recordsOf returns the records of a capture of kind perf.data or bundle.
func recordsOf(c *Capture) *perfSource {
	if s, ok := c.source.(recordedBundle); ok {
		return s.sideBand
	}
	return c.source.(*perfSource)
}

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
		f.Add(listedFunctions(big))
	}
	for _, tc := range stackScenarios[:6] {
		c := newCapture()
		tc.build(c)
		f.Add(c.Bytes())
	}
	for _, name := range []string{"clock", "killed"} {
		data := must.Read(f, "../../fixtures/captures/"+name+".data")
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

// listedFunctions is a recording of simpleperf with lists of functions of all kinds, modules that
// share a build ID, and copies of a file.
func listedFunctions(big bool) []byte {
	c := capture{perfbuild.NewOrder(big)}
	const kernel, module = 0xffffff8000080000, 0xffffff8000900000
	for i := range uint64(2) {
		c.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: module + i<<16, Len: 0x1000,
			Filename: []string{"[a]", "[b]"}[i], BuildID: sum(3)}, at(0))
		c.mapped(0x200000+i<<16, perfbuild.Mmap{BuildID: sum(4), Filename: []string{"/t1", "/t2"}[i]})
	}
	c.mapped(0x300000, perfbuild.Mmap{Filename: "/app/base.vdex"})
	c.mapped(0x400000, perfbuild.Mmap{Filename: "p_jit_app_cache:1-2", Prot: 0x4000})
	c.Comm(9, 9, "node", true, at(2))
	c.hit(7, 3, cK, kernel+0x10, module+8, module+1<<16+8, cU, 0x300800, 0x300800, 0x400020)
	c.hit(9, 3, cU, 0x500010)
	list := func(kind uint32, path string, addr uint64) perfbuild.SymbolFile {
		return perfbuild.SymbolFile{Type: kind, Path: path,
			Symbols: []perfbuild.FileSymbol{{Addr: addr, Size: 64, Name: "f"}}}
	}
	c.Files2(list(0, "[kernel.kallsyms]", kernel), list(3, "/app/base.vdex", 0x800),
		list(2, "p_jit_app_cache:1-2", 0x400010), list(4, "perf-9.map", 0x500000))
	return c.Bytes()
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

// FuzzBranches reads any bytes as the branch stack of samples, in one of the modes.
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
		opts.Branches = BranchMode(way % 4)
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
