package changes

import (
	"testing"

	"symbolize/ingest/record/sampler"
)

// TestEpoch: the epoch of a stack is the newest change at one of its addresses, or
// behind the call before it; where changes may have been lost it is not known.
func TestEpoch(t *testing.T) {
	c := New(func() {}, func() {})
	c.Add(30, 0x5100, 0x100) // rings are read one after another
	c.Add(10, 0x5000, 0x200)
	c.Add(20, 0x5000, 0x200)
	c.Add(40, 0x9000, 0x3000) // some pages
	c.Add(25, 0x5000, 0)
	c.Add(0, 0x5000, 0x1000)
	c.Add(70, 0x5000, 0x200)
	c.Lost(50, 60)
	c.LoseRange(80, 90, 0x20000, 0x1000)
	for _, tt := range []struct {
		name      string
		addresses []uint64
		time      uint64
		want      uint64
	}{
		{"before all", []uint64{0x5000}, 9, 0},
		{"at the time of a change", []uint64{0x5000}, 10, 10},
		{"between two", []uint64{0x5000}, 19, 10},
		{"not touched by the next", []uint64{0x5010}, 45, 20},
		{"touched by it", []uint64{0x5110}, 45, 30},
		{"the byte before lies in it", []uint64{0x5200}, 45, 30},
		{"behind it", []uint64{0x5201}, 45, 0},
		{"a page in the middle", []uint64{0xa800}, 45, 40},
		{"the end of it", []uint64{0xc001}, 45, 0},
		{"the newest of two addresses", []uint64{0x5010, 0xa800, 0x777}, 45, 40},
		{"no address", nil, 45, 0},
		{"changes were lost", []uint64{0x5010}, 50, sampler.UnknownTime},
		{"and of what never changed", []uint64{0x777}, 65, sampler.UnknownTime},
		{"changed since", []uint64{0x5010}, 75, 70},
		{"one address changed since", []uint64{0x5010, 0x777}, 75, sampler.UnknownTime},
		{"those of a range were lost", []uint64{0x20010}, 85, sampler.UnknownTime},
	} {
		if got := c.Epoch(tt.addresses, tt.time); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	var none *Log
	none.Add(1, 2, 3)
	none.LoseRange(1, 2, 3, 4)
	none.End()
}

// TestSync: who asks waits until the rings were drained that were filled before, not longer than
// they are read.
func TestSync(t *testing.T) {
	asks, settled := make(chan bool, 8), 0
	c := New(func() { asks <- true }, func() { settled++ })
	done := make(chan bool)
	go func() {
		c.Sync()
		done <- true
		c.Sync()
		done <- true
	}()
	<-asks
	c.Drained(0) // begun before
	select {
	case <-done:
		t.Fatal("it did not wait")
	default:
	}
	c.Add(5, 0x1000, 1)
	c.Drained(c.Asked())
	<-done
	if got := c.Epoch([]uint64{0x1000}, 5); got != 5 {
		t.Errorf("epoch %d", got)
	}
	<-asks
	c.End()
	<-done
	if settled != 2 {
		t.Errorf("settled %d times", settled)
	}
}

// TestChangesBound: changes beyond the bounds are lost, only for the range they touch.
func TestChangesBound(t *testing.T) {
	c := New(func() {}, func() {})
	c.Add(5, 1<<20, (maxChangePages+1)<<changePage)
	if got := c.Epoch([]uint64{1 << 21}, 6); got != sampler.UnknownTime {
		t.Errorf("a change of too many pages: %d", got)
	}
	if got := c.Epoch([]uint64{1 << 19}, 6); got != 0 {
		t.Errorf("beside it: %d", got)
	}
	for i := range uint64(2 * maxLosses) {
		c.LoseRange(10+i, 10+i, i<<30, 1)
	}
	if len(c.losses) != maxLosses || c.Epoch([]uint64{(2*maxLosses - 1) << 30}, 1<<20) != sampler.UnknownTime {
		t.Errorf("%d losses", len(c.losses))
	}
}

// TestForget: a forgotten change does not move an address to another epoch.
func TestForget(t *testing.T) {
	c := New(func() {}, func() {})
	for _, x := range [][3]uint64{{10, 0x1000, 16}, {20, 0x1000, 16}, {25, 0x1008, 8}, {5, 0x1000, 8},
		{30, 0x1000, 16}, {40, 0x2000, 16}} {
		c.Add(x[0], x[1], x[2])
	}
	c.Forget(28)
	for _, tt := range []struct{ pc, time, want uint64 }{
		{0x1001, 29, 20}, {0x1009, 29, 25}, {0x1009, 35, 30}, {0x2001, 50, 40}, {0x3010, 5, 0},
		{0x1001, 15, sampler.UnknownTime}, // was 10, which is forgotten
	} {
		if got := c.Epoch([]uint64{tt.pc}, tt.time); got != tt.want {
			t.Errorf("%#x at %d: %d, want %d", tt.pc, tt.time, got, tt.want)
		}
	}
	if c.count != 4 {
		t.Errorf("%d changes are kept", c.count)
	}
}
