package indexer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/symlist"
	"symbolize/store"
	"symbolize/store/symtab"
)

// Host is the data of a capture bundle on the kernel that it was made under: the parts of
// Options.Kernel, of another host and another time.
type Host struct {
	// Path is where it came from, for problems and for the sources.
	Path     string
	Kernel   buildid.ID // of the kernel; kallsyms is of no use without
	Kallsyms io.Reader  // a copy of /proc/kallsyms, nil if there is none
	// KernelOmitted: Kallsyms lacks the symbols of the kernel itself.
	KernelOmitted bool
	Modules       []HostModule
	VDSO          [][]byte // images
}

// HostModule is the place of a module when kallsyms was copied.
type HostModule struct {
	Name       string
	ID         buildid.ID // modules without one are left out
	Base, Size uint64
}

// host indexes one Host.
func (w *fileReader) host(h *Host) {
	c := &store.Contribution{Manifest: store.Manifest{ID: h.Kernel, Kind: ingest.Kernel}}
	modules := w.hostKernel(h, c)
	for _, image := range h.VDSO {
		id, err := w.vdso(h.Path+": vdso", image)
		if err != nil {
			w.ix.problem(Problem{Path: h.Path + ": vdso", Err: err})
			continue
		}
		c.Manifest.VDSO = append(c.Manifest.VDSO, id)
	}
	slices.SortFunc(c.Manifest.VDSO, buildid.ID.Compare)
	c.Manifest.VDSO = slices.Compact(c.Manifest.VDSO)
	if !h.Kernel.IsZero() && len(c.Sources)+len(c.Manifest.VDSO) > 0 {
		w.mergeLive(c)
	}
	for _, m := range h.Modules {
		if syms := modules[m.Name]; len(syms) > 0 && m.Base != 0 && !m.ID.IsZero() {
			w.mergeModule(m, syms, h.Path)
		}
	}
}

// hostKernel puts the kernel's own symbols into c, and returns the symbols of its modules.
func (w *fileReader) hostKernel(h *Host, c *store.Contribution) map[string]kernelSyms {
	if h.Kallsyms == nil {
		return nil
	}
	path := h.Path + ": kallsyms"
	if h.Kernel.IsZero() {
		err := errors.New("kallsyms of an unknown kernel: no build ID")
		w.ix.problem(Problem{Path: path, Err: err})
		return nil
	}
	kernel, modules, readErr := splitKallsyms(path, h.Kallsyms)
	var err error
	if !h.KernelOmitted {
		err = w.addKernel(c, kernel, h.Path)
	}
	if err := cmp.Or(readErr, err); err != nil {
		p := Problem{Path: path, Err: err}
		if errors.Is(readErr, symlist.ErrRestricted) {
			p.Hint = "it was captured without the right to see addresses (CAP_SYSLOG)"
		}
		w.ix.problem(p)
	}
	return modules
}

// mergeModule merges the symbols of a loaded module under its own build ID, relative to where it
// was loaded.
func (w *fileReader) mergeModule(m HostModule, syms kernelSyms, path string) {
	syms = slices.DeleteFunc(syms, func(s symlist.KernelSymbol) bool {
		return s.Addr < m.Base || s.Addr-m.Base >= max(m.Size, 1) // .init.text, freed and elsewhere
	})
	syms.sort()
	c := &store.Contribution{Manifest: store.Manifest{ID: m.ID, Kind: ingest.Module}}
	if src := w.kallsymsSource(syms, m.Base, path, &c.Manifest); src.Table.Funcs > 0 {
		c.Sources = []store.NewSource{src}
	}
	w.mergeLive(c)
}

// HostsOf returns the kernels of the hosts in the bundles among captures, for
// Options.Hosts, and the parts that cannot be read. It is valid until the captures are closed.
func HostsOf(captures []*input.Capture) (hosts []*Host, problems []Problem) {
	for _, c := range captures {
		b := c.Bundle()
		if b == nil {
			continue
		}
		for _, err := range b.Warnings {
			problems = append(problems, Problem{Path: b.Name, Err: err, Named: true,
				Hint: "copy the bundle or capture it again"})
		}
		h, err := hostOf(b)
		if err != nil {
			problems = append(problems, Problem{Path: b.Name, Err: err})
		}
		hosts = append(hosts, h)
	}
	return hosts, problems
}

// hostOf returns the kernel in one bundle; with an error, the part that could be read.
func hostOf(b *bundle.Bundle) (*Host, error) {
	h := &Host{Path: b.Name, Kernel: b.Manifest.KernelID(),
		KernelOmitted: b.Manifest.KernelOmitted}
	if notes, err := b.ReadEntry(bundle.NotesName, maxNotes); h.Kernel.IsZero() && err == nil {
		h.Kernel, _ = buildid.KernelNotes(notes)
	}
	if r, size, err := b.Entry(bundle.KallsymsName); err == nil {
		h.Kallsyms = io.NewSectionReader(r, 0, size)
	}
	modules, err := b.Modules()
	errs := []error{err}
	for i := range modules {
		m := &modules[i]
		h.Modules = append(h.Modules, HostModule{Name: m.Name, ID: m.BuildID.ID,
			Base: uint64(m.Addr), Size: m.Size})
	}
	for _, name := range b.Names() {
		if _, ok := bundle.CutVDSO(name); !ok {
			continue
		}
		image, err := b.ReadEntry(name, maxVDSO)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		h.VDSO = append(h.VDSO, image)
	}
	return h, errors.Join(errs...)
}

// AddFileSymbols merges the functions that a recording has of a file into a sink, under the file's
// ID, with a layout of the code that contains them. It is for a file that is not at hand: both are
// less complete than the file's own. path is the recorded path, and mapped are the recorded
// mappings of the file, which locate functions without a file offset.
func AddFileSymbols(ctx context.Context, sink store.Sink, id buildid.ID, path string,
	f *perfdata.FileSymbols, mapped []ingest.SegmentRef) error {
	start, offset, ok := placeOf(f, mapped)
	if !ok {
		return nil
	}
	b := symtab.NewBuilder(symtab.Options{})
	end := start
	for i := range f.Symbols {
		s := &f.Symbols[i]
		if s.Addr < start || s.Size == 0 || s.Addr+uint64(s.Size) < s.Addr || s.Name == "" {
			continue
		}
		b.Add(symtab.Func{Start: addr.Addr(s.Addr), Size: uint64(s.Size), Name: s.Name})
		end = max(end, s.Addr+uint64(s.Size))
	}
	if end == start {
		return nil
	}
	for _, s := range mapped { // code after the last function is in the file, too
		last := uint64(s.Offset) + s.Len
		if (uint64(s.Offset) <= offset || offset == start) && offset < last && last < 1<<62 {
			end = max(end, start+last-offset)
		}
	}
	return sink.Merge(ctx, &store.Contribution{
		Manifest: store.Manifest{ID: id, Kind: ingest.ELF, Layout: []elf.Segment{{
			Offset: addr.Offset(offset), Addr: addr.Addr(start),
			FileSize: end - start, MemSize: end - start, Flags: executableSegment}}},
		Sources: []store.NewSource{store.SourceOf(store.Symtab, path+": "+f.Path, b.Encode())},
	})
}

// placeOf returns the first address of a file's functions, and the offset in the recording's
// mappings that it has.
func placeOf(f *perfdata.FileSymbols, mapped []ingest.SegmentRef) (start, offset uint64, ok bool) {
	switch {
	case f.Kind != perfdata.FileELF, f.Compiled():
		return 0, 0, true
	case f.Placed:
		return f.Addr, f.Offset, true
	}
	segment, ok := segmentOf(f, mapped)
	return f.Addr, uint64(segment.Offset), ok
}

// segmentOf returns the segment that contains the functions of a file without an offset: the only
// one large enough, or of several the one with an offset equal to their first address, as in
// segments with equal positions in memory and in the file.
func segmentOf(f *perfdata.FileSymbols, mapped []ingest.SegmentRef) (found ingest.SegmentRef, ok bool) {
	end := f.Addr
	for i := range f.Symbols {
		if s := &f.Symbols[i]; s.Addr >= f.Addr {
			end = max(end, s.Addr+uint64(s.Size))
		}
	}
	fits := 0
	for _, s := range mapped {
		switch {
		case s.Len < end-f.Addr || fits > 0 && s.Offset == found.Offset:
		case uint64(s.Offset) == f.Addr&^(pageSize-1):
			return s, true
		default:
			found = s
			fits++
		}
	}
	return found, fits == 1
}

const pageSize = 4096

const executableSegment = 5 // PF_R | PF_X
