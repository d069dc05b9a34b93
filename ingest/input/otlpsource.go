package input

import (
	"context"
	"fmt"

	"symbolize/ingest"
	"symbolize/ingest/format/otlp"
)

// otlpSource is a file with profiles of OpenTelemetry.
type otlpSource struct {
	file *file
	opts *Options
}

const kindOTLP = "otlp"

func (s *otlpSource) kind() string { return kindOTLP }

func (s *otlpSource) fold(context.Context) (*ingest.Profile, error) {
	o := otlp.Options{Select: otlp.Select{Event: s.opts.Event, Comms: s.opts.Comms,
		PIDs: s.opts.PIDs, TIDs: s.opts.TIDs, CPUs: s.opts.CPUs, Keep: s.opts.Keep}}
	return otlp.Read(s.file.path, s.file.r, s.file.size, o)
}

// CanRewrite reports whether Rewrite can write the profile of captures that were read with options:
// profiles of OpenTelemetry, of which no samples were left out, in files.
func CanRewrite(opts *Options, kinds ...string) bool {
	for _, kind := range kinds {
		if kind != kindOTLP {
			return false
		}
	}
	return opts.Event == "" && !opts.Time.set &&
		len(opts.Comms)+len(opts.PIDs)+len(opts.TIDs)+len(opts.CPUs) == 0
}

// Rewrite copies the file of a capture of kind "otlp" with the names of the Rewriter's profile.
func (c *Capture) Rewrite(to *otlp.Rewriter) error {
	s, ok := c.source.(*otlpSource)
	if !ok {
		return fmt.Errorf("%s: no profiles of OpenTelemetry", c.file.path)
	}
	return to.File(s.file.path, s.file.r, s.file.size)
}
