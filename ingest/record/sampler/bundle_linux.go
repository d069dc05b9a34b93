package sampler

import (
	"io"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
)

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
