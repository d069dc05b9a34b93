package intern

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	var table Table[int]
	seed := MakeSeed()
	want := map[string]int{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		key := make([]byte, rng.IntN(40))
		for i := range key {
			key[i] = byte(rng.IntN(2))
		}
		value, fresh := table.Add(seed.Hash(key))
		if old := want[string(key)]; fresh != (old == 0) || *value != old {
			t.Fatalf("key %x: value %d, new %v; want %d", key, *value, fresh, old)
		}
		*value++
		want[string(key)]++
	}
	if table.Len() != len(want) {
		t.Fatalf("%d keys, want %d", table.Len(), len(want))
	}
	total := 0
	for _, n := range table.All() {
		total += *n
	}
	if total != 20000 {
		t.Errorf("values add up to %d", total)
	}
}

// TestForest adds lists with common beginnings to small and large trees, and finds them again.
func TestForest(t *testing.T) {
	for _, most := range []int{1, 50, 2000, treeNodes} {
		rng := rand.New(rand.NewPCG(9, 1))
		forest := NewForest()
		forest.most = most
		lists, numbers := [][]uint32{}, []uint32{}
		for range 3000 {
			list := make([]uint32, rng.IntN(12))
			for k := range list {
				list[k] = rng.Uint32N(4)
			}
			lists = append(lists, list)
			numbers = append(numbers, forest.Add(list))
		}
		var trees [][]Node
		for _, tree := range forest.Trees() {
			trees = append(trees, tree.Nodes())
		}
		if few := len(trees) == 1; few != (most == treeNodes) {
			t.Errorf("at most %d nodes: %d trees", most, len(trees))
		}
		distinct := map[[2]uint32]string{}
		for i, list := range lists {
			tree, at := 0, numbers[i]
			for ; int(at) >= len(trees[tree]); tree++ {
				at -= uint32(len(trees[tree]))
			}
			key, text := [2]uint32{uint32(tree), at}, fmt.Sprint(list)
			if old, ok := distinct[key]; ok && old != text {
				t.Fatalf("%s and %s have one number", old, text)
			}
			distinct[key] = text
			got := []uint32{}
			for ; at != 0; at = trees[tree][at].Parent {
				if trees[tree][at].Parent >= at {
					t.Fatalf("node %d comes before its parent", at)
				}
				got = append(got, trees[tree][at].Value)
			}
			if !slices.Equal(got, list) {
				t.Fatalf("list %v became %v", list, got)
			}
		}
		for _, nodes := range trees {
			seen := map[Node]bool{}
			for _, n := range nodes[1:] {
				if seen[n] {
					t.Fatalf("two nodes %v", n)
				}
				seen[n] = true
			}
		}
	}
}

func TestPairs(t *testing.T) {
	table := NewPairs()
	want := map[Pair]uint32{}
	var batch []Pair
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50000 {
		p := Pair{Object: rng.Uint32N(5), Offset: rng.Uint64N(4000) << rng.UintN(50)}
		id := table.Add(p)
		if old, ok := want[p]; ok && old != id || !ok && int(id) != len(want) {
			t.Fatalf("%+v: number %d, before %d %v", p, id, old, ok)
		}
		want[p] = id
		batch = append(batch, p)
	}
	for i, id := range NewPairs().AddAll(nil, batch) {
		if id != want[batch[i]] {
			t.Fatalf("AddAll: %+v: number %d, want %d", batch[i], id, want[batch[i]])
		}
	}
	if len(table.List()) != len(want) {
		t.Fatalf("%d pairs, want %d", len(table.List()), len(want))
	}
	list := table.List()
	for p, id := range want {
		if list[id] != p {
			t.Fatalf("number %d is %+v, want %+v", id, list[id], p)
		}
	}
}

func TestLists(t *testing.T) {
	var lists Lists
	var want [][]uint32
	rng := rand.New(rand.NewPCG(5, 6))
	words := 0
	for i := range 6000 {
		list := make([]uint32, rng.IntN(200))
		if i%1000 == 999 {
			list = make([]uint32, 300000+i)
		}
		for k := range list {
			list[k] = rng.Uint32()
		}
		words += len(list)
		if id := lists.Add(list); int(id) != i {
			t.Fatalf("list %d got number %d", i, id)
		}
		want = append(want, list)
	}
	for i, list := range want {
		if !slices.Equal(lists.At(uint32(i)), list) {
			t.Fatalf("list %d differs", i)
		}
	}
	if lists.Len() != len(want) || lists.Words() != words {
		t.Errorf("%d lists of %d words, want %d of %d", lists.Len(), lists.Words(), len(want), words)
	}
	if id := lists.Add(make([]uint32, MaxList+1)); len(lists.At(id)) != MaxList {
		t.Errorf("a list over the limit has %d words", len(lists.At(id)))
	}
}

// chains are call chains as in a capture: with many repetitions.
func chains(distinct int) [][]byte {
	rng := rand.New(rand.NewPCG(7, 8))
	out := make([][]byte, distinct)
	for i := range out {
		for range 4 + rng.IntN(16) {
			out[i] = binary.LittleEndian.AppendUint64(out[i], 0x7f0000000000+rng.Uint64N(1<<20))
		}
	}
	return out
}

func BenchmarkAdd(b *testing.B) {
	for _, distinct := range []int{1000, 100000} {
		b.Run(fmt.Sprintf("distinct=%d", distinct), func(b *testing.B) {
			keys := chains(distinct)
			var table Table[uint64]
			seed := MakeSeed()
			size := int64(0)
			for _, k := range keys {
				table.Add(seed.Hash(k))
				size += int64(len(k))
			}
			b.SetBytes(size / int64(distinct))
			i := uint32(0)
			for b.Loop() {
				i = i*1664525 + 1013904223
				table.Add(seed.Hash(keys[i%uint32(distinct)]))
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	keys := chains(100000)
	b.ReportAllocs()
	for b.Loop() {
		var table Table[uint64]
		seed := MakeSeed()
		for _, k := range keys {
			table.Add(seed.Hash(k))
		}
	}
	b.SetBytes(int64(len(keys)))
}

// TestPack packs nodes of few and of many bits.
func TestPack(t *testing.T) {
	for _, nodes := range [][]Node{
		{{}},
		{{}, {0, 0}},
		{{}, {0, 7}, {1, 7}, {0, 1 << 20}},
		{{}, {0, 1<<32 - 1}, {1, 0}, {0, 5}},
	} {
		tree := Pack(nodes)
		if got := tree.Nodes(); !slices.Equal(got, nodes) {
			t.Errorf("%v became %v", nodes, got)
		}
	}
	far := make([]Node, 1<<20)
	for i := 1; i < len(far); i++ {
		far[i] = Node{uint32(i) / 2 * uint32(i%2), uint32(i) * 4000}
	}
	tree := Pack(far)
	if got := tree.Nodes(); !slices.Equal(got, far) {
		t.Error("a large tree differs")
	}
}
