package sampler

// Part is the samples of a span of the recording: from one Turn to the next. The program
// in the kernel mixes its number into the hashes of stacks, so that it sends all stacks again in
// every part, and counts of two parts are never added up.
type Part struct {
	opts    *Options
	number  uint32
	tables  [2]*table // by kind of stack
	counts  counts
	files   fileSet
	lost    map[string]uint64 // samples that are not among the counts, by cause
	written []int             // stacks, by kind, once Write was called
	// unproven counts the samples with places that are Unproven.
	unproven uint64
	unplaced [numKinds]uint64 // see Unplaced
}

func newPart(o *Options, number uint32, steady Range) (p *Part, err error) {
	p = &Part{opts: o, number: number, counts: newCounts(), files: make(fileSet)}
	for i := range p.tables {
		if p.tables[i], err = newTable(uint32(i), number); err != nil {
			p.Close()
			return nil, err
		}
		p.tables[i].steady = steady
	}
	p.tables[kernelStack].skip = o.skip
	return p, nil
}

// Close releases the part's objects. It may be called on nil.
func (p *Part) Close() {
	if p == nil {
		return
	}
	for _, t := range p.tables {
		if t != nil {
			t.close()
		}
	}
}

// soFar holds the totals of earlier parts.
type soFar struct {
	counted, refused uint64 // samples
	lost, partly     map[string]uint64
	stacks           [2]int
}

// carried are stacks of threads that were off CPU when their part was cut off: they are
// counted when the thread goes on.
type carried map[hash][]byte

// sameNumber reports whether two numbers of parts are the same, in the bits that records have.
func sameNumber(a, b uint32) bool { return (a^b)<<kindBits == 0 }

// partOf returns the part of a number; nil if it was cut off before.
func (s *Sampler) partOf(number uint32) *Part {
	for _, p := range []*Part{s.Part, s.previous} {
		if p != nil && sameNumber(p.number, number) {
			return p
		}
	}
	return nil
}

// Full reports whether there is as much in the part that is being sampled as is to be held in
// memory: it is time for a Turn.
func (s *Sampler) Full() bool {
	return s.tables[userStack].size+s.tables[kernelStack].size >= fullBytes ||
		len(s.counts.of) >= fullCounts
}

// The limits of a part.
const (
	fullBytes  = sortBytes / 2 // of stacks
	fullCounts = 1 << 17
)

// Turn begins a new part. Samples that are being taken go to the one before, which Cut hands
// out: it is to be called when they are done, some milliseconds later.
func (s *Sampler) Turn() error {
	next, err := newPart(&s.opts, s.number+1, s.steady)
	if err != nil {
		return err
	}
	if err := s.maps.stats.Put(uint32(statPart), uint64(next.number)); err != nil {
		next.Close()
		return err
	}
	s.previous, s.Part = s.Part, next
	return nil
}

// Cut returns the part before the last Turn, complete. The caller closes it.
func (s *Sampler) Cut() *Part {
	s.readRing()
	s.readCounts()
	s.emptied = s.stat(statKeys)
	p := s.previous
	s.carry(p)
	s.previous = nil
	for _, t := range p.tables {
		t.flush()
	}
	b := &s.before
	b.counted += p.counts.total()
	b.refused += p.counts.refused
	if b.partly == nil {
		b.partly = make(map[string]uint64)
	}
	for cause, n := range p.withoutStack() {
		b.partly[cause] += n
	}
	for kind, t := range p.tables {
		b.stacks[kind] += t.stacks()
	}
	p.lost = s.lostSince()
	b.lost = s.lostWhole()
	return p
}

// carry keeps the stacks of a part that threads off CPU will be counted under.
func (s *Sampler) carry(p *Part) {
	if s.maps.threads == nil {
		return
	}
	kept := make(carried)
	var thread uint32
	var t offThread
	for list := s.maps.threads.Iterate(); list.Next(&thread, &t); {
		if s.Part == s.partOf(t.Key.Part) {
			continue
		}
		for kind, h := range [...]hash{userStack: t.Key.User, kernelStack: t.Key.Kernel} {
			if _, ok := kept[h]; ok {
				continue
			}
			if frames, ok := s.carried[h]; ok {
				kept[h] = frames
			} else if frames := p.tables[kind].copyOf(h); frames != nil {
				kept[h] = frames
			}
		}
	}
	s.carried = kept
}

// copyOf returns the frames of a stack; nil if it was not received.
func (t *table) copyOf(h hash) []byte {
	id, ok := t.ids[h]
	if !ok || !t.received(id) {
		return nil
	}
	t.flush()
	frames, err := t.read(id, make([]byte, t.kept[id].length))
	if err != nil {
		return nil
	}
	return frames
}

// revive has a count of a part that was cut off belong to the one that is being sampled.
func (s *Sampler) revive(k *countKey) {
	empty := hashIn(k.Part, nil)
	k.Part = s.number
	for kind, h := range [...]*hash{userStack: &k.User, kernelStack: &k.Kernel} {
		t := s.tables[kind]
		if frames, ok := s.carried[*h]; ok {
			*h = hashIn(t.part, frames)
			t.add(*h, frames)
		} else if *h == empty {
			*h = t.empty
		}
	}
}
