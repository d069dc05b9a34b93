// Package addrspace keeps the history of mappings: the address spaces of processes and of the
// kernel over the time of a recording.
//
// A Builder receives the side-band records in order of time. Build returns an immutable Map, which
// is safe for concurrent use and returns the mapping of an address at a time. Objects and thread
// names are numbers of the caller: this package does not interpret files or their names.
//
// Time is any number that orders both records and samples: nanoseconds of the recording's clock, or
// positions in the file if there is no clock. 0 is "before everything". A state that begins at a
// time holds for samples of that time.
//
// States of an address space are numbered: a Version is the set of mappings at a time. A fork
// shares its parent's Version until one of the two changes it, and a redundant mapping makes no new
// Version, so that equal Versions have equal mappings.
package addrspace

import (
	"math/bits"
	"slices"

	"symbolize/ingest/addr"
)

// Mapping is an object over an address range. The offset of an address in the object is PC − Start
// + PgOff, modulo 2^64.
type Mapping struct {
	Start, End addr.PC // half-open
	PgOff      uint64
	Object     uint32
}

// Offset returns the offset of pc in the mapping's object.
func (m *Mapping) Offset(pc addr.PC) addr.Offset {
	return addr.Offset(uint64(pc-m.Start) + m.PgOff)
}

// delta is equal for mappings of one object with the same bytes at the same addresses.
func (m *Mapping) delta() uint64 { return uint64(m.Start) - m.PgOff }

// Layer is the priority among mappings of the same kernel addresses.
type Layer uint8

// The layers of the kernel's address space, lowest first: higher layers win.
const (
	Around  Layer = iota // possible kernel addresses without another mapping
	Base                 // the kernel image and its modules
	Image                // whole pages: trampolines, dispatchers, out-of-line code
	Program              // BPF programs: exact ranges
	numLayers
)

// Version is the number of a state of an address space; 0 is the empty state. Processes and the
// kernel have separate numbers.
type Version uint32

// NoComm is the name of a thread without a recorded name.
const NoComm = ^uint32(0)

// Forever is the end of a state that lasts to the end of the recording.
const Forever = ^uint64(0)

// Span is a state and its time [From, Until). Until is Forever for the last state, which also holds
// at Forever.
type Span struct {
	Value       uint32 // a Version, or a thread name's number
	From, Until uint64
}

// Version returns the value as a Version.
func (s Span) Version() Version { return Version(s.Value) }

// Holds reports whether the span covers time t.
func (s Span) Holds(t uint64) bool {
	return t >= s.From && (t < s.Until || s.Until == Forever)
}

// track is the history of one value.
type track struct {
	at    []uint64 // ascending; before the first time the value is zero
	value []uint32
}

// set sets the value from time t on; t must not be less than previous times.
func (tr *track) set(t uint64, v uint32) {
	if n := len(tr.at); n > 0 && tr.at[n-1] == t {
		tr.value[n-1] = v
		return
	}
	tr.at = append(tr.at, t)
	tr.value = append(tr.value, v)
}

func (tr *track) now(none uint32) uint32 {
	if tr == nil || len(tr.value) == 0 {
		return none
	}
	return tr.value[len(tr.value)-1]
}

func (tr *track) span(t uint64, none uint32) Span {
	if tr == nil {
		return Span{Value: none, Until: Forever}
	}
	i, found := slices.BinarySearch(tr.at, t)
	if !found {
		i--
	}
	s := Span{Value: none, Until: Forever}
	if i >= 0 {
		s.Value, s.From = tr.value[i], tr.at[i]
	}
	if i+1 < len(tr.at) {
		s.Until = tr.at[i+1]
	}
	return s
}

// kernelState is a Version of the kernel: a tree per layer.
type kernelState [numLayers]tree

// Map is the finished history. It is immutable and safe for concurrent use.
type Map struct {
	forest   *forest
	mappings []Mapping
	roots    []tree // by Version of processes
	before   []tree // by Version of processes: the mappings just removed by an exec
	procs    map[int32]*track
	threads  map[int32]*track
	kernels  []kernelState // by Version of the kernel
	kernel   track
	changing []addrRange // kernel addresses with more than one mapping over time
	changes  [][]change  // by range of changing: the changes in it, in order of time
	anywhere anywhere
}

type addrRange struct{ start, end addr.PC }

// Process returns the Version of a process's address space at time t.
func (m *Map) Process(pid int32, t uint64) Span { return m.procs[pid].span(t, 0) }

// Thread returns the name of a thread at time t, or NoComm.
func (m *Map) Thread(tid int32, t uint64) Span { return m.threads[tid].span(t, NoComm) }

// Kernel returns the Version of the kernel's address space at time t.
func (m *Map) Kernel(t uint64) Span { return m.kernel.span(t, 0) }

// User returns the mapping that covers pc in a process's address space, or nil.
func (m *Map) User(v Version, pc addr.PC) *Mapping {
	return m.lookup(m.roots[v], pc)
}

// Before returns the mapping that covers pc in a process's address space before its current
// program, or nil. While the kernel maps the new program, samples still have the address at which
// the old program entered the kernel.
func (m *Map) Before(v Version, pc addr.PC) *Mapping {
	return m.lookup(m.before[v], pc)
}

// Same returns the range of addresses around pc that two Versions of processes map to the same
// offsets of one object; false if they map pc differently, or one of them does not map it.
func (m *Map) Same(v, w Version, pc addr.PC) (start, end addr.PC, ok bool) {
	a, mapped := m.forest.find(m.roots[v], pc)
	if !mapped {
		return 0, 0, false
	}
	b, mapped := m.forest.find(m.roots[w], pc)
	if !mapped {
		return 0, 0, false
	}
	x, y := &m.mappings[a.mapping], &m.mappings[b.mapping]
	if x.Object != y.Object || x.delta() != y.delta() {
		return 0, 0, false
	}
	return max(a.start, b.start), min(a.end, b.end), true
}

// InKernel returns the mapping that covers pc in the kernel's address space, or nil.
func (m *Map) InKernel(v Version, pc addr.PC) *Mapping {
	state := &m.kernels[v]
	for l := numLayers; l > 0; l-- {
		if state[l-1] == 0 {
			continue
		}
		if found := m.lookup(state[l-1], pc); found != nil {
			return found
		}
	}
	return nil
}

func (m *Map) lookup(t tree, pc addr.PC) *Mapping {
	if n, ok := m.forest.find(t, pc); ok {
		return &m.mappings[n.mapping]
	}
	return nil
}

// Versions returns the number of Versions of processes and of the kernel.
func (m *Map) Versions() (processes, kernel int) { return len(m.roots), len(m.kernels) }

const (
	granuleBits = 16      // log2 of the bytes per bit of the filter
	maxGranules = 1 << 14 // of one mapping; larger mappings are kept as ranges
	maxLarge    = 16      // ranges; with more the filter passes everything
	maxBits     = 1 << 25 // of the filter: 4 MiB
)

// anywhere is a filter for addresses that were never mapped in any process, as most addresses from
// following frame pointers into functions without them.
type anywhere struct {
	bitmap []uint64
	shift  uint
	large  []addrRange
	all    bool // over the limits: every address passes
}

func newAnywhere(mappings []Mapping) anywhere {
	var a anywhere
	granules := uint64(0)
	for i := range mappings {
		if n := granuleSpan(&mappings[i]); n <= maxGranules {
			granules += n
		}
	}
	if granules > maxBits { // also bounds the work for a hostile capture
		return anywhere{all: true, bitmap: make([]uint64, 1), shift: 63}
	}
	size := uint64(1) << bits.Len64(min(granules*8, maxBits)-1)
	size = max(size, 1<<10)
	a.bitmap = make([]uint64, size/64)
	a.shift = uint(64 - bits.Len64(size-1))
	for i := range mappings {
		m := &mappings[i]
		if m.Start >= m.End {
			continue
		}
		if granuleSpan(m) > maxGranules {
			a.large = append(a.large, addrRange{m.Start, m.End})
			continue
		}
		for g := m.Start >> granuleBits; g <= (m.End-1)>>granuleBits; g++ {
			bit := a.bit(g)
			a.bitmap[bit/64] |= 1 << (bit % 64)
		}
	}
	a.large = joinRanges(a.large)
	a.all = len(a.large) > maxLarge
	return a
}

func granuleSpan(m *Mapping) uint64 {
	if m.Start >= m.End {
		return 0
	}
	return uint64((m.End-1)>>granuleBits-m.Start>>granuleBits) + 1
}

func (a *anywhere) bit(granule addr.PC) uint64 {
	return uint64(granule) * 0x9e3779b97f4a7c15 >> a.shift
}

// Anywhere reports whether pc may have been mapped in any process at any time. false is certain,
// and fast.
func (m *Map) Anywhere(pc addr.PC) bool {
	a := &m.anywhere
	bit := a.bit(pc >> granuleBits)
	if a.bitmap[bit/64]>>(bit%64)&1 != 0 || a.all {
		return true
	}
	for _, r := range a.large {
		if pc >= r.start && pc < r.end {
			return true
		}
	}
	return false
}
