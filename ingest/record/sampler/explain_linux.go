package sampler

import (
	"cmp"
	"encoding/binary"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
)

// PlaceKind is how far an address is known.
type PlaceKind uint8

// The kinds of places.
const (
	Gone      PlaceKind = iota // the process had ended before its mappings could be read
	Outside                    // of all code that the process maps: nothing can name it
	Mapped                     // in code without a build ID, named by its mapping
	InFile                     // in code of a file with a build ID
	Ambiguous                  // one thing or another, as mappings changed
)

// Place is the result for an address in a process.
type Place struct {
	Kind    PlaceKind
	BuildID [BuildIDSize]byte // of InFile, padded with zeros
	Offset  uint64            // of InFile: in the file
}

// Offsets in struct bpf_stack_build_id, the form of a frame (include/uapi/linux/bpf.h).
const (
	frameID     = 4
	frameOffset = 24
)

// BuildIDSize is how long the build ID in a frame is, in bytes.
const BuildIDSize = 20

const statusValid = 1

// Explainer locates bare addresses. Program is the ProgramID of the process, 0 where the
// kernel could not compute it.
type Explainer interface {
	// Locate returns the place of an address in a process while it ran a program.
	Locate(pid int32, program, at uint64) Place
	// Number numbers the programs of a process in which addresses are Mapped, from 0 on.
	Number(pid int32, program uint64) uint32
}

// Explain replaces the bare addresses in user stacks: by a build ID and
// offset where the kernel saw none and locate did; else an address marked as one that nothing
// can name it. Mapped ones stay. Stacks of processes that differed only in their addresses
// become one. Of a Sampler Stop comes before. at is the address of a frame's code, for all but the
// first one below the return address. After an error some addresses are still bare.
func (p *Part) Explain(by Explainer) error {
	t := p.tables[userStack]
	defer func() {
		for _, x := range p.counts.unnumbered() {
			p.counts.move(x, x.user, by.Number(int32(x.pid), x.program))
		}
	}()
	if t.err != nil {
		return t.err
	}
	t.room += len(t.kept) // those that are explained come besides those that were taken
	buf := make([]byte, t.deep*userFrame)
	for _, x := range p.counts.bare(t) {
		frames, err := t.read(x.user, buf)
		if err != nil {
			return err
		}
		frames, mapped := explained(frames, &x, by)
		p.files.met(frames)
		number := uint32(0)
		if mapped {
			number = by.Number(int32(x.pid), x.program)
		}
		p.counts.move(x, t.put(frames), number)
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

// explained explains the frames of a stack in place. Of addresses outside of all code at its
// end, where a chain of frame pointers ran into data, one is left to represent them. It reports
// whether addresses are left that mappings name.
func explained(frames []byte, x *tally, by Explainer) (out []byte, mapped bool) {
	o, tail := binary.NativeEndian, 0
	for at := 0; at+userFrame <= len(frames); at += userFrame {
		f := frames[at : at+userFrame]
		tail++
		if o.Uint32(f) != statusIP {
			tail = 0
			continue
		}
		pc := o.Uint64(f[frameOffset:])
		site := addr.Site(pc, at > 0)
		p := by.Locate(int32(x.pid), x.program, site)
		clear(f[frameID:frameOffset])
		switch p.Kind {
		case Gone:
			pc, tail = bundle.GoneAddress, 0
		case Outside:
			pc = bundle.OutsideAddress
		case Ambiguous:
			pc, tail = bundle.AmbiguousAddress, 0
		case Mapped:
			tail, mapped = 0, true
		case InFile:
			o.PutUint32(f, statusValid)
			copy(f[frameID:], p.BuildID[:])
			pc, tail = addr.Return(p.Offset, site != pc), 0
		}
		o.PutUint64(f[frameOffset:], pc)
	}
	return frames[:len(frames)-max(tail-1, 0)*userFrame], mapped
}

// bare lists the counts whose user's stack has bare addresses, process by process.
func (c *counts) bare(t *table) (list []tally) {
	for x := range c.of {
		if t.isBare(x.user) && t.received(x.user) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b tally) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), c.compare(a, b))
	})
	return list
}

// unnumbered lists the counts that still have the ID of their program, not its number.
func (c *counts) unnumbered() (list []tally) {
	for x := range c.of {
		if x.program != 0 {
			list = append(list, x)
		}
	}
	return list
}

// move recounts the samples of a tally under another user stack and the number of
// its program.
func (c *counts) move(x tally, user int32, number uint32) {
	v := c.of[x]
	if user == x.user && number == x.number && x.program == 0 || v == nil {
		return
	}
	delete(c.of, x)
	x.user, x.number, x.program = user, number, 0
	if sum := c.of[x]; sum != nil {
		sum.Count += v.Count
		sum.Weight += v.Weight
		return
	}
	c.of[x] = v
}
