package sampler

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"symbolize/fixtures/must"
)

// TestLiveWakers: a thread that waits for a pipe was woken by the program that writes to it, one
// that waits for a clock by an interrupt; also if the part in which they stopped has ended.
func TestLiveWakers(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	s := start(t, Options{Event: Event{Kind: OffCPU}, Wakers: true})
	c := exec.CommandContext(t.Context(), "sh", "-c",
		"for i in 1 2 3 4 5 6 7 8; do /bin/sleep 0.15; echo; done | cat >/dev/null")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	parts := cutParts(t, s, 4, func(i int) {
		time.Sleep(300 * time.Millisecond)
		if i == 3 {
			c.Wait()
		}
	})
	got := make(map[string]int) // by waiter and waker
	for i, p := range parts {
		p.counts.findInterrupts(p.tables[kernelStack])
		for k := range p.counts.of {
			by := p.counts.by(&k)
			waiter, waker := name(p, k.comm), name(p, by.comm)
			switch {
			case waiter != "cat" && waiter != "sleep" || k.state&blockedStates == 0:
				continue
			case k.waker == 0:
				waker = "none"
			case !p.tables[userStack].received(by.user) || !p.tables[kernelStack].received(by.kernel):
				t.Errorf("part %d: %s has no stack of %s", i, waiter, waker)
			case by.interrupt:
				waker = "interrupt"
			}
			got[waiter+" by "+waker]++
		}
	}
	t.Log(got)
	if got["cat by sh"] == 0 || got["sleep by interrupt"] == 0 {
		t.Errorf("wakers %v", got)
	}
}

func name(p *Part, comm uint32) string {
	return strings.TrimRight(string(p.counts.names[comm][:]), "\x00")
}
