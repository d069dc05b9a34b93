// Package process has the settings and limits of the process that the command line runs in: its
// garbage collector, control groups, open files, and the second process that does the work where
// this one may be killed.
package process

import (
	"runtime/debug"
	"runtime/metrics"
)

// LimitMemory makes the garbage collector hold the process below max bytes where it can; 0 leaves
// the limit as $GOMEMLIMIT has it. GOGC stays: with it off a limit below the memory in use makes
// the collector run without end (measured).
func LimitMemory(max int64) {
	if max > 0 {
		debug.SetMemoryLimit(max)
	}
}

// HastyGC is the garbage collector's percent for lookup, which ends before its heap has grown:
// eight collections in a quarter of a second were an eighth of it. Its growth is bounded by
// lookupMemory.
var HastyGC = Growth{Percent: 200}

// FoldGC is the growth for commands that read captures. Their tables have next to no pointers, so a
// collection costs milliseconds however large they are, and the time that a higher value saves is
// lost in fresh pages. Measured on 340 MB with 2.85 M samples: 15, 40 and 100 % needed 2.15, 1.94 and
// 2.05 s and 228, 238 and 297 MB. On 1,030 MB with 1.7 M distinct stacks, at most 64, 32 and 16 MB
// needed 345, 316 and 300 MB, and the same processor time within the noise of 10 %.
var FoldGC = Growth{Percent: 40, Most: 32 << 20}

// WriteGC is the growth for index. What it keeps of each object has pointers, and is small beside the
// garbage of decoding. Single runs beside other work: /usr/lib needed 167 MB in place of 276, 100,000
// small files 124 in place of 185, and processor time was up to a tenth more.
var WriteGC = Growth{Percent: 100, Most: 32 << 20}

// leanPercent is for commands that walk a whole store. They need next to nothing at a time, and make
// garbage of each object. Single runs on 100,000 objects, beside other work: beyond what the program
// itself needs, ls, verify and gc needed 12, 16 and 42 MB in place of 17, 29 and 60; ls needed 1.2 s of
// processor time in place of 0.7, verify 5.2 in place of 3.0.
const leanPercent = 30

// SetLeanGC has the process collect its garbage early, unless the user has set $GOGC.
func SetLeanGC(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(leanPercent)
	}
}

// lookupMemory is the heap of lookup beyond which the garbage collector works harder, in bytes. The
// names of a big C++ program need 100 MB; demangling them makes as much garbage.
const lookupMemory = 180 << 20

// HoldLookupMemory sets lookupMemory as the limit, or half as much again as is in use:
// at a limit below that the collector would do nothing else.
func HoldLookupMemory() {
	// Unlike runtime.ReadMemStats this does not stop the world.
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	used := heap[0].Value.Uint64()
	debug.SetMemoryLimit(max(lookupMemory, int64(used+used/2)))
}

// ReleaseMemory collects garbage and returns free pages to the kernel. A recorder that always
// runs needs three times its usual memory for a moment whenever it writes a file; the runtime
// keeps such pages for minutes, and its memory drifted from 23 to 29 MB in half an hour. It costs
// some 10 ms every 10 s.
func ReleaseMemory() { debug.FreeOSMemory() }
