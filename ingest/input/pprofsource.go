package input

import (
	"context"
	"fmt"
	"io"

	"symbolize/ingest"
	"symbolize/ingest/format/pprof"
	"symbolize/ingest/sideband"
)

// maxPprofFile bounds a pprof file, which is read whole, in bytes.
const maxPprofFile = 1 << 30

// pprofSource is a pprof file, whose samples were folded by its recorder.
type pprofSource struct{ folded *ingest.Profile }

// openPprof reads a pprof file, gzipped or not.
func openPprof(f *file, opts *Options) (*pprofSource, error) {
	if err := opts.refuseTimes(f.path); err != nil {
		return nil, err
	}
	if opts.Weight != "" {
		return nil, fmt.Errorf("%s: no tracepoints in it", f.path)
	}
	if opts.Branches {
		return nil, fmt.Errorf("%s: no branch stacks in it", f.path)
	}
	if f.size > maxPprofFile {
		return nil, fmt.Errorf("%s: pprof file of %d MiB, over the limit of %d MiB",
			f.path, f.size>>20, maxPprofFile>>20)
	}
	data, err := io.ReadAll(io.NewSectionReader(f.r, 0, f.size))
	if err != nil {
		return nil, err
	}
	p, err := pprof.Read(f.path, data, pprof.ReadOptions{
		Event: opts.Event, Comms: opts.Comms, PIDs: opts.PIDs, TIDs: opts.TIDs,
		CPUs: opts.CPUs, Keep: opts.Keep,
	})
	if err != nil {
		return nil, err
	}
	return &pprofSource{p}, nil
}

func (s *pprofSource) kind() string                                     { return "pprof" }
func (s *pprofSource) profile(context.Context) (*ingest.Profile, error) { return s.folded, nil }
func (s *pprofSource) replayed() *perfSource                            { return nil }
func (s *pprofSource) records() *perfSource                             { return nil }
func (s *pprofSource) stackMap() *stackSource                           { return nil }
func (s *pprofSource) taken() []sideband.Taken                          { return nil }
