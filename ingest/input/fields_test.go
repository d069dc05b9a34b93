package input

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// allocCapture has samples of a tracepoint with fields, and of an event without.
func allocCapture(big bool) capture {
	b := perfbuild.NewOrder(big)
	common := uint64(perfbuild.Identifier | perfbuild.IP | perfbuild.TID | perfbuild.Time)
	b.Events = []perfbuild.Event{
		{Type: 2, Config: 658, Period: 1, SampleType: common | perfbuild.Raw, IDs: []uint64{11},
			Flags: perfbuild.SampleIDAll, Name: "kmem:kmalloc"},
		{Type: 1, Period: 1, SampleType: common, IDs: []uint64{12}, Flags: perfbuild.SampleIDAll,
			Name: "cpu-clock"}}
	b.EventDesc()
	b.TracingData("kmem", "name: other\nID: 7\n", perfbuild.AllocFormat)
	c := capture{b}
	for i := range uint64(4) {
		c.Sample(perfbuild.Sample{PID: 7, Time: i, IP: 0x400010,
			Raw: c.AllocRaw(0xffffffff81000000+i/2, 100*i, int32(i)-1, "ab")})
	}
	c.Sample(perfbuild.Sample{Event: 1, PID: 7, Time: 9, IP: 0x400010})
	return c
}

func TestFields(t *testing.T) {
	for _, big := range []bool{false, true} {
		for _, tc := range []struct {
			tags string
			want []string
		}{
			{tags: "field:call_site", want: []string{" 1", "call_site=0xffffffff81000000 2",
				"call_site=0xffffffff81000001 2"}},
			{tags: "field:node,field:comm", want: []string{" 1", "node=-1 comm=ab 1",
				"node=0 comm=ab 1", "node=1 comm=ab 1", "node=2 comm=ab 1"}},
		} {
			p := fold(t, allocCapture(big).Bytes(), Options{Selection: Selection{Keep: ingest.Keep{Tags: tc.tags}}})
			if got := tagLines(p); !slices.Equal(got, tc.want) {
				t.Errorf("%s, big endian %t: %q, want %q", tc.tags, big, got, tc.want)
			}
		}
		p := fold(t, allocCapture(big).Bytes(), Options{Selection: Selection{Weight: "bytes_alloc"}})
		if got := dump(p); !slices.Equal(got, []string{":7: [unmapped] 4 600"}) ||
			p.Events[0].Unit != "bytes" || p.Stats.FilteredOut != 1 {
			t.Errorf("big endian %t: %q, %+v", big, got, p.Events)
		}
		p = fold(t, allocCapture(big).Bytes(), Options{Selection: Selection{Weight: "node"}})
		if p.Stats.BadRecords != 1 || p.Stats.Weight != 3 || p.Events[0].Unit != "count" {
			t.Errorf("a number below 0: %+v", p.Stats)
		}
	}
}

// callCapture has samples of raw_syscalls and of a tracepoint with a print format, of an x86_64.
func callCapture(big bool) capture {
	b := perfbuild.NewOrder(big)
	e := perfbuild.Event{Type: 2, Period: 1, Flags: perfbuild.SampleIDAll,
		SampleType: perfbuild.Identifier | perfbuild.IP | perfbuild.TID | perfbuild.Time | perfbuild.Raw}
	b.Events = nil
	for i, name := range []string{"raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "raw_syscalls:other"} {
		e.Config, e.IDs, e.Name = uint64(20+i), []uint64{uint64(11 + i)}, name
		b.Events = append(b.Events, e)
	}
	b.EventDesc()
	b.FeatureString(perfbuild.FeatureArch, "x86_64")
	fields := "format:\n\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n" +
		"\tfield:unsigned int why;\toffset:16;\tsize:4;\tsigned:0;\n"
	b.TracingData("raw_syscalls", "name: sys_enter\nID: 20\n"+fields, "name: sys_exit\nID: 21\n"+fields,
		"name: other\nID: 22\n"+fields+"print fmt: \"why=%s\n %s\", __print_symbolic(REC->why, { 0, \"NONE\" }, "+
			"{ MORE, \"MORE\" }), __print_flags(REC->id, \"|\", { 1, \"A\" }, { 2, \"B\" })\n")
	c := capture{b}
	hit := func(time uint64, event int, tid int32, id uint64, why uint32) {
		raw := c.Order().AppendUint64(make([]byte, 8), id)
		c.Sample(perfbuild.Sample{Event: event, PID: 7, TID: tid, Time: time, IP: 0x400010,
			Raw: c.Order().AppendUint32(raw, why)})
	}
	hit(1, 0, 7, 0, 0)
	hit(2, 0, 8, 202, 0)
	hit(4, 1, 7, 0, 0)
	hit(5, 0, 7, 9999, 0)
	hit(9, 1, 7, 9999, 0)
	hit(12, 1, 8, 202, 0)
	hit(13, 2, 8, 3, 0)
	hit(14, 2, 8, 5, 77)
	return c
}

// TestFieldsPrinted: fields are printed as the tracepoint's format prints them, and system calls have
// names.
func TestFieldsPrinted(t *testing.T) {
	for _, big := range []bool{false, true} {
		for _, tc := range []struct {
			tags, event string
			want        []string
		}{
			{event: "raw_syscalls:sys_enter", tags: "field:id",
				want: []string{"id=9999 1", "id=futex 1", "id=read 1"}},
			{event: "raw_syscalls:other", tags: "field:why", want: []string{"why=0x4d 1", "why=NONE 1"}},
			{event: "raw_syscalls:sys_enter", tags: "field:why", want: []string{"why=0 3"}},
			{event: "pair:syscalls", want: []string{"pair=9999 1", "pair=futex 1", "pair=read 1"}},
		} {
			p := fold(t, callCapture(big).Bytes(), Options{Selection: Selection{Event: tc.event, Keep: ingest.Keep{Tags: tc.tags}}})
			if got := tagLines(p); !slices.Equal(got, tc.want) {
				t.Errorf("%s %s, big endian %t: %q, want %q", tc.event, tc.tags, big, got, tc.want)
			}
		}
	}
}

// TestFieldPlaces: a field that is printed as a symbol of the kernel has the place of its address in
// the kernel, which is an object of the profile although no sample ends in it. Addresses of no code
// and those below the kernel have none.
func TestFieldPlaces(t *testing.T) {
	for _, big := range []bool{false, true} {
		c := allocCapture(big)
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000)
		for i, site := range []uint64{0xffffffff81000002, 0xffffffff90000000, 5} {
			c.Sample(perfbuild.Sample{PID: 7, Time: uint64(20 + i), IP: 0x400010, Raw: c.AllocRaw(site, 1, 0, "ab")})
		}
		p := fold(t, c.Bytes(), Options{Selection: Selection{Event: "kmem:kmalloc", Keep: ingest.Keep{Tags: "field:call_site"}}})
		var got []string
		for i := range p.Samples {
			for tag := range p.AllTags(&p.Samples[i]) {
				o, offset, ok := tag.Place()
				got = append(got, fmt.Sprintf("%s %s+%#x %t", tag.Text, o.RefSymbol, offset, ok))
			}
		}
		want := []string{"0xffffffff81000000 _text+0x0 true", "0xffffffff81000001 _text+0x1 true",
			"0xffffffff81000002 _text+0x2 true", "0xffffffff90000000 +0x0 false", "5 +0x0 false"}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("big endian %t: %q, want %q", big, got, want)
		}
		if !slices.ContainsFunc(p.Objects, func(o ingest.Object) bool { return o.Kind == ingest.Kernel }) {
			t.Errorf("no kernel in %+v", p.Objects)
		}
	}
}

func TestFieldErrors(t *testing.T) {
	plain := newCapture()
	plain.hit(7, 1, cU, 0x400010)
	for _, tc := range []struct {
		name string
		c    capture
		opts Options
		want string
	}{
		{name: "unknown", c: allocCapture(false), opts: Options{Selection: Selection{Weight: "size"}},
			want: "no field size of a tracepoint in it, only call_site, bytes_alloc, node, comm"},
		{name: "text", c: allocCapture(false), opts: Options{Selection: Selection{Weight: "comm"}},
			want: "the field comm is not a number"},
		{name: "no tracepoint", c: plain, opts: Options{Selection: Selection{Keep: ingest.Keep{Tags: "field:size"}}},
			want: "no field size: no tracepoint with a format in it"},
	} {
		cp, err := openBytes(t, tc.c.Bytes(), tc.opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cp.Profile(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
}
