package ingest

import (
	"cmp"
	"slices"
)

// stackAssembler numbers stacks and samples of a profile.
type stackAssembler struct {
	p      *Profile
	shards []*shard
	roles  *[numRoles]partList

	stack []uint32 // by row of all shards: its pair first, then its stack
}

// pair is a stack as two ranks.
type pair struct{ kernel, user uint32 }

// compare is the order of stacks by their location lists. Ranks decide it unless
// one kernel part is the beginning of the other.
func (a *stackAssembler) compare(x, y pair) int {
	if x.kernel == y.kernel {
		return cmp.Compare(x.user, y.user)
	}
	if x.kernel > y.kernel {
		return -a.compare(y, x)
	}
	kernels, users := &a.roles[kernelRole], &a.roles[userRole]
	if y.kernel > kernels.last[x.kernel] {
		return -1
	}
	// The rest of y's kernel part, then its user part, against x's user part.
	rest, user := kernels.list(y.kernel)[kernels.parts[x.kernel].n:], users.list(x.user)
	n := min(len(rest), len(user))
	if c := slices.Compare(user[:n], rest[:n]); c != 0 {
		return c
	}
	if len(user) < len(rest) {
		return -1
	}
	return slices.Compare(user[n:], users.list(y.user))
}

// stacks makes the stacks that rows use, each once.
func (a *stackAssembler) stacks() {
	total := 0
	for _, s := range a.shards {
		total += s.rows.n
	}
	order := make([]uint32, 0, total)
	pairs := make([]pair, 0, total)
	for _, s := range a.shards {
		for i := range s.rows.n {
			r := s.rows.at(i)
			pairs = append(pairs, pair{s.rank[kernelRole][r.kernel], s.rank[userRole][r.user]})
			order = append(order, uint32(len(order)))
		}
	}
	order = radixSort(order, func(i uint32) uint32 { return pairs[i].user })
	order = radixSort(order, func(i uint32) uint32 { return pairs[i].kernel })
	a.stack = make([]uint32, total)
	distinct := pairs[:0:0]
	for _, i := range order {
		if n := len(distinct); n == 0 || distinct[n-1] != pairs[i] {
			distinct = append(distinct, pairs[i])
		}
		a.stack[i] = uint32(len(distinct) - 1)
	}
	sorted := make([]uint32, len(distinct))
	for i := range sorted {
		sorted[i] = uint32(i)
	}
	slices.SortFunc(sorted, func(x, y uint32) int { return a.compare(distinct[x], distinct[y]) })
	number := make([]uint32, len(distinct)) // stack by pair
	words := 0
	unique := sorted[:0]
	for _, i := range sorted {
		if n := len(unique); n == 0 || a.compare(distinct[unique[n-1]], distinct[i]) != 0 {
			unique = append(unique, i)
			words += len(a.roles[kernelRole].list(distinct[i].kernel)) + len(a.roles[userRole].list(distinct[i].user))
		}
		number[i] = uint32(len(unique) - 1)
	}
	a.p.StackEnds = make([]uint32, 0, len(unique))
	a.p.StackLocs = make([]LocationID, 0, words)
	for _, i := range unique {
		for role, rank := range [numRoles]uint32{distinct[i].kernel, distinct[i].user} {
			for _, l := range a.roles[role].list(rank) {
				a.p.StackLocs = append(a.p.StackLocs, LocationID(l))
			}
		}
		a.p.StackEnds = append(a.p.StackEnds, uint32(len(a.p.StackLocs)))
	}
	for i, pairNumber := range a.stack {
		a.stack[i] = number[pairNumber]
	}
}

// samples sorts the rows of all shards and makes equal ones one.
func (a *stackAssembler) samples() {
	all := make([]Sample, 0, len(a.stack))
	for _, s := range a.shards {
		for i := range s.rows.n {
			r := s.rows.at(i)
			event := uint16(r.event)
			if s.events != nil {
				event = s.events[r.event]
			}
			all = append(all, Sample{
				Stack: StackID(a.stack[len(all)]), Event: event, Comm: s.comms(r.comm),
				PID: r.pid, TID: r.tid, CPU: r.cpu, Count: r.count, Weight: r.weight,
			})
		}
	}
	order := make([]uint32, len(all))
	for i := range order {
		order[i] = uint32(i)
	}
	const signed = 1 << 31 // turns the order of int32 into that of uint32
	for _, key := range []func(uint32) uint32{
		func(i uint32) uint32 { return uint32(all[i].Stack) },
		func(i uint32) uint32 { return uint32(all[i].CPU) ^ signed },
		func(i uint32) uint32 { return uint32(all[i].TID) ^ signed },
		func(i uint32) uint32 { return uint32(all[i].PID) ^ signed },
		func(i uint32) uint32 { return uint32(all[i].Comm) },
		func(i uint32) uint32 { return uint32(all[i].Event) },
	} {
		order = radixSort(order, key)
	}
	out := make([]Sample, 0, len(all))
	for _, i := range order {
		s := all[i]
		if n := len(out); n > 0 && sameRow(&out[n-1], &s) {
			out[n-1].Count += s.Count
			out[n-1].Weight += s.Weight
			continue
		}
		out = append(out, s)
	}
	a.p.Samples = slices.Clip(out)
}

func sameRow(a, b *Sample) bool {
	x, y := *a, *b
	x.Count, x.Weight, y.Count, y.Weight = 0, 0, 0, 0
	return x == y
}

const (
	radixBits = 11
	radixSize = 1 << radixBits
)

// radixSort sorts numbers by a 32-bit key, stably, and returns the result, in
// the given slice or a new one. Digits in which all keys agree cost nothing.
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
