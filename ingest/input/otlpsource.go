package input

import (
	"context"

	"symbolize/ingest"
	"symbolize/ingest/format/otlp"
)

// otlpSource is a file with profiles of OpenTelemetry.
type otlpSource struct {
	file *file
	opts *Options
}

func (s *otlpSource) kind() string { return "otlp" }

func (s *otlpSource) fold(context.Context) (*ingest.Profile, error) {
	o := otlp.Options{Select: otlp.Select{Event: s.opts.Event, Comms: s.opts.Comms,
		PIDs: s.opts.PIDs, TIDs: s.opts.TIDs, CPUs: s.opts.CPUs, Keep: s.opts.Keep}}
	return otlp.Read(s.file.path, s.file.r, s.file.size, o)
}
