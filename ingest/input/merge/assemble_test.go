package merge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/intern"
)

// TestRadixSort compares with the library's stable sort.
func TestRadixSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 100, 5000} {
		for _, most := range []uint32{1, 3, 1 << 11, 1 << 20, math.MaxUint32} {
			keys := make([]uint32, n)
			order := make([]uint32, n)
			for i := range keys {
				keys[i], order[i] = rng.Uint32N(most), uint32(i)
			}
			want := slices.Clone(order)
			slices.SortStableFunc(want, func(a, b uint32) int {
				return int(int64(keys[a]) - int64(keys[b]))
			})
			if got := radixSort(order, func(i uint32) uint32 { return keys[i] }); !slices.Equal(got, want) {
				t.Errorf("%d keys below %d are not sorted, or not stably", n, most)
			}
		}
	}
}

// randomShards makes shards with overlapping places, stacks and rows. A place can have several
// numbers, so that equal stacks arise in several ways.
func randomShards(rng *rand.Rand, n int) []*Shard {
	var shards []*Shard
	var set Numbers[Labels]
	for range 6 {
		set.Number(Labels{Comm: rng.Uint32N(3), PID: -1, TID: rng.Int32N(2), CPU: -1,
			Event: uint16(rng.IntN(2))})
	}
	for range n {
		s := &Shard{
			Labels: set.List, Objects: []ingest.ObjectID{2, 0, 1},
			Comms: func(code uint32) ingest.StringID { return ingest.StringID(2 - code) },
		}
		for i := range 12 {
			s.Places = append(s.Places,
				intern.Pair{Object: uint32(i % 3), Offset: uint64(rng.IntN(3))})
		}
		rng.Shuffle(len(s.Places), func(i, j int) {
			s.Places[i], s.Places[j] = s.Places[j],
				s.Places[i]
		})
		var stacks []uint32
		base := 0
		for range 1 + rng.IntN(3) {
			forest := intern.NewForest()
			for range 40 {
				list := make([]uint32, rng.IntN(6))
				for k := range list {
					list[k] = rng.Uint32N(uint32(len(s.Places)))
				}
				stacks = append(stacks, uint32(base)+forest.Add(list))
			}
			s.Stacks = append(s.Stacks, forest.Trees()...)
			base += s.Stacks[len(s.Stacks)-1].Len()
		}
		var rows []Row
		for range 180 {
			rows = append(rows, Row{Stack: stacks[rng.IntN(len(stacks))],
				Label: rng.Uint32N(uint32(len(set.List))), Count: 1 + rng.Uint64N(5),
				Weight: rng.Uint64N(100)})
		}
		s.Rows = slices.Values(rows)
		shards = append(shards, s)
	}
	return shards
}

// plainly folds shards in the simplest way: a line for each sample.
func plainly(shards []*Shard) map[string][2]uint64 {
	sums := map[string][2]uint64{}
	for _, s := range shards {
		for r := range s.Rows {
			l := s.Labels[r.Label]
			line := fmt.Sprint(l.Event, s.Comms(l.Comm), l.PID, l.TID, l.CPU)
			tree, at := 0, r.Stack
			for ; int(at) >= s.Stacks[tree].Len(); tree++ {
				at -= uint32(s.Stacks[tree].Len())
			}
			nodes := s.Stacks[tree].Nodes()
			for ; at > 0; at = nodes[at].Parent {
				pl := s.Places[nodes[at].Value]
				line += fmt.Sprintf(" %d+%d", s.Objects[pl.Object], pl.Offset)
			}
			old := sums[line]
			sums[line] = [2]uint64{old[0] + r.Count, old[1] + r.Weight}
		}
	}
	return sums
}

// TestAssemble compares the assembled profile with the simple way, and checks that it does not
// depend on the order of the shards.
func TestAssemble(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rng.IntN(4)
		again := rand.New(rand.NewPCG(seed, 5))
		again.IntN(4)
		counted := rand.New(rand.NewPCG(seed, 5))
		counted.IntN(4)
		shards, turned := randomShards(rng, n), randomShards(again, n)
		slices.Reverse(turned)
		want := plainly(shards)
		p, q := &ingest.Profile{Strings: make([]string, 3)},
			&ingest.Profile{Strings: make([]string, 3)}
		Assemble(p, shards)
		Assemble(q, turned)
		if !reflect.DeepEqual(p, q) {
			t.Fatalf("seed %d: another order of the shards, another profile", seed)
		}
		var last []ingest.LocationID
		for i := 1; i < len(p.Callers); i++ {
			stack := p.Stack(nil, ingest.StackID(i))
			slices.Reverse(stack)
			if int(p.Callers[i]) >= i || slices.Compare(last, stack) >= 0 {
				t.Fatalf("seed %d: stacks %d and %d are not in order", seed, i-1, i)
			}
			last = stack
		}
		got := map[string][2]uint64{}
		for i, s := range p.Samples {
			if i > 0 && ingest.CompareSamples(p.Samples[i-1], s) >= 0 {
				t.Fatalf("seed %d: samples %d and %d are not in order", seed, i-1, i)
			}
			line := fmt.Sprint(s.Event, s.Comm, s.PID, s.TID, s.CPU)
			for _, l := range p.Stack(nil, s.Stack) {
				line += fmt.Sprintf(" %d+%d", p.Locations[l].Object, p.Locations[l].Offset)
			}
			got[line] = [2]uint64{s.Count, s.Weight}
		}
		if len(got) != len(p.Samples) || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %d samples, want %d", seed, len(p.Samples), len(want))
		}
		checkCount(t, p, randomShards(counted, n))
	}
}

// checkCount compares Count with the assembled profile of equal shards.
func checkCount(t *testing.T, p *ingest.Profile, shards []*Shard) {
	t.Helper()
	q := &ingest.Profile{Strings: make([]string, 3)}
	Count(q, shards)
	var want []ingest.Sample
	for _, s := range p.Samples {
		s.Stack = 0
		if n := len(want); n > 0 && ingest.CompareSamples(want[n-1], s) == 0 {
			want[n-1].Count, want[n-1].Weight = want[n-1].Count+s.Count, want[n-1].Weight+s.Weight
			continue
		}
		want = append(want, s)
	}
	if q.DistinctStacks() != p.DistinctStacks() || !slices.Equal(q.Samples, want) ||
		!slices.Equal(q.Locations, p.Locations) {
		t.Errorf("%d stacks with samples %v, want %d with %v", q.DistinctStacks(), q.Samples,
			p.DistinctStacks(), want)
	}
}

func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 7))
	table := NewRowTable()
	want := map[Row]uint64{}
	for range 30000 {
		r := Row{Stack: rng.Uint32N(9000), Label: rng.Uint32N(2), Count: 1, Weight: 3}
		table.Add(r)
		want[Row{Stack: r.Stack, Label: r.Label}]++
	}
	rows := 0
	for r := range table.All() {
		rows++
		n := want[Row{Stack: r.Stack, Label: r.Label}]
		if r.Count != n || r.Weight != 3*n {
			t.Fatalf("%+v, want %d samples", r, n)
		}
	}
	if rows != len(want) {
		t.Errorf("%d rows, want %d", rows, len(want))
	}
}
