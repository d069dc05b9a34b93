package analyze

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/input"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/sideband"
	"symbolize/store/indexer"
)

// Load reads captures and returns one profile of all, with names. It is for results that need
// no single samples; Each has the samples of a capture.
func (s *Session) Load(ctx context.Context, paths ...string) (*ingest.Profile, error) {
	var profiles []*ingest.Profile
	err := s.Each(ctx, paths, func(_ *input.Capture, p *ingest.Profile) error {
		profiles = append(profiles, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.Name(ctx, profiles...)
}

// Each opens captures one after another and hands each to body with its profile, yet without
// names: see Name. The capture is closed when body returns. One that cannot be read goes to
// Options.Failed and is passed over, unless there is no other.
func (s *Session) Each(ctx context.Context, paths []string,
	body func(*input.Capture, *ingest.Profile) error) error {
	opts := s.InputOptions()
	read := 0
	var refused []error // of captures without a use for options of stack maps
	for _, path := range paths {
		c, p, err := s.open(ctx, path, opts)
		switch {
		case err == nil:
			read++
			if err := c.CheckStackOptions(); err != nil {
				if refused = append(refused, err); len(refused) == len(paths) { // one capture may use them
					return errors.Join(refused[0], c.Close())
				}
			}
			if err := errors.Join(s.visit(ctx, c, p, body), c.Close()); err != nil {
				return err
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case len(paths) == 1 || s.opts.Failed == nil:
			return err
		default:
			s.partial = true
			s.opts.Failed(path, err)
		}
	}
	if read == 0 && len(paths) > 0 {
		return ErrNoCapture
	}
	return nil
}

// visit hands one capture to body.
func (s *Session) visit(ctx context.Context, c *input.Capture, p *ingest.Profile,
	body func(*input.Capture, *ingest.Profile) error) error {
	s.reportTaken(c)
	if s.opts.NoCommand {
		p.OmitArguments()
	}
	if s.bundle(c.Path()) == nil { // else the programs were added when it was opened
		if err := s.addPrograms(ctx, c); err != nil {
			return err
		}
	}
	own, err := s.checkKallsyms(c, p)
	if err != nil {
		return err
	}
	if path, kernels := c.Kallsyms(), p.Kernels(); own && len(kernels) == 1 {
		opts := indexer.Options{KallsymsID: kernels[0], KallsymsForced: s.opts.ForceKallsyms}
		if err := s.Index(ctx, []string{path}, opts); ctx.Err() != nil {
			return err
		} else if err != nil {
			s.warnError(err, "", false)
		}
	}
	if err := s.addRecordedSymbols(ctx, c, p); err != nil {
		return err
	}
	return body(c, p)
}

// checkKallsyms compares the lists in Options.Kallsyms with the kernel of a capture, and the list
// next to the capture: own reports whether that one can be used.
func (s *Session) checkKallsyms(c *input.Capture, p *ingest.Profile) (own bool, err error) {
	kernels := p.Kernels()
	if len(kernels) != 1 { // Name reports it
		for _, path := range s.opts.Kallsyms {
			if _, err := files.ReadHead(path, 1); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	own = c.Kallsyms() != ""
	for _, path := range append(slices.Clip(s.opts.Kallsyms), c.Kallsyms()) {
		if path == "" {
			continue
		}
		list, err := s.kernelList(path)
		if err == nil {
			err = c.CheckKallsyms(list, kernels[0])
		}
		var other *sideband.KernelListError
		switch {
		case errors.As(err, &other) && s.opts.ForceKallsyms:
			s.warnError(err, "", false)
		case err == nil:
		case path != c.Kallsyms():
			return false, err
		default:
			s.warnError(err, "--force-kallsyms uses it all the same", true)
			own = false
		}
	}
	return own, nil
}

// kernelList reads a copy of /proc/kallsyms, each once: many captures have the same.
func (s *Session) kernelList(path string) (*sideband.KernelList, error) {
	if l := s.kernelLists[path]; l != nil {
		return l, nil
	}
	l, err := sideband.ReadKernelList(path)
	if err == nil && slices.Contains(s.opts.Kallsyms, path) {
		if s.kernelLists == nil {
			s.kernelLists = make(map[string]*sideband.KernelList)
		}
		s.kernelLists[path] = l
	}
	return l, err
}

// bundle returns the open bundle of a path; nil if there is none.
func (s *Session) bundle(path string) *input.Capture {
	i := slices.IndexFunc(s.bundles, func(c *input.Capture) bool { return c.Path() == path })
	if i < 0 {
		return nil
	}
	return s.bundles[i]
}

// open opens and folds a capture.
func (s *Session) open(ctx context.Context, path string, opts input.Options) (
	*input.Capture, *ingest.Profile, error) {
	var c *input.Capture
	var found error
	seen := false
	s.pulling.ctx = ctx
	jit := jitFinder{ctx: ctx, opts: &s.opts, view: s.view, overlay: s.overlay, isHere: s.isHere,
		capture: path, objects: make(map[string]bool), links: &s.jitFiles}
	opts.JIT = jit.jit
	opts.Seen = func(list input.Seen) { seen, found = true, s.findObjects(ctx, &list) }
	if b := s.bundle(path); b != nil {
		c = b.With(opts)
	} else {
		var err error
		if c, err = input.Open(ctx, path, opts); err != nil {
			return nil, nil, err
		}
	}
	p, err := c.Profile(ctx)
	s.readErr = cmp.Or(s.readErr, c.ReadError())
	for _, b := range s.bundles {
		s.readErr = cmp.Or(s.readErr, b.ReadError())
	}
	s.unwindWarnings()
	if err = cmp.Or(err, found); err == nil && !seen { // a profile: its locations do not change
		err = s.findObjects(ctx, seenIn(p))
	}
	if err == nil && p.Stats.Callers.Restored > 0 {
		err = s.findRestored(ctx, p)
	}
	if err == nil && opts.Event != "" && EventIndex(p, opts.Event) < 0 {
		err = &ingest.EventError{Capture: path, Event: opts.Event}
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	warnReused(p)
	s.warnRewritten(p)
	nameCapture(p.Stats.Warnings, path)
	s.checkPartial(p.Stats.Warnings) // here, as not every report has names
	return c, p, nil
}

// findObjects looks for the objects of a capture that the store lacks, in Options.Remote and then
// on this host.
func (s *Session) findObjects(ctx context.Context, seen *input.Seen) error {
	if !s.opts.Undecided { // otherwise naming the capture needs them
		if _, err := s.Need(ctx, seen.Objects); err != nil {
			return err
		}
	}
	return s.findLocal(ctx, seen)
}

// Locate returns the profile that locate makes of addresses, without a capture, with names. locate
// gets the options by which the session opens captures.
func (s *Session) Locate(ctx context.Context,
	locate func(input.Options) (*ingest.Profile, error)) (*ingest.Profile, error) {
	var found error
	s.pulling.ctx = ctx
	opts := s.InputOptions()
	opts.Seen = func(list input.Seen) { found = s.findObjects(ctx, &list) }
	p, err := locate(opts)
	if err = cmp.Or(err, found); err != nil {
		return nil, err
	}
	return s.Name(ctx, p)
}

// nameCapture puts the path of a capture in front of the warnings about it that lack it.
func nameCapture(list []ingest.Warning, path string) {
	for i := range list {
		if w := &list[i]; !strings.HasPrefix(w.Text, path) {
			w.Text = path + ": " + w.Text
		}
	}
}

// Event returns the number of the event that a report of one event shows: Options.Event, else
// Profile.DefaultEvent.
func (s *Session) Event(p *ingest.Profile) int {
	if s.opts.Event != "" {
		return EventIndex(p, s.opts.Event)
	}
	return p.DefaultEvent()
}

// EventIndex returns the number of the event that a name means, see ingest.EventNamed, or -1.
func EventIndex(p *ingest.Profile, name string) int {
	names := make([]string, len(p.Events))
	for i := range p.Events {
		names[i] = p.Events[i].Name
	}
	return ingest.EventNamed(names, name)
}

// Name names the locations of profiles, in their Names, and returns one profile of all: the only
// one itself, else a merged one. Several are joined with the store together, in one batch, unless
// some came with names of their own, which stay only where all have names.
func (s *Session) Name(ctx context.Context, profiles ...*ingest.Profile) (*ingest.Profile, error) {
	if len(profiles) == 1 {
		return profiles[0], s.name(ctx, profiles[0])
	}
	named := slices.ContainsFunc(profiles, func(p *ingest.Profile) bool { return p.Names != nil })
	if named {
		for _, p := range profiles {
			if err := s.name(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	p, err := merge.Profiles(profiles)
	if err != nil || named {
		return p, err
	}
	return p, s.name(ctx, p)
}

// name names the locations of one profile.
func (s *Session) name(ctx context.Context, p *ingest.Profile) error {
	if s.opts.Unnamed {
		s.named.compare(p)
		return nil
	}
	if err := s.addKallsyms(ctx, p); err != nil {
		return err
	}
	err := resolve.Resolve(ctx, p, s.view, resolve.Options{
		Workers: s.opts.Workers, Names: s.opts.Names, NoInlines: s.opts.NoInlines,
	})
	if err != nil {
		return err
	}
	s.named.compare(p)
	s.checkPartial(p.Stats.Warnings)
	s.checkPartial(p.Names.Warnings)
	if err := s.nameAddresses(ctx, p); err != nil {
		return err
	}
	return s.addDataTags(ctx, p)
}

// checkPartial makes the session partial if one of the warnings reports a loss.
func (s *Session) checkPartial(list []ingest.Warning) {
	s.partial = s.partial ||
		slices.ContainsFunc(list, func(w ingest.Warning) bool { return w.Partial })
}

// addKallsyms indexes Options.Kallsyms under the build ID of the profile's kernel, which such
// a text does not name.
func (s *Session) addKallsyms(ctx context.Context, p *ingest.Profile) error {
	if len(s.opts.Kallsyms) == 0 {
		return nil
	}
	kernels := p.Kernels()
	switch len(kernels) {
	case 0:
		if !p.Stats.KernelList { // else the profile has warnings about the list
			s.warnError(ErrNoKernel, "", false)
		}
		return nil
	case 1:
		return s.Index(ctx, s.opts.Kallsyms,
			indexer.Options{KallsymsID: kernels[0], KallsymsForced: s.opts.ForceKallsyms})
	}
	return &KernelsError{Kernels: kernels}
}
