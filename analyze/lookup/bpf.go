package lookup

import (
	"sort"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bpf"
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

// run returns the first and the last BPF instruction of the run to which an address belongs, numbered
// in their program.
func run(in *bpf.Instructions, at addr.Addr) (first, last uint32, ok bool) {
	if in == nil {
		return 0, 0, false
	}
	next := sort.Search(len(in.Runs), func(i int) bool { return addr.Addr(in.Runs[i].Offset) > at })
	if next == 0 {
		return 0, 0, false
	}
	end := in.First + uint32(len(in.Code)/bpf.InsnSize)
	if next < len(in.Runs) {
		end = in.Runs[next].Insn
	}
	return in.Runs[next-1].Insn, end - 1, true
}
