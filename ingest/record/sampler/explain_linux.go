package sampler

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
)

// PlaceKind is how far an address is known.
type PlaceKind uint8

// The kinds of places.
const (
	Gone      PlaceKind = iota // the process had ended before its mappings could be read
	Unread                     // its mappings could not be read, and it lives
	Outside                    // of all code that the process maps: nothing can name it
	Mapped                     // in code without a build ID, named by its mapping
	InFile                     // in code of a file with a build ID
	Ambiguous                  // one thing or another, as mappings changed
	Vsyscall                   // in the page that all processes have at one address
	numKinds
)

// Process is a process while it ran a program, with the mappings of a time.
type Process struct {
	PID     int32
	Program uint64 // its ProgramID, 0 where the kernel could not compute it
	Time    uint64 // ns of CLOCK_MONOTONIC
}

// Place is the result for an address in a process.
type Place struct {
	Kind    PlaceKind
	BuildID [BuildIDSize]byte // of InFile, padded with zeros
	Offset  uint64            // of InFile: in the file
	Mapping int               // of Mapped: the Explainer's number of the mapping
	// Unproven: nobody knows whether the mappings changed between Process.Time and their copy.
	Unproven bool
	// Timed: of Mapped, other code may have been there at another time.
	Timed bool
}

// Offsets in struct bpf_stack_build_id, the form of a frame (include/uapi/linux/bpf.h).
const (
	frameID     = 4
	frameOffset = 24
)

// BuildIDSize is how long the build ID in a frame is, in bytes.
const BuildIDSize = 20

const statusValid = 1

// Explainer locates bare addresses.
type Explainer interface {
	// Locate returns the place of an address in a process.
	Locate(of Process, at uint64) Place
	// Number returns the number, from 0 on, of mappings of a process that are kept and have all of
	// these, in each of which some address of a stack is Mapped.
	Number(of Process, mappings []int) uint32
}

// Unproven returns how many samples were explained by places that are Unproven.
func (p *Part) Unproven() uint64 { return p.unproven }

// Unplaced returns how many samples have addresses of a kind that is Gone, Unread or Ambiguous, and
// none of an earlier one of these.
func (p *Part) Unplaced(kind PlaceKind) uint64 { return p.unplaced[kind] }

// noNumber is that of no mappings: addresses of which it is not known where they lie.
const noNumber = math.MaxUint32

func (x *tally) process() Process { return Process{int32(x.pid), x.program, x.mapped} }

// Explain replaces the bare addresses in user stacks: by a build ID and offset where the kernel saw
// none and locate did; else an address marked as one that nothing can name it. Mapped ones stay.
// Stacks of processes that differed only in their addresses become one. Of a Sampler Stop comes
// before. at is the address of a frame's code, for all but the first one below the return address.
// After an error some addresses are still bare, and without mappings.
func (p *Part) Explain(by Explainer) error {
	t := p.tables[userStack]
	defer func() {
		for _, x := range p.counts.unnumbered() {
			p.counts.move(x, x.user, noNumber, 0)
		}
	}()
	if t.err != nil {
		return t.err
	}
	t.limit += len(t.kept) // those that are explained come besides those that were taken
	buf := make([]byte, t.deep*userFrame)
	var e explained
	for _, x := range p.counts.bare(t) {
		frames, err := t.read(x.user, buf)
		if err != nil {
			return err
		}
		e.explain(frames, x.process(), by)
		p.files.add(e.frames)
		number := uint32(0)
		if len(e.mappings) > 0 {
			number = by.Number(x.process(), e.mappings)
		}
		n := p.counts.of[x].Count
		if e.unproven {
			p.unproven += n
		}
		for _, kind := range [...]PlaceKind{Gone, Unread, Ambiguous} {
			if e.kinds[kind] {
				p.unplaced[kind] += n
				break
			}
		}
		time := uint64(0)
		if e.timed {
			time = x.mapped
		}
		p.counts.move(x, t.put(e.frames), number, time)
	}
	t.flush()
	return t.err
}

// put keeps a stack that is not from the ring, and returns its id.
func (t *table) put(frames []byte) int32 {
	h := hashIn(t.part, frames)
	t.add(h, frames)
	return t.id(h)
}

// explained is a stack with its places.
type explained struct {
	frames   []byte
	mappings []int          // that name addresses
	unproven bool           // some place is
	timed    bool           // likewise
	kinds    [numKinds]bool // of places
}

// explain explains the frames of a stack in place. Of addresses outside of all code at its
// end, where a chain of frame pointers ran into data, one is left to represent them.
func (e *explained) explain(frames []byte, of Process, by Explainer) {
	o, tail := binary.NativeEndian, 0
	e.timed = false
	e.mappings, e.unproven, e.kinds = e.mappings[:0], false, [numKinds]bool{}
	for at := 0; at+userFrame <= len(frames); at += userFrame {
		f := frames[at : at+userFrame]
		tail++
		if o.Uint32(f) != statusIP {
			tail = 0
			continue
		}
		pc := o.Uint64(f[frameOffset:])
		site := addr.Site(pc, at > 0)
		p := by.Locate(of, site)
		e.unproven, e.kinds[p.Kind] = e.unproven || p.Unproven, true
		e.timed = e.timed || p.Timed
		clear(f[frameID:frameOffset])
		switch p.Kind {
		case Gone:
			pc, tail = bundle.GoneAddress, 0
		case Unread:
			pc, tail = bundle.UnreadAddress, 0
		case Outside:
			pc = bundle.OutsideAddress
		case Ambiguous:
			pc, tail = bundle.AmbiguousAddress, 0
		case Vsyscall:
			tail = 0
		case Mapped:
			tail, e.mappings = 0, append(e.mappings, p.Mapping)
		case InFile:
			o.PutUint32(f, statusValid)
			copy(f[frameID:], p.BuildID[:])
			pc, tail = addr.Return(p.Offset, site != pc), 0
		}
		o.PutUint64(f[frameOffset:], pc)
	}
	e.frames = frames[:len(frames)-max(tail-1, 0)*userFrame]
}

// bare lists the counts whose user's stack has bare addresses, process by process, in each
// program by program.
func (c *counts) bare(t *table) (list []tally) {
	for x := range c.of {
		if t.isBare(x.user) && t.received(x.user) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b tally) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.program, b.program), c.compare(a, b))
	})
	return list
}

// unnumbered lists the counts that still have a program and a time, not a number.
func (c *counts) unnumbered() (list []tally) {
	for x := range c.of {
		if x.program != 0 || x.mapped != 0 {
			list = append(list, x)
		}
	}
	return list
}

// move recounts the samples of a tally under another user stack, the number of its mappings and its
// time.
func (c *counts) move(x tally, user int32, number uint32, time uint64) {
	v, to := c.of[x], x
	to.user, to.number, to.program, to.mapped, to.time = user, number, 0, 0, time
	if to == x || v == nil {
		return
	}
	delete(c.of, x)
	x = to
	if sum := c.of[x]; sum != nil {
		sum.Count += v.Count
		sum.Weight += v.Weight
		return
	}
	c.of[x] = v
}

// maxFiles bounds the build IDs that are remembered.
const maxFiles = 1 << 16

// fileSet are build IDs of files, as frames have them.
type fileSet map[[BuildIDSize]byte]struct{}

// met adds the build IDs of a user's stack, and reports whether one was not met before.
func (x fileSet) add(frames []byte) (isNew bool) {
	var last [BuildIDSize]byte
	for ; len(frames) >= userFrame; frames = frames[userFrame:] {
		id := [BuildIDSize]byte(frames[frameID:])
		if id == last || binary.NativeEndian.Uint32(frames) != statusValid {
			continue
		}
		last = id
		if _, ok := x[id]; !ok && len(x) < maxFiles {
			x[id] = struct{}{}
			isNew = true
		}
	}
	return isNew
}

// HasFile reports whether users' stacks have frames with this build ID.
func (p *Part) HasFile(id []byte) bool {
	var padded [BuildIDSize]byte
	if copy(padded[:], id) == 0 {
		return false
	}
	_, ok := p.files[padded]
	return ok
}
