package input

import (
	"context"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// replay calls visit for the samples that p was folded of.
func (s *perfSource) replay(ctx context.Context, p *ingest.Profile,
	visit func(*ReplaySample) error) error {
	r := newReplayer(s.folded, p)
	return inOrder(ctx, r.c, func(q queuedSample) error {
		rec, err := r.c.Records.At(r.one, q.at, q.size)
		if err != nil {
			return err
		}
		r.queued = q.counts
		if !r.take(rec) {
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
}

func newReplayer(f *foldedSamples, p *ingest.Profile) *replayer {
	c := f.collector
	r := &replayer{reader: newReader(c), one: c.Records.Read(nil, sideband.Chunk{}), p: p,
		number: f.objects, exact: f.exact}
	r.locator.sb, r.locator.noTable = c.State, c.noTable
	r.locator.number = r.location
	for _, ev := range c.events {
		at := slices.IndexFunc(p.Events, func(e ingest.Event) bool { return e.Name == ev.Name })
		r.events = append(r.events, uint16(max(at, 0)))
	}
	return r
}

// fill sets out to the present sample.
func (r *replayer) fill() {
	s := &r.sample
	r.out = ReplaySample{
		Event: r.events[r.event], Comm: r.c.CommName(r.comm), PID: s.PID, TID: s.TID,
		CPU: int32(s.CPU), Time: s.Time, Period: r.weight, Frames: r.out.Frames[:0],
	}
	r.frames(r.kpart)
	r.frames(r.part)
}

func (r *replayer) frames(words []byte) {
	r.locator.locate(words, r.user, r.kernel)
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
