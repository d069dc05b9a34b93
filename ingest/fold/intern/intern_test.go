package intern

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
)

// entriesOf visits the entries of all parts.
func entriesOf[V any](table *Table[V]) iter.Seq[Entry[V]] {
	return func(yield func(Entry[V]) bool) {
		for i := range NumParts {
			for e := range table.Part(i) {
				if !yield(e) {
					return
				}
			}
		}
	}
}

func TestTable(t *testing.T) {
	table := New[int](maphash.MakeSeed())
	want := map[string]Ref{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		key := make([]byte, rng.IntN(40))
		for i := range key {
			key[i] = byte(rng.IntN(2))
		}
		if rng.IntN(50) == 0 {
			key = bytes.Repeat(key, 500) // over the first chunk
		}
		value, id, fresh := table.Add(key)
		old, known := want[string(key)]
		if known == fresh || known && old != id {
			t.Fatalf("key %x: number %d, new %v; before %d %v", key, id, fresh, old, known)
		}
		if fresh {
			if *value != 0 {
				t.Fatalf("new key has the value %d", *value)
			}
			want[string(key)] = id
		}
		*value++
	}
	if table.n != len(want) {
		t.Fatalf("%d keys, want %d", table.n, len(want))
	}
	total, refs := 0, map[Ref]bool{}
	for e := range entriesOf(table) {
		id, ok := want[string(e.Key)]
		if !ok || id != e.Ref || refs[id] {
			t.Fatalf("entry %x: name %d, want %d %v", e.Key, e.Ref, id, ok)
		}
		refs[id] = true
		if value, found, ok := table.Find(e.Key); !ok || found != id || value != e.Value {
			t.Fatalf("Find(%x) = %d %v, want %d", e.Key, found, ok, id)
		}
		total += *e.Value
	}
	if total != 20000 || len(refs) != len(want) {
		t.Errorf("values add up to %d in %d entries, want 20000 in %d", total, len(refs), len(want))
	}
	pieces := 0
	for i := range NumParts {
		for range table.Part(i) {
			pieces++
		}
	}
	if pieces != len(want) {
		t.Errorf("%d entries in all pieces, want %d", pieces, len(want))
	}
	if _, _, ok := table.Find([]byte("not there")); ok {
		t.Error("found a key that is not there")
	}
}

func TestTableKeepsItsOwnKeys(t *testing.T) {
	table := New[struct{}](maphash.MakeSeed())
	key := []byte("abcdefgh")
	table.Add(key)
	copy(key, "XXXXXXXX")
	if _, _, ok := table.Find([]byte("abcdefgh")); !ok {
		t.Error("the key changed with the caller's slice")
	}
	var got []byte
	for e := range entriesOf(table) {
		got = append(e.Key, '!') // must not run into the next key
	}
	table.Add([]byte("next"))
	if _, _, ok := table.Find([]byte("next")); !ok || string(got) != "abcdefgh!" {
		t.Errorf("appending to a key reached another: %q", got)
	}
}

func TestLongKey(t *testing.T) {
	table := New[struct{}](maphash.MakeSeed())
	long := bytes.Repeat([]byte{7}, MaxKey+100)
	_, a, _ := table.Add(long)
	_, b, fresh := table.Add(long[:MaxKey])
	if a != b || fresh {
		t.Errorf("a key over MaxKey: names %d and %d, the second new: %v", a, b, fresh)
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
			table := New[uint64](maphash.MakeSeed())
			size := int64(0)
			for _, k := range keys {
				table.Add(k)
				size += int64(len(k))
			}
			b.SetBytes(size / int64(distinct))
			i := uint32(0)
			for b.Loop() {
				i = i*1664525 + 1013904223
				table.Add(keys[i%uint32(distinct)])
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	keys := chains(100000)
	b.ReportAllocs()
	for b.Loop() {
		table := New[uint64](maphash.MakeSeed())
		for _, k := range keys {
			table.Add(k)
		}
	}
	b.SetBytes(int64(len(keys)))
}
