package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// heapFloor is the size in bytes up to which the heap grows before it is collected, however little
// of it is in use. The percent of a command is chosen for large heaps; with 40 % a heap of 5 MB was
// collected whenever 2 MB were new: 42 collections used a third of the processor time of a
// recording of 5 MB. Beyond the floor nothing changes.
const heapFloor = 24 << 20

// mostPercent bounds the percent by which a small heap grows, as the next one is only set some time
// after a collection has ended.
const mostPercent = 400

// leastPercent is the least growth, and the step of all percents of large heaps: to set another one
// stops the world.
const leastPercent = 5

// Growth is how much garbage a command may make beyond heapFloor before it is collected.
type Growth struct {
	Percent int    // of the bytes in use
	Most    uint64 // bytes, 0 for no limit; at least leastPercent
}

// collector holds the garbage collector's percent for the process.
var collector struct {
	asked atomic.Pointer[Growth] // by the command
	set   atomic.Int64           // the percent that the runtime has
	watch sync.Once
}

// SetGC sets how much garbage the process may make, unless the user has set $GOGC.
func SetGC(getenv func(string) string, growth Growth) {
	if getenv("GOGC") != "" {
		return
	}
	collector.asked.Store(&growth)
	setPercent()
	collector.watch.Do(func() { runtime.SetFinalizer(new(sentinel), collected) })
}

// sentinel is garbage at every collection: its finalizer runs, and keeps it for the next one.
// The pointer keeps it out of the blocks that small objects share.
type sentinel struct{ _ *byte }

func collected(s *sentinel) {
	runtime.SetFinalizer(s, collected)
	setPercent()
}

// setPercent sets the percent for the heap as it is. To set one stops the world, so that an equal
// one is not set again after each collection of a large heap.
func setPercent() {
	percent := percentFor(liveHeap(), collector.asked.Load())
	if collector.set.Swap(int64(percent)) != int64(percent) {
		debug.SetGCPercent(percent)
	}
}

// percentFor returns the percent by which a heap with live bytes in use may grow: as asked, or more
// up to heapFloor.
func percentFor(live uint64, asked *Growth) int {
	switch {
	case live == 0: // before the first collection, when the runtime counts 4 MB as in use
		return max(asked.Percent, heapFloor/(4<<20)*100)
	case live < heapFloor:
		return max(asked.Percent, int(min(mostPercent, (heapFloor-live)*100/live)))
	case asked.Most == 0:
		return asked.Percent
	}
	most := int(asked.Most * 100 / live)
	return min(asked.Percent, max(leastPercent, most-most%leastPercent))
}

// liveHeap returns how many bytes were in use at the end of the last collection, 0 before the
// first.
func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
