package record

import (
	"time"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/usage"
)

// uses is the recorder of how BPF programs are used.
type uses struct {
	*usage.Recorder
	s *session
}

func newUses(s *session, proc usage.Options) *uses {
	return &uses{usage.NewRecorder(proc, s.opts.BPFStats,
		usage.Reports{Log: s.log, Warn: s.warn, Ahead: s.warnAhead}), s}
}

func (u *uses) start() error {
	u.Start()
	return nil
}

func (u *uses) drain() time.Duration { return 0 }

func (u *uses) stop() {
	u.Stop()
	if runs, took, ok := u.Runs(); ok {
		u.s.summary.BPFRuns = &BPFRuns{Runs: runs, Time: took}
	}
}

func (u *uses) add(w *bundle.Writer) error { return u.Add(w) }

func (u *uses) close() { u.Close() }
