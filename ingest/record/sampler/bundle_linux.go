package sampler

import (
	"io"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
)

// Write adds what was sampled to a bundle, and returns what its manifest has to say of
// it. Stop comes before.
func (s *Sampler) Write(w *bundle.Writer) (bundle.Samples, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return bundle.Samples{}, err
	}
	now := uint64(ts.Nano())
	// Samples that lost a stack are among the counts: the reader finds them there, and
	// would have them twice if the counts said that they are lost.
	lost, partly := s.Stats().Lost, s.withoutStack()
	for cause := range partly {
		delete(lost, cause)
	}
	var nums [2]numbering
	s.written = make([]int, len(nums))
	for kind, t := range s.tables {
		var err error
		if nums[kind], err = t.numberUsed(s.counts.used(t)); err != nil {
			return bundle.Samples{}, err
		}
		s.written[kind] = len(nums[kind].order)
	}
	counts := s.counts.renumbered(&nums)
	for _, dump := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{userDump, func(w io.Writer) error {
			return s.tables[userStack].writeStacks(w, &nums[userStack], userDump, now, partly)
		}},
		{kernelDump, func(w io.Writer) error {
			return s.tables[kernelStack].writeStacks(w, &nums[kernelStack], kernelDump, now, nil)
		}},
		{countsDump, func(w io.Writer) error { return counts.write(w, now, lost) }},
	} {
		if err := addPiped(w, bundle.DumpName(dump.name), dump.write); err != nil {
			return bundle.Samples{}, err
		}
	}
	return samples(&s.opts), nil
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
	<-ended               // it reads what the caller may close
	return err
}
