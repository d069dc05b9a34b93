package indexer

import (
	"errors"
	"io"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/input"
)

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

// Bounds of small entries, in bytes.
const (
	maxKernelNotes = 64 << 10
	maxVDSOImage   = 1 << 20
)

// hostOf returns the kernel in one bundle; with an error, the part that could be read.
func hostOf(b *bundle.Bundle) (*Host, error) {
	h := &Host{Path: b.Name, Kernel: b.Manifest.KernelID(),
		KernelOmitted: b.Manifest.KernelOmitted}
	if notes, err := b.ReadEntry(bundle.NotesName, maxKernelNotes); h.Kernel.IsZero() && err == nil {
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
		image, err := b.ReadEntry(name, maxVDSOImage)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		h.VDSO = append(h.VDSO, image)
	}
	return h, errors.Join(errs...)
}
