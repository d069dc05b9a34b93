package sampler

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
)

// PlaceKind is how well an address is located.
type PlaceKind uint8

// The kinds of places.
const (
	Gone      PlaceKind = iota // the process ended before its mappings were read
	Unread                     // the process lives, but its mappings could not be read
	Outside                    // outside all code that the process maps
	Mapped                     // in code without a build ID, named by its mapping
	InFile                     // in a file with a build ID
	Ambiguous                  // several possibilities, as mappings changed
	Vsyscall                   // in the vsyscall page, at the same address in all processes
	numKinds
)

// Process is a process running one program, with its mappings at one time.
type Process struct {
	PID     int32
	Program uint64 // ProgramID; 0 if the kernel could not compute it
	Time    uint64 // ns of CLOCK_MONOTONIC
}

// Place is the location of an address in a process.
type Place struct {
	Kind    PlaceKind
	BuildID [BuildIDSize]byte // InFile: padded with zeros
	Offset  uint64            // InFile: offset in the file
	Mapping int               // Mapped: the Explainer's number of the mapping
	// Unproven: the mappings may have changed between Process.Time and their copy.
	Unproven bool
	// Timed: Mapped, and other code may have been there at another time.
	Timed bool
}

// Offsets in struct bpf_stack_build_id, the format of a frame (include/uapi/linux/bpf.h).
const (
	frameID     = 4
	frameOffset = 24
)

// BuildIDSize is the length of the build ID in a frame in bytes.
const BuildIDSize = 20

const statusValid = 1

// Explainer locates bare addresses.
type Explainer interface {
	// Locate returns the place of an address in a process.
	Locate(of Process, at uint64) Place
	// Number returns a number, starting at 0, of the process's mappings that include all of these,
	// the mappings of the stack's Mapped addresses.
	Number(of Process, mappings []int) uint32
}

// Unproven returns the number of samples with an Unproven place.
func (p *Part) Unproven() uint64 { return p.unproven }

// Unplaced returns the number of samples with addresses of a kind: Gone, Unread or Ambiguous. A
// sample with several kinds counts as the first of them.
func (p *Part) Unplaced(kind PlaceKind) uint64 { return p.unplaced[kind] }

// noNumber marks missing mappings: the addresses were not located.
const noNumber = math.MaxUint32

func (x *tally) process() Process { return Process{int32(x.pid), x.program, x.mapped} }

// Explain replaces the bare addresses in user stacks by the build ID and offset of their place, or
// by an address that marks the reason why there is none. Mapped addresses stay. Stacks of processes
// that differ only in addresses become equal. On a Sampler it must be called after Stop. After an
// error some addresses may still be bare, and without mappings.
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
	t.limit += len(t.kept) // explained stacks are added to the received ones
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

// put adds a stack that did not come from the ring, and returns its id.
func (t *table) put(frames []byte) int32 {
	h := hashIn(t.part, frames)
	t.add(h, frames)
	return t.id(h)
}

// explained is a stack with its places.
type explained struct {
	frames   []byte
	mappings []int          // of Mapped addresses
	unproven bool           // has an Unproven place
	timed    bool           // has a Timed place
	kinds    [numKinds]bool // kinds of its places
}

// explain explains the frames of a stack in place. If the stack ends with addresses outside of all
// code (the walk of frame pointers ran into data), only one of them is kept.
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

// bare lists the counts of user stacks with bare addresses, sorted by process and program.
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

// unnumbered lists the counts that still have a program or a time instead of a number.
func (c *counts) unnumbered() (list []tally) {
	for x := range c.of {
		if x.program != 0 || x.mapped != 0 {
			list = append(list, x)
		}
	}
	return list
}

// move moves the samples of a tally to another user stack, number of mappings and time.
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

// maxFiles limits the remembered build IDs.
const maxFiles = 1 << 16

// fileSet holds build IDs of files, in the format of frames.
type fileSet map[[BuildIDSize]byte]struct{}

// add adds the build IDs of a user stack, and reports whether one is new.
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

// HasFile reports whether a user stack has a frame with this build ID.
func (p *Part) HasFile(id []byte) bool {
	var padded [BuildIDSize]byte
	if copy(padded[:], id) == 0 {
		return false
	}
	_, ok := p.files[padded]
	return ok
}
