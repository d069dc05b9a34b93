package ingest

import (
	"cmp"
	"slices"
	"sync"
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

// assemble makes the stacks that rows use, each once, and the samples.
func (a *stackAssembler) assemble() {
	ofRow, distinct := a.pairs()
	sorted := a.sortPairs(distinct)
	number := make([]uint32, len(distinct)) // stack by pair
	// two pairs can be one stack: a place may be in either part
	unique := sorted[:0]
	for _, i := range sorted {
		if n := len(unique); n == 0 || a.compare(distinct[unique[n-1]], distinct[i]) != 0 {
			unique = append(unique, i)
		}
		number[i] = uint32(len(unique) - 1)
	}
	var wg sync.WaitGroup
	wg.Go(func() { a.stacks(distinct, unique) })
	for i, n := range ofRow {
		ofRow[i] = number[n]
	}
	a.stack = ofRow
	a.samples()
	wg.Wait()
}

// stacks writes the stacks that are the given pairs.
func (a *stackAssembler) stacks(pairs []pair, which []uint32) {
	kernels, users := &a.roles[kernelRole], &a.roles[userRole]
	words := 0
	for _, i := range which {
		words += int(kernels.parts[pairs[i].kernel].n) + int(users.parts[pairs[i].user].n)
	}
	a.p.StackEnds = make([]uint32, 0, len(which))
	a.p.StackLocs = make([]LocationID, 0, words)
	for _, i := range which {
		a.p.StackLocs = append(a.p.StackLocs, kernels.list(pairs[i].kernel)...)
		a.p.StackLocs = append(a.p.StackLocs, users.list(pairs[i].user)...)
		a.p.StackEnds = append(a.p.StackEnds, uint32(len(a.p.StackLocs)))
	}
}

// pairs returns the distinct pairs of all rows, in the order of their ranks, and
// which of them each row has.
func (a *stackAssembler) pairs() (ofRow []uint32, distinct []pair) {
	total := 0
	for _, s := range a.shards {
		total += len(s.rows)
	}
	all := make([]pair, 0, total)
	order := make([]uint32, total)
	for _, s := range a.shards {
		for i := range s.rows {
			r := &s.rows[i]
			order[len(all)] = uint32(len(all))
			all = append(all, pair{s.rank[kernelRole][r.kernel], s.rank[userRole][r.user]})
		}
	}
	order = radixSort(order, func(i uint32) uint32 { return all[i].user })
	order = radixSort(order, func(i uint32) uint32 { return all[i].kernel })
	ofRow = make([]uint32, total)
	for k, i := range order {
		if k == 0 || all[order[k-1]] != all[i] {
			distinct = append(distinct, all[i])
		}
		ofRow[i] = uint32(len(distinct) - 1)
	}
	return ofRow, distinct
}

// sortPairs returns the numbers of pairs in the order of the stacks. The pairs
// come in the order of their ranks, which is the same but where one kernel part
// is the beginning of another (the empty one is, of all): what belongs to such a
// part is a run of its own, and the runs are merged.
func (a *stackAssembler) sortPairs(pairs []pair) []uint32 {
	last := a.roles[kernelRole].last
	rest := make([]uint32, 0, len(pairs))
	runs := [][]uint32{nil}
	for i := 0; i < len(pairs); {
		kernel := pairs[i].kernel
		var run []uint32
		into := &rest
		if last[kernel] != kernel {
			into = &run
		}
		for ; i < len(pairs) && pairs[i].kernel == kernel; i++ {
			*into = append(*into, uint32(i))
		}
		if len(run) > 0 {
			runs = append(runs, run)
		}
	}
	runs[0] = rest
	for len(runs) > 1 { // neighbours in pairs: few rounds
		for i := 0; i < len(runs); i += 2 {
			if i+1 < len(runs) {
				runs[i/2] = a.mergeRuns(pairs, runs[i], runs[i+1])
			} else {
				runs[i/2] = runs[i]
			}
		}
		runs = runs[:(len(runs)+1)/2]
	}
	return runs[0]
}

func (a *stackAssembler) mergeRuns(pairs []pair, x, y []uint32) []uint32 {
	out := make([]uint32, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		if a.compare(pairs[x[0]], pairs[y[0]]) <= 0 {
			out, x = append(out, x[0]), x[1:]
		} else {
			out, y = append(out, y[0]), y[1:]
		}
	}
	return append(append(out, x...), y...)
}

// samples sorts the rows of all shards and makes equal ones one.
func (a *stackAssembler) samples() {
	order, rows := a.sortRows()
	rowOf := func(i uint32) (*shard, *row) {
		for _, s := range a.shards {
			if int(i) < len(s.rows) {
				return s, &s.rows[i]
			}
			i -= uint32(len(s.rows))
		}
		panic("row of no shard") // order holds the numbers of all rows, once each
	}
	out := make([]Sample, 0, rows)
	for _, i := range order {
		s, r := rowOf(i)
		l := &s.labels[r.label]
		sm := Sample{Stack: StackID(a.stack[i]), Event: s.eventOf(l), Comm: s.comms(l.comm),
			PID: l.pid, TID: l.tid, CPU: l.cpu, Count: uint64(r.count), Weight: r.weight}
		if n := len(out); n > 0 && sameRow(&out[n-1], &sm) {
			out[n-1].Count += sm.Count
			out[n-1].Weight += sm.Weight
			continue
		}
		out = append(out, sm)
	}
	a.p.Samples = out
}

func (s *shard) eventOf(l *labels) uint16 {
	if s.events == nil {
		return l.event
	}
	return s.events[l.event]
}

// sortRows returns the rows of all shards, numbered through, in the order of
// samples: by labels, which are few and ranked beforehand, then by stack. distinct
// is how many samples they make.
func (a *stackAssembler) sortRows() (order []uint32, distinct int) {
	type shardLabel struct {
		Sample // with the labels only
		shard  int
		label  int
	}
	var all []shardLabel
	ranks := make([][]uint32, len(a.shards))
	for i, s := range a.shards {
		ranks[i] = make([]uint32, len(s.labels))
		for n := range s.labels {
			l := &s.labels[n]
			all = append(all, shardLabel{Sample{Event: s.eventOf(l), Comm: s.comms(l.comm),
				PID: l.pid, TID: l.tid, CPU: l.cpu}, i, n})
		}
	}
	slices.SortFunc(all, func(x, y shardLabel) int { return compareSamples(x.Sample, y.Sample) })
	rank := uint32(0)
	for k := range all {
		if k > 0 && compareSamples(all[k-1].Sample, all[k].Sample) != 0 {
			rank++
		}
		ranks[all[k].shard][all[k].label] = rank
	}
	order = make([]uint32, len(a.stack))
	label := make([]uint32, 0, len(a.stack))
	for i, s := range a.shards {
		for n := range s.rows {
			order[len(label)] = uint32(len(label))
			label = append(label, ranks[i][s.rows[n].label])
		}
	}
	order = radixSort(order, func(i uint32) uint32 { return a.stack[i] })
	order = radixSort(order, func(i uint32) uint32 { return label[i] })
	for k, i := range order {
		if k == 0 || a.stack[order[k-1]] != a.stack[i] || label[order[k-1]] != label[i] {
			distinct++
		}
	}
	return order, distinct
}

func sameRow(a, b *Sample) bool {
	return a.Stack == b.Stack && a.Event == b.Event && a.Comm == b.Comm && a.PID == b.PID &&
		a.TID == b.TID && a.CPU == b.CPU
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
