package input

import (
	"math"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/procmaps"
)

// whose says in which address space an address is to be looked up.
type whose struct {
	pid     int32
	program uint32
	time    uint64 // of the kernel's, if timed
	timed   bool
}

// always reports whether a stack is the same in all processes and at all times. The kernel's
// stacks of time 0 are among those: later times are looked up apart from them.
func (f *stackFolder) always(role int, stack uint32, of whose) bool {
	if role == merge.KernelRole {
		return !of.timed || of.time == 0
	}
	return !f.set.HasAddresses(stack)
}

// changes reports whether it depends on the time what an address of the kernel is.
func (f *stackFolder) changes(pc, at uint64, of whose) bool {
	return of.timed && of.time == bundle.UnknownTime || !f.spaces.Steady(addr.PC(pc)) ||
		!f.spaces.Steady(addr.PC(at))
}

// kernelAddress is an address of the kernel at a time.
type kernelAddress struct {
	pc, at uint64
	role   int
	time   uint64
}

// changedAddress looks up an address of which changes says that it is not always the same.
func (f *stackFolder) changedAddress(pc, at uint64, role int, of whose) uint32 {
	key := kernelAddress{pc, at, role, of.time}
	n, ok := f.changed[key]
	if !ok {
		n = f.kernelAddress(pc, at, role, of)
		f.changed[key] = n
	}
	return n
}

// kernelAddress looks up an address of the kernel, at the time of its stack where that is known.
func (f *stackFolder) kernelAddress(pc, at uint64, role int, of whose) uint32 {
	if procmaps.InVsyscall(pc) && role == merge.UserRole {
		return f.place(rawVsyscall, at-procmaps.Vsyscall)
	}
	list := f.kernelPlaces(addr.PC(pc), addr.PC(at), of)
	switch {
	case len(list) > 1,
		len(list) == 1 && of.timed && of.time == bundle.UnknownTime && !f.lasts(list[0].object):
		return f.place(f.ambiguous[merge.KernelRole], 0)
	case len(list) == 1:
		if f.raw.list[list[0].object].Kind == ingest.Kernel {
			f.inKernel++
		}
		return f.placeBack(list[0].object, list[0].offset, list[0].back)
	}
	if n, off, ok := f.sideband.listed(pc, at); ok {
		f.inListed++
		return f.place(n, off)
	}
	f.inNothing++
	if !f.sideband.kernel {
		return f.place(f.noMap[merge.KernelRole], 0)
	}
	return f.place(rawUnmappedKernel, 0)
}

// lasts reports whether an object of the kernel cannot go, and another come in its place.
func (f *stackFolder) lasts(object uint32) bool { return f.raw.list[object].Kind == ingest.Kernel }

// kernelPlace is what an address of the kernel may be.
type kernelPlace struct {
	object       uint32
	offset, back uint64 // back is how far before the address it is
}

// kernelPlaces returns what an address was when its stack was taken: at most one place where the
// time is known, else what it ever was, several if that is more than one thing. at is the address that pc stands for.
func (f *stackFolder) kernelPlaces(pc, at addr.PC, of whose) (list []kernelPlace) {
	if of.timed && of.time != bundle.UnknownTime {
		return f.kernelPlace(nil, f.spaces.Kernel(of.time).Version(), pc, at)
	}
	looked := 0
	for v := range f.spaces.KernelVersions(at, pc) {
		if list = f.kernelPlace(list, v, pc, at); len(list) > 1 {
			break // it is ambiguous
		}
		if looked++; looked == maxKernelStates {
			return append(list, kernelPlace{}, kernelPlace{}) // for all that is known
		}
	}
	return list
}

// maxKernelStates bounds in how many states of the kernel an address is looked up whose time is
// not known.
const maxKernelStates = 1 << 12

// kernelPlace appends what an address is in a version of the kernel's address space, if that
// is not in the list.
func (f *stackFolder) kernelPlace(list []kernelPlace, v addrspace.Version, pc, at addr.PC,
) []kernelPlace {
	m := f.spaces.InKernel(v, at)
	if at != pc {
		if after := f.sideband.interrupted(v, m, pc); after != nil {
			at, m = pc, after
		}
	}
	if m == nil {
		return list
	}
	x := kernelPlace{m.Object, uint64(m.Offset(at)), uint64(pc - at)}
	for _, known := range list {
		if known == x {
			return list
		}
	}
	return append(list, x)
}

// processProgram is one of the programs that a process ran, or of the processes with its number.
type processProgram struct {
	pid     int32
	program uint32
}

// spaceOf returns the number by which the address space of a program is known: that of the
// process for the first, others get numbers that no process has.
func (sb *sideband) spaceOf(pid int32, program uint32) int32 {
	if program == 0 {
		return pid
	}
	key := processProgram{pid, program}
	n, ok := sb.programSpace[key]
	if !ok {
		n = math.MinInt32 + int32(len(sb.programSpace))
		sb.programSpace[key] = n
	}
	return n
}
