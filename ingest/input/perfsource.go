package input

import (
	"context"

	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/container"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// perfSource is a perf.data file, or the side band of a bundle.
type perfSource struct {
	file      *file
	data      *perfdata.File
	opts      Options
	missing   []bundle.MissingProgram // of the manifest of the bundle that has it
	chunkSize int64                   // of the second pass, in bytes; 0 for the default

	state  *sideband.State // after the first pass
	folded *foldedSamples  // after profile
}

// foldedSamples are the numbers that a replay shares with the profile.
type foldedSamples struct {
	collector *collector
	objects   []ingest.ObjectID // of the profile, by raw object
	exact     map[ingest.Location]struct{}
}

// openPerf opens the perf.data of a capture.
func openPerf(ctx context.Context, f *file, opts *Options) (*perfSource, error) {
	p, err := container.Open(ctx, f.path, f.r, f.size, opts.MaxUnpacked)
	return f.perf(p, opts), err
}

// openPerfDir opens a directory of perf.data files.
func openPerfDir(ctx context.Context, f *file, opts *Options) (*perfSource, error) {
	p, err := container.OpenDir(ctx, f.path, opts.MaxUnpacked)
	if err == nil {
		f.size = p.Size
	}
	return f.perf(p, opts), err
}

// perf makes the source of an opened perf.data, which f closes; nil for nil.
func (f *file) perf(p *container.Perf, opts *Options) *perfSource {
	if p == nil {
		return nil
	}
	f.closers = append(f.closers, p)
	return &perfSource{file: f, data: p.File, opts: *opts}
}

func (s *perfSource) kind() string           { return "perf.data" }
func (s *perfSource) replayed() *perfSource  { return s }
func (s *perfSource) records() *perfSource   { return s }
func (s *perfSource) stackMap() *stackSource { return nil }

func (s *perfSource) taken() []sideband.Taken {
	if s.state == nil {
		return nil
	}
	return s.state.Taken()
}

// scan makes the first pass, once.
func (s *perfSource) scan(ctx context.Context) (*sideband.State, error) {
	if s.state == nil {
		opts := sideband.ScanOptions{ChunkSize: s.chunkSize, Bundles: bundlesOf(s.opts.Bundles),
			Missing: s.missing, JIT: s.opts.JIT, Kallsyms: s.opts.Kallsyms}
		if own := container.Kallsyms(s.file.path); own != "" {
			opts.Kallsyms = append([]string{own}, opts.Kallsyms...)
		}
		if !s.file.mtime.IsZero() {
			opts.EndNanos = s.file.mtime.UnixNano()
		}
		if !s.file.born.IsZero() {
			opts.BornNanos = s.file.born.UnixNano()
		}
		sb, err := sideband.Scan(ctx, s.data, &opts)
		if err != nil {
			return nil, withHint(err)
		}
		s.state = sb
	}
	return s.state, nil
}

// profile makes the second pass.
func (s *perfSource) profile(ctx context.Context) (*ingest.Profile, error) {
	sb, err := s.scan(ctx)
	if err != nil {
		return nil, err
	}
	col, err := newCollector(sb, &s.opts)
	if err != nil {
		return nil, err
	}
	col.prepareUnwinding(s.file)
	workers, err := collect(ctx, col)
	if err != nil {
		return nil, err
	}
	f := folder{assembly: assembly{collector: col, file: s.file}, workers: workers}
	p, objects := f.profile()
	s.folded = &foldedSamples{collector: col, objects: objects, exact: f.exact}
	return p, nil
}
