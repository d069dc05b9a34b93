package input

import (
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
			p := fold(t, allocCapture(big).Bytes(), Options{Keep: ingest.Keep{Tags: tc.tags}})
			if got := tagLines(p); !slices.Equal(got, tc.want) {
				t.Errorf("%s, big endian %t: %q, want %q", tc.tags, big, got, tc.want)
			}
		}
		p := fold(t, allocCapture(big).Bytes(), Options{Weight: "bytes_alloc"})
		if got := dump(p); !slices.Equal(got, []string{":7: [unmapped] 4 600"}) ||
			p.Events[0].Unit != "bytes" || p.Stats.FilteredOut != 1 {
			t.Errorf("big endian %t: %q, %+v", big, got, p.Events)
		}
		p = fold(t, allocCapture(big).Bytes(), Options{Weight: "node"})
		if p.Stats.BadRecords != 1 || p.Stats.Weight != 3 || p.Events[0].Unit != "count" {
			t.Errorf("a number below 0: %+v", p.Stats)
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
		{name: "unknown", c: allocCapture(false), opts: Options{Weight: "size"},
			want: "no field size of a tracepoint in it, only call_site, bytes_alloc, node, comm"},
		{name: "text", c: allocCapture(false), opts: Options{Weight: "comm"},
			want: "the field comm is not a number"},
		{name: "no tracepoint", c: plain, opts: Options{Keep: ingest.Keep{Tags: "field:size"}},
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
