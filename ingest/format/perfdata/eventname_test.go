package perfdata

import (
	"testing"

	"symbolize/fixtures/perfbuild"
)

// TestEventNames derives names without an EVENT_DESC.
func TestEventNames(t *testing.T) {
	const noGuest = 1 << 20
	for _, tt := range []struct {
		event perfbuild.Event
		want  string
	}{
		{event: perfbuild.Event{Type: 0, Config: 0}, want: "cycles"},
		{event: perfbuild.Event{Type: 0, Config: 0, Flags: noGuest | perfbuild.Precise2},
			want: "cycles:pp"},
		{event: perfbuild.Event{Type: 0, Config: 1, Flags: perfbuild.ExcludeKernel | perfbuild.ExcludeHV},
			want: "instructions:u"},
		{event: perfbuild.Event{Type: 0, Config: 1, Flags: perfbuild.ExcludeUser},
			want: "instructions:kh"},
		{event: perfbuild.Event{Type: 0, Config: 77}, want: "unknown-hardware"},
		{event: perfbuild.Event{Type: 0, Config: 9<<32 | 4}, want: "msr/branches"},
		{event: perfbuild.Event{Type: 0, Config: 99<<32 | 4}, want: "branches"},
		{event: perfbuild.Event{Type: 1, Config: 0}, want: "cpu-clock"},
		{event: perfbuild.Event{Type: 1, Config: 1}, want: "task-clock"},
		{event: perfbuild.Event{Type: 1, Config: 2, Flags: perfbuild.ExcludeKernel | perfbuild.Precise1},
			want: "page-faults:uhp"},
		{event: perfbuild.Event{Type: 1, Config: 9}, want: "dummy"},
		{event: perfbuild.Event{Type: 1, Config: 10}, want: "bpf-output"},
		{event: perfbuild.Event{Type: 1, Config: 1 << 40}, want: "unknown-software"},
		{event: perfbuild.Event{Type: 2, Config: 123}, want: "tracepoint:123"},
		{event: perfbuild.Event{Type: 3, Config: 0}, want: "L1-dcache-loads"},
		{event: perfbuild.Event{Type: 3, Config: 0x10002}, want: "LLC-load-misses"},
		{event: perfbuild.Event{Type: 3, Config: 0x10104}, want: "iTLB-store-misses"},
		{event: perfbuild.Event{Type: 3, Config: 0x206}, want: "node-prefetches"},
		{event: perfbuild.Event{Type: 3, Config: 0x20000}, want: "invalid-cache"},
		{event: perfbuild.Event{Type: 3, Config: 0x300}, want: "invalid-cache"},
		{event: perfbuild.Event{Type: 3, Config: 0x7}, want: "invalid-cache"},
		{event: perfbuild.Event{Type: 4, Config: 0x1a8}, want: "r1a8"},
		{event: perfbuild.Event{Type: 5, Config1: 0x601040, BPType: 3}, want: "mem:0x601040:rw"},
		{event: perfbuild.Event{Type: 5, Config1: 0x601040, BPType: 4}, want: "mem:0x601040:x"},
		{event: perfbuild.Event{Type: 9, Config: 0x11}, want: "msr/config=0x11/"},
		{event: perfbuild.Event{Type: 33, Config: 0x11}, want: "unknown attr type: 33"},
	} {
		b := perfbuild.New()
		b.Events = []perfbuild.Event{tt.event}
		b.PMUMappings(perfbuild.PMU{Type: 9, Name: "msr"})
		b.FinishedRound()
		if got := openBuilt(t, b).Events[0].Name; got != tt.want {
			t.Errorf("type %d config %#x: %q, want %q", tt.event.Type, tt.event.Config, got,
				tt.want)
		}
	}
}

// TestTracepointNames: without other names, those of the formats; recordings in pipe mode have no
// others.
func TestTracepointNames(t *testing.T) {
	const format = "name: main\nID: 1329\nformat:\n\tfield:unsigned long __probe_ip;" +
		"\toffset:8;\tsize:8;\tsigned:0;\n"
	for _, c := range []struct {
		name   string
		update string
		bytes  func(*perfbuild.File) []byte
		want   string
	}{
		{"file", "", (*perfbuild.File).Bytes, "probe_untitled1:main"},
		{"pipe", "", (*perfbuild.File).Pipe, "probe_untitled1:main"},
		{"name in a pipe", "mine", (*perfbuild.File).Pipe, "mine"},
	} {
		bothOrders(t, func(t *testing.T, b *perfbuild.File) {
			b.Events = []perfbuild.Event{{Type: 2, Config: 1329, IDs: []uint64{1}},
				{Type: 2, Config: 7, IDs: []uint64{2}}}
			b.TracingData("probe_untitled1", format)
			if c.update != "" {
				b.EventNameUpdate(1, c.update)
			}
			b.FinishedRound()
			f := openBytes(t, c.bytes(b))
			if f.Events[0].Name != c.want || f.Events[1].Name != "tracepoint:7" {
				t.Errorf("%s: %q, %q, want %q", c.name, f.Events[0].Name, f.Events[1].Name, c.want)
			}
		})
	}
}

// TestEventDesc matches descriptions to events by ID, else by index.
func TestEventDesc(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		b.Events = []perfbuild.Event{
			{Type: 4, Config: 1, SampleType: perfbuild.Identifier, IDs: []uint64{5}, Name: "one"},
			{Type: 4, Config: 2, SampleType: perfbuild.Identifier, IDs: []uint64{6}, Name: "two"},
		}
		b.Events[0], b.Events[1] = b.Events[1], b.Events[0]
		b.EventDesc()
		b.Events[0], b.Events[1] = b.Events[1], b.Events[0]
		b.FinishedRound()
		f := openBuilt(t, b)
		if f.Events[0].Name != "one" || f.Events[1].Name != "two" {
			t.Errorf("by ID: %q, %q", f.Events[0].Name, f.Events[1].Name)
		}
		b.EventDesc()
		b.Events[0].IDs, b.Events[1].IDs = nil, nil
		f = openBuilt(t, b)
		if f.Events[1].Name != "two" || len(f.Events[1].IDs) != 1 || f.Events[1].IDs[0] != 6 {
			t.Errorf("by place: %+v", f.Events)
		}
	})
}
