package main

import (
	"context"
	"errors"
	"slices"

	"symbolize/analyze"
	"symbolize/analyze/report"
	"symbolize/cmd/symbolize/internal/exit"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store"
)

// session is an analyze.Session whose warnings go to standard error and whose losses make the
// exit status 3.
type session struct {
	*analyze.Session
	a     *app
	o     *inputOptions
	paths []string // of the captures
}

// openSession opens the store and the sources of symbols that the flags name. A store that is
// not there is no error: everything can come from the others.
func (a *app) openSession(ctx context.Context, o *inputOptions) (*session, error) {
	process.LimitMemory(o.maxMemory)
	opts := a.sessionOptions(o)
	var err error
	if opts.Remote, err = a.remote(&o.remote); err != nil {
		return nil, err
	}
	if opts.Store, err = a.storePath(); err != nil &&
		len(opts.With)+len(opts.Bundles)+len(opts.BCC) == 0 {
		a.warn(err.Error(), exit.Hint(err))
	}
	s, err := analyze.Open(ctx, opts)
	if err != nil {
		return nil, sessionError(err)
	}
	return &session{Session: s, a: a, o: o}, nil
}

// withSession opens a session for the captures and bundles among paths, and calls body with it and
// the captures.
func (a *app) withSession(ctx context.Context, o *inputOptions, paths []string,
	body func(s *session, captures []string) error) error {
	captures := o.takeBundles(ctx, paths)
	defer o.opened.Close()
	s, err := a.openSession(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	return body(s, captures)
}

// sessionOptions are the options set by flags, without the store.
func (a *app) sessionOptions(o *inputOptions) analyze.Options {
	opts := analyze.Options{
		MarkUses: true,
		With:     slices.Concat(o.with, o.vmlinux),
		Local:    a.local(o.symfs, o.noLocal),
		Bundles:  o.bundles, PerfMaps: o.perfMaps,
		Kallsyms: o.kallsyms, BCC: o.bccDirs, Inputs: o.opened,
		Event: o.event, Comms: o.comms, PIDs: o.pids,
		TIDs: o.tids, CPUs: o.cpu, Time: o.time, Branches: o.branches, Runs: o.runs,
		Weight: o.weight, Keep: o.keep, Stacks: o.stacks.Parsed,
		Names: o.policy, NoInlines: o.noInlines, TrustPaths: o.trustPaths,
		Stdin: a.env.Stdin, Workers: o.jobs, MaxMemory: int64(o.maxMemory),
		Columns: o.columns, Relocatable: o.relocatable,
		Warn: a.sessionWarning, Problems: a.printProblems, Failed: a.failInput,
		Taken:      a.printTaken,
		RemoteWait: func(e *store.LockedError) { a.note(e.Waiting()) },
	}
	return opts
}

// sessionWarning prints a warning of a session.
func (a *app) sessionWarning(w analyze.Warning) {
	switch {
	case errors.Is(w.Err, store.ErrNoStore):
		w.Hint = exit.Hint(storeError(w.Err))
	case errors.Is(w.Err, analyze.ErrNoKernel):
		w.Text = "--kallsyms is of no use: " + w.Text
	}
	a.warn(w.Text, w.Hint)
}

// sessionError adds hints to the errors of a session, in the words of the command line.
func sessionError(err error) error {
	var kernels *analyze.KernelsError
	switch {
	case errors.As(err, &kernels):
		return ingest.WithHint(exit.Usagef("--kallsyms: the captures are of %d kernels",
			len(kernels.Kernels)),
			"resolve those of each kernel for themselves, or `symbolize index --build-id ID FILE`")
	case errors.Is(err, analyze.ErrNoCapture):
		return &exit.Error{Code: exit.Failed} // each has been reported
	}
	return storeError(err)
}

// Close releases the store. Losses make the result partial.
func (s *session) Close() error {
	s.printLocal()
	s.a.notePulled(s.Session)
	err := s.Session.Close()
	s.a.partial = s.a.partial || s.Partial()
	s.a.facts().Tables += s.Tables()
	pulled := s.Pulled()
	s.a.facts().Remote.Add(&pulled)
	return err
}

// each hands the captures to body one after another, with their folded profiles.
func (s *session) each(ctx context.Context, paths []string,
	body func(*input.Capture, *ingest.Profile) error) error {
	process.SetGC(s.a.env.Getenv, process.FoldGC)
	s.paths = append(s.paths, paths...)
	return sessionError(s.Session.Each(ctx, paths, body))
}

// load reads the captures, merges them, and resolves their locations.
func (s *session) load(ctx context.Context, paths []string) (*ingest.Profile, error) {
	process.SetGC(s.a.env.Getenv, process.FoldGC)
	s.paths = append(s.paths, paths...)
	p, err := s.Session.Load(ctx, paths...)
	return p, sessionError(err)
}

// resolve names the locations of a profile.
func (s *session) resolve(ctx context.Context, p *ingest.Profile) error {
	return sessionError(s.Session.Name(ctx, p))
}

// failInput reports an input that could not be read while others can.
func (a *app) failInput(_ string, err error) {
	err = sessionError(err)
	a.facts().Captures++
	a.facts().Failed++
	a.print("error", err.Error())
	if hint := exit.Hint(err); hint != "" {
		a.print("hint", hint)
	}
}

// event returns the number of the event that a report of one event shows: that of
// --event, else the first that has samples.
func (s *session) event(p *ingest.Profile) int {
	if s.o.event != "" {
		return analyze.EventIndex(p, s.o.event)
	}
	return report.DefaultEvent(p)
}

// withProfile names captures and hands their profile to body.
func (a *app) withProfile(ctx context.Context, o *inputOptions, paths []string,
	body func(*session, *ingest.Profile) error) error {
	return a.withSession(ctx, o, paths, func(s *session, captures []string) error {
		p, err := s.load(ctx, captures)
		if err != nil {
			return err
		}
		s.printWarnings(p)
		a.printAdvice(p)
		return body(s, p)
	})
}

// coverage is how much of a profile is named, and where from.
func (s *session) coverage(p *ingest.Profile, count bool) *report.Coverage {
	return report.NewCoverage(p, report.CoverageOptions{Count: count, Searched: s.Local() != nil,
		Origin: s.Origin})
}
