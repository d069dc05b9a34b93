package input

import (
	"context"
	"fmt"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// Replay reads the samples again, one after another in order of time, with the same
// filters, and calls fn for each. Samples of one time, and all samples of captures
// without times, come in the order of the file. It calls Profile first, if that was not
// done. An error of fn ends it and is returned. Captures that hold no single samples give
// ErrNoReplay.
func (c *Capture) Replay(ctx context.Context, fn func(*ReplaySample) error) error {
	if c.perf == nil || c.Stacks() != nil {
		return fmt.Errorf("%s: %w", c.path, ErrNoReplay)
	}
	p, err := c.Profile(ctx)
	if err != nil {
		return err
	}
	r := newReplayer(c, p)
	return inOrder(ctx, c.collect, func(q queuedSample) error {
		rec, err := c.collect.Records.At(r.one, q.at, q.size)
		if err != nil {
			return err
		}
		if !r.take(rec) {
			return nil
		}
		r.fill()
		return fn(&r.out)
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

func newReplayer(c *Capture, p *ingest.Profile) *replayer {
	r := &replayer{reader: newReader(c.collect), one: c.collect.Records.Read(nil, sideband.Chunk{}), p: p,
		number: c.number, exact: c.exact}
	r.locator.sb = c.collect.State
	r.locator.number = r.location
	for _, ev := range c.collect.events {
		at := slices.IndexFunc(p.Events, func(e ingest.Event) bool { return e.Name == ev.Name })
		r.events = append(r.events, uint16(max(at, 0)))
	}
	return r
}

// fill makes the present sample the one to hand out.
func (r *replayer) fill() {
	s := &r.sample
	r.out = ReplaySample{
		Event: r.events[r.event], Comm: r.c.CommName(r.comm), PID: s.PID, TID: s.TID,
		CPU: int32(s.CPU), Time: s.Time, Period: s.Period, Frames: r.out.Frames[:0],
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
		r.out.Frames = append(r.out.Frames,
			ReplayFrame{PC: pc, Location: ingest.LocationID(s.place)})
	}
}

// location finds a place in the profile, where folding has put it.
func (r *replayer) location(object uint32, offset uint64) uint32 {
	want := ingest.Location{Object: r.number[object&^returned], Offset: addr.Offset(offset)}
	if object&returned != 0 {
		want.Offset++
		if _, ok := r.exact[want]; !ok {
			want.Offset--
		}
	}
	at, _ := slices.BinarySearchFunc(r.p.Locations, want, ingest.CompareLocations)
	return uint32(at)
}
