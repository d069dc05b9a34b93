package named

import (
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
)

// Options select the samples of a file, and the labels to keep.
type Options struct {
	Event string   // only this event; "" for all
	Comms []string // only these thread names; none for all
	PIDs  []int32  // only these processes; none for all
	TIDs  []int32  // only these threads; none for all
	CPUs  []int32  // only these CPUs; none for all
	Keep  ingest.Keep
	// Identify returns the build ID of the file of a mapping without one, with an absolute path; zero if
	// it is unknown or not trusted; nil knows none.
	Identify func(*ingest.Object) (buildid.ID, ingest.IDSource)
	// MaxUnpacked bounds the unpacked bytes of a packed file; 0 for the default, by its size.
	MaxUnpacked int64
}

// Selects reports whether a sample passes the filters, but Event.
func (o *Options) Selects(s *ingest.Sample, strings []string) bool {
	passes := func(list []int32, v int32) bool { return len(list) == 0 || slices.Contains(list, v) }
	return passes(o.PIDs, s.PID) && passes(o.TIDs, s.TID) && passes(o.CPUs, s.CPU) &&
		(len(o.Comms) == 0 || slices.Contains(o.Comms, strings[s.Comm]))
}

// Drop removes the numbers that are not kept.
func (o *Options) Drop(s *ingest.Sample) {
	if !o.Keep.PID {
		s.PID = -1
	}
	if !o.Keep.TID {
		s.TID = -1
	}
	if !o.Keep.CPU {
		s.CPU = -1
	}
}
