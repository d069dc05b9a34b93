package input

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/machine"
	"symbolize/ingest/sideband"
)

// StackEnd is the reason why the unwinding of a copied stack ended.
type StackEnd uint8

// The ends. Only with StackComplete no frame is missing.
const (
	StackComplete  StackEnd = iota // the outermost function of the thread
	StackTruncated                 // the copy ends before the stack does
	StackElsewhere                 // the rest is on another stack: sigaltstack, Go's systemstack
	StackNoTable                   // the store has no unwind table for the last frame's object
	StackBroken                    // no rule for the last frame, or it gives an impossible frame
	StackNotCopied                 // nothing was copied: the program was being replaced
	NumStackEnds
)

// CopiedStack is a user stack recorded by perf record --call-graph dwarf. Its slices are valid
// during the call.
type CopiedStack struct {
	Arch   string // of the machine: "x86_64", "aarch64"
	ABI    uint64 // 1: of a 32-bit task, 2: of a 64-bit one
	Mask   uint64 // bits of the registers, perf_event_attr.sample_regs_user
	Regs   []byte // a word each, lowest bit first
	Memory []byte // from the stack pointer up
	Asked  int    // requested bytes; Memory is shorter if the mapping ended

	Spaces  *addrspace.Map
	Version addrspace.Version // of the process's address space
}

// Unwinder unwinds the copied stacks of one capture.
type Unwinder interface {
	// Worker returns a StackUnwinder for one goroutine.
	Worker() StackUnwinder
}

// StackUnwinder unwinds stacks one after another.
type StackUnwinder interface {
	// Unwind appends the addresses of a stack to words, leaf first, with unadjusted return
	// addresses. UserMarker precedes addresses after the first that are not return addresses,
	// UserGuess precedes addresses that may not belong to the next caller; guessed reports whether
	// there are any.
	Unwind(s *CopiedStack, words []uint64) (_ []uint64, _ StackEnd, guessed bool)
	// InLinkRegister reports whether the code at pc has its return address in the link register.
	// In s only the fields of the machine and the address space are set.
	InLinkRegister(s *CopiedStack, pc uint64) bool
}

// Words in the result of StackUnwinder: UserMarker precedes an exact address, UserGuess an address
// before which callers may be missing.
const (
	UserMarker = contextUser
	UserGuess  = lastStackEnd
)

// UnwinderFor makes the Unwinder of a capture. objects are the objects of its mappings, by
// addrspace.Mapping.Object, with the build IDs that were found.
type UnwinderFor func(objects []ingest.Object) Unwinder

// Words in a user part for the end of its unwinding, except StackComplete. The kernel does not use
// them.
const (
	firstStackEnd = ^uint64(3000) + 1
	lastStackEnd  = firstStackEnd + uint64(NumStackEnds)
)

func isStackEnd(word uint64) bool { return word >= firstStackEnd && word < lastStackEnd }

// endObject returns the object for the end of a stack; its last frame is the last of l.spots.
func (l *locator) endObject(word uint64) uint32 {
	switch StackEnd(word - firstStackEnd) {
	case StackTruncated:
		return sideband.StackTruncated
	case StackElsewhere:
		return sideband.StackElsewhere
	case StackNotCopied:
		return sideband.StackNotCopied
	case StackNoTable:
		if n := len(l.spots); n > 0 {
			if object, ok := l.noTable[l.spots[n-1].object]; ok {
				return object
			}
		}
	}
	return sideband.StackBroken
}

// stackReader makes user parts of copied stacks.
type stackReader struct {
	r        *reader
	unwinder StackUnwinder
	stack    CopiedStack
	words    []uint64
	buf      []byte
}

// part unwinds the stack of a sample. The result is valid until the next call.
func (u *stackReader) part(s *perfdata.Sample) []byte {
	c := u.r.c
	u.stack = CopiedStack{
		Arch: c.Records.File.Features.Arch, ABI: s.UserRegsABI,
		Mask: c.Records.File.Events[s.Event].Attr.SampleRegsUser, Regs: s.UserRegs,
		Memory: s.UserStack, Asked: s.UserAsked, Spaces: c.Spaces, Version: u.r.user,
	}
	var end StackEnd
	var guessed bool
	u.words, end, guessed = u.unwinder.Unwind(&u.stack, u.words[:0])
	u.count(end)
	if guessed {
		u.r.stats.Copied.Guessed++
	}
	if end != StackComplete {
		u.words = append(u.words, firstStackEnd+uint64(end))
	}
	u.buf = u.buf[:0]
	for _, w := range u.words {
		u.buf = binary.LittleEndian.AppendUint64(u.buf, w)
	}
	return u.buf
}

// withLinkRegister returns the machine of a capture if the samples of an event have only the link
// register, as perf record --call-graph fp requests on arm64: leaf functions have no frame, so that
// the chain of frame pointers lacks their caller. It is nil for other events.
func withLinkRegister(f *perfdata.File, a *perfdata.Attr) *machine.Arch {
	const chain = perfdata.SampleRegsUser | perfdata.SampleCallchain
	if bits.OnesCount64(a.SampleRegsUser) != 1 || a.SampleType&chain != chain {
		return nil
	}
	arch, _ := machine.Named(f.Features.Arch)
	if arch == nil || !arch.LinkRegister || a.SampleRegsUser>>arch.PerfBit(arch.PC) != 1 {
		return nil
	}
	return arch
}

// withCaller adds the caller of the first function to a user part if the function's rule has it in
// the link register, as perf does (get_leaf_frame_caller_aarch64), but only by the table. The
// result is valid until the next call.
func (u *stackReader) withCaller(s *perfdata.Sample, part []byte) []byte {
	c := u.r.c
	f := c.Records.File
	if len(part) < 8 || len(s.UserRegs) != 8 {
		return part
	}
	arch := withLinkRegister(f, &f.Events[s.Event].Attr)
	if arch == nil {
		return part
	}
	pc := binary.LittleEndian.Uint64(part)
	caller := binary.LittleEndian.Uint64(s.UserRegs) & arch.CodeMask
	u.stack = CopiedStack{Arch: f.Features.Arch, ABI: s.UserRegsABI, Spaces: c.Spaces, Version: u.r.user}
	if caller == 0 || pc >= contextMax || c.Spaces.User(u.r.user, addr.Site(addr.PC(caller), true)) == nil ||
		!u.unwinder.InLinkRegister(&u.stack, pc) {
		return part
	}
	u.buf = append(u.buf[:0], part[:8]...)
	u.buf = binary.LittleEndian.AppendUint64(u.buf, caller)
	return append(u.buf, part[8:]...)
}

// count counts a stack.
func (u *stackReader) count(end StackEnd) {
	st := &u.r.stats.Copied
	switch end {
	case StackComplete:
		st.Complete++
	case StackTruncated:
		st.Truncated++
	case StackElsewhere:
		st.OtherStack++
	case StackNoTable:
		st.NoTable++
	case StackNotCopied:
		st.NotCopied++
	default:
		st.Broken++
	}
}

// prepareUnwinding makes the unwinder, if samples have copied stacks. It needs the build IDs of
// objects before any sample is read. They equal the build IDs determined later with the objects and
// times of samples.
func (c *collector) prepareUnwinding(f *file) {
	const copied = perfdata.SampleRegsUser | perfdata.SampleStackUser
	file := c.Records.File
	if c.opts.Unwinder == nil || !slices.ContainsFunc(file.Events, func(ev perfdata.Event) bool {
		return ev.Attr.SampleType&copied == copied || withLinkRegister(file, &ev.Attr) != nil
	}) {
		return
	}
	a := profileParts{collector: c, opts: c.opts, file: f}
	first, last := file.Features.FirstTime, file.Features.LastTime
	x := sideband.NewIdentifier(c.State, a.query(first, last), c.opts.Identify)
	if c.Clock.Timed {
		if x.From, x.To = first, last; last == 0 {
			x.To = sideband.NoTime // nothing can be proven without the end of the recording
		}
	}
	objects := slices.Clone(c.Objects.List)
	c.noTable = make(map[uint32]uint32)
	for i := range objects {
		if o := &objects[i]; o.Kind == ingest.ELF || o.Kind == ingest.VDSO {
			x.Identify(o)
			c.noTable[uint32(i)] = c.Objects.NoTable(uint32(i))
		}
	}
	c.unwinder = c.opts.Unwinder(objects)
}
