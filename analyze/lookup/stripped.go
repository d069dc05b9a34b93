package lookup

import (
	debugelf "debug/elf"
	"slices"

	"symbolize/analyze/report"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// countStripped counts the addresses of a batch that are in code without a named function, of a
// file without debug information: its debug file has their names.
func (l *Looker) countStripped() {
	m := l.obj.manifest
	if hasLines(m) || len(m.Layout) == 0 {
		return
	}
	for k, a := range l.addrs {
		p := l.finder.Place(k)
		name, _ := l.finder.Function(p, l.o.Names)
		if l.llvmSymbol(k) < 0 && (p.SymbolKind == store.EhFrame || name == 0 && isCode(m, a)) {
			l.stripped++
		}
	}
}

// isCode reports whether an address is in an executable segment of the file.
func isCode(m *store.Manifest, a addr.Addr) bool {
	return slices.ContainsFunc(m.Layout, func(s elf.Segment) bool {
		return s.Flags&uint32(debugelf.PF_X) != 0 && a >= s.Addr && uint64(a-s.Addr) < s.MemSize
	})
}

// Stripped returns how many of the addresses that were looked up have no named function because the
// file is stripped and its debug file was not found, and how to get that; 0 in other files.
func (l *Looker) Stripped() (n int, step string) {
	if l.stripped == 0 {
		return 0, ""
	}
	c := report.Case{Reason: ingest.Stripped,
		Object: &ingest.Object{Kind: l.obj.manifest.Kind, ID: l.obj.manifest.ID}}
	step = "put its debug file beside it"
	if get := c.For(); get != "" {
		step = "`" + get + "`, or `symbolize index PATH` where its debug file is"
	}
	return l.stripped, step
}
