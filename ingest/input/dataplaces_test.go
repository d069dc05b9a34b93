package input

import (
	"fmt"
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// dataCapture has samples with the addresses of data: of a page-fault, a breakpoint and a tracepoint each.
func dataCapture(big bool) capture {
	c := capture{perfbuild.NewOrder(big)}
	c.Events[0].SampleType |= perfbuild.Addr | perfbuild.DataSrc | perfbuild.Weight | perfbuild.Identifier
	c.Events[0].Type, c.Events[0].Config = 1, 2
	for typ, name := range []string{5: "mem:0x1000", 2: "sched:sched_switch"} {
		if name == "" {
			continue
		}
		e := c.Events[0]
		e.Name, e.Type, e.IDs = name, uint32(typ), []uint64{uint64(20 + typ)}
		c.Events = append(c.Events, e)
	}
	c.EventDesc()
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	data := func(pid int32, addr, length, pgoff uint64, name string, t uint64) {
		m := perfbuild.Mmap{PID: pid, Addr: addr, Len: length, PgOff: pgoff, Prot: 3, Misc: perfbuild.User | 1<<13, Filename: name}
		if name[0] == '/' && name[1] != '/' {
			m.Maj, m.Min, m.Ino = 8, 1, uint64(len(name))
		}
		c.Mmap2(m, at(t))
	}
	c.lib(7, 0x400000, 0x1000, 0, "/bin/x", 0)
	data(7, 0x402000, 0x1000, 0x2000, "/bin/x", 0)
	data(7, 0x403000, 0x2000, 0, "//anon", 0)
	data(7, 0x500000, 0x1000, 0, "[heap]", 0)
	data(7, 0x600000, 0x1000, 0, "[stack]", 0)
	data(7, 0x700000, 0x1000, 0, "/tmp/table", 0)
	data(7, 0x700000, 0x1000, 0, "//anon", 50)
	return c
}

// places is the tag of each sample: its text, and the place.
func places(p *ingest.Profile) (list []string) {
	for i := range p.Samples {
		for t := range p.AllTags(&p.Samples[i]) {
			text := t.Key + "=" + t.Value()
			if o, off, ok := t.Place(); ok {
				text += fmt.Sprintf(" in %s at %#x", o.File.Path, uint64(off))
			}
			list = append(list, text)
		}
	}
	return list
}

func TestDataPlaces(t *testing.T) {
	for _, tc := range []struct {
		name   string
		addr   uint64
		event  int
		time   uint64
		kernel bool
		want   []string
	}{
		{name: "data of the program", addr: 0x402010, want: []string{"data=[x] in /bin/x at 0x2010"}},
		{name: "behind it", addr: 0x404000, want: []string{"data=[anon] in /bin/x at 0x4000"}},
		{name: "constants among the code", addr: 0x400800, want: []string{"data=[x] in /bin/x at 0x800"}},
		{name: "the heap", addr: 0x500008, want: []string{"data=[heap]"}},
		{name: "the stack", addr: 0x600ff8, want: []string{"data=[stack]"}},
		{name: "a file without code", addr: 0x700010, want: []string{"data=[table]"}},
		{name: "what was mapped there later", addr: 0x700010, time: 60, want: []string{"data=[anon]"}},
		{name: "nothing", addr: 0x900000, want: []string{"data=[unmapped]"}},
		{name: "the kernel", addr: 0xffffffff81800000, kernel: true,
			want: []string{"data=[kernel.kallsyms] in [kernel.kallsyms] at 0x800000"}},
		{name: "memory of the kernel", addr: 0xffff888000001000, kernel: true, want: []string{"data=[unmapped kernel]"}},
		{name: "no address"},
		{name: "the instruction was fetched", addr: 0x400010},
		{name: "its second page was fetched", addr: 0x400018},
		{name: "a breakpoint", addr: 0x402010, event: 1},
		{name: "a tracepoint", addr: 0x402010, event: 2},
	} {
		for _, big := range []bool{false, true} {
			c := dataCapture(big)
			chain := []uint64{cU, 0x400010}
			if tc.kernel {
				chain = []uint64{perfbuild.ContextKernel, 0xffffffff81000010}
			}
			c.Sample(perfbuild.Sample{Event: tc.event, PID: 7, Time: 10 + tc.time, Addr: tc.addr, Chain: chain})
			for _, keep := range []ingest.Keep{{Tags: "data"}, {Tags: "type"}, {Access: true}} {
				p := fold(t, c.Bytes(), Options{Selection: Selection{Keep: keep}})
				got := places(p)
				got = slices.DeleteFunc(got, func(s string) bool { return s == "mem=N/A" })
				if !slices.Equal(got, tc.want) {
					t.Errorf("%s, big endian %t, %+v: %q, want %q", tc.name, big, keep, got, tc.want)
				}
			}
		}
	}
}

// TestDataMappings: mappings of data name no code, and are not read unless they are needed.
func TestDataMappings(t *testing.T) {
	c := dataCapture(false)
	c.Sample(perfbuild.Sample{PID: 7, Time: 10, Addr: 0x402010, Chain: []uint64{cU, 0x402010}})
	for _, keep := range []ingest.Keep{{}, {Tags: "data"}} {
		p := fold(t, c.Bytes(), Options{Selection: Selection{Keep: keep}})
		l := p.Locations[p.Leaves[p.Samples[0].Stack]]
		if o := &p.Objects[l.Object]; o.Kind != ingest.Unmapped {
			t.Errorf("%+v: code in %s", keep, o.File.Path)
		}
		for i := range p.Objects {
			if o := &p.Objects[i]; o.File.Path == "/bin/x" && len(o.Segments) != 1 {
				t.Errorf("%+v: mappings of code %v", keep, o.Segments)
			}
		}
	}
}
