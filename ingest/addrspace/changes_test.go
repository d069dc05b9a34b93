package addrspace

import (
	"math/rand/v2"
	"testing"

	"symbolize/ingest/addr"
)

// TestKernelVersions: the versions that KernelVersions returns have all results at two
// addresses over time, in the order of all versions.
func TestKernelVersions(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		b := NewBuilder()
		type mapped struct {
			Mapping
			layer Layer
		}
		var live []mapped
		now := uint64(r.IntN(2))
		for i := range 40 {
			if now += uint64(r.IntN(3)); len(live) > 0 && r.IntN(2) == 0 {
				m := live[r.IntN(len(live))]
				b.KernelGone(now, m.layer, m.Start, m.End)
				continue
			}
			m := mapped{Mapping{Object: uint32(i)}, Layer(r.IntN(int(numLayers)))}
			m.Start = addr.PC(r.IntN(60))
			m.End = m.Start + addr.PC(1+r.IntN(8))
			live = append(live, m)
			b.Kernel(now, m.layer, m.Mapping)
		}
		m := b.Build()
		_, states := m.Versions()
		for pc := addr.PC(1); pc < 70; pc++ {
			answer := func(v Version) (out [2]int) { // of pc and of the address before it
				for i := range out {
					out[i] = -1
					if found := m.InKernel(v, pc-addr.PC(i)); found != nil {
						out[i] = int(found.Object)
					}
				}
				return out
			}
			var want, got [][2]int
			for v := int(m.Kernel(0).Version()); v < states; v++ {
				if a := answer(Version(v)); len(want) == 0 || want[len(want)-1] != a {
					want = append(want, a)
				}
			}
			last := -1
			for v := range m.KernelVersions(pc-1, pc) {
				if int(v) <= last {
					t.Fatalf("version %d behind %d", v, last)
				}
				last = int(v)
				if a := answer(v); len(got) == 0 || got[len(got)-1] != a {
					got = append(got, a)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("at %d the answers %v, want %v", pc, got, want)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("at %d the answers %v, want %v", pc, got, want)
				}
			}
		}
	}
}

// TestKernelVersionsElsewhere: changes at other addresses cost nothing.
func TestKernelVersionsElsewhere(t *testing.T) {
	b := NewBuilder()
	b.Kernel(1, Program, Mapping{Start: 100, End: 200})
	b.KernelGone(2, Program, 100, 200)
	for i := range uint64(5000) {
		b.Kernel(3+2*i, Program, Mapping{Start: 1000, End: 1100, Object: uint32(i)})
		b.KernelGone(4+2*i, Program, 1000, 1100)
	}
	m := b.Build()
	n := 0
	for range m.KernelVersions(150, 150) {
		n++
	}
	if n != 3 {
		t.Errorf("%d versions to look at, want 3", n)
	}
}
