package perfdata

import "fmt"

// AuxtraceType is the type of an AUX area trace (enum auxtrace_type in
// tools/perf/util/auxtrace.h).
type AuxtraceType uint32

var auxtraceNames = [...]string{0: "unknown", "Intel PT", "Intel BTS", "ARM CoreSight ETM",
	"ARM SPE", "s390 CPU-MF", "HiSilicon PTT", "POWER VPA"}

// String returns the name of the tracing hardware.
func (t AuxtraceType) String() string {
	if int64(t) < int64(len(auxtraceNames)) {
		return auxtraceNames[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// AuxtraceType returns the type in an AUXTRACE_INFO record.
func (f *File) AuxtraceType(rec *Record) AuxtraceType {
	if len(rec.Body) < 4 {
		return 0
	}
	return AuxtraceType(u32(rec.Body, f.BigEndian))
}

// AuxtraceSize returns the number of bytes of the trace behind an AUXTRACE record.
func (f *File) AuxtraceSize(rec *Record) uint64 {
	n, _ := f.payload(rec)
	return n
}
