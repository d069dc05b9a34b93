package input

import (
	"encoding/binary"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// StackEnd is where the unwinding of a copied stack ended, and why.
type StackEnd uint8

// The ends. The first is the only one that leaves nothing out.
const (
	StackComplete  StackEnd = iota // the outermost function of the thread
	StackTruncated                 // the copy ends before the stack does
	StackElsewhere                 // the rest is on another stack: sigaltstack, Go's systemstack
	StackNoTable                   // the store has no unwind table for the last frame's object
	StackBroken                    // no rule for the last frame, or it leads to an impossible frame
	StackNotCopied                 // no byte was copied: the program was being replaced
	NumStackEnds
)

// CopiedStack is a user stack as perf record --call-graph dwarf records it. Its slices are
// valid during the call.
type CopiedStack struct {
	Arch   string // of the machine: "x86_64", "aarch64"
	ABI    uint64 // 1: of a 32-bit task, 2: of a 64-bit one
	Mask   uint64 // bits of the registers, perf_event_attr.sample_regs_user
	Regs   []byte // a word each, lowest bit first
	Memory []byte // from the stack pointer up
	Asked  int    // bytes that were asked for; Memory is shorter where the mapping ended

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
	// Unwind appends the addresses of a stack to words, leaf first, return addresses as they
	// are. An address that no call left, other than the first, is preceded by UserMarker, one
	// that may not be the next caller's by UserGuess; guessed is set if there is any such.
	Unwind(s *CopiedStack, words []uint64) (_ []uint64, _ StackEnd, guessed bool)
	// InLinkRegister reports whether the code at pc has its return address in the link
	// register. Of s only the fields of the machine and the address space are set.
	InLinkRegister(s *CopiedStack, pc uint64) bool
}

// Words in the result of StackUnwinder: UserMarker before an exact address, and UserGuess
// before one between which and the one before there may be callers that were not found.
const (
	UserMarker = contextUser
	UserGuess  = lastStackEnd
)

// UnwinderFor makes the Unwinder of a capture. objects are those of its mappings, by the number
// that addrspace.Mapping has, each with the build ID that could be found for it.
type UnwinderFor func(objects []ingest.Object) Unwinder

// Words that stand in a user part for how its unwinding ended; StackComplete has none. They lie
// outside of the range that the kernel uses.
const (
	firstStackEnd = ^uint64(3000) + 1
	lastStackEnd  = firstStackEnd + uint64(NumStackEnds)
)

func isStackEnd(word uint64) bool { return word >= firstStackEnd && word < lastStackEnd }

// endObject returns the object of a stack's end, whose last frame is the last of l.spots.
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

// linkRegister is the mask of the registers that perf record --call-graph fp asks for on arm64,
// the link register alone: functions that call nothing have no frame, so that the chain of frame
// pointers lacks their caller.
const linkRegister = 1 << 30

// recordsLinkRegister reports whether the samples of an event have it.
func recordsLinkRegister(arch string, a *perfdata.Attr) bool {
	const chain = perfdata.SampleRegsUser | perfdata.SampleCallchain
	return (arch == "aarch64" || arch == "arm64") && a.SampleRegsUser == linkRegister &&
		a.SampleType&chain == chain
}

// withCaller adds the caller of the first function to a user part, where the function's rule has
// it in the link register; as perf does (get_leaf_frame_caller_aarch64), but by the table alone.
// The result is valid until the next call.
func (u *stackReader) withCaller(s *perfdata.Sample, part []byte) []byte {
	c := u.r.c
	f := c.Records.File
	if len(part) < 8 || len(s.UserRegs) != 8 || !recordsLinkRegister(f.Features.Arch, &f.Events[s.Event].Attr) {
		return part
	}
	pc := binary.LittleEndian.Uint64(part)
	caller := binary.LittleEndian.Uint64(s.UserRegs) & codeBits
	u.stack = CopiedStack{Arch: f.Features.Arch, ABI: s.UserRegsABI, Spaces: c.Spaces, Version: u.r.user}
	if caller == 0 || pc >= contextMax || c.Spaces.User(u.r.user, addr.Site(addr.PC(caller), true)) == nil ||
		!u.unwinder.InLinkRegister(&u.stack, pc) {
		return part
	}
	u.buf = append(u.buf[:0], part[:8]...)
	u.buf = binary.LittleEndian.AppendUint64(u.buf, caller)
	return append(u.buf, part[8:]...)
}

// codeBits are those of an address of arm64, without its authentication code.
const codeBits = 1<<48 - 1

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
// objects before any sample is read; those that they get later, when it is known which of them
// occur and when the last sample was, are the same.
func (c *collector) prepareUnwinding(f *file) {
	const copied = perfdata.SampleRegsUser | perfdata.SampleStackUser
	file := c.Records.File
	if c.opts.Unwinder == nil || !slices.ContainsFunc(file.Events, func(ev perfdata.Event) bool {
		return ev.Attr.SampleType&copied == copied || recordsLinkRegister(file.Features.Arch, &ev.Attr)
	}) {
		return
	}
	a := assembly{collector: c, file: f}
	first, last := file.Features.FirstTime, file.Features.LastTime
	end, _ := a.wall(last)
	x := sideband.NewIdentifier(c.State, a.query(end), c.opts.Identify)
	if c.Clock.Timed {
		if x.From, x.To = first, last; last == 0 {
			x.To = sideband.NoTime // no proof holds of a recording whose end is not known
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
