package sideband

import (
	"cmp"
	"slices"

	"symbolize/ingest/format/perfdata"
)

// deferred are the user chains that came in records of their own, behind their samples. Equal
// ones are kept once; one of a sample takes 24 bytes beside.
type deferred struct {
	refs    []deferredRef // sorted when all records are read
	chains  [][]byte
	numbers map[string]uint32
	record  perfdata.DeferredChain // scratch
}

// deferredRef is one record.
type deferredRef struct {
	cookie uint64
	tid    int32 // 0 if the records do not have it
	chain  uint32
	at     Position
}

func compareDeferred(a, b deferredRef) int {
	return cmp.Or(cmp.Compare(a.cookie, b.cookie), cmp.Compare(a.tid, b.tid), cmp.Compare(a.at, b.at))
}

// deferredChain enters a CALLCHAIN_DEFERRED record.
func (x *Records) deferredChain(rec *perfdata.Record) error {
	d := &x.deferred
	if err := x.File.DeferredChain(rec, &d.record); err != nil {
		return err
	}
	id, err := x.File.SampleID(rec)
	if err != nil {
		return err
	}
	n, ok := d.numbers[string(d.record.Chain)]
	if !ok {
		if d.numbers == nil {
			d.numbers = make(map[string]uint32)
		}
		n = uint32(len(d.chains))
		chain := slices.Clone(d.record.Chain)
		d.chains = append(d.chains, chain)
		d.numbers[string(chain)] = n
	}
	d.refs = append(d.refs, deferredRef{d.record.Cookie, id.TID, n, PositionOf(rec)})
	return nil
}

// finish makes the chains ready to be looked up.
func (d *deferred) finish() {
	d.numbers = nil
	slices.SortFunc(d.refs, compareDeferred)
}

// DeferredChain returns the user chain that a sample of a thread refers to by its cookie, words
// as recorded; nil if it was never delivered. Several samples can share one: the thread was not
// in user mode between them.
func (x *Records) DeferredChain(tid int32, cookie uint64) []byte {
	d := &x.deferred
	for _, tid := range []int32{tid, 0} {
		i, _ := slices.BinarySearchFunc(d.refs, deferredRef{cookie: cookie, tid: tid}, compareDeferred)
		if i < len(d.refs) && d.refs[i].cookie == cookie && d.refs[i].tid == tid {
			return d.chains[d.refs[i].chain]
		}
	}
	return nil
}
