package input

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/input/merge"
)

func TestMergeOfOne(t *testing.T) {
	p := fold(t, manyThings(false), Options{Selection: Selection{Keep: ingest.Keep{PID: true}}})
	got, err := merge.Profiles([]*ingest.Profile{p})
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, got)
	if !reflect.DeepEqual(got, p) {
		t.Error("a merge of one profile is another profile")
	}
	if _, err := merge.Profiles(nil); err == nil {
		t.Error("a merge of nothing is no error")
	}
}

// TestMergeHalves cuts a recording in two: the halves merged are the whole.
func TestMergeHalves(t *testing.T) {
	half := func(from, to uint64) []byte {
		c := newCapture()
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/a", 1)
		for i := from; i < to; i++ {
			c.hit(7, 10+i, cK, 0xffffffff81000000+i%5, cU, 0x400000+i%3, 0x400100+i%4)
		}
		return c.Bytes()
	}
	a, b, whole := fold(t, half(0, 40), Options{}), fold(t, half(40, 100), Options{}), fold(t,
		half(0, 100), Options{})
	for _, parts := range [][]*ingest.Profile{{a, b}, {b, a}} {
		got, err := merge.Profiles(parts)
		if err != nil {
			t.Fatal(err)
		}
		checkProfile(t, got)
		if !reflect.DeepEqual(got.Samples, whole.Samples) || !reflect.DeepEqual(got.Locations,
			whole.Locations) ||
			!reflect.DeepEqual(got.Objects, whole.Objects) || !reflect.DeepEqual(got.Leaves,
			whole.Leaves) {
			t.Errorf("halves: %q, whole: %q", dump(got), dump(whole))
		}
	}
}

func TestMergeUnions(t *testing.T) {
	build := func(event string, config uint64, id byte, path, host string) *ingest.Profile {
		c := newCapture()
		c.Events[0].Name, c.Events[0].Config = event, config
		c.EventDesc()
		c.FeatureString(perfbuild.FeatureHostname, host)
		c.FeatureString(perfbuild.FeatureArch, "x86_64")
		c.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x400000, Len: 0x1000, BuildID: sum(id),
			Filename: path},
			at(1))
		c.lib(7, 0x7fff00000000, 0x1000, 0, "[vdso]", 1)
		c.KernelMap2("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000, sum(id+100))
		c.Comm(7, 7, host, true, at(0))
		c.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x400000, Len: 0x1000, BuildID: sum(id),
			Filename: path},
			at(1))
		c.lib(7, 0x7fff00000000, 0x1000, 0, "[vdso]", 1)
		c.hit(7, 5, cK, 0xffffffff81000010, cU, 0x7fff00000010, 0x400010)
		return fold(t, c.Bytes(), Options{})
	}
	a := build("cpu-clock", 0, 1, "/b/lib.so", "one")
	b := build("page-faults", 2, 1, "/a/lib.so", "two")
	d := build("cpu-clock", 0, 2, "/b/lib.so", "three")
	p, err := merge.Profiles([]*ingest.Profile{a, b, d})
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	var names []string
	for _, o := range p.Objects {
		names = append(names, o.File.Path+" "+o.ID.Hex()[:min(4, len(o.ID.Hex()))])
	}
	if want := []string{"/a/lib.so 0101", "/b/lib.so 0202", "[vdso] ", "[kernel.kallsyms] 6565",
		"[kernel.kallsyms] 6666"}; !slices.Equal(names, want) {
		t.Errorf("objects %q, want %q", names, want)
	}
	if len(p.Events) != 2 || p.Events[0].Name != "cpu-clock" || p.Events[1].Name != "page-faults" {
		t.Errorf("events %+v", p.Events)
	}
	if p.Meta.Host != "" || p.Meta.Arch != "x86_64" || len(p.Meta.Captures) != 3 {
		t.Errorf("meta %+v", p.Meta)
	}
	if p.Stats.Samples != 3 || p.Stats.RecordTypes["SAMPLE"] != 3 {
		t.Errorf("statistics %+v", p.Stats)
	}
	want := []string{"cpu-clock one: [kernel.kallsyms]+0x10 [vdso]+0x10 /a/lib.so+0xf 1 1",
		"cpu-clock three: [kernel.kallsyms]+0x10 [vdso]+0x10 /b/lib.so+0xf 1 1",
		"page-faults two: [kernel.kallsyms]+0x10 [vdso]+0x10 /a/lib.so+0xf 1 1"}
	if got := dump(p); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// named gives every location of a profile with an even offset a name.
func named(p *ingest.Profile) {
	n := &ingest.Names{}
	for i, l := range p.Locations {
		reason := ingest.NotIndexed
		if l.Offset%2 == 0 {
			o := &p.Objects[l.Object]
			n.Functions = append(n.Functions,
				ingest.Function{Object: l.Object, SystemName: "f_" + o.File.Path,
					StartLine: int32(l.Offset)})
			n.Frames = append(n.Frames,
				ingest.Frame{Func: ingest.FuncID(len(n.Functions) - 1), Line: int32(i)})
			reason = ingest.ReasonNone
		}
		n.FrameEnds = append(n.FrameEnds, uint32(len(n.Frames)))
		n.Reasons = append(n.Reasons, reason)
		n.SymOff = append(n.SymOff, uint64(l.Offset)*3)
	}
	n.Functions = ingest.SortFunctions(n.Functions, n.Frames)
	p.Names = n
}

func TestMergeNames(t *testing.T) {
	build := func(base uint64) *ingest.Profile {
		c := newCapture()
		c.lib(7, 0x400000, 0x10000, 0, "/bin/a", 1)
		c.lib(7, 0x500000, 0x10000, 0, "/bin/b", 1)
		c.hit(7, 5, cU, 0x400010+base, 0x500011+base, 0x500021)
		return fold(t, c.Bytes(), Options{})
	}
	a, b := build(0), build(1)
	if p, err := merge.Profiles([]*ingest.Profile{a, b}); err != nil || p.Names != nil {
		t.Errorf("names of profiles without: %v, %v", p.Names, err)
	}
	named(a)
	if p, err := merge.Profiles([]*ingest.Profile{a, b}); err != nil || p.Names != nil {
		t.Errorf("names of one of two profiles: %v, %v", p.Names, err)
	}
	named(b)
	p, err := merge.Profiles([]*ingest.Profile{a, b})
	if err != nil || p.Names == nil || len(p.Names.FrameEnds) != len(p.Locations) {
		t.Fatalf("names %+v, %v", p.Names, err)
	}
	for i, l := range p.Locations {
		frames := p.Names.At(ingest.LocationID(i))
		if l.Offset%2 == 1 {
			if len(frames) != 0 || p.Names.Reasons[i] != ingest.NotIndexed {
				t.Errorf("location %+v: %+v", l, frames)
			}
			continue
		}
		if len(frames) != 1 || p.Names.SymOff[i] != uint64(l.Offset)*3 {
			t.Errorf("location %+v: %+v", l, frames)
			continue
		}
		fn := p.Names.Functions[frames[0].Func]
		if fn.Object != l.Object ||
			!strings.HasSuffix(fn.SystemName, p.Objects[l.Object].File.Path) ||
			fn.StartLine != int32(l.Offset) {
			t.Errorf("location %+v has the function %+v", l, fn)
		}
	}
}
