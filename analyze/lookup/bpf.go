package lookup

import (
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
	"symbolize/store/bpfprog"
)

// bpfRuns relates the code of a BPF function to its BPF instructions; nil for other objects, and where
// these are not known.
func (o *Object) bpfRuns() *bpf.Instructions {
	if o.manifest.Kind != ingest.JIT {
		return nil
	}
	list, _ := bpfprog.Variants(o.view, o.manifest.ID) // errors: the names do not need them
	for i := range list {
		if in, err := list[i].Loaded.Instructions(int(list[i].Func)); err == nil && in.OneRun == "" {
			return in
		}
	}
	return nil
}
