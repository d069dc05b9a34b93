package merge

import (
	"cmp"
	"slices"
	"sync"

	"symbolize/ingest"
)

// stackAssembler numbers stacks and samples of a profile.
type stackAssembler struct {
	p      *ingest.Profile
	shards []*Shard
	roles  *[NumRoles]partList

	labelRank [][]uint32  // by shard and its label: rank among all labels
	rows      []foldedRow // of all shards
}

// pair is a stack as two ranks.
type pair struct{ kernel, user uint32 }

// compare is the order of stacks by their location lists. Ranks determine it unless one kernel part
// is a prefix of the other.
func (a *stackAssembler) compare(x, y pair) int {
	if x.kernel == y.kernel {
		return cmp.Compare(x.user, y.user)
	}
	if x.kernel > y.kernel {
		return -a.compare(y, x)
	}
	kernels, users := &a.roles[KernelRole], &a.roles[UserRole]
	if y.kernel > kernels.last[x.kernel] {
		return -1
	}
	// Compare x's user part with the rest of y's kernel part followed by its user part.
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

// foldedRow is a row with common numbers: its pair, later its stack, and the rank of its labels.
type foldedRow struct {
	stack  uint32
	label  uint32
	count  uint64
	weight uint64
}

// assemble makes the distinct stacks of rows, and the samples.
func (a *stackAssembler) assemble() {
	labels := a.rankLabels()
	distinct := a.pairs()
	sorted := a.sortPairs(distinct)
	number := make([]uint32, len(distinct)) // stack by pair
	// Two pairs can be one stack: a place can be in either part.
	unique := sorted[:0]
	for _, i := range sorted {
		if n := len(unique); n == 0 || a.compare(distinct[unique[n-1]], distinct[i]) != 0 {
			unique = append(unique, i)
		}
		number[i] = uint32(len(unique) - 1)
	}
	var wg sync.WaitGroup
	wg.Go(func() { a.stacks(distinct, unique) })
	for i := range a.rows {
		a.rows[i].stack = number[a.rows[i].stack]
	}
	a.samples(labels)
	wg.Wait()
}

// stacks writes the stacks of the given pairs.
func (a *stackAssembler) stacks(pairs []pair, which []uint32) {
	kernels, users := &a.roles[KernelRole], &a.roles[UserRole]
	words := 0
	for _, i := range which {
		words += int(kernels.parts[pairs[i].kernel].n) + int(users.parts[pairs[i].user].n)
	}
	a.p.StackEnds = make([]uint32, 0, len(which))
	a.p.StackLocs = make([]ingest.LocationID, 0, words)
	for _, i := range which {
		a.p.StackLocs = append(a.p.StackLocs, kernels.list(pairs[i].kernel)...)
		a.p.StackLocs = append(a.p.StackLocs, users.list(pairs[i].user)...)
		a.p.StackEnds = append(a.p.StackEnds, uint32(len(a.p.StackLocs)))
	}
}

// pairs returns the distinct pairs of all rows in the order of their ranks, and fills a.rows in the
// same order. The shards' own rows are released.
func (a *stackAssembler) pairs() (distinct []pair) {
	total := 0
	for _, s := range a.shards {
		for _, list := range s.Rows {
			total += len(list)
		}
	}
	all := make([]pair, 0, total)
	order := make([]uint32, total)
	for _, s := range a.shards {
		for _, list := range s.Rows {
			for i := range list {
				r := &list[i]
				order[len(all)] = uint32(len(all))
				all = append(all, pair{s.Rank[KernelRole][r.Kernel], s.Rank[UserRole][r.User]})
			}
		}
	}
	order = radixSort(order, func(i uint32) uint32 { return all[i].user })
	order = radixSort(order, func(i uint32) uint32 { return all[i].kernel })
	place := make([]uint32, total) // of each row in the new order
	last := pair{^uint32(0), 0}
	a.rows = make([]foldedRow, total)
	for k, i := range order {
		if all[i] != last {
			last = all[i]
			distinct = append(distinct, last)
		}
		place[i] = uint32(k)
		a.rows[k].stack = uint32(len(distinct) - 1)
	}
	n := 0
	for i, s := range a.shards {
		for _, list := range s.Rows {
			for k := range list {
				to := &a.rows[place[n]]
				to.label = a.labelRank[i][list[k].Label]
				to.count, to.weight = uint64(list[k].Count), list[k].Weight
				if s.Counts != nil {
					to.count = s.Counts[k]
				}
				n++
			}
		}
		s.Rows = nil
	}
	return distinct
}

// sortPairs returns the numbers of pairs in the order of the stacks. The pairs are in the order of
// their ranks, which is the same unless one kernel part is a prefix of another (like the empty
// one): the pairs of such a part are a run of their own, and the runs are merged.
func (a *stackAssembler) sortPairs(pairs []pair) []uint32 {
	last := a.roles[KernelRole].last
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
	for len(runs) > 1 { // merge neighbours, in few rounds
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
		if a.compare(pairs[x[0]], pairs[y[0]]) > 0 {
			x, y = y, x
		}
		// Runs seldom interleave: find how far x goes on below y by doubling steps.
		n, step := 1, 1
		for n+step < len(x) && a.compare(pairs[x[n+step]], pairs[y[0]]) <= 0 {
			n += step
			step *= 2
		}
		more, _ := slices.BinarySearchFunc(x[n:min(n+step, len(x))], y[0], func(e, y uint32) int {
			if a.compare(pairs[e], pairs[y]) <= 0 {
				return -1
			}
			return 1
		})
		out, x = append(out, x[:n+more]...), x[n+more:]
	}
	return append(append(out, x...), y...)
}

func (s *Shard) tagsOf(l *Labels) ingest.StringID {
	if s.Tags == nil {
		return 0
	}
	return s.Tags(l.Tags)
}

// rankLabels returns the distinct labels of all shards in the order of samples, and fills
// a.labelRank. They are few.
func (a *stackAssembler) rankLabels() []ingest.Sample {
	type shardLabel struct {
		ingest.Sample // with the labels only
		shard         int
		label         int
	}
	var all []shardLabel
	for i, s := range a.shards {
		a.labelRank = append(a.labelRank, make([]uint32, len(s.Labels)))
		for n := range s.Labels {
			l := &s.Labels[n]
			all = append(all, shardLabel{ingest.Sample{Event: s.eventOf(l), Comm: s.Comms(l.Comm),
				PID: l.PID, TID: l.TID, CPU: l.CPU, Tags: s.tagsOf(l)}, i, n})
		}
	}
	slices.SortFunc(all, func(x, y shardLabel) int {
		return ingest.CompareSamples(x.Sample, y.Sample)
	})
	var distinct []ingest.Sample
	for k := range all {
		if k == 0 || ingest.CompareSamples(all[k-1].Sample, all[k].Sample) != 0 {
			distinct = append(distinct, all[k].Sample)
		}
		a.labelRank[all[k].shard][all[k].label] = uint32(len(distinct) - 1)
	}
	return distinct
}

func (s *Shard) eventOf(l *Labels) uint16 {
	if s.Events == nil {
		return l.Event
	}
	return s.Events[l.Event]
}

// samples sorts the rows by labels and stack, and joins equal ones.
func (a *stackAssembler) samples(labels []ingest.Sample) {
	order := make([]uint32, len(a.rows))
	for i := range order {
		order[i] = uint32(i)
	}
	order = radixSort(order, func(i uint32) uint32 { return a.rows[i].stack })
	order = radixSort(order, func(i uint32) uint32 { return a.rows[i].label })
	same := func(i, j uint32) bool {
		return a.rows[i].stack == a.rows[j].stack && a.rows[i].label == a.rows[j].label
	}
	n := 0
	for k, i := range order {
		if k == 0 || !same(order[k-1], i) {
			n++
		}
	}
	out := make([]ingest.Sample, 0, n)
	for k, i := range order {
		r := &a.rows[i]
		if k > 0 && same(order[k-1], i) {
			last := &out[len(out)-1]
			last.Count += r.count
			last.Weight += r.weight
			continue
		}
		sm := labels[r.label]
		sm.Stack, sm.Count, sm.Weight = ingest.StackID(r.stack), r.count, r.weight
		out = append(out, sm)
	}
	a.p.Samples = out
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
