package indexer

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/object/kallsyms"
	"symbolize/store"
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

// HostModule is where a module lay when kallsyms was copied.
type HostModule struct {
	Name       string
	ID         buildid.ID // modules without one are left out
	Base, Size uint64
}

// host indexes one Host.
func (w *worker) host(h *Host) {
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
func (w *worker) hostKernel(h *Host, c *store.Contribution) map[string]kernelSyms {
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
		var own *store.Contribution
		if own, err = w.kernelContribution(h.Kernel, kernel, h.Path); err == nil {
			*c = *own
		}
	}
	if err := cmp.Or(readErr, err); err != nil {
		p := Problem{Path: path, Err: err}
		if errors.Is(readErr, kallsyms.ErrRestricted) {
			p.Hint = "it was captured without the right to see addresses (CAP_SYSLOG)"
		}
		w.ix.problem(p)
	}
	return modules
}

// mergeModule merges the symbols of a loaded module under its own build ID, relative to where it
// was loaded.
func (w *worker) mergeModule(m HostModule, syms kernelSyms, path string) {
	syms = slices.DeleteFunc(syms, func(s kallsyms.Symbol) bool {
		return s.Addr < m.Base || s.Addr-m.Base >= max(m.Size, 1) // .init.text, freed and elsewhere
	})
	syms.sort()
	c := &store.Contribution{Manifest: store.Manifest{ID: m.ID, Kind: ingest.Module}}
	src, err := w.kallsymsSource(syms, m.Base, path, &c.Manifest)
	if err != nil {
		w.ix.problem(Problem{Path: path + ": " + m.Name, Err: err})
		return
	}
	if src.Table.Funcs > 0 {
		c.Sources = []store.NewSource{src}
	}
	w.mergeLive(c)
}
