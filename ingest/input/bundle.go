package input

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/stackmap"
)

// kindBundle is the Kind of a capture bundle.
const kindBundle = "bundle"

// NoSamples is how the warning about a bundle ends that has nothing to resolve.
const NoSamples = "the bundle holds no samples"

// noSamplesHint is for a bundle that is given where samples are wanted.
const noSamplesHint = "give the perf.data too: symbolize resolve perf.data %s"

// Bundle returns the opened bundle of a capture of kind "bundle", which stays open
// until Close; nil for others.
func (c *Capture) Bundle() *bundle.Bundle { return c.bundle }

// closers closes several things as one.
type closers []io.Closer

// Close closes all, the last first.
func (list closers) Close() error {
	var errs []error
	for _, c := range slices.Backward(list) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// openBundle unpacks a bundle and opens its side band, which is a perf.data file. One
// whose side band is missing or damaged is a capture all the same: of its kallsyms,
// modules and dumps.
func (c *Capture) openBundle() error {
	b, err := bundle.Open(c.path, c.r, c.size)
	if err != nil {
		return err
	}
	c.file = closers{c.file, b}
	c.setBundle(b)
	r, size, err := b.Entry(bundle.PerfDataName)
	if err == nil {
		c.perf, err = perfdata.Open(c.path+": "+bundle.PerfDataName, r, size)
	}
	if err != nil {
		c.perfErr = err
		return nil
	}
	x, m := &c.perf.Features, &b.Manifest
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
	return nil
}

// setBundle makes the capture one of an unpacked bundle.
func (c *Capture) setBundle(b *bundle.Bundle) {
	c.bundle = b
	c.opts.lost = b.Manifest.Missing
	c.opts.Bundles = nil // it has no samples of its own boot that others could explain better
}

// With returns the capture of a bundle with other options, for another profile of it. It
// shares what is open, and what was unpacked, with the one that it is made of: to close it
// does nothing, and it is used no longer than that one.
func (c *Capture) With(opts Options) *Capture {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &Capture{path: c.path, opts: opts, file: closers{}, r: c.r, size: c.size, mtime: c.mtime,
		perf: c.perf, perfErr: c.perfErr, chunkSize: c.chunkSize}
	n.setBundle(c.bundle)
	n.side = c.side // no option of a bundle changes it
	return n
}

// foldNothing makes the profile of a bundle without a side band and without stacks.
func (c *Capture) foldNothing() *ingest.Profile {
	c.profile = &ingest.Profile{Strings: []string{""},
		Events: []ingest.Event{{Name: "samples", Unit: "count"}}}
	c.profile.Stats.Warnings = []ingest.Warning{{Text: c.perfErr.Error(), Partial: true,
		Hint: "BPF programs are named by what other captures say of them"}}
	c.bundleProfile(c.profile)
	return c.profile
}

// bundleProfile adds to the profile what the manifest says.
func (c *Capture) bundleProfile(p *ingest.Profile) {
	m, meta := &c.bundle.Manifest, &p.Meta
	meta.Captures = []string{c.path}
	meta.Host, meta.OSRelease, meta.Arch = m.Host, m.OSRelease, m.Machine
	meta.Recorder, meta.Command = m.Recorder, strings.Join(m.Command, " ")
	if meta.StartNanos == 0 {
		meta.StartNanos = int64(m.Begin.Realtime)
	}
	if meta.Duration == 0 && m.End.Perf > m.Begin.Perf {
		meta.Duration = int64(m.End.Perf - m.Begin.Perf)
	}
	warn := func(w ingest.Warning) { p.Stats.Warnings = append(p.Stats.Warnings, w) }
	for _, err := range c.bundle.Warnings {
		warn(ingest.Warning{Text: err.Error(), Partial: true,
			Hint: "copy the bundle or capture it again"})
	}
	for _, text := range m.Warnings {
		warn(ingest.Warning{Text: c.path + ": " + text})
	}
	if len(m.Lost) > 0 {
		var parts []string
		for _, cause := range slices.Sorted(maps.Keys(m.Lost)) {
			parts = append(parts, fmt.Sprintf("%d %s", m.Lost[cause], cause))
		}
		warn(ingest.Warning{Text: c.path + ": lost while it was captured: " +
			strings.Join(parts, ", ")})
	}
	if c.stacks == nil && c.stacksErr != nil {
		w := ingest.Warning{Text: c.stacksErr.Error() + "; its stacks are not used", Partial: true}
		if errors.Is(c.stacksErr, stackmap.ErrKey) || errors.Is(c.stacksErr, stackmap.ErrTypes) {
			w.Partial, w.Hint = false, keyHint // nothing is damaged
		}
		warn(w)
	}
	if p.Stats.Samples == 0 {
		w := ingest.Warning{Text: c.path + ": " + NoSamples}
		if len(m.Samples) == 0 { // else there were some, or it waited in vain
			w.Hint = fmt.Sprintf(noSamplesHint, c.path)
		}
		warn(w)
	}
}
