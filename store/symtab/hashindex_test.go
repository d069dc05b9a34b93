package symtab

import "testing"

// TestHashIndex finds numbers by hashes of different quality, some of them the same for many
// numbers, while the table grows.
func TestHashIndex(t *testing.T) {
	const many = 5000
	for _, test := range []struct {
		name string
		hash func(n uint32) uint64
	}{
		{name: "mixed", hash: func(n uint32) uint64 { return mix(uint64(n)) }},
		{name: "seven hashes", hash: func(n uint32) uint64 { return uint64(n%7) << 40 }},
		{name: "no upper bits", hash: func(n uint32) uint64 { return uint64(n) }},
		{name: "last slot", hash: func(n uint32) uint64 { return ^uint64(0) - uint64(n)<<32 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var index hashIndex
			find := func(n uint32) uint32 {
				return index.find(test.hash(n), func(found uint32) bool { return found == n })
			}
			for n := uint32(1); n <= many; n++ {
				if got := find(n); got != 0 {
					t.Fatalf("%d is there before it is added: %d", n, got)
				}
				index.add(test.hash(n), n)
			}
			for n := uint32(1); n <= many; n++ {
				if got := find(n); got != n {
					t.Fatalf("%d: found %d", n, got)
				}
			}
		})
	}
}
