package sampler

import (
	"io"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/record/sys"
)

// Part holds the samples of one span of the recording, between two calls of Turn. The program mixes
// the part's number into the hashes of stacks: it sends every stack again in every part, and counts
// of two parts are never added up.
type Part struct {
	opts    *Options
	number  uint32
	tables  [2]*table // by kind of stack
	counts  counts
	files   fileSet
	lost    map[string]uint64 // samples that are not counted, by cause
	written []int             // stacks by kind, set by Write
	// unproven counts the samples with Unproven places.
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
	p.tables[kernelStack].interrupts = o.interrupts
	return p, nil
}

// Close releases the part. It can be called on nil.
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

// carried holds the stacks of threads that were off CPU when their part ended. They are counted
// when the thread runs again.
type carried map[hash][]byte

// sameNumber reports whether two part numbers agree in the bits that a record holds.
func sameNumber(a, b uint32) bool { return (a^b)<<kindBits == 0 }

// partOf returns the part with this number; nil if Cut already returned it.
func (s *Sampler) partOf(number uint32) *Part {
	for _, p := range []*Part{s.Part, s.previous} {
		if p != nil && sameNumber(p.number, number) {
			return p
		}
	}
	return nil
}

// Full reports whether the current part has reached its memory limits: the caller should call Turn.
func (s *Sampler) Full() bool {
	return s.tables[userStack].size+s.tables[kernelStack].size >= fullBytes ||
		len(s.counts.of) >= fullCounts
}

// Limits of a part.
const (
	fullBytes  = sortBytes / 2 // of stacks
	fullCounts = 1 << 17
)

// Turn starts a new part. Samples in progress are still added to the previous one; the caller calls
// Cut some milliseconds later, when they are done. Before Cut another Turn does nothing.
func (s *Sampler) Turn() error {
	if s.previous != nil {
		return nil
	}
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

// Cut returns the complete part before the last Turn. The caller closes it.
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
		b.stacks[kind] += t.count
	}
	p.lost = s.lostSince()
	b.lost = s.lostSamples()
	return p
}

// carry keeps the stacks of a part that threads off CPU refer to.
func (s *Sampler) carry(p *Part) {
	kept := make(carried)
	for t := range s.offThreads {
		for _, x := range [...]threadKey{t.Key.thread(), t.Key.Waker} {
			if sameNumber(x.Part, s.number) {
				continue
			}
			for kind, h := range [...]hash{userStack: x.User, kernelStack: x.Kernel} {
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

// move moves the stacks of a thread from another part, which may have ended, to a part.
func (s *Sampler) move(to *Part, part *uint32, user, kernel *hash) {
	from, empty := s.partOf(*part), hashIn(*part, nil)
	*part = to.number
	for kind, h := range [...]*hash{userStack: user, kernelStack: kernel} {
		t := to.tables[kind]
		frames := s.carried[*h]
		if frames == nil && from != nil {
			frames = from.tables[kind].copyOf(*h)
		}
		switch {
		case frames != nil:
			*h = hashIn(t.part, frames)
			t.add(*h, frames)
		case *h == empty:
			*h = t.empty
		}
	}
}

// Stats returns the counts of samples. They are complete after Stop.
func (s *Sampler) Stats() Stats {
	st := Stats{Samples: s.samples(), Lost: s.lostSamples(),
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

// samples returns the number of samples, including the lost ones.
func (s *Sampler) samples() uint64 {
	n := s.stat(statSamples) + s.nested + s.still
	if s.opts.Event.Kind == OffCPU { // statSamples counts only samples with a known duration
		n += s.stat(statNoThread) + s.stat(statNoScratch) + s.stat(statNoReturn)
	}
	return n
}

// lostSamples returns the samples that are lost and not counted, by cause.
func (s *Sampler) lostSamples() map[string]uint64 {
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

// lostSince is lostSamples since the last Cut.
func (s *Sampler) lostSince() map[string]uint64 {
	since := s.lostSamples()
	for cause, n := range s.before.lost {
		if since[cause] -= n; since[cause] == 0 {
			delete(since, cause)
		}
	}
	return since
}

// stacks returns the number of distinct stacks of a kind: received, or written after Write.
func (p *Part) stacks(kind int) int {
	if p.written != nil {
		return p.written[kind]
	}
	return p.tables[kind].count
}

// Err returns the last error of reading the counts; their samples are lost as LostRead.
func (s *Sampler) Err() error { return s.readErr }

// withoutStack returns, by cause, the counted samples that lost a stack.
func (p *Part) withoutStack() map[string]uint64 {
	ring, limit := p.counts.withoutStack(p.tables)
	lost := make(map[string]uint64)
	cause := LostRing
	for _, t := range p.tables {
		if t.err != nil { // later stacks are lost with or without the ring
			cause = LostFile
		}
	}
	for cause, n := range map[string]uint64{cause: ring, LostStacks: limit} {
		if n > 0 {
			lost[cause] = n
		}
	}
	return lost
}

// Write adds the samples since the last Cut to a bundle, as Part.Write does. It must be called
// after Stop.
func (s *Sampler) Write(w *bundle.Writer) (bundle.Samples, error) {
	s.lost = s.lostSince()
	return s.Part.Write(w, false)
}

// Write adds the samples to a bundle and returns their entry of the manifest. A segment is a bundle
// that will be merged: it is packed for speed.
func (p *Part) Write(w *bundle.Writer, segment bool) (bundle.Samples, error) {
	now := sys.Monotonic()
	// Samples that lost a stack are in the counts, where the reader finds them. Listing them as
	// lost there too would count them twice.
	partly := p.withoutStack()
	var nums [2]numbering
	p.written = make([]int, len(nums))
	for kind, t := range p.tables {
		var err error
		if nums[kind], err = t.numberUsed(p.counts.used(t)); err != nil {
			return bundle.Samples{}, err
		}
		p.written[kind] = len(nums[kind].order)
	}
	p.counts.findInterrupts(p.tables[kernelStack])
	counts := p.counts.renumbered(&nums)
	_, size := keyFields(p.opts)
	packing := rawdump.Columns
	if segment {
		packing = rawdump.Plain
	}
	for _, dump := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{userDump, func(w io.Writer) error {
			return p.tables[userStack].writeStacks(w, &nums[userStack], userDump, now, partly)
		}},
		{kernelDump, func(w io.Writer) error {
			return p.tables[kernelStack].writeStacks(w, &nums[kernelStack], kernelDump, now, nil)
		}},
		{countsDump, func(w io.Writer) error {
			return counts.write(w, now, p.lost, packing, size)
		}},
	} {
		if err := addPiped(w, bundle.DumpName(p.opts.prefix+dump.name), dump.write); err != nil {
			return bundle.Samples{}, err
		}
	}
	return samples(p.opts), nil
}

// addPiped adds an entry from a function that writes it.
func addPiped(w *bundle.Writer, name string, write func(io.Writer) error) error {
	r, to := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		to.CloseWithError(write(to))
	}()
	err := w.AddReader(name, r)
	r.CloseWithError(err) // ends the goroutine if the bundle stopped reading early
	<-ended               // the goroutine reads files that the caller may close
	return err
}
