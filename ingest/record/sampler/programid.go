package sampler

// A process's program runs from one exec to the next. Its mappings as read from /proc locate bare
// addresses in stacks only if they are of the same program: a process may run another since, or its
// number be another process's.

// Words of struct mm_struct from start_code on, three of which make the ProgramID.
const (
	layoutEndCode    = 1
	layoutStartBrk   = 4
	layoutStartStack = 6
	layoutSpan       = 7
)

// layoutWords are where fields of struct mm_struct are, in words behind start_code.
var layoutWords = map[string]int32{"end_code": layoutEndCode, "start_brk": layoutStartBrk,
	"start_stack": layoutStartStack}

// ProgramFacts identify the program of a process, from its exec to its end or the next exec, as
// /proc/PID/stat has them in the fields starttime, endcode, start_brk and startstack. The stack
// and the heap begin at random addresses, unless the process has asked for others; the end of
// the code differs then.
type ProgramFacts struct {
	StartTicks, EndCode, StartBrk, StartStack uint64
}

// tickNanos is the unit of starttime, which all of Linux counts in hundredths of a second
// (USER_HZ), in ns.
const tickNanos = 1_000_000_000 / 100

// ID identifies the program among those of a process's number: the ProgramID in the key
// of counts. It is not 0 but by a chance of 2^-64.
func (f ProgramFacts) ID() uint64 {
	return hashOf([]uint64{f.StartTicks, f.EndCode, f.StartBrk, f.StartStack})[0]
}
