package input

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/sideband"
)

// kindBundle is the Kind of a capture bundle.
const kindBundle = "bundle"

// NoSamples ends the warning about a bundle without samples.
const NoSamples = "the bundle holds no samples"

// noSamplesHint is the hint of that warning.
const noSamplesHint = "give the perf.data too: symbolize resolve perf.data %s"

// bundleSource is a capture bundle: a side band in the format of perf.data, and stacks.
type bundleSource struct {
	file     *file
	bundle   *bundle.Bundle
	opts     Options
	sideBand *perfSource // nil without one
	damage   error       // the reason for that

	// stacks are read by stackMap; nil if the bundle has none, or none can be read, for the
	// reason in stacksErr.
	stacks     *stackSource
	stacksRead bool
	stacksErr  error

	paths map[buildid.Key][]recordedFile // see recordedPath
}

// openBundle unpacks a bundle and opens its side band. A bundle whose side band is missing
// or damaged still has kallsyms, modules and dumps.
func openBundle(f *file, opts *Options) (*bundleSource, error) {
	b, err := bundle.Open(f.path, f.r, f.size)
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, b)
	s := newBundleSource(f, b, opts)
	r, size, err := b.Entry(bundle.PerfDataName)
	var data *perfdata.File
	if err == nil {
		data, err = perfdata.Open(f.path+": "+bundle.PerfDataName, r, size)
	}
	if err != nil {
		s.damage = err
		return s, nil
	}
	x, m := &data.Features, &b.Manifest
	for _, f := range []struct {
		to   *string
		from string
	}{{&x.Arch, m.Machine}, {&x.Hostname, m.Host}, {&x.OSRelease, m.OSRelease}} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	if len(x.CmdLine) == 0 {
		x.CmdLine = m.Command
	}
	s.sideBand = &perfSource{file: f, data: data, opts: s.opts, missing: m.Missing}
	return s, nil
}

// newBundleSource makes a source of an unpacked bundle, yet without its side band.
func newBundleSource(f *file, b *bundle.Bundle, opts *Options) *bundleSource {
	s := &bundleSource{file: f, bundle: b, opts: *opts}
	s.opts.Bundles = nil // another bundle of its boot has no more than it has
	return s
}

// with returns a source of the same bundle with other options. It shares the decoded side
// band, on which no option has an effect.
func (s *bundleSource) with(f *file, opts *Options) *bundleSource {
	n := newBundleSource(f, s.bundle, opts)
	n.damage = s.damage
	if old := s.sideBand; old != nil {
		n.sideBand = &perfSource{file: f, data: old.data, opts: n.opts, missing: old.missing,
			chunkSize: old.chunkSize, state: old.state}
	}
	return n
}

func (s *bundleSource) kind() string         { return kindBundle }
func (s *bundleSource) records() *perfSource { return s.sideBand }

func (s *bundleSource) replayed() *perfSource {
	if s.stackMap() != nil {
		return nil
	}
	return s.sideBand
}

func (s *bundleSource) taken() []sideband.Taken {
	switch {
	case s.stacks != nil && s.stacks.state != nil:
		return s.stacks.taken()
	case s.sideBand != nil:
		return s.sideBand.taken()
	}
	return nil
}

// profile folds the stacks of a bundle, else the samples of its side band.
func (s *bundleSource) profile(ctx context.Context) (p *ingest.Profile, err error) {
	switch {
	case s.stackMap() != nil:
		p, err = s.foldStacks(ctx)
	case s.sideBand != nil:
		p, err = s.sideBand.profile(ctx)
	default:
		p = s.noProfile()
	}
	if err != nil {
		return nil, err
	}
	s.describe(p)
	return p, nil
}

// Bundle returns the opened bundle of a capture of kind "bundle", which stays open
// until Close; nil for others.
func (c *Capture) Bundle() *bundle.Bundle {
	if s, ok := c.source.(*bundleSource); ok {
		return s.bundle
	}
	return nil
}

// HasSamples reports whether a capture has samples to resolve. Of bundles those with stacks
// have; before the Profile is made that is known by the headers of their dumps.
func (c *Capture) HasSamples() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.source.(*bundleSource)
	return !ok || s.hasStacks()
}

// With returns the capture of a bundle with other options, for another profile of it. It
// shares the open files, and the decoded side band, with c: to close it does nothing, and
// it must not be used after c is closed. c must be of kind "bundle".
func (c *Capture) With(opts Options) *Capture {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := *c.file
	f.closers = nil
	return &Capture{file: &f, source: c.source.(*bundleSource).with(&f, &opts)}
}

// noProfile makes the profile of a bundle without a side band and without stacks.
func (s *bundleSource) noProfile() *ingest.Profile {
	p := &ingest.Profile{Strings: []string{""},
		Events: []ingest.Event{{Name: "samples", Unit: "count"}}}
	p.Stats.Warnings = []ingest.Warning{{Text: s.damage.Error(), Partial: true,
		Hint: "BPF programs are named by what other captures say of them"}}
	return p
}

// describe adds the facts and warnings of the manifest to the profile.
func (s *bundleSource) describe(p *ingest.Profile) {
	m, meta := &s.bundle.Manifest, &p.Meta
	meta.Captures = []string{s.file.path}
	meta.Host, meta.OSRelease, meta.Arch = m.Host, m.OSRelease, m.Machine
	meta.Recorder, meta.Command = m.Recorder, strings.Join(m.Command, " ")
	if meta.StartNanos == 0 {
		meta.StartNanos = int64(m.Begin.Realtime)
	}
	if meta.Duration == 0 && m.End.Perf > m.Begin.Perf {
		meta.Duration = int64(m.End.Perf - m.Begin.Perf)
	}
	warn := func(w ingest.Warning) { p.Stats.Warnings = append(p.Stats.Warnings, w) }
	for _, err := range s.bundle.Warnings {
		warn(ingest.Warning{Text: err.Error(), Partial: true,
			Hint: "copy the bundle or capture it again"})
	}
	for _, text := range m.Warnings {
		warn(ingest.Warning{Text: s.file.path + ": " + text})
	}
	if len(m.Lost) > 0 {
		var parts []string
		for _, cause := range slices.Sorted(maps.Keys(m.Lost)) {
			parts = append(parts, fmt.Sprintf("%d %s", m.Lost[cause], cause))
		}
		warn(ingest.Warning{Text: s.file.path + ": lost while it was captured: " +
			strings.Join(parts, ", ")})
	}
	if s.stacks == nil && s.stacksErr != nil {
		w := ingest.Warning{Text: s.stacksErr.Error() + "; its stacks are not used", Partial: true}
		if errors.Is(s.stacksErr, stackmap.ErrKey) || errors.Is(s.stacksErr, stackmap.ErrTypes) {
			w.Partial, w.Hint = false, keyHint // nothing is damaged
		}
		warn(w)
	}
	if p.Stats.Samples == 0 {
		w := ingest.Warning{Text: s.file.path + ": " + NoSamples}
		if len(m.Samples) == 0 { // else some were wanted, and none came
			w.Hint = fmt.Sprintf(noSamplesHint, s.file.path)
		}
		warn(w)
	}
}
