package history

import (
	"testing"

	"symbolize/ingest/record/sampler"
)

// TestEpoch: the epoch of a stack is the time of the last change at one of its addresses, or before
// the call at it; it is unknown where changes may have been lost.
func TestEpoch(t *testing.T) {
	c := NewCodeLog(func() {}, func() {})
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
		{name: "before all", addresses: []uint64{0x5000}, time: 9, want: 0},
		{name: "at the time of a change", addresses: []uint64{0x5000}, time: 10, want: 10},
		{name: "between two", addresses: []uint64{0x5000}, time: 19, want: 10},
		{name: "not touched by the next", addresses: []uint64{0x5010}, time: 45, want: 20},
		{name: "touched by it", addresses: []uint64{0x5110}, time: 45, want: 30},
		{name: "the byte before lies in it", addresses: []uint64{0x5200}, time: 45, want: 30},
		{name: "behind it", addresses: []uint64{0x5201}, time: 45, want: 0},
		{name: "a page in the middle", addresses: []uint64{0xa800}, time: 45, want: 40},
		{name: "the end of it", addresses: []uint64{0xc001}, time: 45, want: 0},
		{name: "the newest of two addresses", addresses: []uint64{0x5010, 0xa800, 0x777},
			time: 45, want: 40},
		{name: "no address", time: 45, want: 0},
		{name: "changes were lost", addresses: []uint64{0x5010}, time: 50,
			want: sampler.UnknownTime},
		{name: "and of what never changed", addresses: []uint64{0x777}, time: 65,
			want: sampler.UnknownTime},
		{name: "changed since", addresses: []uint64{0x5010}, time: 75, want: 70},
		{name: "one address changed since", addresses: []uint64{0x5010, 0x777}, time: 75,
			want: sampler.UnknownTime},
		{name: "those of a range were lost", addresses: []uint64{0x20010}, time: 85,
			want: sampler.UnknownTime},
	} {
		if got := c.Epoch(tt.addresses, tt.time); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	var none *CodeLog
	none.Add(1, 2, 3)
	none.LoseRange(1, 2, 3, 4)
	none.End()
}

// TestSync: Sync waits until rings filled before the call were drained, at most until End.
func TestSync(t *testing.T) {
	asks, settled := make(chan bool, 8), 0
	c := NewCodeLog(func() { asks <- true }, func() { settled++ })
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
	c.Drained(c.Requested())
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
	c := NewCodeLog(func() {}, func() {})
	c.Add(5, 1<<20, (maxChangePages+1)<<changePage)
	if got := c.Epoch([]uint64{1 << 21}, 6); got != sampler.UnknownTime {
		t.Errorf("a change of too many pages: %d", got)
	}
	if got := c.Epoch([]uint64{1 << 19}, 6); got != 0 {
		t.Errorf("beside it: %d", got)
	}
	for i := range uint64(2 * maxCodeLosses) {
		c.LoseRange(10+i, 10+i, i<<30, 1)
	}
	if len(c.losses) != maxCodeLosses || c.Epoch([]uint64{(2*maxCodeLosses - 1) << 30}, 1<<20) != sampler.UnknownTime {
		t.Errorf("%d losses", len(c.losses))
	}
}

// TestForgetCode: a forgotten change does not move an address to another epoch.
func TestForgetCode(t *testing.T) {
	c := NewCodeLog(func() {}, func() {})
	for _, x := range [][3]uint64{{10, 0x1000, 16}, {20, 0x1000, 16}, {25, 0x1008, 8}, {5, 0x1000, 8},
		{30, 0x1000, 16}, {40, 0x2000, 16}} {
		c.Add(x[0], x[1], x[2])
	}
	c.Forget(28)
	for _, tt := range []struct{ pc, time, want uint64 }{
		{pc: 0x1001, time: 29, want: 20}, {pc: 0x1009, time: 29, want: 25}, {pc: 0x1009, time: 35,
			want: 30}, {pc: 0x2001, time: 50, want: 40}, {pc: 0x3010, time: 5, want: 0},
		{pc: 0x1001, time: 15, want: sampler.UnknownTime}, // was 10, which is forgotten
	} {
		if got := c.Epoch([]uint64{tt.pc}, tt.time); got != tt.want {
			t.Errorf("%#x at %d: %d, want %d", tt.pc, tt.time, got, tt.want)
		}
	}
	if c.count != 4 {
		t.Errorf("%d changes are kept", c.count)
	}
}
