package input

import (
	"context"
	"fmt"

	"symbolize/ingest"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/stackmap"
)

// Addresses makes a Profile of addresses in the kernel, of its modules and of BPF
// programs, and returns the location of each. The mappings are those of Options.Bundles
// and of the kallsyms in Options.Stacks; name is for messages.
//
// No address is taken for a return address.
func Addresses(ctx context.Context, name string, list []uint64, opts Options) (
	*ingest.Profile, []ingest.LocationID, error) {
	set, err := stackmap.Addresses(list)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	opts.Event, opts.Comms, opts.Keep = "", nil, ingest.Keep{}
	opts.PIDs, opts.TIDs, opts.CPUs = nil, nil, nil
	opts.Time, opts.Branches, opts.Weight = TimeRange{}, false, ""
	s := &stackSource{file: &file{path: name}, set: set, opts: opts,
		kallsyms: opts.Stacks.Kallsyms}
	sb, err := s.newState(ctx)
	if err != nil {
		return nil, nil, err
	}
	sb.Build()
	f := newStackFolder(s, sb)
	local := make([]uint32, len(list))
	for i := range list {
		f.sample(&set.Samples[i])
		local[i] = f.lists[merge.KernelRole].At(f.rows[i].Kernel)[0]
	}
	p, shard := f.profile()
	addWarnings(p, sb.Records.Warnings)
	at := make([]ingest.LocationID, len(list))
	for i, n := range local {
		at[i] = shard.Location[n]
	}
	return p, at, nil
}
