package remote

import (
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
)

// ObjectsOf returns the IDs under which a bucket may have something for the objects of a capture,
// sorted: their build IDs, and for BPF programs the IDs of functions that may belong to them.
func ObjectsOf(objects []ingest.Object) []buildid.ID {
	var ids []buildid.ID
	for i := range objects {
		o := &objects[i]
		if !o.ID.IsZero() && !o.Kind.Collapsed() {
			ids = append(ids, o.ID)
		}
		if tag, name, ok := bpf.SplitSymbol(o.Symbol); ok && o.Kind == ingest.JIT {
			ids = append(ids, bpf.TagIdentity(tag))
			if name = bpf.NameOf(name); name != "" {
				ids = append(ids, bpf.NameIdentity(name, false), bpf.NameIdentity(name, true))
			}
		}
	}
	slices.SortFunc(ids, buildid.ID.Compare)
	return slices.Compact(ids)
}
