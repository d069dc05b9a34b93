package named

import (
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
)

// TestLocate: addresses of mappings as profilers write them, of a file with its code at offset
// 0x1640 and address 0x2640 of the ELF file.
func TestLocate(t *testing.T) {
	const start, limit = 0x555555556000, 0x555555559000
	for _, tc := range []struct {
		name    string
		m       Mapping
		address uint64
		linked  bool
		off     uint64
		mapped  uint64 // length of the recorded segment
	}{
		{name: "at run time", m: Mapping{Start: start, Limit: limit, Offset: 0x1000}, address: start + 0x640,
			off: 0x1640, mapped: 0x3000},
		{name: "at run time, limit unknown", m: Mapping{Start: start, Offset: 0x1000}, address: limit + 0x640,
			off: 0x4640},
		{name: "mapping at 0, empty", address: 0x2640, linked: true, off: 0x2640},
		{name: "mapping at 0 with a size", m: Mapping{Limit: 0x9000}, address: 0x2640, linked: true, off: 0x2640},
		{name: "mapping at 0 of everything", m: Mapping{Limit: ^uint64(0)}, address: 0x2640, linked: true,
			off: 0x2640},
		{name: "mapping at 0 with an offset", m: Mapping{Offset: 0x1000}, address: 0x2640, linked: true,
			off: 0x2640},
		{name: "addresses of the file in the mapping of run time",
			m: Mapping{Start: start, Limit: limit, Offset: 0x1000}, address: 0x2640, linked: true, off: 0x2640},
		{name: "behind the mapping", m: Mapping{Start: 0x1000, Limit: 0x2000, Offset: 0x1000}, address: 0x2640,
			linked: true, off: 0x2640},
		{name: "module", m: Mapping{File: "[ext4]"}, address: 0x640, off: 0x640},
		{name: "kernel", m: Mapping{Start: 0xffffffff81000000, Limit: 0xffffffff82000000,
			File: "[kernel.kallsyms]_text"}, address: 0xffffffff81000640, off: 0x640},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.m.File == "" {
				tc.m.File = "/srv/app/x"
			}
			b := NewBuilder()
			m := b.Map(tc.m)
			object, off := b.Locate(m, tc.address)
			again, _ := b.Locate(m, tc.address)
			o := b.ObjectAt(object)
			length := uint64(0)
			if len(o.Segments) > 0 {
				length = o.Segments[0].Len
			}
			linked := o.Kind == ingest.ELF && o.RefSymbol == ingest.LinkedAddresses
			if linked != tc.linked || uint64(off) != tc.off || length != tc.mapped || again != object {
				t.Errorf("linked %t, offset %#x, segment of %#x bytes", linked, uint64(off), length)
			}
		})
	}
	b := NewBuilder()
	object, off := b.Locate(b.MapNone(), 0x640)
	if o := b.ObjectAt(object); o.Kind != ingest.Unmapped || o.Reason != ingest.OutsideMapping || off != 0x640 {
		t.Errorf("without a mapping: %+v, %#x", o, uint64(off))
	}
}

// TestIdentify: a file without a build ID gets that of its path; nothing else does.
func TestIdentify(t *testing.T) {
	known, other := buildid.New([]byte{1, 2, 3, 4}), buildid.New([]byte{5, 6, 7, 8})
	for _, tc := range []struct {
		name   string
		m      Mapping
		want   buildid.ID
		source ingest.IDSource
	}{
		{name: "file", m: Mapping{File: "/bin/a"}, want: known, source: ingest.IDTrusted},
		{name: "unknown file", m: Mapping{File: "/bin/b"}},
		{name: "deleted", m: Mapping{File: "/bin/a (deleted)"}},
		{name: "relative", m: Mapping{File: "a"}},
		{name: "with an ID", m: Mapping{File: "/bin/a", ID: other}, want: other, source: ingest.IDRecorded},
		{name: "kernel", m: Mapping{File: "[kernel.kallsyms]_text"}},
	} {
		b := NewBuilder()
		b.Identify = func(o *ingest.Object) (id buildid.ID, source ingest.IDSource) {
			if o.File.Path == "/bin/a" {
				id, source = known, ingest.IDTrusted
			}
			return id, source
		}
		o := b.ObjectAt(b.Map(tc.m).object)
		if o.ID != tc.want || o.IDSource != tc.source {
			t.Errorf("%s: %v from %v", tc.name, o.ID, o.IDSource)
		}
	}
}
