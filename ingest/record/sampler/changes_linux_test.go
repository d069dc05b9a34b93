package sampler

import (
	"encoding/binary"
	"maps"
	"testing"
)

// epochs are Changes at which every stack with an address of 7 has an epoch of the hundreds.
type epochs struct{ synced int }

func (e *epochs) Sync() { e.synced++ }

func (e *epochs) Epoch(addresses []uint64, time uint64) uint64 {
	if len(addresses) == 1 && addresses[0] == 7 {
		return time / 100 * 100
	}
	return 0
}

// TestEpochs: samples of one stack between two changes are added up, others are not.
func TestEpochs(t *testing.T) {
	s := withoutKernel(t, Options{Changes: new(epochs)})
	tables := s.tables
	tables[kernelStack].steady = Range{Start: 0x1000, End: 0x2000}
	kernel := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 0x1008), 7)
	near := binary.NativeEndian.AppendUint64(nil, 0x1fff)
	tables[kernelStack].add(hash{1, 1}, kernel)
	tables[kernelStack].add(hash{2, 2}, near)
	for _, k := range []countKey{
		{Kernel: hash{1, 1}, Time: 101}, {Kernel: hash{1, 1}, Time: 155}, {Kernel: hash{1, 1}, Time: 205},
		{Kernel: hash{2, 2}}, {Kernel: hash{2, 2}}, {Kernel: hash{2, 2}, Time: 7},
	} {
		k.User = hashOf(nil)
		s.addCount(&k, countValue{Count: 1})
	}
	got := make(map[uint64]uint64)
	for x, v := range s.counts.of {
		got[uint64(x.kernel)<<32|x.epoch] += v.Count
	}
	if want := map[uint64]uint64{100: 2, 200: 1, 1 << 32: 3}; !maps.Equal(got, want) {
		t.Errorf("samples by stack and epoch %v, want %v", got, want)
	}
}
