package input

import (
	"encoding/binary"
	"math/bits"

	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/machine"
	"symbolize/ingest/procmaps"
)

// splitter splits the chains of samples into a kernel part, which begins with a marker, and
// a user part, which does not.
type splitter struct {
	file    *perfdata.File
	userIP  []int  // by event: index of the instruction pointer in UserRegs, -1 if missing
	lbr     []bool // by event: branch stacks have the calls that have not returned
	scratch []byte
	plain   []byte
	calls   []byte
	// unwind makes the user part of a copied stack; may be nil.
	unwind func(s *perfdata.Sample) []byte
	// deferred returns the user chain of a cookie, nil if there is none.
	deferred func(tid int32, cookie uint64) []byte
	late     bool // the current sample has a deferred user part
	// leaf completes the user part of a sample with a link register; may be nil.
	leaf func(s *perfdata.Sample, part []byte) []byte
}

// notUnwound is the word in a user part for a user stack that was not unwound.
var notUnwound = binary.LittleEndian.AppendUint64(nil, contextUserDeferred)

// guestPart is the user part of samples of virtual machines, with addresses unrelated to the host.
var guestPart = binary.LittleEndian.AppendUint64(
	binary.LittleEndian.AppendUint64(nil, contextGuest), 0)

func newSplitter(f *perfdata.File) *splitter {
	sp := &splitter{file: f}
	for i := range f.Events {
		a := &f.Events[i].Attr
		sp.userIP = append(sp.userIP, userIPIndex(f.Features.Arch, a.SampleRegsUser))
		sp.lbr = append(sp.lbr, a.BranchSampleType&perfdata.BranchCallStack != 0)
	}
	return sp
}

// userIPIndex returns the index of the instruction pointer in the user registers of a mask, -1 if
// they lack it or the machine is not known.
func userIPIndex(arch string, mask uint64) int {
	bit := -1
	if a, _ := machine.Named(arch); a != nil {
		bit = a.PerfBit(a.PerfPC)
	}
	if bit < 0 || mask>>bit&1 == 0 {
		return -1
	}
	return bits.OnesCount64(mask & (1<<bit - 1))
}

// split returns the two parts of a sample's chain, which alias the sample or the splitter. Without
// a chain they consist of the sample's own address.
func (sp *splitter) split(rec *perfdata.Record, s *perfdata.Sample) (kernel, user []byte) {
	chain := s.Chain
	if len(chain) < 8 {
		return sp.lone(rec, s)
	}
	if binary.LittleEndian.Uint64(chain) < contextMax {
		marker := modeMarker(rec, s)
		if marker == contextUser {
			return nil, sp.withStack(sp.withCaller(s, sp.callers(chain, s, true)), s)
		}
		sp.scratch = binary.LittleEndian.AppendUint64(sp.scratch[:0], marker)
		sp.scratch = append(sp.scratch, chain...)
		chain = sp.scratch
	}
	for i := 0; i+8 <= len(chain); i += 8 {
		switch binary.LittleEndian.Uint64(chain[i:]) {
		case contextUser:
			return chain[:i], sp.withCaller(s, sp.callers(chain[i+8:], s, i == 0))
		case contextUserDeferred:
			return chain[:i], sp.later(s, chain[i+8:])
		}
	}
	if s.HasUserStack {
		return chain, sp.userStack(s)
	}
	return chain, nil
}

// later returns the deferred user part of a sample; words begins with its cookie.
func (sp *splitter) later(s *perfdata.Sample, words []byte) []byte {
	sp.late = true
	if len(words) < 8 || sp.deferred == nil {
		return notUnwound
	}
	part := sp.deferred(s.TID, binary.LittleEndian.Uint64(words))
	if len(part) >= 8 && binary.LittleEndian.Uint64(part) == contextUser {
		part = part[8:]
	}
	if len(part) == 0 {
		return notUnwound
	}
	return part
}

// withCaller adds the leaf's caller if it is in the link register.
func (sp *splitter) withCaller(s *perfdata.Sample, part []byte) []byte {
	if sp.leaf == nil || s.UserRegsABI == 0 {
		return part
	}
	return sp.leaf(s, part)
}

// lone makes the parts of a sample without a chain.
func (sp *splitter) lone(rec *perfdata.Record, s *perfdata.Sample) (kernel, user []byte) {
	if s.Fields&perfdata.SampleIP == 0 {
		return nil, notUnwound
	}
	marker := modeMarker(rec, s)
	sp.scratch = binary.LittleEndian.AppendUint64(sp.scratch[:0], marker)
	sp.scratch = binary.LittleEndian.AppendUint64(sp.scratch, s.IP)
	if marker == contextUser {
		return nil, sp.withStack(sp.scratch[8:], s)
	}
	if s.HasUserStack {
		return sp.scratch, sp.userStack(s)
	}
	return sp.scratch, nil
}

// callers returns the user part of a sample with a branch stack of the calls that have not returned
// (--call-graph lbr): the address of the user code, then the places of the calls, which are not
// return addresses. The rest of the part, made by frame pointers, is dropped. Instead of the
// address perf uses the target of the innermost call, the start of the function
// (resolve_lbr_callchain_sample in tools/perf/util/machine.c).
//
// Calls within the kernel are left out: the processor records them if the branch stack was
// requested without exclude_kernel, and the chain has them, too, from the sampled address to the
// entry. perf appends them again, and has no address of user code.
func (sp *splitter) callers(part []byte, s *perfdata.Sample, inUser bool) []byte {
	if !sp.lbr[s.Event] || len(s.Branches) == 0 {
		return part
	}
	le := binary.LittleEndian
	branches := s.Branches
	for len(branches) >= perfdata.BranchSize && le.Uint64(branches) >= kernelHalf &&
		le.Uint64(branches) < contextMax {
		branches = branches[perfdata.BranchSize:]
	}
	sp.calls = sp.calls[:0]
	switch {
	case inUser && s.Fields&perfdata.SampleIP != 0:
		sp.calls = le.AppendUint64(sp.calls, s.IP) // with precise events better than the chain's
	case len(part) >= 8 && le.Uint64(part) < contextMax:
		sp.calls = append(sp.calls, part[:8]...)
	case len(branches) >= perfdata.BranchSize && le.Uint64(branches[8:]) < kernelHalf:
		sp.calls = append(sp.calls, branches[8:16]...)
	}
	for b := branches; len(b) >= perfdata.BranchSize; b = b[perfdata.BranchSize:] {
		from := le.Uint64(b)
		if from == 0 || from >= contextMax {
			break
		}
		if from >= kernelHalf {
			continue
		}
		sp.calls = le.AppendUint64(sp.calls, contextUser) // the next address is exact
		sp.calls = le.AppendUint64(sp.calls, from)
	}
	return sp.calls
}

// withStack unwinds the copied stack, or appends to a user part that it was not unwound.
func (sp *splitter) withStack(part []byte, s *perfdata.Sample) []byte {
	if !s.HasUserStack {
		return part
	}
	if sp.unwind != nil && len(part) <= 8 {
		return sp.unwind(s)
	}
	return append(part[:len(part):len(part)], notUnwound...)
}

// userStack is the user part of a kernel sample with a copy of the user stack: unwound, or the
// address at which the program entered the kernel followed by notUnwound.
func (sp *splitter) userStack(s *perfdata.Sample) []byte {
	if sp.unwind != nil {
		return sp.unwind(s)
	}
	i := sp.userIP[s.Event]
	if i < 0 || len(s.UserRegs) < 8*i+8 {
		return notUnwound
	}
	ip := s.UserRegs[8*i : 8*i+8 : 8*i+8]
	if binary.LittleEndian.Uint64(ip) >= contextMax {
		return notUnwound
	}
	return append(ip, notUnwound...)
}

// Words that represent all others of their kind in a user part.
const (
	plainRubbish = 1       // an address that cannot be code
	plainJunk    = 1 << 62 // an address unmapped in all processes; impossible on all machines
	plainEnd     = ^uint64(0)
)

// simplify makes user parts equal that differ only in junk: unwinding by frame pointers interprets
// data on the stack of functions without them as addresses, and every such word would make a
// distinct chain. The result of the part is unchanged, since locate has the same rules.
func (sp *splitter) simplify(part []byte, spaces *addrspace.Map) []byte {
	if len(part) < 8 || binary.LittleEndian.Uint64(part) >= contextMax {
		return part // not in user mode, or invalid from the start
	}
	rubbish := -1 // the start of rubbish that is not followed by code
	out := part
	for i := 8; i+8 <= len(part); i += 8 {
		pc := binary.LittleEndian.Uint64(part[i:])
		plain := pc
		switch {
		case pc >= contextMax:
			if isMarker(pc) || isStackEnd(pc) || pc == UserGuess {
				return part // rare, or an unwound stack
			}
			plain, part = plainEnd, part[:i+8]
			out = out[:i+8]
		case pc < lowestCode || pc >= kernelHalf && !procmaps.InVsyscall(pc):
			plain = plainRubbish
			if rubbish < 0 {
				rubbish = i
			}
		case !procmaps.InVsyscall(pc) && !spaces.Anywhere(addr.Site(addr.PC(pc), true)):
			plain = plainJunk
		default:
			rubbish = -1
		}
		if plain != pc {
			if &out[0] == &part[0] {
				sp.plain = append(sp.plain[:0], part...)
				out = sp.plain
			}
			binary.LittleEndian.PutUint64(out[i:], plain)
		}
	}
	if rubbish >= 0 && len(part) > rubbish+8 &&
		binary.LittleEndian.Uint64(out[len(out)-8:]) != plainEnd {
		out = out[:rubbish+8]
	}
	return out
}

// hasFrames reports whether a part has an address, or a stack that was not unwound, before the
// first invalid word.
func hasFrames(part []byte) bool {
	for ; len(part) >= 8; part = part[8:] {
		word := binary.LittleEndian.Uint64(part)
		if word < contextMax || word == contextUserDeferred || isStackEnd(word) {
			return true
		}
		if !isMarker(word) {
			return false
		}
	}
	return false
}

// hasRubbish reports whether a part without frames has invalid words.
func hasRubbish(part []byte) bool {
	for ; len(part) >= 8; part = part[8:] {
		if !isMarker(binary.LittleEndian.Uint64(part)) {
			return true
		}
	}
	return false
}

func isMarker(word uint64) bool {
	switch word {
	case contextHV, contextKernel, contextUser, contextUserDeferred, contextGuest,
		contextGuestKernel, contextGuestUser:
		return true
	}
	return false
}

// modeMarker returns the context marker of a sample's CPU mode, or of its address if the mode is
// unknown.
func modeMarker(rec *perfdata.Record, s *perfdata.Sample) uint64 {
	switch rec.CPUMode() {
	case perfdata.CPUModeKernel:
		return contextKernel
	case perfdata.CPUModeUser:
		return contextUser
	case perfdata.CPUModeHypervisor:
		return contextHV
	case perfdata.CPUModeGuestKernel:
		return contextGuestKernel
	case perfdata.CPUModeGuestUser:
		return contextGuestUser
	}
	if s.IP >= kernelHalf {
		return contextKernel
	}
	return contextUser
}
