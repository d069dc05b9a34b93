package process

import "time"

// Usage returns the processor time of the process so far, with that of the children it has waited
// for, and its highest resident memory in bytes, that of the largest child if that was more. 0 is
// not known.
func Usage() (cpu time.Duration, memory uint64) { return usage() }
