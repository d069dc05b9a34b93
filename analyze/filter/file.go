package filter

import (
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/store"
)

// fileID returns the build ID of the file that a place names.
func (f *finder) fileID(p *place) (buildid.ID, ingest.Reason) {
	if p.form == formProgram {
		return f.programID(p)
	}
	if len(p.file) == 0 || f.files == nil {
		return buildid.ID{}, ingest.NoBuildID
	}
	ids := f.files(string(p.file))
	if known := len(ids); p.part != "" {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id buildid.ID) bool {
			hex := id.Hex()
			return !strings.HasPrefix(hex, p.part) && strings.TrimRight(p.part, "0") != strings.TrimRight(hex, "0")
		})
		if len(ids) < known && len(ids) == 0 {
			return buildid.ID{}, ingest.Mismatch
		}
	}
	switch len(ids) {
	case 0:
		return buildid.ID{}, ingest.NoBuildID
	case 1:
		return ids[0], ingest.ReasonNone
	}
	return buildid.ID{}, ingest.Ambiguous
}

// maxPage is the largest page size of Linux. The start in memory of a file with a first segment
// of a smaller alignment depends on the machine's page size.
const maxPage = 1 << 16

// moduleAddress returns the ELF address of a place with an offset from the start of its module in
// memory: from the page of the lowest segment.
func (f *finder) moduleAddress(o *object, p *place) (addr.Addr, ingest.Reason) {
	if len(o.manifest.Layout) == 0 {
		return 0, ingest.LayoutUnknown
	}
	start := o.manifest.Layout[0].Addr
	for i := range o.manifest.Layout {
		start = min(start, o.manifest.Layout[i].Addr)
	}
	if start%maxPage != 0 || len(o.manifest.OtherLayouts) > 0 {
		return 0, ingest.LayoutUnknown
	}
	at := addr.Site(start+addr.Addr(p.offset), p.isReturn())
	if !covers(o.manifest, at) {
		return 0, ingest.OutsideObject
	}
	return at, ingest.ReasonNone
}

// covers reports whether an ELF address is in a segment of an object's file, true if the segments
// are unknown.
func covers(m *store.Manifest, at addr.Addr) bool {
	for i := range m.Layout {
		s := &m.Layout[i]
		if at >= s.Addr && uint64(at-s.Addr) < s.MemSize {
			return true
		}
	}
	return len(m.Layout) == 0
}
