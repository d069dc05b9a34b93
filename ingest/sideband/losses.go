package sideband

import "symbolize/ingest/format/perfdata"

// losses are the records that a recorder lost, counted twice by perf 6.1 and later: as they are
// lost by LOST records of the kernel, and per event by LOST_SAMPLES records, which perf writes when
// the recording ends. A LOST record has the event that was written next, not the one that was lost,
// so the two agree only in their sums. LOST records also count records other than samples;
// LOST_SAMPLES records also count what was lost after the last record.
type losses struct {
	lost, atEnd uint64
	sampler     uint64 // LOST_SAMPLES of the kernel: lost by the processor's sampling buffer
}

// add counts a record. LOST_SAMPLES records of perf have no time.
func (l *losses) add(rec *perfdata.Record, r *perfdata.Lost, f *perfdata.File) {
	switch {
	case r.ByBPF: // dropped intentionally
	case rec.Type == perfdata.TypeLost:
		l.lost += r.Count
	default:
		id, err := f.SampleID(rec)
		if err == nil && id.Has&perfdata.SampleTime != 0 && id.Time != 0 && id.Time != NoTime {
			l.sampler += r.Count
		} else {
			l.atEnd += r.Count
		}
	}
}

// records returns how many records were lost.
func (l *losses) records() uint64 { return max(l.lost, l.atEnd) + l.sampler }
