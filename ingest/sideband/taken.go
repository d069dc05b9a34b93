package sideband

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
)

// Taken counts the facts that a capture took from a bundle of the same boot, or gives the
// reason why it took none.
type Taken struct {
	From      string // path of the bundle
	Refused   string // why nothing could be taken; "" if it could
	Programs  int    // BPF programs whose code and lines came from it
	Symbols   int    // functions of BPF that no record of the capture names
	Modules   int    // kernel modules for which the capture has no record
	Processes int    // processes for whose mappings it has no record
	Compiled  int    // perf maps and jitdump files
	Kernel    bool   // the address of the kernel, which the capture does not have
}

// String is a line of text: "taken from NAME: code and lines of 3 BPF programs, …",
// "nothing taken from NAME: it is of another boot …".
func (b *Taken) String() string {
	if b.Refused != "" {
		return "nothing taken from " + b.From + ": " + b.Refused
	}
	var parts []string
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{b.Programs, "code and lines of 1 BPF program", "code and lines of %d BPF programs"},
		{b.Symbols, "the name of 1 BPF function", "names of %d BPF functions"},
		{b.Modules, "the place of 1 kernel module", "places of %d kernel modules"},
		{b.Processes, "the mappings of 1 process", "mappings of %d processes"},
		{b.Compiled, "1 list of code compiled at run time", "%d lists of code compiled at run time"},
	} {
		switch {
		case x.n == 1:
			parts = append(parts, x.one)
		case x.n > 1:
			parts = append(parts, fmt.Sprintf(x.many, x.n))
		}
	}
	if b.Kernel {
		parts = append(parts, "where the kernel lies")
	}
	if len(parts) == 0 {
		return "nothing taken from " + b.From + ": the capture has all that the bundle has"
	}
	return "taken from " + b.From + ": " + strings.Join(parts, ", ")
}

// Bundle is a bundle that may be of the boot that a capture is of.
type Bundle struct {
	Path    string
	Bundle  *bundle.Bundle // nil if the file is none
	Records *perfdata.File // its side band, nil if it has none
	// Programs reads the bundle's BPF programs. The profile of the bundle itself reports
	// damage of them.
	Programs func() ([]bpf.Program, error)
}

// bundlePrograms are the programs of bundles, and the counts for each bundle.
type bundlePrograms struct {
	taken       []Taken
	open        []*bootBundle // those that were taken from
	programs    []bpf.Program
	programFrom []int // by program: number in taken
}

// bootBundle is a bundle of the same boot.
type bootBundle struct {
	*bundle.Bundle
	records  *perfdata.File
	programs []bpf.Program
	convert  func(uint64) uint64 // of a time in its records to the clock of the capture
	taken    int                 // number in bundlePrograms.taken
}

// Taken returns the counts for each bundle, in their order.
func (sb *State) Taken() []Taken { return sb.bundles.taken }

// takeFromBundles takes the facts that the capture lacks. It is called after all records were
// read, and before the changes are applied.
func (sb *State) takeFromBundles(ctx context.Context, from []Bundle) error {
	for i := range from {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, taken := &from[i], sb.addBundle(&from[i])
		if taken.Refused != "" {
			continue
		}
		l := bootBundle{Bundle: x.Bundle, records: x.Records, taken: len(sb.bundles.taken) - 1}
		if taken.Refused = sb.compare(&l); taken.Refused != "" {
			continue
		}
		l.programs, _ = x.Programs()
		sb.take(&l)
	}
	return nil
}

// addBundle appends the counts for a bundle.
func (sb *State) addBundle(x *Bundle) *Taken {
	taken := Taken{From: x.Path}
	if x.Bundle == nil {
		taken.Refused = "it is no bundle"
	}
	sb.bundles.taken = append(sb.bundles.taken, taken)
	return &sb.bundles.taken[len(sb.bundles.taken)-1]
}

// TakeAll takes all facts of a bundle without a check of the boot: a dump of a stack map has
// none that could be compared.
func (sb *State) TakeAll(x Bundle) {
	if sb.addBundle(&x).Refused != "" {
		return
	}
	programs, _ := x.Programs()
	sb.Host.Arch = x.Bundle.Manifest.Machine
	sb.Host.BigEndian = x.Bundle.Manifest.BigEndian()
	sb.Clock.Timed = true // the bundle's clock orders the states
	sb.take(&bootBundle{Bundle: x.Bundle, records: x.Records, programs: programs,
		taken:   len(sb.bundles.taken) - 1,
		convert: func(t uint64) uint64 { return t }})
}

// takePrograms puts programs of bundles that were matched with records into the capture's
// list, in place of those without code.
func (sb *State) takePrograms(t *programMatcher) {
	taken := make(map[*bpf.Program]bool)
	for _, r := range t.of {
		taken[r.p] = true
	}
	last := make(map[uint32]int) // by ID: the last one that is taken
	for i := range sb.bundles.programs {
		if p := &sb.bundles.programs[i]; taken[p] {
			last[p.ID] = i
			sb.bundles.taken[sb.bundles.programFrom[i]].Programs++
		}
	}
	if len(last) == 0 {
		return
	}
	sb.Programs.recorded = true
	sb.Programs.List = slices.DeleteFunc(slices.Clone(sb.Programs.List), func(o bpf.Program) bool {
		_, ok := last[o.ID]
		return ok && o.Missing != ""
	})
	for i := range sb.bundles.programs {
		p := &sb.bundles.programs[i]
		if taken[p] && (p.Missing == "" || last[p.ID] == i) {
			sb.Programs.List = append(sb.Programs.List, *p)
		}
	}
}

// addBuildID adds a build ID of the bundle that the capture may lack.
func (sb *State) addBuildID(id buildid.ID, mode perfdata.CPUMode, name string) {
	if !id.IsZero() {
		sb.buildIDs = append(sb.buildIDs, perfdata.BuildIDEntry{ID: id, PID: -1, CPUMode: mode,
			Filename: name})
	}
}
