package input

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// openBytes writes a capture to a file and opens it.
func openBytes(t testing.TB, data []byte, opts Options) (*Capture, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perf.data")
	must.Write(t, path, data)
	end := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(path, end, end); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), path, opts)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// fold gives the profile of a capture that must be readable.
func fold(t testing.TB, data []byte, opts Options) *ingest.Profile {
	t.Helper()
	c, err := openBytes(t, data, opts)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	return p
}

// frameText is a location in words: object and offset.
func frameText(p *ingest.Profile, l ingest.LocationID) string {
	loc := p.Locations[l]
	o := &p.Objects[loc.Object]
	if o.Kind.Collapsed() || o.Reason == ingest.KernelHidden {
		if loc.Offset != 0 {
			return fmt.Sprintf("%s NOT COLLAPSED %#x", o.File.Path, loc.Offset)
		}
		return o.File.Path
	}
	return fmt.Sprintf("%s+%#x", o.File.Path, uint64(loc.Offset))
}

// dump is a profile in words, a line a sample.
func dump(p *ingest.Profile) []string {
	var out []string
	for _, s := range p.Samples {
		var frames []string
		for _, l := range p.Stack(nil, s.Stack) {
			frames = append(frames, frameText(p, l))
		}
		line := p.Strings[s.Comm] + ": " + strings.Join(frames, " ")
		if len(p.Events) > 1 {
			line = p.Events[s.Event].Name + " " + line
		}
		if s.PID != -1 || s.TID != -1 || s.CPU != -1 {
			line = fmt.Sprintf("%d/%d@%d ", s.PID, s.TID, s.CPU) + line
		}
		out = append(out, fmt.Sprintf("%s %d %d", line, s.Count, s.Weight))
	}
	return out
}

// checkProfile checks the invariants in the doc comment of Profile.
func checkProfile(t testing.TB, p *ingest.Profile) {
	t.Helper()
	for i := 1; i < len(p.Objects); i++ {
		if ingest.CompareObjects(&p.Objects[i-1], &p.Objects[i]) >= 0 {
			t.Errorf("objects %d and %d are not in order", i-1, i)
		}
	}
	for i := range p.Objects {
		if k := p.Objects[i].Kernel; k != ingest.NoObject && (int(k) >= len(p.Objects) ||
			p.Objects[k].Kind != ingest.Kernel) {
			t.Errorf("object %d has the kernel %d, which is none", i, k)
		}
	}
	for i, l := range p.Locations {
		if int(l.Object) >= len(p.Objects) || i > 0 &&
			ingest.CompareLocations(p.Locations[i-1], l) >= 0 {
			t.Errorf("location %d is not in order or of no object", i)
		}
	}
	used := make([]bool, max(1, len(p.Callers)))
	used[0] = true
	for _, s := range p.Samples {
		for at := s.Stack; !used[at]; at = p.Callers[at] {
			used[at] = true
		}
	}
	var last []ingest.LocationID
	for i := range p.Callers {
		stack := p.Stack(nil, ingest.StackID(i))
		slices.Reverse(stack)
		if i > 0 && (int(p.Callers[i]) >= i || slices.Compare(last, stack) >= 0) {
			t.Errorf("stacks %d and %d are not in order", i-1, i)
		}
		last = stack
		if i > 0 && (!used[i] || int(p.Leaves[i]) >= len(p.Locations)) {
			t.Fatalf("stack %d is of no sample, or has no location", i)
		}
	}
	if !slices.IsSorted(p.Strings) || len(p.Strings) == 0 || p.Strings[0] != "" {
		t.Errorf("strings are not in order, or the first is not empty: %q", p.Strings)
	}
	var count, weight, frames uint64
	for i, s := range p.Samples {
		if int(s.Event) >= len(p.Events) || int(s.Comm) >= len(p.Strings) ||
			int(s.Stack) >= len(p.Callers) {
			t.Fatalf("sample %d refers to a missing entry: %+v", i, s)
		}
		if i > 0 && ingest.CompareSamples(p.Samples[i-1], s) >= 0 {
			t.Errorf("samples %d and %d are not in order", i-1, i)
		}
		count += s.Count
		weight += s.Weight
		frames += s.Count * uint64(len(p.Stack(nil, s.Stack)))
	}
	if st := &p.Stats; st.Samples != count || st.Weight != weight || st.Frames != frames {
		t.Errorf("statistics: %d samples, weight %d, %d frames; the samples add up to %d, %d and %d",
			st.Samples, st.Weight, st.Frames, count, weight, frames)
	}
}

const (
	cK = perfbuild.ContextKernel
	cU = perfbuild.ContextUser
)

// Shorthands of the scenarios.
type capture struct{ *perfbuild.File }

func at(t uint64) perfbuild.At { return perfbuild.At{Time: t} }

func (c capture) lib(pid int32, addr, length, pgoff uint64, name string, t uint64) {
	c.Mmap2(perfbuild.Mmap{PID: pid, Addr: addr, Len: length, PgOff: pgoff, Maj: 8, Min: 1,
		Ino: uint64(len(name)), Filename: name}, at(t))
}

func (c capture) hit(pid int32, t uint64, chain ...uint64) {
	c.Sample(perfbuild.Sample{PID: pid, TID: pid, Time: t, Chain: chain})
}

func newCapture() capture { return capture{perfbuild.New()} }

// manyThings is a capture with several of everything.
func manyThings(bigEndian bool) []byte {
	c := capture{perfbuild.NewOrder(bigEndian)}
	c.Events[0].SampleType |= perfbuild.CPU | perfbuild.Identifier
	c.Events = append(c.Events, c.Events[0])
	c.Events[1].Name, c.Events[1].Config, c.Events[1].IDs = "page-faults", 2, []uint64{21, 22}
	c.EventDesc()
	c.FeatureString(perfbuild.FeatureHostname, "box")
	c.FeatureString(perfbuild.FeatureArch, "x86_64")
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	for i := range uint64(400) {
		pid := int32(100 + i%17)
		t := 10 + i
		switch i % 40 {
		case 0:
			c.Fork(pid, 100, pid, 100, at(t))
		case 1:
			c.Comm(pid, pid, fmt.Sprintf("app%d", i%3), true, at(t))
		case 2:
			c.KSymbol(0xffffffffc0200000+i%5*0x80, 0x100, 1, i%80 == 2,
				fmt.Sprintf("bpf_prog_%016x_p", i%5), at(t))
		}
		base := 0x400000 + uint64(pid%5)*0x100000
		if i%9 == 0 {
			c.lib(pid, base, 0x80000, 0, fmt.Sprintf("/lib/%d.so", i%4), t)
		}
		var chain []uint64
		if i%2 == 0 {
			chain = append(chain, cK, 0xffffffff81000000+i%13, 0xffffffffc0200010+i%50*4,
				0xffffffff81000100)
		}
		if i%3 != 0 {
			chain = append(chain, cU, base+i%11, base+i%7*16)
			if i%5 == 0 {
				chain = append(chain, 0x99999000+i, 0x10)
			}
		}
		c.Sample(perfbuild.Sample{Event: int(i % 2), PID: pid, TID: pid + int32(i%2), Time: t,
			CPU:    uint32(i % 3),
			Period: 1 + i%4, IP: base, Chain: chain})
	}
	return c.Bytes()
}

func TestSameForAnyWorkers(t *testing.T) {
	for _, big := range []bool{false, true} {
		data := manyThings(big)
		opts := Options{Selection: Selection{Keep: ingest.Keep{PID: true, CPU: true}}}
		opts.Workers = 1
		want := fold(t, data, opts)
		if len(want.Samples) < 100 || want.DistinctStacks() < 50 {
			t.Fatalf("only %d samples of %d stacks: a poor test", len(want.Samples),
				want.DistinctStacks())
		}
		for _, workers := range []int{1, 2, 4, 7} {
			for _, size := range []int64{200, 5000, 0} {
				opts.Workers = workers
				got := foldChunks(t, data, opts, size)
				got.Meta, want.Meta = ingest.Meta{}, ingest.Meta{} // the path
				if !reflect.DeepEqual(got, want) {
					t.Errorf("big-endian %v: %d workers, chunks of %d bytes: another profile", big,
						workers, size)
				}
			}
		}
	}
	if a, b := dump(fold(t, manyThings(false), Options{})), dump(fold(t, manyThings(true),
		Options{})); !slices.Equal(a, b) {
		t.Error("the byte orders give different profiles")
	}
}

// foldChunks is fold with chunks of another size.
func foldChunks(t *testing.T, data []byte, opts Options, size int64) *ingest.Profile {
	t.Helper()
	c, err := openBytes(t, data, opts)
	if err != nil {
		t.Fatal(err)
	}
	c.setChunkSize(size)
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	return p
}

// refold folds a replay in the plainest way.
func refold(t *testing.T, c *Capture, p *ingest.Profile, keep ingest.Keep) []string {
	t.Helper()
	type sum struct{ count, weight uint64 }
	sums := map[string]sum{}
	last := uint64(0)
	err := c.Replay(t.Context(), func(s *ReplaySample) error {
		var frames []string
		for _, f := range s.Frames {
			frames = append(frames, frameText(p, f.Location))
		}
		line := s.Comm + ": " + strings.Join(frames, " ")
		if len(p.Events) > 1 {
			line = p.Events[s.Event].Name + " " + line
		}
		pid, tid, cpu := int32(-1), int32(-1), int32(-1)
		if keep.PID {
			pid = s.PID
		}
		if keep.TID {
			tid = s.TID
		}
		if keep.CPU {
			cpu = s.CPU
		}
		if keep != (ingest.Keep{}) {
			line = fmt.Sprintf("%d/%d@%d ", pid, tid, cpu) + line
		}
		old := sums[line]
		sums[line] = sum{old.count + 1, old.weight + s.Period}
		last = s.Time
		return nil
	})
	if err != nil || last == 0 {
		t.Fatalf("replay: %v, last time %d", err, last)
	}
	var out []string
	for line, s := range sums {
		out = append(out, fmt.Sprintf("%s %d %d", line, s.count, s.weight))
	}
	slices.Sort(out)
	return out
}

func TestReplayIsTheProfile(t *testing.T) {
	for _, opts := range []Options{
		{}, {Selection: Selection{Keep: ingest.Keep{PID: true, TID: true, CPU: true}}}, {Selection: Selection{Event: "page-faults"}},
		{Selection: Selection{PIDs: []int32{101,
			105}}},
		{Selection: Selection{Comms: []string{"app1", ":104"}}}, {Workers: 3},
	} {
		c, err := openBytes(t, manyThings(false), opts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := dump(p)
		slices.Sort(want)
		if got := refold(t, c, p, opts.Keep); !slices.Equal(got, want) {
			t.Errorf("%+v: replay folds to %d lines, the profile has %d", opts, len(got), len(want))
		}
	}
	for _, name := range []string{"mixed", "bpf", "dwarf", "spawn", "go", "killed"} {
		c := openFixture(t, name, Options{})
		p, err := c.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkProfile(t, p)
		want := dump(p)
		slices.Sort(want)
		if got := refold(t, c, p, ingest.Keep{}); !slices.Equal(got, want) {
			t.Errorf("%s: replay folds to %d lines, the profile has %d", name, len(got), len(want))
		}
	}
}

func TestReplayStops(t *testing.T) {
	c, err := openBytes(t, manyThings(false), Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	n := 0
	if err := c.Replay(t.Context(), func(*ReplaySample) error { n++; return stop }); err != stop ||
		n != 1 {
		t.Errorf("replay went on to %d samples and returned %v", n, err)
	}
}

func TestReplayAddresses(t *testing.T) {
	c := newCapture()
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	c.hit(7, 5, cU, 0x400010, 0x400020, 0x77777000, 3)
	cp, err := openBytes(t, c.Bytes(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	if err := cp.Replay(t.Context(), func(s *ReplaySample) error {
		for _, f := range s.Frames {
			got = append(got, uint64(f.PC))
		}
		if s.Comm != ":7" || s.PID != 7 || s.TID != 7 || s.Time != 5 || s.Period != 1 {
			t.Errorf("sample %+v", s)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{0x400010, 0x400020, 0x77777000}; !slices.Equal(got, want) {
		t.Errorf("addresses %#x, want %#x as recorded", got, want)
	}
}

func TestFilters(t *testing.T) {
	data := manyThings(false)
	all := fold(t, data, Options{})
	for _, opts := range []Options{{Selection: Selection{Event: "cpu-clock"}}, {Selection: Selection{Comms: []string{"app0"}}},
		{Selection: Selection{PIDs: []int32{103}}}} {
		p := fold(t, data, opts)
		if p.Stats.Samples == 0 || p.Stats.FilteredOut == 0 ||
			p.Stats.Samples+p.Stats.FilteredOut != all.Stats.Samples {
			t.Errorf("%+v: %d samples, %d left out, of %d", opts, p.Stats.Samples,
				p.Stats.FilteredOut,
				all.Stats.Samples)
		}
		for _, s := range p.Samples {
			if opts.Comms != nil && p.Strings[s.Comm] != "app0" || opts.Event != "" &&
				p.Events[s.Event].Name != opts.Event {
				t.Errorf("%+v let through %+v", opts, s)
			}
		}
		if opts.Event != "" && len(p.Events) != 1 {
			t.Errorf("events %+v, want %s alone", p.Events, opts.Event)
		}
	}
	c, err := openBytes(t, data, Options{Selection: Selection{Event: "cycles"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Profile(t.Context()); err == nil || !strings.Contains(err.Error(),
		`no event "cycles" in it, only cpu-clock, page-faults`) {
		t.Errorf("unknown event: %v", err)
	}
	if p := fold(t, data, Options{Selection: Selection{PIDs: []int32{9999}}}); len(p.Samples) != 0 || len(p.Events) == 0 {
		t.Errorf("nothing passes the filter: %d samples, %d events", len(p.Samples), len(p.Events))
	}
}

// TestEventWithoutModifiers: an event is selected by its name without modifiers, if it is the only one.
func TestEventWithoutModifiers(t *testing.T) {
	c := newCapture()
	c.Events[0].Name = "cycles:uppp"
	c.EventDesc()
	c.Sample(perfbuild.Sample{PID: 7, TID: 7, Time: 5, Chain: []uint64{perfbuild.ContextUser, 0x1010}})
	p := fold(t, c.Bytes(), Options{Selection: Selection{Event: "cycles"}})
	if len(p.Events) != 1 || p.Events[0].Name != "cycles:uppp" || len(p.Samples) != 1 {
		t.Errorf("events %+v, %d samples", p.Events, len(p.Samples))
	}
}

func TestEventsAndPeriods(t *testing.T) {
	c := newCapture()
	c.Events[0].SampleType &^= perfbuild.Period
	c.Events[0].Period = 250
	c.Events[0].SampleType |= perfbuild.Identifier
	mk := func(name string, config uint64, id uint64, flags uint64) {
		ev := c.Events[0]
		ev.Name, ev.Config, ev.IDs, ev.Flags = name, config, []uint64{id},
			perfbuild.SampleIDAll|flags
		c.Events = append(c.Events, ev)
	}
	mk("page-faults", 2, 31, perfbuild.Freq)
	mk("dummy:HG", 9, 41, 0)
	mk("cpu-clock", 0, 51, 0)
	c.EventDesc()
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	for i, id := range []uint64{11, 31, 51} {
		c.Sample(perfbuild.Sample{Event: []int{0, 1, 3}[i], ID: id, PID: 7, Time: 5,
			Chain: []uint64{cU, 0x400010}})
	}
	p := fold(t, c.Bytes(), Options{})
	want := []ingest.Event{{Name: "cpu-clock", Unit: "nanoseconds", Period: 250},
		{Name: "page-faults", Unit: "count"}}
	if !reflect.DeepEqual(p.Events, want) {
		t.Errorf("events %+v, want %+v", p.Events, want)
	}
	if got, want := dump(p), []string{"cpu-clock :7: /bin/a+0x10 2 500",
		"page-faults :7: /bin/a+0x10 1 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKeep(t *testing.T) {
	c := newCapture()
	c.Events[0].SampleType |= perfbuild.CPU
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	for i := range 4 {
		c.Sample(perfbuild.Sample{PID: 7, TID: 7 + int32(i/2), CPU: uint32(i % 2), Time: 5,
			Chain: []uint64{cU, 0x400010}})
	}
	for _, tc := range []struct {
		keep ingest.Keep
		want int
	}{{keep: ingest.Keep{}, want: 2}, {keep: ingest.Keep{PID: true}, want: 2}, {keep: ingest.Keep{TID: true},
		want: 2},
		{keep: ingest.Keep{CPU: true},
			want: 4}, {keep: ingest.Keep{TID: true, CPU: true}, want: 4}} {
		if p := fold(t, c.Bytes(), Options{Selection: Selection{Keep: tc.keep}}); len(p.Samples) != tc.want {
			t.Errorf("%+v: %d samples, want %d: %q", tc.keep, len(p.Samples), tc.want, dump(p))
		}
	}
}
