package merge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/fold/intern"
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
	var set LabelSet
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
			base += len(s.Stacks[len(s.Stacks)-1])
		}
		for range 3 {
			var rows []Row
			for range 60 {
				rows = append(rows, Row{Stack: stacks[rng.IntN(len(stacks))],
					Label: rng.Uint32N(uint32(len(set.List))), Count: 1 + rng.Uint32N(5),
					Weight: rng.Uint64N(100)})
			}
			s.Rows = append(s.Rows, rows)
		}
		shards = append(shards, s)
	}
	return shards
}

// plainly folds shards in the simplest way: a line for each sample.
func plainly(shards []*Shard) map[string][2]uint64 {
	sums := map[string][2]uint64{}
	for _, s := range shards {
		for _, rows := range s.Rows {
			for _, r := range rows {
				l := s.Labels[r.Label]
				line := fmt.Sprint(l.Event, s.Comms(l.Comm), l.PID, l.TID, l.CPU)
				tree, at := 0, r.Stack
				for ; int(at) >= len(s.Stacks[tree]); tree++ {
					at -= uint32(len(s.Stacks[tree]))
				}
				for ; at > 0; at = s.Stacks[tree][at].Parent {
					pl := s.Places[s.Stacks[tree][at].Value]
					line += fmt.Sprintf(" %d+%d", s.Objects[pl.Object], pl.Offset)
				}
				old := sums[line]
				sums[line] = [2]uint64{old[0] + uint64(r.Count), old[1] + r.Weight}
			}
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
	for _, list := range table.Lists() {
		for _, r := range list {
			rows++
			n := want[Row{Stack: r.Stack, Label: r.Label}]
			if uint64(r.Count) != n || r.Weight != 3*n {
				t.Fatalf("%+v, want %d samples", r, n)
			}
		}
	}
	if rows != len(want) {
		t.Errorf("%d rows, want %d", rows, len(want))
	}
}

// TestRowsCountOn overflows a row's 32-bit count.
func TestRowsCountOn(t *testing.T) {
	table := NewRowTable()
	for range 5 {
		table.Add(Row{Stack: 1, Count: math.MaxUint32 - 1, Weight: 10})
		table.Add(Row{Stack: 1, Count: 1, Weight: 1})
	}
	count, weight := uint64(0), uint64(0)
	for _, list := range table.Lists() {
		for _, r := range list {
			count += uint64(r.Count)
			weight += r.Weight
		}
	}
	if count != 5*math.MaxUint32 || weight != 55 {
		t.Errorf("%d samples of weight %d, want %d of 55", count, weight, uint64(5*math.MaxUint32))
	}
}
