package input

import (
	"context"
	"errors"
	"math"

	"symbolize/ingest"
	"symbolize/ingest/format/stackmap"
)

// errManyAddresses says that a list is longer than is resolved at a time.
var errManyAddresses = errors.New("too many addresses")

// Addresses makes a Profile of addresses in the kernel, of its modules and of BPF
// programs, and says which location each is. Options.Bundles and the kallsyms of
// Options.Stacks say what lay where; name is for messages.
//
// Addresses are taken as they are, also return addresses.
func Addresses(ctx context.Context, name string, list []uint64, opts Options) (
	*ingest.Profile, []ingest.LocationID, error) {
	if len(list) > math.MaxInt32 {
		return nil, nil, errManyAddresses
	}
	opts.Event, opts.Comms, opts.PIDs = "", nil, nil
	opts.Keep = ingest.Keep{PID: true} // the number of an address stands there
	s := &stackSource{file: &file{path: name}, opts: opts, set: stackmap.Addresses(list),
		kallsyms: opts.Stacks.Kallsyms}
	p, err := s.profile(ctx)
	if err != nil {
		return nil, nil, err
	}
	at := make([]ingest.LocationID, len(list))
	for i := range p.Samples {
		s := &p.Samples[i]
		at[s.PID] = p.Stack(s.Stack)[0]
	}
	return p, at, nil
}
