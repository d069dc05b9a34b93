package intern

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	table := New[int]()
	want := map[string]uint32{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		key := make([]byte, rng.IntN(40))
		for i := range key {
			key[i] = byte(rng.IntN(2))
		}
		if rng.IntN(50) == 0 {
			key = bytes.Repeat(key, 500) // over the first chunk
		}
		id, value, fresh := table.Add(key)
		old, known := want[string(key)]
		if known == fresh || known && old != id {
			t.Fatalf("key %x: number %d, new %v; before %d %v", key, id, fresh, old, known)
		}
		if fresh {
			if int(id) != len(want) || *value != 0 {
				t.Fatalf("new key got number %d after %d keys, value %d", id, len(want), *value)
			}
			want[string(key)] = id
		}
		*value++
	}
	if table.Len() != len(want) {
		t.Fatalf("%d keys, want %d", table.Len(), len(want))
	}
	total, size := 0, int64(0)
	for key, id := range want {
		if !bytes.Equal(table.Key(id), []byte(key)) {
			t.Fatalf("number %d is %x, want %x", id, table.Key(id), key)
		}
		if found, ok := table.Find([]byte(key)); !ok || found != id {
			t.Fatalf("Find(%x) = %d %v, want %d", key, found, ok, id)
		}
		total += *table.Value(id)
		size += int64(len(key))
	}
	if total != 20000 || table.KeyBytes() != size {
		t.Errorf("values add up to %d, keys to %d bytes; want 20000 and %d", total, table.KeyBytes(), size)
	}
	if _, ok := table.Find([]byte("not there")); ok {
		t.Error("found a key that is not there")
	}
}

func TestTableKeepsItsOwnKeys(t *testing.T) {
	table := New[struct{}]()
	key := []byte("abcdefgh")
	id, _, _ := table.Add(key)
	copy(key, "XXXXXXXX")
	if got := table.Key(id); string(got) != "abcdefgh" {
		t.Errorf("the key changed to %q with the caller's slice", got)
	}
	got := append(table.Key(id), '!') // must not run into the next key
	next, _, _ := table.Add([]byte("next"))
	if string(table.Key(next)) != "next" || string(got) != "abcdefgh!" {
		t.Errorf("appending to a key reached another: %q", table.Key(next))
	}
}

func TestLongKey(t *testing.T) {
	table := New[struct{}]()
	long := bytes.Repeat([]byte{7}, MaxKey+100)
	a, _, _ := table.Add(long)
	b, _, fresh := table.Add(long[:MaxKey])
	if a != b || fresh || len(table.Key(a)) != MaxKey {
		t.Errorf("a key over MaxKey: numbers %d and %d, length %d", a, b, len(table.Key(a)))
	}
}

func TestPairs(t *testing.T) {
	table := NewPairs()
	want := map[Pair]uint32{}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50000 {
		p := Pair{Object: rng.Uint32N(5), Offset: rng.Uint64N(4000) << rng.UintN(50)}
		id := table.Add(p)
		if old, ok := want[p]; ok && old != id || !ok && int(id) != len(want) {
			t.Fatalf("%+v: number %d, before %d %v", p, id, old, ok)
		}
		want[p] = id
	}
	if table.Len() != len(want) {
		t.Fatalf("%d pairs, want %d", table.Len(), len(want))
	}
	for p, id := range want {
		if table.At(int(id)) != p {
			t.Fatalf("number %d is %+v, want %+v", id, table.At(int(id)), p)
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
			list = make([]uint32, 100000+i)
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
	if id := lists.Add(make([]uint32, maxList+1)); len(lists.At(id)) != maxList {
		t.Errorf("a list over the limit has %d words", len(lists.At(id)))
	}
}

// chains are call chains as a capture has them: many times the same.
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
			table := New[uint64]()
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
		table := New[uint64]()
		for _, k := range keys {
			table.Add(k)
		}
	}
	b.SetBytes(int64(len(keys)))
}
