package sampler

import (
	"io"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
)

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
		b.stacks[kind] += t.count
	}
	p.lost = s.lostSince()
	b.lost = s.lostSamples()
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
func (s *Sampler) moveToCurrent(k *countKey) {
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

// Stats counts the samples; it is complete after Stop.
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

// samples returns how many were taken, those that are lost with them.
func (s *Sampler) samples() uint64 {
	n := s.stat(statSamples) + s.nested + s.still
	if s.opts.Event.Kind == OffCPU { // it counts those with a known duration
		n += s.stat(statNoThread) + s.stat(statNoScratch) + s.stat(statNoReturn)
	}
	return n
}

// lostSamples counts, by cause, the samples that are lost and not among the counts.
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

// lostSince is lostSamples for the time since the last Cut.
func (s *Sampler) lostSince() map[string]uint64 {
	since := s.lostSamples()
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
	return p.tables[kind].count
}

// Err returns the error with which counts could not be read, if there was one: their
// samples are lost as LostRead.
func (s *Sampler) Err() error { return s.readErr }

// withoutStack counts, by cause, the samples that are counted but have lost a stack.
func (p *Part) withoutStack() map[string]uint64 {
	ring, limit := p.counts.withoutStack(p.tables)
	lost := make(map[string]uint64)
	cause := LostRing
	for _, t := range p.tables {
		if t.err != nil { // from then on the ring makes no difference
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

// Write adds the samples since the last Cut to a bundle, as Part.Write does. Stop comes
// before.
func (s *Sampler) Write(w *bundle.Writer) (bundle.Samples, error) {
	s.lost = s.lostSince()
	return s.Part.Write(w, false)
}

// Write adds the samples to a bundle, and returns its manifest's entry for them.
// segment: it is a part of a bundle that is merged, which is quicker in another
// packing.
func (p *Part) Write(w *bundle.Writer, segment bool) (bundle.Samples, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return bundle.Samples{}, err
	}
	now := uint64(ts.Nano())
	// Samples that lost a stack are among the counts: the reader finds them there, and
	// would have them twice if the counts listed them as lost.
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
	counts := p.counts.renumbered(&nums)
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
		{countsDump, func(w io.Writer) error { return counts.write(w, now, p.lost, packing) }},
	} {
		if err := addPiped(w, bundle.DumpName(dump.name), dump.write); err != nil {
			return bundle.Samples{}, err
		}
	}
	return samples(p.opts), nil
}

// addPiped adds an entry that is written, not read.
func addPiped(w *bundle.Writer, name string, write func(io.Writer) error) error {
	r, to := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		to.CloseWithError(write(to))
	}()
	err := w.AddReader(name, r)
	r.CloseWithError(err) // ends the writer if the bundle took less
	<-ended               // it reads the files that the caller may close
	return err
}
