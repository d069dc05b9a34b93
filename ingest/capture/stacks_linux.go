package capture

import (
	"errors"
	"fmt"
	"os"

	"symbolize/buildid"
	"symbolize/ingest/bundle"
	"symbolize/ingest/capture/sampler"
)

// stacks has the sampler count stacks, and the mappings taken of processes whose frames
// are bare addresses.
type stacks struct {
	s     *session
	procs *processes
	sm    *sampler.Sampler
}

func (x *stacks) start() error {
	o := *x.s.opts.Stacks
	if sampler.InitialNamespace() {
		o.Mappings = x.procs.note
		x.procs.ids = make(map[string]buildid.ID)
		if _, id, err := ownVDSO(x.procs.root); err == nil {
			x.procs.vdso = id
		}
	} else { // the numbers that the sampler tells are those of other processes here
		x.s.warn("in a container the mappings of sampled processes are not taken: " +
			"their addresses without a build ID have no names")
	}
	var err error
	if x.sm, err = sampler.New(o); err == nil {
		err = x.sm.Start()
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: %w", ErrRights, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStacks, err)
	}
	return nil
}

func (x *stacks) drain() { x.sm.Drain() }

func (x *stacks) stop() {
	if x.sm != nil {
		x.sm.Stop()
	}
}

// explain finds out what bare addresses in the stacks are, once the mappings of all their
// processes are read.
func (x *stacks) explain() {
	if x.procs.ids == nil {
		return
	}
	found := newPlaces(x.procs)
	if err := x.sm.Explain(found.locate); err != nil {
		x.s.warn("addresses without a build ID are kept with all mappings of their processes: %v", err)
		return
	}
	x.procs.places = found
}

func (x *stacks) add(w *bundle.Writer) error {
	m, err := x.sm.Write(w)
	if err != nil {
		return err
	}
	if err := x.sm.Err(); err != nil {
		x.s.warn("counts of stacks: %v", err)
	}
	m.Files = x.procs.files(x.sm.HasFile)
	x.s.manifest.Samples = append(x.s.manifest.Samples, m)
	st := x.sm.Stats()
	x.s.summary.Stacks = &st
	return nil
}

func (x *stacks) close() {
	if x.sm != nil {
		x.sm.Close()
	}
}
