package sampler

// epoch returns the epoch of a count, whose kernel's stack is known to be far by its time: equal
// stacks of one epoch are the same functions.
func (s *Sampler) epoch(p *Part, k *countKey) uint64 {
	if k.Time == 0 || s.opts.Changes == nil {
		return k.Time
	}
	t := p.tables[kernelStack]
	return s.opts.Changes.Epoch(t.far[t.id(k.Kernel)], k.Time)
}

// settle has all known that epochs of counts with these keys need: stacks and changes.
func (s *Sampler) settle(keys []countKey) {
	if s.opts.Changes == nil {
		return
	}
	for i := range keys {
		if keys[i].Time != 0 {
			s.readRing()
			s.opts.Changes.Sync()
			return
		}
	}
}
