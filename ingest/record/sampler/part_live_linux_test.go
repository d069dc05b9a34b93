package sampler

import (
	"os/exec"
	"testing"
	"time"

	"symbolize/fixtures/must"
)

// cutParts samples in parts, and returns these and the rest after the last Cut. The maps of
// stacks that the kernel has sent are the same all the time.
func cutParts(t *testing.T, s *Sampler, n int, between func(i int)) (parts []*Part) {
	t.Helper()
	for i := range n {
		between(i)
		s.Drain()
		if err := s.Turn(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond) // samples that were begun before
		p := s.Cut()
		t.Cleanup(p.Close)
		parts = append(parts, p)
	}
	s.Stop()
	return append(parts, s.Part)
}

// TestLiveParts: a sample is in one part, with its stacks, and nothing is counted twice or lost
// at a turn.
func TestLiveParts(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	s := start(t, Options{Frequency: 1999})
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		busy.Process.Kill()
		busy.Wait()
	}()
	parts := cutParts(t, s, 5, func(int) { time.Sleep(400 * time.Millisecond) })
	var counted, lost uint64
	for i, p := range parts {
		ours := false
		for k := range p.counts.of {
			ours = ours || k.pid == uint32(busy.Process.Pid) && k.user >= 0
		}
		if len(p.withoutStack()) > 0 || !ours && i < len(parts)-1 {
			t.Errorf("part %d: without their stacks: %v; stacks of the busy process: %v", i,
				p.withoutStack(), ours)
		}
		counted += p.counts.total()
		for _, n := range p.lost {
			lost += n
		}
	}
	st := s.Stats()
	for _, n := range st.Lost {
		lost += n
	}
	if counted+lost != st.Samples || counted == 0 {
		t.Errorf("%d samples taken, %d counted in %d parts, lost %v", st.Samples, counted, len(parts),
			st.Lost)
	}
}

// TestLivePartsOffCPU: a thread that stops in one part and continues in another is counted in the
// latter, with the stacks at which it stopped.
func TestLivePartsOffCPU(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	s := start(t, Options{Event: Event{Kind: OffCPU}})
	c := exec.CommandContext(t.Context(), "sleep", "0.7")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	parts := cutParts(t, s, 3, func(i int) {
		time.Sleep(100 * time.Millisecond)
		if i == 2 {
			c.Wait()
		}
	})
	for i, p := range parts {
		for k, v := range p.counts.of {
			if k.pid != uint32(c.Process.Pid) || time.Duration(v.Weight) < 600*time.Millisecond {
				continue
			}
			if i > 0 && k.user >= 0 && k.kernel >= 0 && p.tables[userStack].received(k.user) &&
				p.tables[kernelStack].received(k.kernel) {
				return
			}
			t.Errorf("part %d: %+v, %v", i, k, v)
		}
	}
	t.Error("sleep is not among what was sampled")
}
