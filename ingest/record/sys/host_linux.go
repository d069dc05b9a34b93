package sys

import (
	"os"

	"symbolize/ingest/format/bundle"
)

// Host is the machine that the recorder sees: its files, its clocks, the number of this process.
// Tests replace it. The zero value is the machine of this process.
type Host struct {
	// Root is before all paths of files; "" but in tests.
	Root string
	// Clocks reads the clocks that have a system call; nil for the kernel's.
	Clocks func() bundle.Clocks
	// OwnPID is the number of this process; 0 for the kernel's.
	OwnPID int
}

// Path returns where a file of the machine is.
func (h *Host) Path(path string) string { return h.Root + path }

// Now returns the time by each clock but perf's.
func (h *Host) Now() bundle.Clocks {
	if h.Clocks != nil {
		return h.Clocks()
	}
	now, _ := SystemClocks()
	return now
}

// Monotonic returns the time of CLOCK_MONOTONIC, ns.
func (h *Host) Monotonic() uint64 {
	if h.Clocks != nil {
		return h.Clocks().Monotonic
	}
	return Monotonic()
}

// PID returns the number of this process.
func (h *Host) PID() int {
	if h.OwnPID != 0 {
		return h.OwnPID
	}
	return os.Getpid()
}
