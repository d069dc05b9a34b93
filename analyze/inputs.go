package analyze

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"symbolize/ingest/input"
	"symbolize/ingest/input/container"
)

// SplitBundles separates capture bundles from other paths, each in their order.
func SplitBundles(paths []string) (bundles, rest []string) {
	return split(paths, func(t container.Type) bool { return t == container.TypeBundle })
}

// SplitCaptures separates captures that hold programs, perf.data files and bundles, from other
// paths, each in their order.
func SplitCaptures(paths []string) (captures, rest []string) {
	return split(paths, func(t container.Type) bool {
		return t == container.TypePerfData || t == container.TypeBundle
	})
}

func split(paths []string, first func(container.Type) bool) (taken, rest []string) {
	for _, p := range paths {
		if first(container.TypeOfPath(p)) {
			taken = append(taken, p)
		} else {
			rest = append(rest, p)
		}
	}
	return taken, rest
}

// Inputs are the arguments of a command line: captures to read, and bundles that serve them.
// It owns the bundles that it opened until a Session or Take has them; nil has none.
type Inputs struct {
	Captures []string // in the order of the arguments
	Bundles  []string // the bundles among the arguments
	opened   map[string]*input.Capture
}

// OpenInputs sorts paths. A bundle serves the other captures; if it has stacks, it is a capture, too.
// If there are only bundles, each without stacks serves the recording that its command wrote, or is
// a capture without samples if that is not found. Bundles that must be opened for this stay open for
// the Session, so that each is unpacked once.
func OpenInputs(ctx context.Context, paths []string) *Inputs {
	in := &Inputs{}
	var rest []string
	if in.Bundles, rest = SplitBundles(paths); len(rest) == 0 {
		for _, b := range in.Bundles {
			in.Captures = append(in.Captures, cmp.Or(in.Recording(ctx, b), b))
		}
		return in
	}
	for _, p := range paths {
		if !slices.Contains(in.Bundles, p) || in.hasSamples(ctx, p) {
			in.Captures = append(in.Captures, p)
		}
	}
	return in
}

// Recording returns the path of the recording that the command of a bundle wrote, if the bundle has no
// samples of its own: next to the bundle, or where it was written; "" for none.
func (in *Inputs) Recording(ctx context.Context, path string) string {
	c, err := in.Get(ctx, path)
	if err != nil || c.HasSamples() {
		return ""
	}
	for _, r := range c.Bundle().Manifest.Recordings {
		if found, _ := r.Find(path); found != "" {
			return found
		}
	}
	return ""
}

// hasSamples reports whether a bundle has stacks. A file that cannot be opened is the
// Session's to report.
func (in *Inputs) hasSamples(ctx context.Context, path string) bool {
	c, err := in.Get(ctx, path)
	return err == nil && c.HasSamples()
}

// Get returns the capture of a path, which it opens once. in owns it.
func (in *Inputs) Get(ctx context.Context, path string) (*input.Capture, error) {
	if c := in.opened[path]; c != nil {
		return c, nil
	}
	c, err := input.Open(ctx, path, input.Options{})
	if err != nil {
		return nil, err
	}
	if in.opened == nil {
		in.opened = make(map[string]*input.Capture)
	}
	in.opened[path] = c
	return c, nil
}

// Take returns the capture of a path, for the caller to close.
func (in *Inputs) Take(ctx context.Context, path string) (*input.Capture, error) {
	if in != nil && in.opened[path] != nil {
		c := in.opened[path]
		delete(in.opened, path)
		return c, nil
	}
	return input.Open(ctx, path, input.Options{})
}

// Close closes the captures that no session has received.
func (in *Inputs) Close() error {
	if in == nil {
		return nil
	}
	var errs []error
	for _, c := range in.opened {
		errs = append(errs, c.Close())
	}
	clear(in.opened)
	return errors.Join(errs...)
}
