package input

import (
	"context"
	"fmt"
	"math"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/otlp"
)

// otlpSource is a file with profiles of OpenTelemetry.
type otlpSource struct {
	file *file
	opts *Options
}

const kindOTLP = "otlp"

func (s *otlpSource) kind() string { return kindOTLP }

func (s *otlpSource) fold(ctx context.Context) (*ingest.Profile, error) {
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	p, err := otlp.Read(s.file.path, s.file.r, s.file.size, o)
	return p, withHint(err)
}

// options returns the options of the reader.
func (s *otlpSource) options() (otlp.Options, error) {
	o := otlp.Options{Select: otlp.Select{Event: s.opts.Event, Comms: s.opts.Comms,
		PIDs: s.opts.PIDs, TIDs: s.opts.TIDs, CPUs: s.opts.CPUs, Keep: s.opts.Keep, Identify: s.opts.identifyFile,
		MaxUnpacked: s.opts.MaxUnpacked}}
	t := &s.opts.Time
	switch {
	case !t.set:
	case t.Percent:
		p, err := otlp.Read(s.file.path, s.file.r, s.file.size, otlp.Options{
			Select: otlp.Select{MaxUnpacked: s.opts.MaxUnpacked}})
		if err != nil {
			return o, err
		}
		first, span := uint64(p.Meta.StartNanos), float64(p.Meta.Duration)
		if first == 0 {
			return o, errNoTimes(s.file.path)
		}
		o.From = first + uint64(span*float64(t.From)/1e6)
		o.Until = first + uint64(math.Ceil(span*float64(t.To)/1e6))
	default:
		o.From, o.Until = t.From, t.To
	}
	return o, nil
}

// replay visits the samples that have times.
func (s *otlpSource) replay(ctx context.Context, profile func(context.Context) (*ingest.Profile, error),
	visit func(*ReplaySample) error) error {
	p, err := profile(ctx)
	if err != nil {
		return err
	}
	o, err := s.options()
	if err != nil {
		return err
	}
	var out ReplaySample
	n, err := otlp.Replay(ctx, s.file.path, s.file.r, s.file.size, o, p, func(ob *otlp.Observation) error {
		if ob.Event < 0 {
			return nil
		}
		out = ReplaySample{Event: uint16(ob.Event), Comm: ob.Comm, PID: ob.PID, TID: ob.TID, CPU: ob.CPU,
			Time: ob.Time, Period: ob.Value, Frames: out.Frames[:0]}
		for _, l := range ob.Stack {
			out.Frames = append(out.Frames, ReplayFrame{Location: l,
				PC: addr.PC(p.Locations[l].Offset)})
		}
		return visit(&out)
	})
	if err == nil && n == 0 {
		return ErrNoReplay
	}
	return err
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
	return to.File(s.file.path, s.file.r, s.file.size, s.opts.MaxUnpacked)
}
