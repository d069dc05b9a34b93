package sampler

import (
	"encoding/binary"
	"slices"
	"testing"
)

// TestWaiting: a stack begins at the function that waited, at its call.
func TestWaiting(t *testing.T) {
	ranges := []Range{{0x1000, 0x1100}, {0x2000, 0x2040}}
	for _, tt := range []struct {
		name     string
		in, want []uint64
	}{
		{name: "the scheduler", in: []uint64{0x1010, 0x2020, 0x3030, 0x1050},
			want: []uint64{0x302f, 0x1050}},
		{name: "a call at the end of a function", in: []uint64{0x1010, 0x2040, 0x3030},
			want: []uint64{0x302f}},
		{name: "behind that function", in: []uint64{0x1010, 0x2041, 0x3030},
			want: []uint64{0x2040, 0x3030}},
		{name: "none of it", in: []uint64{0x3000, 0x1010}, want: []uint64{0x3000, 0x1010}},
		{name: "nothing else", in: []uint64{0x1010, 0x1020}, want: []uint64{0x1010, 0x1020}},
		{name: "empty"},
	} {
		var b []byte
		for _, pc := range tt.in {
			b = binary.NativeEndian.AppendUint64(b, pc)
		}
		var got []uint64
		for b = waiting(b, ranges); len(b) > 0; b = b[kernelFrame:] {
			got = append(got, binary.NativeEndian.Uint64(b))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}
