package cli

import (
	"context"
	"errors"
	"slices"

	"symbolize/analyze"
	"symbolize/analyze/advice"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/record/sys"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/local"
)

// Session is an analyze.Session that prints warnings on standard error. Losses make the exit
// status 3.
type Session struct {
	*analyze.Session
	App     *App
	Options *InputOptions // of the captures and sources
	// AllowEmpty makes captures without samples no error.
	AllowEmpty bool

	paths  []string // of the captures
	failed []string // unreadable ones
}

// OpenSession opens the store and the sources of symbols that the flags name. A missing store is no
// error: other sources may have all symbols.
func (a *App) OpenSession(ctx context.Context, o *InputOptions) (*Session, error) {
	process.LimitMemory(int64(o.MaxMemory))
	opts := a.SessionOptions(o)
	var err error
	if opts.Remote, err = a.OpenRemote(&o.Remote); err != nil {
		return nil, err
	}
	if opts.Store, err = a.StorePath(); err != nil &&
		len(opts.With)+len(opts.Bundles)+len(opts.BCC) == 0 {
		a.Warn(err.Error(), Hint(err))
	}
	s := &Session{App: a, Options: o}
	opts.Failed = func(path string, err error) {
		s.failed = append(s.failed, path)
		a.FailInput(path, err)
	}
	if s.Session, err = analyze.Open(ctx, opts); err != nil {
		return nil, SessionError(err)
	}
	return s, nil
}

// WithSession opens a session for paths and calls body with it and the captures among paths.
func (a *App) WithSession(ctx context.Context, o *InputOptions, paths []string,
	body func(s *Session, captures []string) error) error {
	captures := o.SplitBundles(ctx, paths)
	defer o.Opened.Close()
	s, err := a.OpenSession(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	return body(s, captures)
}

// warnUnused warns about flags that name files of which nothing was used.
func (s *Session) warnUnused() {
	st := s.State()
	for _, text := range st.Named {
		s.App.Note(text)
	}
	texts := st.Refused
	if st.Unmatched && len(st.Refused) == 0 {
		texts = append(texts, "no object of the captures is among the files of "+
			Some(slices.Concat(s.Options.With, s.Options.Vmlinux)))
	}
	placed := func(in local.Place) bool {
		return slices.ContainsFunc(st.Local, func(o local.Object) bool { return o.Place == in })
	}
	if len(s.Options.Symfs) > 0 && placed(local.Nowhere) && !placed(local.Root) {
		texts = append(texts, "no file of the captures is below "+Some(s.Options.Symfs)+" (--symfs)")
	}
	if len(s.Options.perfMaps) > 0 && len(st.JITFiles) == 0 {
		texts = append(texts, "no list of functions in "+Some(s.Options.perfMaps)+
			" (--perf-maps) belongs to a process of the captures")
	}
	if text := s.Options.Pods.Unused(); text != "" {
		texts = append(texts, text)
	}
	for _, text := range texts {
		s.App.Warn(text, "")
	}
}

// SessionOptions are the options set by flags, without the store.
func (a *App) SessionOptions(o *InputOptions) analyze.Options {
	opts := analyze.Options{
		StoreUse: analyze.StoreUse{
			MarkUses:   true,
			RemoteWait: func(e *store.LockedError) { a.Note(e.Waiting()) },
		},
		With:    slices.Concat(o.With, o.Vmlinux),
		Local:   o.local(a),
		Bundles: o.Bundles,
		Symbols: analyze.Symbols{
			PerfMaps: o.perfMaps,
			Kallsyms: o.Kallsyms,

			ForceKallsyms: o.forceKallsyms,
			BCC:           o.BCCDirs,
			Columns:       o.Columns,
		},
		Inputs: o.Opened,
		Samples: analyze.Samples{
			Event:    o.Event,
			Comms:    o.comms,
			PIDs:     o.pids,
			TIDs:     o.tids,
			CPUs:     o.cpu,
			Time:     o.time,
			Branches: o.Branches,
			Payloads: o.Payloads,
			Weight:   o.Weight,

			WakerDepth: o.wakerDepth,
			Pods:       o.Pods.Table,

			Keep:   o.Keep,
			Loads:  o.Loads,
			Stacks: o.Stacks.Parsed,

			NoCommand: o.NoCommand,
		},
		Naming: analyze.Naming{
			Names:      o.NamePolicy,
			NoInlines:  o.NoInlines,
			TrustPaths: o.TrustPaths,
			Unnamed:    o.Unnamed,
			Callers:    o.callerTables(),
			Likely:     o.Chains == ChainsLikely,
			Gaps:       o.Gaps,
			Clocks:     sys.ReadClocks,
		},
		Stdin: a.Env.Stdin,
		Limits: analyze.Limits{
			Workers:     o.Jobs,
			MaxMemory:   int64(o.MaxMemory),
			MaxUnpacked: int64(o.unpacked),
		},
		Warn: a.SessionWarning,
		Handlers: analyze.Handlers{
			Problems: a.PrintProblems,
			Failed:   a.FailInput,
			Taken:    a.PrintTaken,
		},
	}
	return opts
}

// SessionWarning prints a warning of a session.
func (a *App) SessionWarning(w analyze.Warning) {
	r := nameRank
	switch {
	case errors.Is(w.Err, store.ErrNoStore):
		w.Hint = Hint(StoreError(w.Err))
		if r = flagRank; a.store == "" {
			r = lastRank // the files of this host may suffice
		}
	case errors.Is(w.Err, analyze.ErrNoKernel):
		w.Text = "--kallsyms cannot help: " + w.Text
	}
	a.warning(w.Warning, r)
}

// SessionError adds hints to the errors of a session, in the words of the command line.
func SessionError(err error) error {
	var kernels *analyze.KernelsError
	var list *sideband.KernelListError
	switch {
	case errors.As(err, &list):
		return texts.WithHint(err, "--force-kallsyms uses it all the same")
	case errors.As(err, &kernels):
		return texts.WithHint(Usagef("--kallsyms: the captures come from %d kernels",
			len(kernels.Kernels)),
			"resolve the captures of each kernel separately, or `symbolize index --build-id ID FILE`")
	case errors.Is(err, analyze.ErrNoCapture):
		return &ExitError{Code: Failed} // each has been reported
	}
	return StoreError(err)
}

// Close releases the store. Losses make the result partial.
func (s *Session) Close() error {
	s.printLocal()
	s.App.NotePulled(s.Session)
	s.warnUnused()
	err := s.Session.Close()
	state := s.State()
	s.App.Partial = s.App.Partial || state.Partial
	s.App.Facts().Tables += state.Tables
	s.App.Facts().Remote.Add(&state.Pulled)
	return err
}

// Each hands the captures to body one after another, with their folded profiles.
func (s *Session) Each(ctx context.Context, paths []string,
	body func(*input.Capture, *ingest.Profile) error) error {
	process.SetGC(s.App.Env.Getenv, process.FoldGC)
	s.paths = append(s.paths, paths...)
	var all ingest.Stats
	err := s.Session.Each(ctx, paths, func(c *input.Capture, p *ingest.Profile) error {
		all.Samples, all.FilteredOut = all.Samples+p.Stats.Samples, all.FilteredOut+p.Stats.FilteredOut
		return body(c, p)
	})
	if err == nil && all.Samples == 0 && !s.AllowEmpty {
		return s.noSamples(paths, &all)
	}
	return SessionError(err)
}

// Load reads the captures, merges them, and resolves their locations. No sample is an error, after
// the warnings of the profile.
func (s *Session) Load(ctx context.Context, paths []string) (*ingest.Profile, error) {
	process.SetGC(s.App.Env.Getenv, process.FoldGC)
	s.paths = append(s.paths, paths...)
	p, err := s.Session.Load(ctx, paths...)
	if err == nil && p.Stats.Samples == 0 {
		s.App.holds = false // they may say why
		s.App.PrintWarnings(p)
		return p, s.noSamples(paths, &p.Stats)
	}
	return p, SessionError(err)
}

// noSamples is the error of captures without samples; the exit status of damaged ones is 3.
func (s *Session) noSamples(paths []string, st *ingest.Stats) error {
	err := analyze.NoSamples(paths, st)
	if s.State().Partial {
		return &ExitError{Code: Partial, Err: err}
	}
	return err
}

// LoadEach loads captures one after another, each for itself, prints the warnings of each, and
// calls use with it. One that cannot be read or used is reported and left out, if there are others.
func (s *Session) LoadEach(ctx context.Context, paths []string,
	use func(path string, p *ingest.Profile) error) error {
	failed := 0
	for _, path := range paths {
		p, err := s.Load(ctx, []string{path})
		if err == nil {
			s.PrintWarnings(p)
			err = use(path, p)
		}
		switch {
		case err == nil:
		case len(paths) == 1 || ctx.Err() != nil:
			return err
		default:
			failed++
			s.App.Partial = true
			s.App.FailInput(path, err)
		}
	}
	if failed == len(paths) {
		return &ExitError{Code: Failed} // each has been reported
	}
	return nil
}

// Locate returns the profile that locate makes of addresses, with names. paths are the files that
// have the objects' build IDs.
func (s *Session) Locate(ctx context.Context, paths []string,
	locate func(input.Options) (*ingest.Profile, error)) (*ingest.Profile, error) {
	s.paths = append(s.paths, paths...)
	p, err := s.Session.Locate(ctx, locate)
	return p, SessionError(err)
}

// Name names the locations of profiles, and returns one profile of all.
func (s *Session) Name(ctx context.Context, profiles ...*ingest.Profile) (*ingest.Profile, error) {
	p, err := s.Session.Name(ctx, profiles...)
	return p, SessionError(err)
}

// FailInput reports an unreadable input; the others are used.
func (a *App) FailInput(_ string, err error) {
	a.Facts().Captures++
	a.Facts().Failed++
	a.PrintError(err)
}

// PrintError prints an error that does not end the run.
func (a *App) PrintError(err error) {
	err = SessionError(err)
	a.Print("error", err.Error())
	if hint := Hint(err); hint != "" {
		a.Print("hint", hint)
	}
}

// WithProfile names captures and hands their profile to body.
func (a *App) WithProfile(ctx context.Context, o *InputOptions, paths []string,
	body func(*Session, *ingest.Profile) error) error {
	return a.WithSession(ctx, o, paths, func(s *Session, captures []string) error {
		p, err := s.Load(ctx, captures)
		if err != nil {
			return err
		}
		s.PrintAdvice(p)
		s.PrintWarnings(p)
		return body(s, p)
	})
}

// Elsewhere reports whether a recording is of another host, of which this one was searched for files.
func (s *Session) Elsewhere(p *ingest.Profile) bool {
	return s.State().Local != nil && s.Session.Elsewhere(p)
}

// Coverage is how much of a profile is named, and where from.
func (s *Session) Coverage(p *ingest.Profile, count bool) *advice.Coverage {
	state := s.State()
	o := advice.CoverageOptions{Count: count, Searched: state.Local != nil, Origin: state.Origin}
	if !s.App.hostOff() {
		o.Replaced = local.Replaced
	}
	return advice.NewCoverage(p, o)
}
