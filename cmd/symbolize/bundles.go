package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/input"
	"symbolize/ingest/regular"
	"symbolize/store"
	"symbolize/store/indexer"
)

// isBundle reports whether a path is a capture bundle. What cannot be opened is left
// to others to report.
func isBundle(path string) bool {
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() {
		return false // opening a pipe would wait
	}
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	fi, err := f.Stat()
	return err == nil && bundle.Detect(f, fi.Size())
}

// splitBundles tells the bundles among paths from the rest.
func splitBundles(paths []string) (bundles, rest []string) {
	for _, p := range paths {
		if isBundle(p) {
			bundles = append(bundles, p)
		} else {
			rest = append(rest, p)
		}
	}
	return bundles, rest
}

// takeBundles takes the bundles out of the captures of the command line, in any order:
// what they hold serves the others. Those that have stacks stay captures as well. Where
// there are no others, they are the captures themselves. A bundle that had to be opened for
// this stays open for the session.
func (o *inputOptions) takeBundles(ctx context.Context, paths []string) []string {
	var rest []string
	if o.bundles, rest = splitBundles(paths); len(rest) == 0 {
		return o.bundles
	}
	rest = nil
	for _, p := range paths { // in their order
		if !slices.Contains(o.bundles, p) || o.hasSamples(ctx, p) {
			rest = append(rest, p)
		}
	}
	return rest
}

// hasSamples reports whether a bundle has stacks. What cannot be opened is left to others
// to report.
func (o *inputOptions) hasSamples(ctx context.Context, path string) bool {
	if o.opened == nil {
		o.opened = make(captureSet)
	}
	c, err := o.opened.get(ctx, path)
	return err == nil && c.HasSamples()
}

// captureSet are captures that a command opened before it is known who needs them, by
// path.
type captureSet map[string]*input.Capture

// get returns the capture of a path, which it opens if it is not there yet.
func (m captureSet) get(ctx context.Context, path string) (*input.Capture, error) {
	if c := m[path]; c != nil {
		return c, nil
	}
	c, err := input.Open(ctx, path, input.Options{})
	if err != nil {
		return nil, err
	}
	m[path] = c
	return c, nil
}

// take returns the capture of a path, for the caller to close.
func (m captureSet) take(ctx context.Context, path string) (*input.Capture, error) {
	if c := m[path]; c != nil {
		delete(m, path)
		return c, nil
	}
	return input.Open(ctx, path, input.Options{})
}

// close closes what nobody has taken.
func (m captureSet) close() {
	for _, c := range m {
		c.Close() // of what was read only
	}
	clear(m)
}

// openCaptures takes what captures hold into the overlay: BPF programs, and from bundles
// the kernel, its modules and vdso. Bundles stay open as long as the session, for the
// captures of the command line to borrow from.
func (s *session) openCaptures(ctx context.Context, paths []string) error {
	for _, path := range paths {
		c, err := s.o.opened.take(ctx, path)
		if err != nil {
			return captureError(err)
		}
		s.borrow = append(s.borrow, c)
		if err := s.addPrograms(ctx, path, c); err != nil {
			return err
		}
		if _, err := c.Programs(); err != nil && !slices.Contains(s.o.bundles, path) {
			s.a.partial = true // of those in bundles, a profile tells
			s.a.warn(err.Error(), "")
		}
		if c.Bundle() == nil {
			s.borrow = s.borrow[:len(s.borrow)-1]
			if err := c.Close(); err != nil {
				return err
			}
		}
	}
	hosts, problems := hostsOf(s.borrow)
	if len(hosts) == 0 {
		return nil
	}
	sum, err := indexer.Index(ctx, nil, nil,
		func() (store.Sink, error) { return s.overlay, nil },
		indexer.Options{Workers: s.o.jobs, MaxMemory: int64(s.o.maxMemory), Hosts: hosts,
			Columns: s.o.columns})
	if err != nil {
		return err
	}
	problems = append(problems, sum.Problems...)
	s.a.partial = s.a.partial || len(problems) > 0
	s.a.printProblems(problems)
	return nil
}

// closeBundles closes what openCaptures left open.
func (s *session) closeBundles() error {
	var errs []error
	for _, c := range s.borrow {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// hostsOf returns what bundles hold of their hosts' kernels, and what of it cannot be
// read. It is valid until the captures are closed.
func hostsOf(captures []*input.Capture) (hosts []*indexer.Host, problems []indexer.Problem) {
	for _, c := range captures {
		b := c.Bundle()
		if b == nil {
			continue
		}
		for _, err := range b.Warnings {
			problems = append(problems, indexer.Problem{Path: b.Name, Err: err, Named: true,
				Hint: "copy the bundle or capture it again"})
		}
		h, err := hostOf(b)
		if err != nil {
			problems = append(problems, indexer.Problem{Path: b.Name, Err: err})
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

// hostOf returns what one bundle holds; with an error, what could be read of it.
func hostOf(b *bundle.Bundle) (*indexer.Host, error) {
	h := &indexer.Host{Path: b.Name, Kernel: b.Manifest.KernelID(),
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
		h.Modules = append(h.Modules, indexer.HostModule{Name: m.Name, ID: m.BuildID,
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

// openHosts opens the bundles among captures for an index run. opened has them, to be
// closed. What cannot be opened is reported where the programs of captures are read.
func openHosts(ctx context.Context, paths []string) (hosts []*indexer.Host,
	problems []indexer.Problem, opened captureSet) {
	var list []*input.Capture
	opened = make(captureSet)
	bundles, _ := splitBundles(paths)
	for _, path := range bundles {
		if c, err := opened.get(ctx, path); err == nil {
			list = append(list, c)
		}
	}
	hosts, problems = hostsOf(list)
	return hosts, problems, opened
}

// sayBorrowed says what a capture took from other bundles, or why it took nothing.
func (a *app) sayBorrowed(path string, c *input.Capture) {
	for _, b := range c.Taken() {
		if b.From == path {
			continue // its own stacks: `info` says what it holds
		}
		text := path + ": " + b.String()
		if b.Refused == "" {
			a.note(text)
			continue
		}
		a.warn(text, "a bundle serves captures of the same boot that were made while it was")
	}
}
