package resolve

import (
	"debug/elf"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	objelf "symbolize/ingest/object/elf"
	"symbolize/store"
)

// Layouts of an executable with code at 0x401000: as it was linked, and with its segments moved by a
// page in the file.
var (
	linked = []objelf.Segment{
		{Offset: 0, Addr: 0x400000, FileSize: 0x500, Flags: 4},
		{Offset: 0x1000, Addr: 0x401000, FileSize: 0x32c5, MemSize: 0x32c5, Flags: 5},
		{Offset: 0x5000, Addr: 0x405000, FileSize: 0x800, MemSize: 0x800, Flags: 6},
	}
	patched = []objelf.Segment{
		{Offset: 0, Addr: 0x3ff000, FileSize: 0x1500, Flags: 6},
		{Offset: 0x2000, Addr: 0x401000, FileSize: 0x32c5, MemSize: 0x32c5, Flags: 5},
		{Offset: 0x6000, Addr: 0x405000, FileSize: 0x800, MemSize: 0x800, Flags: 6},
	}
)

// TestFits: recorded mappings of code and the layouts of files.
func TestFits(t *testing.T) {
	wide := []objelf.Segment{{Offset: 0x1f000, Addr: 0x2f000, FileSize: 0x8000, Flags: 5}}
	first := []objelf.Segment{{Offset: 0, FileSize: 0x2800, Flags: 5}, {Offset: 0x2800, FileSize: 0x900,
		Flags: 6}}
	for _, tc := range []struct {
		name    string
		mapped  ingest.SegmentRef
		layout  []objelf.Segment
		machine elf.Machine
		want    bool
	}{
		{name: "the segment", mapped: ingest.SegmentRef{Offset: 0x1000, Len: 0x4000}, layout: linked, want: true},
		{name: "moved by a page", mapped: ingest.SegmentRef{Offset: 0x2000, Len: 0x4000}, layout: linked},
		{name: "moved back", mapped: ingest.SegmentRef{Offset: 0x1000, Len: 0x4000}, layout: patched},
		{name: "a part", mapped: ingest.SegmentRef{Offset: 0x3000, Len: 0x1000}, layout: linked, want: true},
		{name: "a part to the end", mapped: ingest.SegmentRef{Offset: 0x3000, Len: 0x2000}, layout: linked,
			want: true},
		{name: "behind the end", mapped: ingest.SegmentRef{Offset: 0x5000, Len: 0x1000}, layout: linked},
		{name: "data", mapped: ingest.SegmentRef{Offset: 0, Len: 0x1000}, layout: linked},
		{name: "the whole file by its first segment", mapped: ingest.SegmentRef{Offset: 0, Len: 0x204000},
			layout: first, want: true},
		{name: "mappings that were joined", mapped: ingest.SegmentRef{Offset: 0, Len: 0x6000}, layout: linked,
			want: true},
		{name: "pages of 64 KiB", mapped: ingest.SegmentRef{Offset: 0x10000, Len: 0x20000}, layout: wide,
			machine: elf.EM_AARCH64, want: true},
		{name: "pages of 4 KiB", mapped: ingest.SegmentRef{Offset: 0x1f000, Len: 0x8000}, layout: wide,
			machine: elf.EM_AARCH64, want: true},
		{name: "no pages of 64 KiB on this machine", mapped: ingest.SegmentRef{Offset: 0x10000, Len: 0x20000},
			layout: []objelf.Segment{{Offset: 0x18000, FileSize: 0x30000, Flags: 5}}},
		{name: "code in an archive, at no page", mapped: ingest.SegmentRef{Offset: 0x1080, Len: 0x123},
			layout: linked, want: true},
		{name: "no length", mapped: ingest.SegmentRef{Offset: 0x1000}, layout: linked, want: true},
		{name: "a length that wraps", mapped: ingest.SegmentRef{Offset: 0x2000, Len: ^uint64(0)}, layout: linked},
	} {
		if tc.machine == 0 {
			tc.machine = elf.EM_X86_64
		}
		o := &ingest.Object{Segments: []ingest.SegmentRef{tc.mapped}}
		if got := Fits(o, uint16(tc.machine), tc.layout); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

// TestAddresses: the layout that the recorded mappings fit is used; addresses that several layouts
// could have get the reason OtherLayout.
func TestAddresses(t *testing.T) {
	here, there := ingest.SegmentRef{Offset: 0x1000, Len: 0x4000}, ingest.SegmentRef{Offset: 0x2000, Len: 0x4000}
	for _, tc := range []struct {
		name    string
		mapped  []ingest.SegmentRef
		layouts [][]objelf.Segment
		off     addr.Offset
		want    addr.Addr
		reason  ingest.Reason
		rivals  int
	}{
		{name: "the only layout", mapped: []ingest.SegmentRef{here}, layouts: [][]objelf.Segment{linked},
			off: 0x2010, want: 0x402010},
		{name: "another one", mapped: []ingest.SegmentRef{there}, layouts: [][]objelf.Segment{linked},
			off: 0x2010, reason: ingest.OtherLayout},
		{name: "the first of two", mapped: []ingest.SegmentRef{here},
			layouts: [][]objelf.Segment{linked, patched}, off: 0x2010, want: 0x402010},
		{name: "the second of two", mapped: []ingest.SegmentRef{there},
			layouts: [][]objelf.Segment{linked, patched}, off: 0x2010, want: 0x401010},
		{name: "both files ran, in one", mapped: []ingest.SegmentRef{here, there},
			layouts: [][]objelf.Segment{linked, patched}, off: 0x1010, want: 0x401010},
		{name: "both files ran, in the other", mapped: []ingest.SegmentRef{here, there},
			layouts: [][]objelf.Segment{linked, patched}, off: 0x5010, want: 0x404010},
		{name: "both files ran, in either", mapped: []ingest.SegmentRef{here, there},
			layouts: [][]objelf.Segment{linked, patched}, off: 0x2010, reason: ingest.OtherLayout},
		{name: "both files ran, one is known", mapped: []ingest.SegmentRef{here, there},
			layouts: [][]objelf.Segment{linked}, off: 0x2010, reason: ingest.OtherLayout},
		{name: "both files ran, where only the known one is", mapped: []ingest.SegmentRef{here, there},
			layouts: [][]objelf.Segment{linked}, off: 0x1010, want: 0x401010},
		{name: "no mapping is known", layouts: [][]objelf.Segment{linked, patched}, off: 0x2010, want: 0x402010,
			rivals: 1},
		{name: "outside", mapped: []ingest.SegmentRef{here}, layouts: [][]objelf.Segment{linked},
			off: 0x99999, reason: ingest.OutsideObject},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := store.NewOverlay()
			for _, l := range tc.layouts {
				contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Machine: uint16(elf.EM_X86_64),
					Layout: l}, nil)
			}
			m, _, err := store.FindOne(o, id(1))
			if err != nil {
				t.Fatal(err)
			}
			a, reason := NewAddresses(&ingest.Object{Kind: ingest.ELF, Segments: tc.mapped}, m)
			if reason != ingest.ReasonNone {
				t.Fatal(reason)
			}
			at, ok := a.Of(tc.off)
			if ok != (tc.reason == ingest.ReasonNone) || ok && at != tc.want || !ok && a.Reason() != tc.reason {
				t.Errorf("%#x, %t, reason %s; want %#x, reason %s", uint64(at), ok, a.Reason(), uint64(tc.want),
					tc.reason)
			}
			if len(a.rivals) != tc.rivals {
				t.Errorf("%d rivals", len(a.rivals))
			}
		})
	}
}

// TestLinkedAddresses: Offsets that are addresses of the ELF file need no layout, but have to be in
// code where it is known.
func TestLinkedAddresses(t *testing.T) {
	o := &ingest.Object{Kind: ingest.ELF, RefSymbol: ingest.LinkedAddresses}
	for _, tc := range []struct {
		name   string
		layout []objelf.Segment
		off    addr.Offset
		ok     bool
	}{
		{name: "code", layout: patched, off: 0x401010, ok: true},
		{name: "offset of code", layout: patched, off: 0x2010},
		{name: "data", layout: patched, off: 0x405010},
		{name: "only a debug file", off: 0x401010, ok: true},
	} {
		a, reason := NewFileAddresses(o, &store.Manifest{}, tc.layout)
		at, ok := a.Of(tc.off)
		if reason != ingest.ReasonNone || ok != tc.ok || ok && at != addr.Addr(tc.off) {
			t.Errorf("%s: %#x, %t, reason %s", tc.name, uint64(at), ok, reason)
		}
	}
}

// TestLayoutsBehind: layouts of a view further back are kept, whichever is preferred.
func TestLayoutsBehind(t *testing.T) {
	for _, front := range [][]objelf.Segment{linked, patched} {
		views := make([]store.View, 2)
		for i := range views {
			o := store.NewOverlay()
			layout := front
			if i == 1 {
				layout = map[bool][]objelf.Segment{true: patched, false: linked}[front[1].Offset == 0x1000]
			}
			contribute(t, o, store.Manifest{ID: id(1), Kind: ingest.ELF, Layout: layout}, nil)
			views[i] = o
		}
		m, _, err := store.FindOne(store.Layer(views...), id(1))
		if err != nil {
			t.Fatal(err)
		}
		others := m.OtherSegments()
		if m.Layout[1].Offset != front[1].Offset || len(others) != 1 || others[0][1].Offset == front[1].Offset {
			t.Errorf("layout %+v, others %+v", m.Layout, others)
		}
	}
}
