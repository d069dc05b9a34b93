package sampler

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// MaxKernelMemory is the limit of the maps' kernel memory in bytes.
const MaxKernelMemory = 64 << 20

// maxNoted limits the processes recorded as having requested their mappings.
const maxNoted = 1 << 14

// maxSince limits the states of mappings with a recorded start.
const maxSince = 1 << 13

// maxKnown limits the user stacks that are recognized by their addresses.
const maxKnown = 1 << 15

// kernelMaps are the maps of the program; maps that the options do not need are nil.
type kernelMaps struct {
	scratch, stats, counts, seen, ring *ebpf.Map
	noted, known, since                *ebpf.Map
	pids, cgroup, threads              *ebpf.Map
}

func newMaps(o *Options, known bool) (m *kernelMaps, err error) {
	m = &kernelMaps{}
	size := o.sizes.orDefault()
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	make := func(to **ebpf.Map, spec ebpf.MapSpec) {
		if err != nil {
			return
		}
		if *to, err = ebpf.NewMap(&spec); err != nil {
			err = fmt.Errorf("BPF map %s: %w", spec.Name, err)
		}
	}
	make(&m.scratch, ebpf.MapSpec{Name: "scratch", Type: ebpf.PerCPUArray, KeySize: 4,
		ValueSize: (scratchSize + 7) &^ 7, MaxEntries: 1})
	make(&m.stats, ebpf.MapSpec{Name: "stats", Type: ebpf.Array, KeySize: 4, ValueSize: 8,
		MaxEntries: numStats})
	make(&m.counts, ebpf.MapSpec{Name: "counts", Type: ebpf.Hash, KeySize: o.keySize(), ValueSize: 16,
		MaxEntries: size.counts})
	// A stack evicted from this map is sent again; its table already has it.
	make(&m.seen, ebpf.MapSpec{Name: "seen", Type: ebpf.LRUHash, KeySize: 16, ValueSize: 4,
		MaxEntries: size.seen})
	make(&m.ring, ebpf.MapSpec{Name: "stacks", Type: ebpf.RingBuf, MaxEntries: size.ring})
	// Programs of processes whose mappings were requested. The key is the 8 bytes of a record from
	// recordPID on.
	make(&m.noted, ebpf.MapSpec{Name: "noted", Type: ebpf.LRUHash, KeySize: 8, ValueSize: 4,
		MaxEntries: maxNoted})
	if known {
		make(&m.known, ebpf.MapSpec{Name: "known", Type: ebpf.LRUHash, KeySize: 16, ValueSize: 16,
			MaxEntries: maxKnown})
		make(&m.since, ebpf.MapSpec{Name: "since", Type: ebpf.LRUHash,
			KeySize: scratchLayout - scratchProcess, ValueSize: 8, MaxEntries: maxSince})
	}
	if len(o.PIDs) > 0 {
		make(&m.pids, ebpf.MapSpec{Name: "pids", Type: ebpf.Hash, KeySize: 4, ValueSize: 4,
			MaxEntries: uint32(len(o.PIDs))})
	}
	if o.Cgroup != "" {
		make(&m.cgroup, ebpf.MapSpec{Name: "cgroup", Type: ebpf.CGroupArray, KeySize: 4,
			ValueSize: 4, MaxEntries: 1})
	}
	if o.Event.Kind == OffCPU {
		make(&m.threads, ebpf.MapSpec{Name: "threads", Type: ebpf.Hash, KeySize: 4,
			ValueSize: scratchKey + o.keySize(), MaxEntries: size.threads})
	}
	return m, err
}

func (m *kernelMaps) all() []*ebpf.Map {
	return []*ebpf.Map{m.scratch, m.stats, m.counts, m.seen, m.ring, m.noted, m.pids, m.cgroup,
		m.threads, m.known, m.since}
}

func (m *kernelMaps) close() {
	for _, x := range m.all() {
		if x != nil {
			x.Close()
		}
	}
}

// memory returns the kernel memory of the maps in bytes, as the kernel reports it.
func (m *kernelMaps) memory() (total uint64) {
	for _, x := range m.all() {
		if x == nil {
			continue
		}
		if info, err := x.Info(); err == nil {
			if n, ok := info.Memlock(); ok {
				total += n
			}
		}
	}
	return total
}
