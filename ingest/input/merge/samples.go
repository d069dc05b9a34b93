package merge

import (
	"slices"

	"symbolize/ingest"
)

func (s *Shard) tagsOf(l *Labels) ingest.StringID {
	if s.Tags == nil {
		return 0
	}
	return s.Tags(l.Tags)
}

// rankLabels returns the distinct labels of all shards in the order of samples, and the rank of each
// by shard and label. They are few.
func rankLabels(shards []*Shard) (distinct []ingest.Sample, rank [][]uint32) {
	type shardLabel struct {
		ingest.Sample // with the labels only
		shard         int
		label         int
	}
	var all []shardLabel
	for i, s := range shards {
		rank = append(rank, make([]uint32, len(s.Labels)))
		for n := range s.Labels {
			l := &s.Labels[n]
			all = append(all, shardLabel{ingest.Sample{Event: s.eventOf(l), Comm: s.Comms(l.Comm),
				PID: l.PID, TID: l.TID, CPU: l.CPU, Tags: s.tagsOf(l)}, i, n})
		}
	}
	slices.SortFunc(all, func(x, y shardLabel) int {
		return ingest.CompareSamples(x.Sample, y.Sample)
	})
	for k := range all {
		if k == 0 || ingest.CompareSamples(all[k-1].Sample, all[k].Sample) != 0 {
			distinct = append(distinct, all[k].Sample)
		}
		rank[all[k].shard][all[k].label] = uint32(len(distinct) - 1)
	}
	return distinct, rank
}

func (s *Shard) eventOf(l *Labels) uint16 {
	if s.Events == nil {
		return l.Event
	}
	return s.Events[l.Event]
}

// makeSamples sorts rows by labels and stack, and joins equal ones.
func makeSamples(rows []Row, labels []ingest.Sample) []ingest.Sample {
	order := make([]uint32, len(rows))
	for i := range order {
		order[i] = uint32(i)
	}
	order = radixSort(order, func(i uint32) uint32 { return rows[i].Stack })
	order = radixSort(order, func(i uint32) uint32 { return rows[i].Label })
	same := func(i, j uint32) bool {
		return rows[i].Stack == rows[j].Stack && rows[i].Label == rows[j].Label
	}
	n := 0
	for k, i := range order {
		if k == 0 || !same(order[k-1], i) {
			n++
		}
	}
	out := make([]ingest.Sample, 0, n)
	for k, i := range order {
		r := &rows[i]
		if k > 0 && same(order[k-1], i) {
			last := &out[len(out)-1]
			last.Count += r.Count
			last.Weight += r.Weight
			continue
		}
		sm := labels[r.Label]
		sm.Stack, sm.Count, sm.Weight = ingest.StackID(r.Stack), r.Count, r.Weight
		out = append(out, sm)
	}
	return out
}

const (
	radixBits = 11
	radixSize = 1 << radixBits
)

// radixSort stably sorts numbers by a 32-bit key and returns the result, in the given slice or a
// new one. Digits that are equal in all keys cost nothing.
func radixSort(order []uint32, key func(uint32) uint32) []uint32 {
	n := len(order)
	if n < 2 {
		return order
	}
	keys := make([]uint32, n)
	differ := uint32(0)
	for i, o := range order {
		keys[i] = key(o)
		differ |= keys[i] ^ keys[0]
	}
	var spareOrder, spareKeys []uint32
	for shift := 0; shift < 32; shift += radixBits {
		if differ>>shift&(radixSize-1) == 0 {
			continue
		}
		if spareOrder == nil {
			spareOrder, spareKeys = make([]uint32, n), make([]uint32, n)
		}
		var at [radixSize]uint32
		for _, k := range keys {
			at[k>>shift&(radixSize-1)]++
		}
		sum := uint32(0)
		for d, c := range at {
			at[d], sum = sum, sum+c
		}
		for i, k := range keys {
			d := k >> shift & (radixSize - 1)
			spareOrder[at[d]], spareKeys[at[d]] = order[i], k
			at[d]++
		}
		order, spareOrder = spareOrder, order
		keys, spareKeys = spareKeys, keys
	}
	return order
}

// Samples sorts samples, and adds up equal ones.
func Samples(list []ingest.Sample) []ingest.Sample {
	slices.SortFunc(list, ingest.CompareSamples)
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && ingest.CompareSamples(out[n-1], s) == 0 {
			out[n-1].Count += s.Count
			out[n-1].Weight += s.Weight
			continue
		}
		out = append(out, s)
	}
	return out
}
