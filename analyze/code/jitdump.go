package code

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"symbolize/analyze/annotate"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/machine"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
)

// dumpCode is a jitdump file that code is read from.
type dumpCode struct {
	file   *jitdump.File
	origin string
	placed []jitdump.Placement // by address, then as in the file
	err    error               // why there is no file
}

// inDump returns the code of a function in a jitdump file.
func (c *Finder) inDump(o *ingest.Object, f *annotate.HotFunction) (*annotate.Code, error) {
	d := c.dumps[o.ID.Key()]
	if d == nil {
		d = c.openDump(o)
		c.dumps[o.ID.Key()] = d
	}
	if d.err != nil {
		return nil, d.err
	}
	l := d.file.At(f.Start + addr.Offset(f.Places[0].Offset))
	switch {
	case l == nil:
		return nil, fmt.Errorf("%s has no function there", d.origin)
	case l.Size > annotate.MaxCode:
		return nil, fmt.Errorf("a function of %d bytes", l.Size)
	}
	bytes, err := d.file.Code(l)
	if err != nil {
		return nil, err
	}
	code := &annotate.Code{Machine: machine.Name(elf.Machine(d.file.Machine), elf.ELFCLASS64,
		d.file.BigEndian), PC: l.Addr, Bytes: bytes, Origin: d.origin, Symbols: d.symbols}
	switch lines, err := d.file.Lines(l); {
	case err != nil:
		code.Notes = append(code.Notes, "no source lines: "+err.Error())
	case len(lines) > 0:
		code.Lines = func(offsets []int) []annotate.CodeLine { return c.dumpLines(lines, offsets) }
	default:
		code.Notes = append(code.Notes, "no source lines: the run-time compiler wrote none for it")
	}
	return code, nil
}

// openDump opens the jitdump file that is kept of an object.
func (c *Finder) openDump(o *ingest.Object) *dumpCode {
	m, _, err := store.FindOne(c.o.View, o.ID)
	if m == nil || len(m.Variants) == 0 {
		return &dumpCode{err: errors.Join(err, texts.WithHint(
			fmt.Errorf("the store does not have the jitdump file %s", o.File.Path),
			"`symbolize index %s` keeps it", texts.ShellWord(o.File.Path)))}
	}
	kept, err := indexer.StoredJITFile(m, c.o.View.Blob)
	if err != nil {
		return &dumpCode{err: err}
	}
	d := &dumpCode{origin: "jitdump file " + kept.Path}
	if d.file, d.err = jitdump.Open(kept.Path, kept.R, kept.Size); d.file != nil {
		d.err = nil                // nothing after the damage is looked up
		d.file.Machine = m.Machine // CPython leaves it out of the header
		d.placed = slices.Clone(d.file.Placed)
		slices.SortStableFunc(d.placed, func(a, b jitdump.Placement) int {
			return cmp.Compare(a.Addr, b.Addr)
		})
	}
	return d
}

// dumpLines gives the source of instructions by the lines of their function.
func (c *Finder) dumpLines(list []jitdump.Line, offsets []int) []annotate.CodeLine {
	lines := make([]annotate.CodeLine, len(offsets))
	for i, at := range offsets {
		k := sort.Search(len(list), func(k int) bool { return list[k].Offset > uint64(at) })
		if k == 0 {
			continue
		}
		l := &list[k-1]
		lines[i] = annotate.CodeLine{File: l.File, Line: l.Line, Column: l.Column}
		lines[i].Source, lines[i].FileLines = c.sources.line(l.File, l.Line, "", time.Time{})
	}
	return lines
}

// maxOverlaid is how many functions that begin before an address are looked at for one that covers
// it.
const maxOverlaid = 64

// symbols names addresses of the process by the functions that were there last.
func (d *dumpCode) symbols(pcs []addr.PC) []annotate.CodeSymbol {
	names := make([]annotate.CodeSymbol, len(pcs))
	for i, pc := range pcs {
		k := sort.Search(len(d.placed), func(k int) bool { return d.placed[k].Addr > pc })
		for n := 0; k > 0 && n < maxOverlaid; n++ {
			k--
			l := &d.file.Loads[d.placed[k].Load]
			if off := uint64(pc - d.placed[k].Addr); off < l.Size {
				names[i] = annotate.CodeSymbol{Name: l.Name, Offset: off}
				break
			}
		}
	}
	return names
}
