package sampler

// Stats counts the samples; it is complete after Stop.
func (s *Sampler) Stats() Stats {
	st := Stats{Samples: s.samples(), Lost: s.lostWhole(),
		UserStacks:   s.before.stacks[userStack] + s.stacks(userStack),
		KernelStacks: s.before.stacks[kernelStack] + s.stacks(kernelStack),
		KernelMemory: s.memory}
	for _, partly := range []map[string]uint64{s.before.partly, s.withoutStack()} {
		for cause, n := range partly {
			st.Lost[cause] += n
		}
	}
	return st
}

// samples returns how many were taken, those that are lost with them.
func (s *Sampler) samples() uint64 {
	n := s.stat(statSamples) + s.nested + s.still
	if s.opts.Event.Kind == OffCPU { // it counts those with a known duration
		n += s.stat(statNoThread) + s.stat(statNoScratch) + s.stat(statNoReturn)
	}
	return n
}

// lostWhole counts, by cause, the samples that are lost and not among the counts.
func (s *Sampler) lostWhole() map[string]uint64 {
	lost := make(map[string]uint64)
	lose := func(cause string, n uint64) {
		if n > 0 {
			lost[cause] += n
		}
	}
	lose(LostCounts, s.stat(statNoCount))
	lose(LostScratch, s.stat(statNoScratch))
	lose(LostOffCPU, s.stat(statNoThread))
	lose(LostReturn, s.stat(statNoReturn))
	lose(LostNested, s.nested)
	lose(LostKeys, s.before.refused+s.counts.refused)
	if !s.stopped {
		return lost
	}
	var whole uint64 // with a known result
	for _, n := range lost {
		whole += n
	}
	cause := LostDrain
	if s.readErr != nil {
		cause = LostRead
	}
	samples := s.samples()
	if whole += s.before.counted + s.counts.total(); whole < samples {
		lose(cause, samples-whole)
	}
	return lost
}

// lostSince is lostWhole for the time since the last Cut.
func (s *Sampler) lostSince() map[string]uint64 {
	since := s.lostWhole()
	for cause, n := range s.before.lost {
		if since[cause] -= n; since[cause] == 0 {
			delete(since, cause)
		}
	}
	return since
}

// stacks returns how many distinct stacks of a kind there are: those that were received,
// and in the end those that were written.
func (p *Part) stacks(kind int) int {
	if p.written != nil {
		return p.written[kind]
	}
	return p.tables[kind].stacks()
}

// Err returns the error with which counts could not be read, if there was one: their
// samples are lost as LostRead.
func (s *Sampler) Err() error { return s.readErr }

// withoutStack counts, by cause, the samples that are counted but have lost a stack.
func (p *Part) withoutStack() map[string]uint64 {
	ring, room := p.counts.withoutStack(p.tables)
	lost := make(map[string]uint64)
	cause := LostRing
	for _, t := range p.tables {
		if t.err != nil { // from then on the ring makes no difference
			cause = LostFile
		}
	}
	for cause, n := range map[string]uint64{cause: ring, LostStacks: room} {
		if n > 0 {
			lost[cause] = n
		}
	}
	return lost
}
