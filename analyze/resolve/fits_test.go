package resolve

import (
	"debug/elf"
	"testing"

	"symbolize/ingest"
)

func TestFitsExactly(t *testing.T) {
	x86 := uint16(elf.EM_X86_64)
	for _, tt := range []struct {
		name   string
		mapped []ingest.SegmentRef
		want   bool
	}{
		{name: "the segment of code", mapped: []ingest.SegmentRef{{Offset: 0x1000, Len: 0x3000}}, want: true},
		{name: "with a part", mapped: []ingest.SegmentRef{{Offset: 0x1000, Len: 0x3000}, {Offset: 0x2000, Len: 0x1000}},
			want: true},
		{name: "a part", mapped: []ingest.SegmentRef{{Offset: 0x1000, Len: 0x2000}}},
		{name: "more", mapped: []ingest.SegmentRef{{Offset: 0x1000, Len: 0x4000}}},
		{name: "another offset", mapped: []ingest.SegmentRef{{Offset: 0x2000, Len: 0x3000}}},
		{name: "with another", mapped: []ingest.SegmentRef{{Offset: 0x1000, Len: 0x3000}, {Offset: 0x8000, Len: 0x1000}}},
		{name: "no mapping"},
	} {
		if got := FitsExactly(tt.mapped, x86, pie); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
