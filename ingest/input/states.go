package input

import (
	"math/bits"
	"regexp"
	"strconv"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/pair"
)

// Numbers of a subject's state: 0 for none; states of sched_switch are stateBit plus the number of
// their lowest bit.
const (
	stateNone uint8 = iota
	stateRunning
	stateReady     // gave up its CPU
	statePreempted // lost its CPU
	stateNew       // made, and not yet run
	stateUnknown
	stateBit
)

// stateText names the states that have no bit, as ftrace and perf script print them.
var stateText = [stateBit]string{stateRunning: ingest.RunningState, stateReady: "R",
	statePreempted: "R+", stateNew: "new", stateUnknown: "?"}

// kernelStates are the bits of prev_state since Linux 4.14 (include/trace/events/sched.h).
var kernelStates = map[uint64]string{1: "S", 2: "D", 4: "T", 8: "t", 0x10: "X", 0x20: "Z", 0x40: "P",
	0x80: "I"}

// flagName matches a flag in the text of a tracepoint's __print_flags.
var flagName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\s*(0x[0-9a-f]+|[0-9]+)\s*,\s*"([A-Za-z])"\s*\}`)
})

// stateNames are the names of the states of threads, by bit.
type stateNames map[uint64]string

// stateNames returns the names that the recording kernel has: the bits differ between versions.
func (t *tracepoints) stateNames() stateNames {
	names := stateNames(kernelStates)
	for i := range t.formats {
		if f := &t.formats[i]; f.System+":"+f.Name == schedSwitch {
			found := make(map[uint64]string)
			for _, m := range flagName().FindAllStringSubmatch(f.Print, -1) {
				if v, err := strconv.ParseUint(m[1], 0, 64); err == nil {
					found[v] = m[2]
				}
			}
			if len(found) > 0 {
				names = found
			}
		}
	}
	return names
}

// stop returns the state of a thread that stops running, by prev_state. A bit beyond the
// named ones is set for a thread that was preempted.
func (names stateNames) stop(state uint64) (uint8, pair.Why) {
	if state == 0 {
		return stateReady, pair.Preempted
	}
	bit := bits.TrailingZeros64(state)
	switch names[1<<bit] {
	case "":
		return statePreempted, pair.Preempted
	case "X", "x", "Z":
		return stateBit + uint8(bit), pair.Dead
	}
	return stateBit + uint8(bit), pair.Blocked
}

// name names a state.
func (names stateNames) name(n uint8) string {
	if n < stateBit {
		return stateText[n]
	}
	return names[1<<(n-stateBit)]
}

// Flags of all tracepoints' common_flags (include/linux/trace_events.h), the third byte.
const (
	commonFlags     = 2
	flagHardInt     = 0x08
	flagSoftInt     = 0x10
	flagsInInterupt = flagHardInt | flagSoftInt
)

// inInterrupt reports whether a tracepoint's sample was made in an interrupt.
func inInterrupt(raw []byte) bool {
	return len(raw) > commonFlags && raw[commonFlags]&flagsInInterupt != 0
}
