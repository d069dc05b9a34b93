package process

import "time"

// Usage returns the processor time of the process so far, with its finished children, and its
// highest resident memory in bytes, or the largest child's if that was more. 0 is not known.
func Usage() (cpu time.Duration, memory uint64) { return usage() }
