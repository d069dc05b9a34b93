package inspect

import (
	"fmt"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest/format/stackmap"
)

// StackMap describes the stacks of a capture that is a dump of a stack map. Its JSON names are an
// interface.
type StackMap struct {
	Counted bool     `json:"counted"` // there are counts; else each stack counts 1
	Labels  []string `json:"labels"`
	Missing []string `json:"missing_labels"` // that the form, or this key, cannot carry

	// Frames of distinct stacks.
	BuildIDFrames int `json:"build_id_frames"`
	Addresses     int `json:"address_frames"`
	NamedFrames   int `json:"named_frames"`

	// Samples that have no such part: bpf_get_stackid returned -EFAULT.
	NoKernel uint64            `json:"samples_without_kernel_stack"`
	NoUser   uint64            `json:"samples_without_user_stack"`
	Lost     map[string]uint64 `json:"lost,omitempty"`
	Unused   int               `json:"uncounted_stacks,omitempty"`
}

// newStackMap is nil for captures that are no stack map.
func newStackMap(set *stackmap.Set) *StackMap {
	if set == nil {
		return nil
	}
	t := set.Totals()
	x := &StackMap{Counted: set.Counted, Labels: append([]string{}, set.Labels.Names()...),
		Missing: set.Labels.Missing(), Unused: set.Unused, BuildIDFrames: t.Valid,
		Addresses: t.Addresses, NamedFrames: t.Named, NoKernel: t.NoKernel, NoUser: t.NoUser}
	for cause, n := range t.Lost {
		if x.Lost == nil {
			x.Lost = make(map[string]uint64)
		}
		x.Lost[cause.String()] = n
	}
	return x
}

func (x *StackMap) rows(t *table.Table) {
	if x == nil {
		return
	}
	t.Row("labels", table.Join("; ", strings.Join(x.Labels, ", "),
		"cannot carry "+strings.Join(x.Missing, ", ")))
	frames := fmt.Sprintf("%d by build ID, %d addresses", x.BuildIDFrames, x.Addresses)
	if x.NamedFrames > 0 {
		frames += fmt.Sprintf(", %d named already", x.NamedFrames)
	}
	t.Row("frames", frames+", in distinct stacks")
	if x.Counted {
		t.Row("without", fmt.Sprintf("%d samples have no user stack, %d no kernel stack",
			x.NoUser, x.NoKernel))
	}
}
