package input

import (
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// TestGuests: records and samples of the events of a virtual machine have its numbers of
// processes, unrelated to the host's.
func TestGuests(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := perfbuild.NewOrder(big)
		b.Events[0].SampleType |= perfbuild.Identifier
		b.Events[0].IDs = []uint64{11, 12}
		c := capture{b}
		c.IDIndex([]perfbuild.IDEntry{{ID: 11}, {ID: 12, Machine: 55}})
		guest := func(t uint64) perfbuild.At { return perfbuild.At{Time: t, ID: 12} }
		c.Comm(7, 7, "server", false, at(0))
		c.lib(7, 0x400000, 0x1000, 0, "/bin/x", 0)
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.Comm(7, 7, "init", true, guest(5)) // the guest's 7 executes a program
		c.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x400000, Len: 0x1000, Filename: "/sbin/init"}, guest(6))
		c.Fork(8, 7, 8, 7, guest(6))
		for _, id := range []uint64{11, 12} {
			c.Sample(perfbuild.Sample{ID: id, PID: 7, Time: 9, Chain: []uint64{cK, 0xffffffff81000010,
				cU, 0x400010}})
			c.Sample(perfbuild.Sample{ID: id, PID: 7, Time: 9, Misc: perfbuild.GuestUser, IP: 0x400010,
				Chain: []uint64{perfbuild.ContextGuestUser, 0x400010}})
		}
		p := fold(t, c.Bytes(), Options{})
		want := []string{"guest 55: [guest] 2 2", "server: [kernel.kallsyms]+0x10 /bin/x+0x10 1 1",
			"server: [guest] 1 1"}
		if got := dump(p); !slices.Equal(got, want) {
			t.Errorf("big endian %t:\ngot  %q\nwant %q", big, got, want)
		}
		if p := fold(t, c.Bytes(), Options{Selection: Selection{Comms: []string{"guest 55"}}}); p.Stats.Samples != 2 {
			t.Errorf("%d samples of the guest, want 2", p.Stats.Samples)
		}
	}
	// As recorders before Linux 6.0 write it, and damaged.
	c := newCapture()
	c.IDIndex([]perfbuild.IDEntry{{ID: 11}})
	whole := c.Record(69, 0, c.Order().AppendUint64(nil, 1<<60))
	c.hit(7, 1, cU, 0x400010)
	if p := fold(t, c.Bytes(), Options{}); p.Stats.Samples != 1 || p.Stats.BadRecords != 1 {
		t.Errorf("record at %#x: %+v", whole, p.Stats)
	}
}
