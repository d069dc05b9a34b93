package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"symbolize/analyze/report"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

// session is where names come from in one run: the store's newest generation, if
// there is a store, behind the overlay that --with fills.
type session struct {
	a       *app
	o       *inputOptions
	overlay *store.Overlay
	reader  *db.Reader // nil where there is no store
	view    store.View
	borrow  []*input.Capture // bundles that serve the captures
}

// openSession opens the store for reading and indexes what --with and its aliases
// name into the overlay. A store that is not there is no error: everything can
// come from the overlay, and what does not is reported as not indexed.
func (a *app) openSession(ctx context.Context, o *inputOptions) (*session, error) {
	limitMemory(o.maxMemory)
	s := &session{a: a, o: o, overlay: store.NewOverlay()}
	s.view = s.overlay
	path, err := a.storePath()
	if err == nil {
		s.reader, err = a.openReader(path)
	}
	switch {
	case err == nil:
		s.view = store.Layer(s.overlay, s.reader)
	case errors.Is(err, store.ErrNoStore) || path == "":
		if len(o.with)+len(o.symfs)+len(o.bundles)+len(o.bccDirs) == 0 {
			a.warn(err.Error(), cmp.Or(hintOf(storeError(err)), hintOf(err)))
		}
	default:
		return nil, storeError(err)
	}
	captures, paths := splitCaptures(slices.Concat(o.with, o.symfs, o.vmlinux))
	err = s.indexOverlay(ctx, paths, buildid.ID{})
	if err == nil {
		err = a.addBCC(ctx, o.bccDirs, func() (store.Sink, error) { return s.overlay, nil })
	}
	if err == nil {
		err = s.openCaptures(ctx, slices.Concat(o.bundles, captures))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close releases the store.
func (s *session) Close() error {
	err := s.closeBundles()
	if s.reader == nil {
		return err
	}
	err = errors.Join(err, s.reader.Close())
	s.a.sayStoreWarnings(s.reader)
	return err
}

// indexOverlay indexes paths into the overlay; kernel is the build ID of kallsyms
// texts among them.
func (s *session) indexOverlay(ctx context.Context, paths []string, kernel buildid.ID) error {
	if len(paths) == 0 {
		return nil
	}
	sum, err := indexer.Index(ctx, paths, nil,
		func() (store.Sink, error) { return s.overlay, nil },
		indexer.Options{Workers: s.o.jobs, MaxMemory: int64(s.o.maxMemory), KallsymsID: kernel,
			Columns: s.o.columns, Relocatable: s.o.relocatable})
	if err != nil {
		return err
	}
	for _, p := range sum.Problems {
		if p.Named && !p.Kept {
			return withHint(p, "%s", p.Hint)
		}
	}
	s.a.partial = s.a.partial || len(sum.Problems) > 0
	s.a.printProblems(sum.Problems)
	if sum.Objects == 0 {
		s.a.warn("no object in "+strings.Join(paths, ", "),
			"symbols come from ELF files and kallsyms texts")
	}
	return nil
}

// ingestOptions are the options for input.Open.
func (s *session) ingestOptions(keep ingest.Keep) input.Options {
	host, _ := os.Hostname() // "" proves no file to be of this host
	return input.Options{
		Event: s.o.event, Comms: s.o.comms, PIDs: s.o.pids, Keep: keep, Workers: s.o.jobs,
		Bundles: s.borrow, Stacks: s.o.stacks.options(s.view),
		Identify: resolve.Identify(s.view, resolve.IdentifyOptions{
			TrustPaths: s.o.trustPaths, Hostname: host,
		}),
		Exact: resolve.Exact(s.view),
	}
}

// forEach opens the captures one after another and hands each to body with its
// folded profile. One that cannot be read is reported and passed over, unless
// there is no other.
func (s *session) forEach(ctx context.Context, paths []string, opts input.Options,
	body func(string, *input.Capture, *ingest.Profile) error) error {
	read := 0
	var first error
	for _, path := range paths {
		c, p, err := s.openCapture(ctx, path, opts)
		switch {
		case err == nil:
			read++
			s.a.sayBorrowed(path, c)
			if s.bundle(path) == nil { // else they were added when it was opened
				err = s.addPrograms(ctx, path, c)
			}
			if err == nil {
				err = body(path, c, p)
			}
			if err := errors.Join(err, c.Close()); err != nil {
				return err
			}
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case first == nil:
			first = err
		}
		if len(paths) > 1 {
			s.a.failInput(err)
		}
	}
	if len(paths) > 1 && read > 0 {
		return nil
	}
	if len(paths) > 1 {
		return &exitError{code: exitFailed} // each has been reported
	}
	return first
}

// failInput reports an input that could not be read while others can.
func (a *app) failInput(err error) {
	a.partial = true
	a.say("error", err.Error())
	if hint := hintOf(err); hint != "" {
		a.say("hint", hint)
	}
}

// bundle returns the bundle of a path that is open for the session; nil if there is none.
func (s *session) bundle(path string) *input.Capture {
	i := slices.IndexFunc(s.borrow, func(c *input.Capture) bool { return c.Path() == path })
	if i < 0 {
		return nil
	}
	return s.borrow[i]
}

// openCapture opens and folds a capture.
func (s *session) openCapture(ctx context.Context, path string, opts input.Options) (
	*input.Capture, *ingest.Profile, error) {
	var c *input.Capture
	if open := s.bundle(path); open != nil {
		c = open.With(opts)
	} else {
		var err error
		if c, err = input.Open(ctx, path, opts); err != nil {
			return nil, nil, captureError(err)
		}
	}
	p, err := c.Profile(ctx)
	if err == nil {
		err = checkEvent(p, opts.Event)
	}
	if err != nil {
		return nil, nil, captureError(errors.Join(err, c.Close()))
	}
	return c, p, nil
}

// captureError adds a hint to the errors of files that are no captures.
func captureError(err error) error {
	if errors.Is(err, input.ErrNotCapture) {
		return withHint(err, "a capture is what `perf record -g` or a pprof profiler writes; "+
			"`symbolize info FILE` tells what a file is")
	}
	if errors.Is(err, perfdata.ErrPipe) || errors.Is(err, perfdata.ErrDirectory) ||
		errors.Is(err, perfdata.ErrCompressed) {
		return withHint(err, "record into one plain file: `perf record -g -o perf.data`, "+
			"without -z and --threads")
	}
	return err
}

// checkEvent refuses an event that the capture does not have.
func checkEvent(p *ingest.Profile, event string) error {
	if event == "" || eventIndex(p, event) >= 0 {
		return nil
	}
	return fmt.Errorf("%s: no event %q in it", strings.Join(p.Meta.Captures, ", "), event)
}

// load reads the captures, merges them, and names what can be named. It is for the
// results that need no single samples.
func (s *session) load(ctx context.Context, paths []string, opts input.Options) (
	*ingest.Profile, error) {
	var profiles []*ingest.Profile
	err := s.forEach(ctx, paths, opts, func(_ string, _ *input.Capture, p *ingest.Profile) error {
		profiles = append(profiles, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.merge(ctx, profiles)
}

// merge makes one named profile of several. They are joined with the store
// together, in one batch, unless some came with names of their own, which only
// stay where all have names.
func (s *session) merge(ctx context.Context, profiles []*ingest.Profile) (*ingest.Profile, error) {
	if len(profiles) == 1 {
		return profiles[0], s.resolve(ctx, profiles[0])
	}
	named := slices.ContainsFunc(profiles, func(p *ingest.Profile) bool { return p.Names != nil })
	if named {
		for _, p := range profiles {
			if err := s.resolve(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	p, err := merge.Profiles(profiles)
	if err != nil || named {
		return p, err
	}
	return p, s.resolve(ctx, p)
}

// resolve names the locations of a profile.
func (s *session) resolve(ctx context.Context, p *ingest.Profile) error {
	if err := s.addKallsyms(ctx, p); err != nil {
		return err
	}
	err := resolve.Resolve(ctx, p, s.view, resolve.Options{
		Workers: s.o.jobs, Names: s.o.policy, NoInlines: s.o.noInlines,
	})
	if err != nil {
		return err
	}
	for _, w := range p.Stats.Warnings {
		s.a.partial = s.a.partial || w.Partial
	}
	for _, w := range p.Names.Warnings {
		s.a.partial = s.a.partial || w.Partial
	}
	return nil
}

// addKallsyms indexes the files of --kallsyms under the build ID of the profile's
// kernel. Such a text does not say which kernel it is of: the user does.
func (s *session) addKallsyms(ctx context.Context, p *ingest.Profile) error {
	if len(s.o.kallsyms) == 0 {
		return nil
	}
	var kernels []buildid.ID
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.Kind == ingest.Kernel && !o.ID.IsZero() && !slices.Contains(kernels, o.ID) {
			kernels = append(kernels, o.ID)
		}
	}
	switch len(kernels) {
	case 0:
		if p.Stats.KernelList {
			return nil // what there is to say of the list was said where it was used
		}
		s.a.warn("--kallsyms is of no use: the capture names no kernel with a build ID", "")
		return nil
	case 1:
		return s.indexOverlay(ctx, s.o.kallsyms, kernels[0])
	}
	return withHint(usagef("--kallsyms: the captures are of %d kernels", len(kernels)),
		"resolve those of each kernel for themselves, or `symbolize index --build-id ID FILE`")
}

// event returns the number of the event that a report of one event shows: that of
// --event, else the first that has samples.
func (s *session) event(p *ingest.Profile) int {
	if s.o.event != "" {
		return eventIndex(p, s.o.event)
	}
	return report.DefaultEvent(p)
}

// eventIndex returns the number of the event with this name, or -1.
func eventIndex(p *ingest.Profile, name string) int {
	return slices.IndexFunc(p.Events, func(e ingest.Event) bool { return e.Name == name })
}

// sayOtherEvents says which events a report of one event leaves out.
func (a *app) sayOtherEvents(p *ingest.Profile, shown int) {
	if others := report.OtherEvents(p, shown); len(others) > 0 {
		a.note(fmt.Sprintf("shown is the event %s; there are also: %s", p.Events[shown].Name,
			strings.Join(others, ", ")))
	}
}
