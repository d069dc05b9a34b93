package indexer

import (
	stdelf "debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/symtab"
)

// maxInflation is how many times its size a section may inflate to for an estimate; 14 is
// the most seen. maxEstimate bounds estimates: a compression header can hold any size.
const (
	maxInflation = 32
	maxEstimate  = 1 << 40
)

// sectionBytes returns how long a DWARF section is when it is inflated, by its own
// word.
func sectionBytes(r io.ReaderAt, f *elf.File, name string) int64 {
	s := f.Section("." + name)
	gnu := false
	if s == nil {
		if s, gnu = f.Section(".z"+name), true; s == nil {
			return 0
		}
	}
	if s.Type == stdelf.SHT_NOBITS || s.Size == 0 {
		return 0
	}
	var h [16]byte
	n, _ := r.ReadAt(h[:], int64(s.Offset))
	if n < len(h) {
		return 0
	}
	size := s.Size
	switch {
	case gnu:
		size = binary.BigEndian.Uint64(h[4:])
	case s.Flags&stdelf.SHF_COMPRESSED == 0:
	case f.Class == stdelf.ELFCLASS64:
		size = decode.New(f.Name, h[8:], 0, f.BigEndian).U64()
	default:
		size = uint64(decode.New(f.Name, h[4:8], 0, f.BigEndian).U32())
	}
	return int64(min(size, maxEstimate, maxInflation*min(s.Size, maxEstimate)))
}

// hasDWARF reports whether a file has debug information of its own.
func hasDWARF(f *elf.File) bool {
	for _, name := range []string{".debug_info", ".zdebug_info"} {
		if s := f.Section(name); s != nil && s.Type != stdelf.SHT_NOBITS && s.Size > 0 {
			return true
		}
	}
	return false
}

// Memory that debug information needs: a fraction of the bytes of entries, and all bytes of line
// programs (measured: ceph-osd 381 and 37 MB, 170 MB of memory; vmlinux 174 and 17 MB, 65 MB).
// Sections are mapped, or are in files without a name, except sections of modules, which are
// changed.
const (
	infoShare  = 4
	moduleCost = 3
)

// debugEstimate is the memory that is needed to read the debug information of a file.
func debugEstimate(r io.ReaderAt, f *elf.File) int64 {
	if !hasDWARF(f) {
		return 0
	}
	info, line := sectionBytes(r, f, "debug_info"), sectionBytes(r, f, "debug_line")
	size := info/infoShare + line
	if f.Type == stdelf.ET_REL {
		size += moduleCost * (info + line)
	}
	return min(size, maxEstimate)
}

// wideWalk is the size of .debug_info from which its units are decoded on all cores;
// smaller files are many, and go side by side.
const wideWalk = 4 << 20

// wide reports whether all cores are to work on this file.
func (s *sources) wide(f *elf.File) bool {
	return sectionBytes(s.data, f, "debug_info") >= wideWalk
}

// debugInfo is the debug information of one file, open.
type debugInfo struct {
	data    *dwarf.Data
	related *relatedFiles
	load    []*dwarf.Loaded
	lost    losses
	run     *runError // of the sections; nil if they are as the files have them
}

// losses counts the unreadable parts of a file's debug information, and keeps the first reason.
type losses struct {
	n     int
	first error
}

func (l *losses) add(err error) { l.join(losses{1, err}) }

func (l *losses) join(more losses) {
	if l.n += more.n; l.first == nil {
		l.first = more.first
	}
}

// err returns the error of the debug information, nil if it is whole.
func (l *losses) err() error {
	switch {
	case l.n == 0:
		return nil
	case l.n == 1:
		return incompleteError(l.first.Error())
	}
	return incompleteError(fmt.Sprintf("%v (and %d more)", l.first, l.n-1))
}

// lostEntries is the error of a table in which a number of entries could not be read.
func lostEntries(lost int, first error) error {
	if first == nil {
		return nil
	}
	l := losses{max(lost, 1), first}
	return l.err()
}

// incompleteError is the error of debug information that is not complete. The rest was read.
func incompleteError(reason string) error { return errors.New(incomplete + reason) }

// incomplete begins the text of an incompleteError. Path rows keep texts only.
const incomplete = "debug information is incomplete: "

// openDebug opens the debug information of a file for addresses as its table is to have them.
func (s *sources) openDebug(f *elf.File) (*debugInfo, error) {
	text, patch, err := debugLayout(f, s.image)
	if err != nil {
		return nil, err
	}
	d := &debugInfo{related: &relatedFiles{ix: s.w.ix, reads: s.w.reads, path: s.path, runtime: s.runtime}}
	l := dwarf.Load(s.data, rawSections(f), dwarf.LoadOptions{
		Name: s.path, Class64: f.Class == stdelf.ELFCLASS64, BigEndian: f.BigEndian,
		Workers: s.w.ix.opts.Workers, Patch: patch, Grow: s.wide(f), Variables: s.variables,
	})
	d.keep(l)
	opts := dwarf.Options{Name: s.path, Text: text, Release: d.release, DWO: d.related.dwo}
	if d.related.openAlt(f); d.related.alt != nil {
		opts.Alt = d.related.alt.data
	}
	if dwp := d.related.openDWP(); dwp != nil {
		d.keep(dwp)
		opts.DWP = dwarf.NewSplit(dwp.Sections, dwarf.Options{Name: s.path})
	}
	d.data = dwarf.New(l.Sections, opts)
	return d, nil
}

func (d *debugInfo) keep(l *dwarf.Loaded) { d.load = append(d.load, l) }

// loaded lists the sections of the file and of its related files.
func (d *debugInfo) loaded() []*dwarf.Loaded {
	if d.related.alt == nil {
		return d.load
	}
	return append(slices.Clip(d.load), d.related.alt.load)
}

// settle counts the errors of sections, and after that the losses of units.
func (d *debugInfo) settle(units losses) {
	for _, l := range d.loaded() {
		l.Wait()
		for _, p := range l.Problems {
			d.lost.add(p)
		}
		if d.run == nil {
			d.run = failed(l)
		}
	}
	if d.run == nil {
		d.run = d.related.run
	}
	d.lost.join(units)
}

func (d *debugInfo) release() {
	for _, l := range d.loaded() {
		l.Release()
	}
}

func (d *debugInfo) close() {
	for _, l := range d.load {
		l.Close() // nothing was written
	}
	d.related.close()
}

// rawSections lists the sections of a file for dwarf.Load.
func rawSections(f *elf.File) []dwarf.RawSection {
	var raw []dwarf.RawSection
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type == stdelf.SHT_NOBITS {
			continue
		}
		raw = append(raw, dwarf.RawSection{
			Name: s.Name, Offset: uint64(s.Offset), Size: s.Size,
			Compressed: s.Flags&stdelf.SHF_COMPRESSED != 0, Index: i,
		})
	}
	return raw
}

// debugLayout returns the address ranges of code, and for a module how to relocate its debug
// sections to them. All other files have final addresses, also with relocations for them
// (--emit-relocs, as in vmlinux). With image a module's data has addresses, too.
func debugLayout(f *elf.File, image bool) (text []addr.Range, patch patchFunc, err error) {
	if f.Type == stdelf.ET_REL {
		return moduleText(f, image)
	}
	for i := range f.Sections {
		if s := &f.Sections[i]; s.IsCode() && s.Size > 0 && s.Size <= ^uint64(0)-uint64(s.Addr) {
			text = append(text, addr.Range{Start: s.Addr, End: s.Addr + addr.Addr(s.Size)})
		}
	}
	return text, nil, nil
}

// dwarf adds the table of a file's own debug information. Addresses are moved down by
// base; code below it is left out.
func (s *sources) dwarf(f *elf.File, base addr.Addr) {
	if s.w.ix.opts.NamesOnly {
		return
	}
	if !hasDWARF(f) {
		return
	}
	d, err := s.openDebug(f)
	if err != nil {
		s.fail(err)
		return
	}
	if f.Type == stdelf.ET_REL {
		base = moduleBase
	}
	conv := converter{base: base, ctx: s.w.ix.ctx}
	s.add(store.DWARF, func(b *symtab.Builder) error {
		defer d.close()
		conv.b = b
		workers := 1
		if s.wide(f) {
			workers = s.w.ix.opts.Workers
		}
		var lost losses
		size := uint64(sectionBytes(s.data, f, "debug_info"))
		err := d.data.Walk(s.w.ix.ctx, workers, func(u *dwarf.Unit) error {
			s.w.advance(u.Offset, size)
			if f := s.w.ix.opts.Units; f != nil {
				if err := f(u); err != nil {
					return err
				}
			}
			for i := range u.Lost {
				if i < len(u.Problems) {
					lost.add(u.Problems[i])
				} else {
					lost.n++
				}
			}
			if !conv.unit(u) {
				lost.add(fmt.Errorf("unit at %#x: functions or lines overlap too often", u.Offset))
			}
			return nil
		})
		if errors.Is(err, dwarf.ErrChanged) {
			err = errChanged
			lost.add(err)
		}
		d.settle(lost)
		s.count(b.Losses())
		return err
	})
	if d.related.missing.n > 0 || d.lost.n > 0 || d.run != nil {
		s.incomplete(d)
	}
}

// incomplete notes that the last table was made of incomplete information: one of the whole is to
// win over it.
func (s *sources) incomplete(d *debugInfo) {
	s.looked = append(s.looked, d.related.places()...)
	if d.related.missing.first != nil {
		d.lost.first = d.related.missing.first
	}
	if d.run != nil {
		s.err = d.run // before the file's errors, which it hides
	}
	s.fail(d.lost.err())
	s.partial(store.DWARF)
}

// count adds a builder's losses to the Summary.
func (s *sources) count(l symtab.Losses) {
	s.w.ix.count(func(sum *Summary) {
		sum.Debugs.Outside += l.Outside
		sum.Debugs.Disorder += l.Disorder
		sum.Debugs.Large += l.Large
		sum.Debugs.Copies += l.Copies
	})
}

// moduleBase is added to the addresses of modules while their debug information is read:
// at address 0 an empty range would look like the end of its list (DWARF 4, 2.17.3).
const moduleBase addr.Addr = 1 << 20

// patchFunc is LoadOptions.Patch of debug information.
type patchFunc = func(dwarf.RawSection, []byte) error

// moduleText returns the ranges of a module's code when loaded, moved up by moduleBase, and how to
// relocate the debug sections to these addresses.
func moduleText(f *elf.File, image bool) (text []addr.Range, patch patchFunc, err error) {
	placed, err := f.ModuleLayout()
	if err != nil {
		return nil, nil, err
	}
	places := make(map[int]addr.Addr, len(placed))
	text = []addr.Range{} // not nil: no code is something else than unknown code
	for _, p := range placed {
		at := p.Addr + moduleBase
		places[p.Index] = at
		text = append(text, addr.Range{Start: at, End: at + addr.Addr(p.Size)})
	}
	rl, err := f.Relocator(func(section int) (addr.Addr, bool) {
		a, ok := places[section]
		return a, ok
	})
	if image && err == nil {
		var m *elf.ModuleImage
		if m, err = f.Image(moduleBase); err == nil {
			rl = m.Relocator
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return text, func(s dwarf.RawSection, b []byte) error { return rl.Apply(s.Index, b) }, nil
}
