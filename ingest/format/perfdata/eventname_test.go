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
		{perfbuild.Event{Type: 0, Config: 0}, "cycles"},
		{perfbuild.Event{Type: 0, Config: 0, Flags: noGuest | perfbuild.Precise2}, "cycles:pp"},
		{perfbuild.Event{Type: 0, Config: 1, Flags: perfbuild.ExcludeKernel | perfbuild.ExcludeHV},
			"instructions:u"},
		{perfbuild.Event{Type: 0, Config: 1, Flags: perfbuild.ExcludeUser}, "instructions:kh"},
		{perfbuild.Event{Type: 0, Config: 77}, "unknown-hardware"},
		{perfbuild.Event{Type: 0, Config: 9<<32 | 4}, "msr/branches"},
		{perfbuild.Event{Type: 0, Config: 99<<32 | 4}, "branches"},
		{perfbuild.Event{Type: 1, Config: 0}, "cpu-clock"},
		{perfbuild.Event{Type: 1, Config: 1}, "task-clock"},
		{perfbuild.Event{Type: 1, Config: 2, Flags: perfbuild.ExcludeKernel | perfbuild.Precise1},
			"page-faults:uhp"},
		{perfbuild.Event{Type: 1, Config: 9}, "dummy"},
		{perfbuild.Event{Type: 1, Config: 10}, "bpf-output"},
		{perfbuild.Event{Type: 1, Config: 1 << 40}, "unknown-software"},
		{perfbuild.Event{Type: 2, Config: 123}, "tracepoint:123"},
		{perfbuild.Event{Type: 3, Config: 0}, "L1-dcache-loads"},
		{perfbuild.Event{Type: 3, Config: 0x10002}, "LLC-load-misses"},
		{perfbuild.Event{Type: 3, Config: 0x10104}, "iTLB-store-misses"},
		{perfbuild.Event{Type: 3, Config: 0x206}, "node-prefetches"},
		{perfbuild.Event{Type: 3, Config: 0x20000}, "invalid-cache"},
		{perfbuild.Event{Type: 3, Config: 0x300}, "invalid-cache"},
		{perfbuild.Event{Type: 3, Config: 0x7}, "invalid-cache"},
		{perfbuild.Event{Type: 4, Config: 0x1a8}, "r1a8"},
		{perfbuild.Event{Type: 5, Config1: 0x601040, BPType: 3}, "mem:0x601040:rw"},
		{perfbuild.Event{Type: 5, Config1: 0x601040, BPType: 4}, "mem:0x601040:x"},
		{perfbuild.Event{Type: 9, Config: 0x11}, "msr/config=0x11/"},
		{perfbuild.Event{Type: 33, Config: 0x11}, "unknown attr type: 33"},
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
