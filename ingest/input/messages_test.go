package input

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"symbolize/ingest/intern"
)

func TestMessages(t *testing.T) {
	words := func(n int) []byte { return bytes.Repeat([]byte{byte(n), 2, 3, 4, 5, 6, 7, 8}, n) }
	var b []byte
	var want []message
	for i := range 20 {
		m := message{hash: intern.Hash{Hi: 1<<63 + uint64(i), Lo: uint64(i) | 1}, weight: uint64(i) << 40,
			label: uint32(i), user: 7, kernel: 1 << 31, count: 9, cut: i%2 == 0}
		want = append(want, m)
		b = m.encode(b, newChain(nil, words(i%3), words(i%5)))
	}
	for i := range want {
		var m message
		c, rest := m.decode(b)
		kpart, part := c.parts()
		if m != want[i] || !bytes.Equal(kpart, words(i%3)) || !bytes.Equal(part, words(i%5)) {
			t.Fatalf("message %d: %+v with %x and %x, want %+v", i, m, kpart, part, want[i])
		}
		b = rest
	}
	if len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
}

// TestExchangeFloods lets all workers send to all, far more than the inboxes hold and before anyone
// receives: none may wait for ever, nothing may get lost.
func TestExchangeFloods(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			const each = 4000
			x := newBatchQueues(workers)
			got := make([]uint64, workers)
			c := newChain(nil, nil, make([]byte, 4096))
			var wg sync.WaitGroup
			for self := range workers {
				wg.Go(func() {
					take := func(b []byte) {
						for len(b) > 0 {
							var m message
							_, b = m.decode(b)
							got[self] += m.weight
						}
					}
					out := &outbox{x: x, self: self, batch: make([][]byte, len(x.inbox))}
					for i := range each {
						to := (self + 1 + i%max(1, workers-1)) % workers
						if workers == 1 {
							break // a worker sends nothing to itself
						}
						out.send(to, &message{weight: 1}, c, take)
					}
					x.finish(out, take)
				})
			}
			wg.Wait()
			total := uint64(0)
			for _, n := range got {
				total += n
			}
			if want := uint64(each * workers); workers > 1 && total != want {
				t.Errorf("%d of %d messages arrived", total, want)
			}
		})
	}
}

// TestOwners spreads chains evenly.
func TestOwners(t *testing.T) {
	x := newBatchQueues(3)
	count := make([]int, 3)
	for i := range uint64(3000) {
		count[x.owner(i*0x9e3779b97f4a7c15)]++
	}
	for w, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("worker %d has %d of 3000 chains", w, n)
		}
	}
}
