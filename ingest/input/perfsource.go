package input

import (
	"context"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input/container"
	"symbolize/ingest/pair"
	"symbolize/ingest/sideband"
)

// perfSource is a perf.data file, or the side band of a bundle.
type perfSource struct {
	file      *file
	data      *perfdata.File
	opts      Options
	missing   []bundle.MissingProgram // of the manifest of its bundle
	chunkSize int64                   // of the second pass, in bytes; 0 for the default

	state  *sideband.State // after the first pass
	folded *foldedSamples  // after fold
}

// foldedSamples are the numbers that a replay shares with the profile.
type foldedSamples struct {
	collector *collector
	objects   []ingest.ObjectID // of the profile, by raw object
	exact     map[ingest.Location]struct{}
	shares    map[int32][]cpuShare // of a derived event
}

// perf makes the source of an opened perf.data, which f closes.
func (f *file) perf(p *container.Perf, opts *Options) *perfSource {
	f.closers = append(f.closers, p)
	return &perfSource{file: f, data: p.File, opts: *opts}
}

func (s *perfSource) kind() string                   { return "perf.data" }
func (s *perfSource) perfData() *perfdata.File       { return s.data }
func (s *perfSource) sideBandState() *sideband.State { return s.state }

// scan makes the first pass, once.
func (s *perfSource) scan(ctx context.Context) (*sideband.State, error) {
	if s.state == nil {
		opts := sideband.ScanOptions{ChunkSize: s.chunkSize, Bundles: bundlesOf(s.opts.Bundles),
			Missing: s.missing, JIT: s.opts.JIT, Kallsyms: s.opts.Kallsyms,
			Switches: slices.Contains(s.opts.Keep.TagList(), ingest.ParallelismTag),
			Data:     s.opts.Keep.Places(),
			File:     s.file.times, Now: s.opts.Now, Loads: s.opts.Loads}
		if own := container.Kallsyms(s.file.path); own != "" {
			opts.Kallsyms = append([]string{own}, opts.Kallsyms...)
		}
		sb, err := sideband.Scan(ctx, s.data, &opts)
		if err != nil {
			return nil, withHint(err)
		}
		s.state = sb
	}
	return s.state, nil
}

// fold makes the second pass.
func (s *perfSource) fold(ctx context.Context) (*ingest.Profile, error) {
	sb, err := s.scan(ctx)
	if err != nil {
		return nil, err
	}
	col, err := newCollector(sb, &s.opts)
	if err != nil {
		return nil, err
	}
	col.prepareUnwinding(s.file)
	var workers []*worker
	var shares map[int32][]cpuShare
	if col.derived != nil {
		workers, shares, err = derive(ctx, col)
	} else {
		workers, err = collect(ctx, col)
	}
	if err != nil {
		return nil, err
	}
	f := folder{profileParts: profileParts{collector: col, opts: &s.opts, file: s.file}, workers: workers}
	p, objects := f.profile()
	s.folded = &foldedSamples{collector: col, objects: objects, exact: f.exact,
		shares: shares}
	return p, nil
}

// replay calls visit for the samples of the profile.
func (s *perfSource) replay(ctx context.Context,
	profile func(context.Context) (*ingest.Profile, error), visit func(*ReplaySample) error) error {
	p, err := profile(ctx)
	if err != nil {
		return err
	}
	if s.folded.collector.derived != nil {
		return s.replayDerived(ctx, p, visit)
	}
	r := newReplayer(s.folded, p)
	return inOrder(ctx, r.c, func(q queuedSample) error {
		rec, err := r.c.Records.At(r.one, q.at, q.size)
		if err != nil {
			return err
		}
		r.queued = q.counts
		if !r.decode(rec) {
			return nil
		}
		for r.deliver() {
			r.fill()
			if err := visit(&r.out); err != nil {
				return err
			}
		}
		return nil
	})
}

// replayer turns samples into ReplaySamples.
type replayer struct {
	*reader
	one     *perfdata.RecordReader // of single records
	p       *ingest.Profile
	number  []ingest.ObjectID // by raw object
	exact   map[ingest.Location]struct{}
	locator locator
	events  []uint16 // of the profile, by event of the collector
	out     ReplaySample
	payload Payload
}

func newReplayer(f *foldedSamples, p *ingest.Profile) *replayer {
	c := f.collector
	r := &replayer{reader: newReader(c), one: c.Records.Read(nil, sideband.Chunk{}), p: p,
		number: f.objects, exact: f.exact}
	r.locator.sb, r.locator.noTable = c.State, c.noTable
	r.locator.number = r.location
	r.payload.of = r
	for _, ev := range c.events {
		at := slices.IndexFunc(p.Events, func(e ingest.Event) bool { return e.Name == ev.Name })
		r.events = append(r.events, uint16(max(at, 0)))
	}
	return r
}

// fill sets out to the current sample.
func (r *replayer) fill() {
	s := &r.sample
	r.out = ReplaySample{
		Event: r.events[r.event], Comm: r.c.Threads.CommName(r.comm), PID: s.PID, TID: s.TID,
		CPU: int32(s.CPU), Time: s.Time, Period: r.weight, Frames: r.out.Frames[:0],
	}
	if len(s.Raw) > 0 {
		r.payload.event = s.Event
		r.out.Payload = &r.payload
	}
	r.frames(r.kpart, r.part, r.user, r.kernel)
}

// frames adds the frames of a chain to out.
func (r *replayer) frames(kpart, part []byte, user, kernel addrspace.Version) {
	r.locator.locate(kpart, part, user, kernel)
	for _, s := range r.locator.spots {
		pc := addr.PC(s.pc)
		if s.pc >= contextMax {
			pc = 0 // no address: a stack that was not unwound
		}
		r.out.Frames = append(r.out.Frames, ReplayFrame{PC: pc,
			Location: ingest.LocationID(s.place >> 1), Return: s.place&1 != 0})
	}
}

// location returns the location of a place in the profile, shifted by 1; bit 0 is set for
// return addresses.
func (r *replayer) location(object uint32, offset uint64, ret bool) uint32 {
	want := ingest.Location{Object: r.number[object], Offset: addr.Offset(offset)}
	if ret && markReturned(r.c.Objects, object) != object {
		exact := ingest.Location{Object: want.Object, Offset: addr.Return(want.Offset, true)}
		if _, ok := r.exact[exact]; ok {
			want, ret = exact, false
		}
	}
	at, _ := slices.BinarySearchFunc(r.p.Locations, want, ingest.CompareLocations)
	n := uint32(at) << 1
	if ret {
		n |= 1
	}
	return n
}

// queuedSample is the position of the record of a sample, and the counts of its counters: a count is
// the difference from the previous reading in the file, not in time.
type queuedSample struct {
	at     sideband.Position
	size   int
	counts []sideband.Count
}

// inOrder calls emit for the samples of a capture in order of time.
func inOrder(ctx context.Context, c *collector, emit func(queuedSample) error) error {
	q := pair.Window[queuedSample]{Emit: func(_ uint64, s queuedSample) error { return emit(s) }}
	var s perfdata.Sample
	counters := c.Records.CountersFrom(sideband.Chunk{})
	latest := uint64(0) // samples without a time follow those before them in the file
	err := c.inTime(ctx, func(rec *perfdata.Record) error {
		if rec.Type != perfdata.TypeSample || c.Records.File.DecodeSample(rec, &s) != nil {
			return nil // Profile reported damage
		}
		at := sideband.PositionOf(rec)
		next := queuedSample{at: at, size: rec.Size}
		if len(s.Read) > 0 {
			next.counts = counters.Counts(&s, nil)
		}
		latest = max(latest, c.Clock.At(s.Time, at))
		when := latest
		if s.Time != sideband.NoTime {
			when = c.Clock.At(s.Time, at)
		}
		return q.Add(when, next)
	}, q.Round, q.Upto)
	if err != nil {
		return err
	}
	return q.Rest()
}
