package merge

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"symbolize/ingest"
	"symbolize/ingest/fold/intern"
)

// BenchmarkRows folds rows of which half are distinct, in a table far larger than the caches.
func BenchmarkRows(b *testing.B) {
	rows := make([]Row, 1<<19)
	rng := rand.New(rand.NewPCG(8, 9))
	for i := range rows {
		rows[i] = Row{Kernel: rng.Uint32N(1 << 10), User: rng.Uint32N(1 << 9), Count: 1, Weight: 1}
	}
	b.SetBytes(int64(len(rows)) * int64(unsafe.Sizeof(rows[0])))
	for b.Loop() {
		table := NewRowTable()
		for _, r := range rows {
			table.Add(r)
		}
		table.Lists()
	}
}

// benchShard has as many distinct stacks as rows, of 8 to 32 places.
func benchShard(rng *rand.Rand, rows int) *Shard {
	s := &Shard{Labels: []Labels{{}}, Objects: []ingest.ObjectID{0, 1},
		Comms: func(uint32) ingest.StringID { return 0 }}
	for i := range 1 << 14 {
		s.Places = append(s.Places, intern.Pair{Object: uint32(i & 1), Offset: uint64(i)})
	}
	for role, parts := range [NumRoles]int{KernelRole: 1 << 10, UserRole: rows} {
		lists := new(intern.Lists)
		lists.Add(nil)
		for range parts {
			list := make([]uint32, 4+rng.IntN(12))
			for k := range list {
				list[k] = rng.Uint32N(uint32(len(s.Places)))
			}
			lists.Add(list)
		}
		s.Parts[role] = lists
	}
	list := make([]Row, rows)
	for i := range list {
		list[i] = Row{Kernel: rng.Uint32N(1 << 10), User: uint32(i), Count: 1, Weight: 1}
	}
	s.Rows = [][]Row{list}
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
		b.SetBytes(int64(4*len(p.StackLocs)+4*len(p.StackEnds)) +
			int64(len(p.Samples))*int64(unsafe.Sizeof(p.Samples[0])))
	}
}
