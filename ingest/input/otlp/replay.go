package otlp

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"

	"symbolize/ingest"
)

// Observation is one time of a sample.
type Observation struct {
	Event         int // of the Profile of Read with the same options; -1 if that has none
	Comm          string
	PID, TID, CPU int32               // -1 if unknown
	Time          uint64              // ns since 1970
	Value         uint64              // 1 for samples without values
	Stack         []ingest.LocationID // of that Profile, leaf first; must not be changed
}

// observed is an Observation with the Builder's numbers.
type observed struct {
	at, value uint64
	row       ingest.Sample
	order     uint32
}

// observer keeps the observations of a file.
type observer struct {
	list   []observed
	places map[ingest.StackID][]uint32
}

func (o *observer) add(row ingest.Sample, at, value uint64) {
	if at != 0 && len(o.list) < math.MaxUint32 {
		o.list = append(o.list, observed{at, value, row, uint32(len(o.list))})
	}
}

// Replay reads a file again and visits the observations with a time in their order. p is the
// Profile that Read made with these options. It returns the number of observations.
func Replay(ctx context.Context, name string, in io.ReaderAt, size int64, opts Options,
	p *ingest.Profile, visit func(*Observation) error) (n int, err error) {
	opts.Keep.PID, opts.Keep.TID, opts.Keep.CPU = true, true, true
	opts.Keep.Tags = ""
	r := newReader(name, opts)
	r.observer = &observer{places: make(map[ingest.StackID][]uint32)}
	f := &file{name: name, r: in, size: size, most: opts.MaxUnpacked}
	if _, err := f.messages(r.message); err != nil {
		return 0, err
	}
	comms, events := r.b.P.Strings, slices.Clone(r.b.P.Events)
	_, locations := r.b.Profile()
	list := r.observer.list
	slices.SortFunc(list, func(a, b observed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	stacks := make(map[ingest.StackID][]ingest.LocationID, len(r.observer.places))
	for id, places := range r.observer.places {
		for _, pl := range places {
			stacks[id] = append(stacks[id], locations[pl])
		}
	}
	for i := range list {
		o := &list[i]
		ev := events[o.row.Event]
		at := slices.IndexFunc(p.Events, func(e ingest.Event) bool {
			return e.Name == ev.Name && e.Unit == ev.Unit
		})
		err := cmp.Or(ctx.Err(), visit(&Observation{Event: at, Comm: comms[o.row.Comm], PID: o.row.PID,
			TID: o.row.TID, CPU: o.row.CPU, Time: o.at, Value: o.value, Stack: stacks[o.row.Stack]}))
		if err != nil {
			return i, err
		}
	}
	return len(list), nil
}
