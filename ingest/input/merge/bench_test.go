package merge

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"symbolize/ingest"
	"symbolize/ingest/intern"
)

// BenchmarkRows folds rows of which half are distinct, in a table far larger than the caches.
func BenchmarkRows(b *testing.B) {
	rows := make([]Row, 1<<19)
	rng := rand.New(rand.NewPCG(8, 9))
	for i := range rows {
		rows[i] = Row{Stack: rng.Uint32N(1 << 18), Label: rng.Uint32N(2), Count: 1, Weight: 1}
	}
	b.SetBytes(int64(len(rows)) * int64(unsafe.Sizeof(rows[0])))
	for b.Loop() {
		table := NewRowTable()
		for _, r := range rows {
			table.Add(r)
		}
		for range table.All() {
		}
	}
}

// benchShard has as many stacks as rows, of 8 to 32 places.
func benchShard(rng *rand.Rand, rows int) *Shard {
	s := &Shard{Labels: []Labels{{}}, Objects: []ingest.ObjectID{0, 1},
		Comms: func(uint32) ingest.StringID { return 0 }}
	for i := range 1 << 14 {
		s.Places = append(s.Places, intern.Pair{Object: uint32(i & 1), Offset: uint64(i)})
	}
	stacks := intern.NewForest()
	list := make([]Row, rows)
	for i := range list {
		places := make([]uint32, 8+rng.IntN(24))
		for k := range places { // of few kinds far outside, of many inside
			places[k] = rng.Uint32N(min(uint32(len(s.Places)), 2+uint32(len(s.Places)>>min(k/2, 14))))
		}
		list[i] = Row{Stack: stacks.Add(places), Count: 1, Weight: 1}
	}
	s.Rows, s.Stacks = slices.Values(list), stacks.Trees()
	return s
}

// BenchmarkAssemble makes a Profile of two shards. Bytes are the bytes of its stacks and samples.
func BenchmarkAssemble(b *testing.B) {
	rng := rand.New(rand.NewPCG(10, 11))
	for b.Loop() {
		b.StopTimer() // shards are used up
		shards := []*Shard{benchShard(rng, 1<<15), benchShard(rng, 1<<15)}
		p := &ingest.Profile{Objects: make([]ingest.Object, 2), Strings: []string{""}}
		b.StartTimer()
		Assemble(p, shards)
		b.SetBytes(int64(8*len(p.Callers)) +
			int64(len(p.Samples))*int64(unsafe.Sizeof(p.Samples[0])))
	}
}
