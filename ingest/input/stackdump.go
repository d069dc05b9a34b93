package input

import (
	"context"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/stackmap"
)

// DumpedStack is a stack of a stack map, with the locations of its frames.
type DumpedStack struct {
	ID     int64  // its key, as the key of a count map has it; 0 if Key is set
	Key    string // a key of more than 8 bytes, in hexadecimal
	Frames []DumpedFrame
}

// DumpedFrame is a frame of a DumpedStack.
type DumpedFrame struct {
	Status   stackmap.Status
	ID       buildid.ID // of a Valid frame
	Offset   uint64     // in the file with that ID, else an address
	Location ingest.LocationID
	Located  bool // false for the end of a chain that cannot be code
}

// Stacks makes a Profile of the stacks of a stack map, and returns each of them. The mappings come
// from Options.Bundles and from the kallsyms in Options.Stacks. Addresses of processes have no name,
// as the map does not tell which processes they are of. With an error the results have the whole
// stacks before it; the Profile is nil if there are none.
func Stacks(ctx context.Context, in *stackmap.Input, opts Options) (
	*ingest.Profile, []DumpedStack, error) {
	set, dumped, damage := stackmap.ReadMap(in)
	if set == nil {
		return nil, nil, damage
	}
	f, warnings, err := foldAlone(ctx, in.Name, set, opts)
	if err != nil {
		return nil, nil, err
	}
	list := make([]DumpedStack, len(dumped))
	places := make([][]uint32, len(dumped))
	for i := range dumped {
		d := &dumped[i]
		list[i] = DumpedStack{ID: d.ID, Key: d.Key}
		if d.Part.Cause != stackmap.Present {
			continue
		}
		for _, fr := range set.Stack(d.Part.Stack) {
			x := DumpedFrame{Status: fr.Status, Offset: fr.Offset}
			if fr.Status == stackmap.Valid {
				x.ID = set.IDs[fr.Ref]
			}
			list[i].Frames = append(list[i].Frames, x)
		}
		role := userRole
		if d.Kernel {
			role = kernelRole
		}
		places[i] = f.lists[role].At(f.part(role, d.Part, origin{pid: -1}))
	}
	p, shard := f.profile()
	addWarnings(p, warnings)
	for i, l := range places {
		for k, n := range l {
			list[i].Frames[k].Location, list[i].Frames[k].Located = shard.Location[n], true
		}
	}
	return p, list, damage
}
