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

func (x *thread) process() Process { return Process{int32(x.pid), x.program, x.mapped} }

// Explain replaces the bare addresses in user stacks by the build ID and offset of their place, or
// by an address that marks the reason why there is none. Mapped addresses stay. Stacks of processes
// that differ only in addresses become equal. On a Sampler it must be called after Stop. After an
// error some addresses may still be bare, and without mappings.
func (p *Part) Explain(by Explainer) error {
	t, c := p.tables[userStack], &p.counts
	defer c.unlocated()
	c.findInterrupts(p.tables[kernelStack])
	if t.err != nil {
		return t.err
	}
	t.limit += len(t.kept) // explained stacks are added to the received ones
	x := partExplainer{p: p, t: t, by: by, buf: make([]byte, t.deep*userFrame)}
	for _, old := range c.bare(t) {
		to := old
		var err error
		if to.thread, err = x.explain(old.thread, c.of[old].Count); err != nil {
			return err
		}
		c.move(old, to)
	}
	samples := make([]uint64, len(c.wakers))
	for of, v := range c.of {
		if of.waker > 0 {
			samples[of.waker-1] += v.Count
		}
	}
	for _, i := range c.bareWakers(t) {
		var err error
		if c.wakers[i], err = x.explain(c.wakers[i], samples[i]); err != nil {
			return err
		}
	}
	t.flush()
	return t.err
}

// partExplainer explains the stacks of a Part.
type partExplainer struct {
	explained
	p   *Part
	t   *table
	by  Explainer
	buf []byte
}

// explain explains the user stack of a thread with a number of samples.
func (e *partExplainer) explain(x thread, samples uint64) (thread, error) {
	frames, err := e.t.read(x.user, e.buf)
	if err != nil {
		return x, err
	}
	of := x.process()
	e.explained.explain(frames, of, e.by)
	e.p.files.add(e.frames)
	x.number, x.time = 0, 0
	if len(e.mappings) > 0 {
		x.number = e.by.Number(of, e.mappings)
	}
	if e.unproven {
		e.p.unproven += samples
	}
	for _, kind := range [...]PlaceKind{Gone, Unread, Ambiguous} {
		if e.kinds[kind] {
			e.p.unplaced[kind] += samples
			break
		}
	}
	if e.timed {
		x.time = x.mapped
	}
	x.user, x.program, x.mapped = e.t.put(e.frames), 0, 0
	return x, nil
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
		return cmp.Or(c.comparePrograms(a.thread, b.thread), c.compare(a, b))
	})
	return list
}

// bareWakers is bare for the wakers.
func (c *counts) bareWakers(t *table) (list []int) {
	for i := range c.wakers {
		if x := &c.wakers[i]; t.isBare(x.user) && t.received(x.user) {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return c.comparePrograms(c.wakers[a], c.wakers[b]) })
	return list
}

// comparePrograms compares threads by process and program, then by all else.
func (c *counts) comparePrograms(a, b thread) int {
	return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.program, b.program),
		c.compareThreads(a, b))
}

// unlocated marks the threads that still have a program or a time instead of a number.
func (c *counts) unlocated() {
	mark := func(x *thread) {
		if x.program != 0 || x.mapped != 0 {
			x.number, x.program, x.mapped, x.time = noNumber, 0, 0, 0
		}
	}
	var list []tally
	for x := range c.of {
		if x.program != 0 || x.mapped != 0 {
			list = append(list, x)
		}
	}
	for _, x := range list {
		to := x
		mark(&to.thread)
		c.move(x, to)
	}
	for i := range c.wakers {
		mark(&c.wakers[i])
	}
}

// move moves the samples of a tally to another.
func (c *counts) move(from, to tally) {
	v := c.of[from]
	if to == from || v == nil {
		return
	}
	delete(c.of, from)
	if sum := c.of[to]; sum != nil {
		sum.Count += v.Count
		sum.Weight += v.Weight
		return
	}
	c.of[to] = v
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
