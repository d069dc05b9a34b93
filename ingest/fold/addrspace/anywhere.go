package addrspace

import (
	"math/bits"

	"symbolize/ingest/addr"
)

const (
	granuleBits = 16      // log2 of the bytes per bit of the filter
	maxGranules = 1 << 14 // of one mapping; larger ones are kept as ranges
	maxLarge    = 16      // such ranges; with more the filter passes everything
	maxBits     = 1 << 25 // of the filter: 4 MiB
)

// anywhere is a filter for addresses that no process ever had mapped: most of the addresses that
// frame-pointer unwinding takes from functions without frame pointers.
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

// Anywhere reports whether some process may have had something mapped at pc, at any time. false is
// certain, and cheap.
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
