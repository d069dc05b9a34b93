package intern

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestListSet(t *testing.T) {
	set := NewListSet()
	r := rand.New(rand.NewPCG(3, 4))
	known := make(map[string]uint32)
	var lists [][]uint32
	for range 20000 {
		list := make([]uint32, r.IntN(6))
		key := make([]byte, len(list))
		for i := range list {
			list[i] = uint32(r.IntN(5))
			key[i] = byte(list[i])
		}
		id, fresh := set.Add(list)
		if want, ok := known[string(key)]; ok == fresh || ok && id != want {
			t.Fatalf("list %v: number %d, new %v; want %d %v", list, id, fresh, want, !ok)
		}
		if fresh {
			known[string(key)] = id
			lists = append(lists, list)
		}
	}
	set.Forget()
	if set.Len() != len(lists) {
		t.Fatalf("%d lists, want %d", set.Len(), len(lists))
	}
	for i, list := range lists {
		if got := set.At(uint32(i)); !slices.Equal(got, list) {
			t.Errorf("list %d is %v, want %v", i, got, list)
		}
	}
}
