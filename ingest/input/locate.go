package input

import (
	"encoding/binary"

	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/sideband"
)

// Context markers in call chains (enum perf_callchain_context). Words from contextMax up are not
// addresses.
const (
	contextHV           = ^uint64(32) + 1
	contextKernel       = ^uint64(128) + 1
	contextUser         = ^uint64(512) + 1
	contextUserDeferred = ^uint64(640) + 1
	contextGuest        = ^uint64(2048) + 1
	contextGuestKernel  = ^uint64(2176) + 1
	contextGuestUser    = ^uint64(2560) + 1
	contextMax          = ^uint64(4095) + 1
)

const (
	kernelHalf = 1 << 63 // the lowest kernel address
	lowestCode = procmaps.Lowest
)

// spot is a located address.
type spot struct {
	pc     uint64 // as recorded
	object uint32 // raw
	place  uint32 // the result of locator.number
}

// knownAddress is a cached result: the stacks of a process share most of their addresses.
type knownAddress struct {
	at      addr.PC
	version addrspace.Version
	kind    uint8 // 0: empty
	flags   uint8
	object  uint32
	place   uint32
}

const (
	knownUser       uint8 = 1 + iota
	knownUserReturn       // before a return address
	knownKernel
	knownReturn // the kernel's, before a return address
)

// knownBits is log2 of the number of cached results, which fit in a level 2 cache beside other
// data.
const knownBits = 14

// Properties of a part of a chain.
const (
	partCut    uint8 = 1 << iota // invalid addresses were cut off
	partUser                     // the result depends on the Version of the process
	partKernel                   // the result depends on the Version of the kernel
	partNew                      // the chain is not yet located
)

// locator locates addresses: return addresses at the byte before them (addr.Site). Kernel addresses
// that no call can precede are exact, see sideband.State.KernelCode; in other objects
// correctReturns finds them by symbol tables, for which the places of return addresses are marked.
type locator struct {
	sb    *sideband.State
	spots []spot // of the last locate
	last  lastPart
	// rubbish is the index in spots where a tail of addresses that cannot be code begins, -1 if
	// there is none.
	rubbish int
	known   []knownAddress // direct-mapped
	// unsettled are those with a place that has no number yet.
	unsettled []*knownAddress
	// number returns the number of a place for spots; ret marks return addresses.
	number func(object uint32, offset uint64, ret bool) uint32
	flags  uint8
	// noTable maps an object to the object for stacks that end in it without an unwind table.
	noTable map[uint32]uint32
}

// lastPart is the user part of the last locate, from the outermost frame: frames that the next part
// has in common with it are not looked up again.
type lastPart struct {
	version addrspace.Version
	words   []uint64
	spots   []spot
}

// common returns the number of outer frames that a part has in common with the last one: return
// addresses in user mode.
func (l *lastPart) common(words []byte, v addrspace.Version) (n int) {
	if l.version != v {
		return 0
	}
	for most := min(len(words)/8, len(l.words)) - 1; n < most && l.words[n] < kernelHalf &&
		l.words[n] == binary.LittleEndian.Uint64(words[len(words)-8*n-8:]); n++ {
	}
	return n
}

// keep replaces all but the first n words by those of a part, with spots for all words.
func (l *lastPart) keep(n int, words []byte, v addrspace.Version, spots []spot) {
	l.version, l.words, l.spots = v, l.words[:n], l.spots[:n]
	for i := len(spots) - n - 1; i >= 0; i-- {
		l.words = append(l.words, binary.LittleEndian.Uint64(words[8*i:]))
		l.spots = append(l.spots, spots[i])
	}
}

// locate looks up the words of both parts of a chain, leaf first, into l.spots. A part begins with
// a context marker, or in user mode. The address after a marker is exact (the interrupted
// instruction, or the user address of a system call); all others are return addresses.
//
// A part is cut before a word that is neither a marker nor an address, and before a tail of
// addresses that cannot be code (below any mapping, or kernel addresses in user mode). perf drops
// whole chains of the first kind, and prints the second. A first address that the kernel recorded
// twice is kept twice, as in perf.
func (l *locator) locate(kpart, part []byte, user, kernel addrspace.Version) {
	l.spots = l.spots[:0]
	l.flags = 0
	l.part(kpart, user, kernel, 0)
	common, start := l.last.common(part, user), len(l.spots)
	if l.part(part, user, kernel, common) {
		l.last.keep(common, part, user, l.spots[start:start+len(part)/8])
	} else {
		l.last.keep(0, nil, 0, nil)
	}
}

// part locates a part, of which the last has some outer frames. It reports whether each word has a
// spot; behind the end of l.spots are those of addresses that were cut off.
func (l *locator) part(words []byte, user, kernel addrspace.Version, common int) bool {
	mode, exact, spots := uint64(contextUser), true, true
	l.rubbish = -1
	for ; len(words) >= 8; words = words[8:] {
		if common > 0 && len(words) == 8*common && mode == contextUser && !exact {
			l.repeat(common)
			break
		}
		pc := binary.LittleEndian.Uint64(words)
		if pc < contextMax {
			l.address(mode, pc, exact, user, kernel)
			exact = false
			continue
		}
		l.cut()
		spots = false
		switch {
		case pc == contextUserDeferred:
			l.add(pc, sideband.NoStack)
			return false
		case isStackEnd(pc):
			l.add(pc, l.endObject(pc))
			return false
		case pc == UserGuess:
			l.add(pc, sideband.CallersUncertain)
			continue
		case isMarker(pc):
			mode, exact = pc, true
			continue
		}
		l.flags |= partCut
		return false
	}
	l.cut()
	return spots
}

// repeat adds outer frames of the last user part.
func (l *locator) repeat(n int) {
	for i := n - 1; i >= 0; i-- {
		s := l.last.spots[i]
		switch {
		case s.pc >= lowestCode:
			l.flags |= partUser
			if s.object > sideband.UnmappedKernel {
				l.rubbish = -1 // code follows
			}
		case l.rubbish < 0:
			l.rubbish = len(l.spots)
		}
		l.spots = append(l.spots, s)
	}
}

// same reports whether the words of a user part have the same result in two versions of an address
// space. It looks at mappings in place of addresses. false is no certainty.
func (l *locator) same(words []byte, v, w addrspace.Version) bool {
	var start, end addr.PC // of the last mapping
	exact := true
	for ; len(words) >= 8; words = words[8:] {
		pc := binary.LittleEndian.Uint64(words)
		if pc >= kernelHalf {
			return false
		}
		at := addr.PC(addr.Site(pc, !exact))
		exact = false
		if at < start || at >= end {
			var ok bool
			if start, end, ok = l.sb.Spaces.Same(v, w, at); !ok {
				return false
			}
		}
		if addr.PC(pc) >= end { // the address behind the call may be in an object with exact addresses
			return false
		}
	}
	return true
}

// cut removes a tail of addresses that cannot be code.
func (l *locator) cut() {
	if l.rubbish >= 0 {
		l.spots = l.spots[:l.rubbish]
		l.flags |= partCut
		l.rubbish = -1
	}
}

// address looks up one address.
func (l *locator) address(mode, pc uint64, exact bool, user, kernel addrspace.Version) {
	if exact {
		l.one(mode, pc, false, user, kernel)
		return
	}
	if pc < lowestCode || mode == contextUser && pc >= kernelHalf && !procmaps.InVsyscall(pc) {
		if l.rubbish < 0 {
			l.rubbish = len(l.spots)
		}
		unmapped := uint32(sideband.Unmapped)
		if mode != contextUser {
			unmapped = sideband.UnmappedKernel
		}
		l.add(pc, unmapped)
		return
	}
	l.one(mode, pc, true, user, kernel)
	if l.rubbish >= 0 && l.spots[len(l.spots)-1].object > sideband.UnmappedKernel {
		l.rubbish = -1 // code follows
	}
}

// add adds a spot in an object that is one place.
func (l *locator) add(pc uint64, object uint32) {
	l.spots = append(l.spots, spot{pc, object, l.number(object, 0, false)})
}

// one locates an address in a mode; ret marks return addresses.
func (l *locator) one(mode, pc uint64, ret bool, user, kernel addrspace.Version) {
	at := addr.PC(addr.Site(pc, ret))
	switch mode {
	case contextUser:
		switch {
		case procmaps.InVsyscall(pc):
			l.spots = append(l.spots, spot{pc, sideband.Vsyscall,
				l.number(sideband.Vsyscall, uint64(at-procmaps.Vsyscall), ret)})
		case pc >= kernelHalf: // it is exact, so that the mode is wrong
			l.lookUp(pc, at, kernel, knownKernel)
		default:
			kind := knownUser
			if ret {
				kind = knownUserReturn
			}
			l.lookUp(pc, at, user, kind)
		}
	case contextKernel:
		kind := knownKernel
		if ret {
			kind = knownReturn
		}
		l.lookUp(pc, at, kernel, kind)
	case contextHV:
		l.add(pc, sideband.Hypervisor)
	default:
		l.add(pc, sideband.Guest)
	}
}

// lookUp finds the mapping of an address in a version of an address space.
func (l *locator) lookUp(pc uint64, at addr.PC, v addrspace.Version, kind uint8) {
	if l.known == nil {
		l.known = make([]knownAddress, 1<<knownBits)
	}
	h := (uint64(at) ^ uint64(v)<<40 ^ uint64(v)>>24) * 0x9e3779b97f4a7c15
	k := &l.known[h>>(64-knownBits)]
	if k.at != at || k.version != v || k.kind != kind {
		*k = knownAddress{at: at, version: v, kind: kind}
		find := l.inKernel
		if kind <= knownUserReturn {
			find = l.inUser
		}
		offset, ret := find(k)
		if l.sb.Objects.List[k.object].Kind.Collapsed() {
			offset, ret = 0, false
		}
		if k.place = l.number(k.object, offset, ret); k.place >= postponed {
			l.unsettled = append(l.unsettled, k)
		}
	}
	l.flags |= k.flags
	l.spots = append(l.spots, spot{pc, k.object, k.place})
}

// settle sets the numbers of places that were postponed.
func (l *locator) settle(number []uint32) {
	for _, k := range l.unsettled {
		if k.place >= postponed {
			k.place = number[k.place-postponed]
		}
	}
	l.unsettled = l.unsettled[:0]
	l.last.keep(0, nil, 0, nil)
}

// inUser finds the object of an address in a process, and the offset in it. ret reports whether the
// offset is of the byte before a return address.
func (l *locator) inUser(k *knownAddress) (offset uint64, ret bool) {
	k.flags = partUser
	m := l.sb.Spaces.User(k.version, k.at)
	if m == nil && k.kind == knownUser {
		m = l.sb.Spaces.Before(k.version, k.at) // entered execve there
	}
	pc := addr.Return(k.at, k.kind == knownUserReturn)
	if here := l.sb.Spaces.User(k.version, pc); here != nil && l.sb.ExactAddresses(here.Object) {
		k.object = here.Object
		return uint64(here.Offset(pc)), false
	}
	if m != nil {
		k.object = m.Object
		return uint64(m.Offset(k.at)), k.kind == knownUserReturn
	}
	k.object = sideband.Unmapped
	return 0, false
}

// inKernel is inUser for the kernel.
func (l *locator) inKernel(k *knownAddress) (offset uint64, ret bool) {
	ret = k.kind == knownReturn
	pc, spaces := addr.Return(k.at, ret), l.sb.Spaces
	if !spaces.Steady(k.at) || ret && !spaces.Steady(pc) {
		k.flags = partKernel
	}
	m, site := l.sb.KernelCode(k.version, pc, ret)
	switch {
	case m != nil:
		k.object = m.Object
		return uint64(m.Offset(site)), site != pc
	case !l.sb.Kernel.Mapped && k.at >= kernelHalf:
		k.object = sideband.HiddenKernel
	default:
		k.object = sideband.UnmappedKernel
	}
	return 0, false
}
