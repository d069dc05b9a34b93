package input

import (
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/sideband"
)

// origin is the process and the time of a stack, for which its addresses are looked up.
type origin struct {
	pid     int32
	program uint32
	time    uint64 // of the kernel's, if timed; of the user's, 0 if it is not known
	timed   bool
}

// always reports whether a stack has the same locations in all processes and at all times.
// The kernel's stacks without a time, or of time 0, do.
func (f *stackFolder) always(role int, stack uint32, of origin) bool {
	if role == merge.KernelRole {
		return !of.timed || of.time == 0
	}
	return !f.set.HasAddresses(stack)
}

// changes reports whether the location of a kernel address depends on the time.
func (f *stackFolder) changes(pc uint64, ret bool, of origin) bool {
	return of.timed && of.time == bundle.UnknownTime || !f.Spaces.Steady(addr.PC(pc)) ||
		!f.Spaces.Steady(addr.Site(addr.PC(pc), ret))
}

// kernelAddress is an address of the kernel at a time.
type kernelAddress struct {
	pc   uint64
	ret  bool
	role int
	time uint64
}

// changedAddress looks up an address for which changes is true.
func (f *stackFolder) changedAddress(pc uint64, ret bool, role int, of origin) uint32 {
	key := kernelAddress{pc, ret, role, of.time}
	n, ok := f.changed[key]
	if !ok {
		n = f.kernelAddress(pc, ret, role, of)
		f.changed[key] = n
	}
	return n
}

// kernelAddress looks up an address of the kernel, at the time of its stack if that is known.
func (f *stackFolder) kernelAddress(pc uint64, ret bool, role int, of origin) uint32 {
	if procmaps.InVsyscall(pc) && role == merge.UserRole {
		return f.place(sideband.Vsyscall, addr.Site(pc, ret)-procmaps.Vsyscall)
	}
	list := f.kernelPlaces(addr.PC(pc), ret, of)
	switch {
	case len(list) > 1,
		len(list) == 1 && of.timed && of.time == bundle.UnknownTime && !f.lasts(list[0].object):
		return f.place(f.ambiguous[merge.KernelRole], 0)
	case len(list) == 1:
		if f.Objects.List[list[0].object].Kind == ingest.Kernel {
			f.inKernel++
		}
		return f.returnPlace(list[0].object, list[0].offset, list[0].ret)
	}
	if n, off, ok := f.State.InKallsyms(pc, ret); ok {
		f.inListed++
		return f.place(n, off)
	}
	f.inNothing++
	if !f.State.Kernel.Mapped {
		return f.place(f.noMap[merge.KernelRole], 0)
	}
	return f.place(sideband.UnmappedKernel, 0)
}

// lasts reports whether an object of the kernel stays mapped for the whole boot.
func (f *stackFolder) lasts(object uint32) bool { return f.Objects.List[object].Kind == ingest.Kernel }

// kernelPlace is a possible place of an address of the kernel.
type kernelPlace struct {
	object uint32
	offset uint64
	ret    bool // it is the byte before a return address
}

// kernelPlaces returns the places of an address: at most one at the time of its stack; if that
// is not known, those that it ever had, or the first two of them.
func (f *stackFolder) kernelPlaces(pc addr.PC, ret bool, of origin) (list []kernelPlace) {
	if of.timed && of.time != bundle.UnknownTime {
		return f.kernelPlace(nil, f.Spaces.Kernel(of.time).Version(), pc, ret)
	}
	looked := 0
	for v := range f.Spaces.KernelVersions(addr.Site(pc, ret), pc) {
		if list = f.kernelPlace(list, v, pc, ret); len(list) > 1 {
			break // two make it ambiguous
		}
		if looked++; looked == maxKernelStates {
			return append(list, kernelPlace{}, kernelPlace{}) // ambiguous, as far as was looked
		}
	}
	return list
}

// maxKernelStates bounds the states of the kernel in which an address without a known time
// is looked up.
const maxKernelStates = 1 << 12

// kernelPlace appends the place of an address in a version of the kernel's address space, if
// it is not in the list.
func (f *stackFolder) kernelPlace(list []kernelPlace, v addrspace.Version, pc addr.PC,
	ret bool) []kernelPlace {
	m, site := f.State.KernelCode(v, pc, ret)
	if m == nil {
		return list
	}
	x := kernelPlace{m.Object, uint64(m.Offset(site)), site != pc}
	for _, known := range list {
		if known == x {
			return list
		}
	}
	return append(list, x)
}
