package record

import (
	"maps"
	"slices"
	"time"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/sys"
)

// lookAgainEvery is how often the BPF programs that are there are listed at most because records
// were lost.
const lookAgainEvery = time.Second

// again is the state for listing the BPF programs again after records of loads and unloads
// were lost. Its zero value does nothing: nobody looks up addresses by time.
type again struct {
	live     map[uint64]uint32 // lengths of functions that are loaded by the records, by address
	next     func(id uint32) (uint32, error)
	from, to uint64 // when records were lost; 0: they were not
	last     uint64 // when programs were listed last because of that
}

// maxLive bounds the functions of BPF programs that are remembered.
const maxLive = 1 << 20

// lookAgainAfterLoss has lost records followed by a list of the loaded programs.
func (x *sideband) lookAgainAfterLoss() {
	x.again = again{live: make(map[uint64]uint32), next: sys.NextProgram}
	x.programs.found = x.again.found
}

// lost notes that records were lost in a time.
func (a *again) lost(from, to uint64) {
	if a.live == nil {
		return
	}
	if a.to == 0 || from < a.from {
		a.from = from
	}
	a.to = max(a.to, to)
}

// found notes a function of a program that is there.
func (a *again) found(start uint64, length uint32) {
	if start != 0 && len(a.live) < maxLive {
		a.live[start] = length
	}
}

// ksymbol notes a function that is loaded or unloaded by a record.
func (a *again) ksymbol(start uint64, length uint32, loaded bool) {
	switch {
	case a.live == nil:
	case loaded:
		a.found(start, length)
	default:
		delete(a.live, start)
	}
}

// lookAgain lists the programs that are there, if records were lost, and writes records of them
// and of the unload of others. Between the loss and now code of BPF has no certain names; from now
// on it has. It returns for how long it need not be called, in ms, as poll(2) takes it.
func (x *sideband) lookAgain(now uint64) int {
	a := &x.again
	if a.to == 0 {
		return -1
	}
	wait := time.Duration(a.last + uint64(lookAgainEvery) - now)
	if a.last != 0 && wait > 0 {
		return int(wait/time.Millisecond) + 1
	}
	x.drainRings()
	from, to := a.from, a.to
	a.from, a.to = 0, 0
	// Those that come and go from here on have records.
	begin := x.s.host.Monotonic()
	before, there := maps.Clone(a.live), x.list(begin)
	for _, start := range slices.Sorted(maps.Keys(before)) {
		if there[start] == before[start] {
			continue
		}
		if a.live[start] == before[start] {
			delete(a.live, start)
		}
		x.ksymbols++
		_ = x.out.w.WriteKSymbol(&perfdata.KSymbol{Addr: start, Len: before[start],
			Kind: perfdata.KSymbolBPF, Unregister: true, Name: []byte(bpf.SymbolOf(bpf.Tag{}, ""))},
			perfdata.SampleID{Time: begin})
	}
	for start, length := range there {
		a.found(start, length)
	}
	x.modules.LookSince(from)
	a.last = x.s.host.Monotonic()
	x.drainRings()
	x.changes.Settled(to, a.last)
	x.s.log("after lost records %d functions of BPF programs were there", len(there))
	if a.to != 0 {
		return int(lookAgainEvery / time.Millisecond)
	}
	return -1
}

// list returns the functions of the programs that are there, by address, and has records of them
// written with this time.
func (x *sideband) list(at uint64) map[uint64]uint32 {
	there := make(map[uint64]uint32)
	for id, n := uint32(0), 0; ; n++ {
		next, err := x.again.next(id)
		if err != nil {
			return there
		}
		id = next
		x.programs.presentAgain(id, at, func(start uint64, length uint32) { there[start] = length })
		if n%betweenDrains == 0 {
			x.drainRings()
		}
	}
}
