package pprof

import (
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
)

// Start addresses of the mappings in written files. The values are arbitrary but fixed, so that
// files of different runs and hosts have equal addresses.
const (
	pageSize = 4096
	// baseAddr is the lowest address of an object's offset 0. It must not be 0 (pprof interprets a
	// Start of 0 in an ET_EXEC as a relocated kernel), nor the p_vaddr of a PIE's segment (pprof's
	// kernelBase would also interpret it as a kernel).
	baseAddr = 0x7_0000_0000
	// numSlots slots of 1<<slotShift bytes from there on hold an object each. They must not
	// overlap: `pprof -disasm` distinguishes the samples of different objects only by address.
	// (With one slot for all, a merge of two programs showed 709 ms in a function that had 577.)
	// They are below the addresses of user space, which perf maps keep.
	numSlots  = 1 << 13
	slotShift = 32
	// kernelStart is the address of `_text` in a kernel without KASLR on x86-64; kernelEnd is
	// the start of the module area there.
	kernelStart = 0xffff_ffff_8100_0000
	kernelEnd   = 0xffff_ffff_c000_0000
)

func pageFloor(x uint64) uint64 { return x &^ (pageSize - 1) }

// pageCeil rounds up, at most to the last page of the address space.
func pageCeil(x uint64) uint64 {
	if x > ^uint64(pageSize-1) {
		return ^uint64(pageSize - 1)
	}
	return (x + pageSize - 1) &^ (pageSize - 1)
}

// mapping is one Mapping message: an executable segment of an object.
type mapping struct {
	object               ingest.ObjectID
	start, limit, offset uint64
	delta                uint64 // address = Offset of the location + delta
	used                 bool
	facts                Facts
}

// Facts are what the frames of a mapping have.
type Facts struct{ Functions, Files, Lines, Inlined bool }

// Add adds the frames of a location.
func (x *Facts) Add(names *ingest.Names, frames []ingest.Frame) {
	for i := range frames {
		f := &frames[i]
		x.Functions = true
		x.Files = x.Files || names.Functions[f.Func].File != ""
		x.Lines = x.Lines || f.Line != 0
		x.Inlined = x.Inlined || f.Inlined
	}
}

// Mapping is the address range of an executable segment of an object in written files. The address
// of a location is its Offset plus Delta.
type Mapping struct {
	Object               ingest.ObjectID
	Start, Limit, Offset uint64
	Delta                uint64
	File                 string
}

// Mappings returns the mappings of a profile's objects, and for each location the number of its
// mapping, from 1; 0 for none: its address is the Offset.
func Mappings(p *ingest.Profile, opts *WriteOptions) (list []Mapping, of []uint32) {
	plan := planMappings(p, opts)
	for i := range plan.mappings {
		m := &plan.mappings[i]
		list = append(list, Mapping{m.object, m.start, m.limit, m.offset, m.delta,
			fileText(&p.Objects[m.object], m.object, opts)})
	}
	return list, plan.mapping
}

// plan is the address layout of a profile in a pprof file.
type plan struct {
	mappings []mapping // in file order; only those with locations
	mapping  []uint32  // by location: index into mappings + 1, or 0 for none
	taken    map[uint64]bool
}

// base returns the address of an object's offset 0: a slot by its identity, so that it is the same
// in all files, or the next free slot.
func (plan *plan) base(o *ingest.Object) uint64 {
	h := fnv.New64a()
	io.WriteString(h, buildIDText(o.ID))
	if o.ID.IsZero() || o.ID.Space() == buildid.Content {
		io.WriteString(h, texts.Printable(o.File.Path))
	}
	slot := h.Sum64() % numSlots
	for plan.taken[slot] && len(plan.taken) < numSlots {
		slot = (slot + 1) % numSlots
	}
	plan.taken[slot] = true
	return baseAddr + slot<<slotShift
}

// planMappings lays out mappings, the main program's first: pprof uses mapping 0 in the
// heads of its reports.
func planMappings(p *ingest.Profile, opts *WriteOptions) plan {
	plan := plan{mapping: make([]uint32, len(p.Locations)), taken: make(map[uint64]bool)}
	for from := 0; from < len(p.Locations); {
		obj := p.Locations[from].Object
		to := from + 1
		for to < len(p.Locations) && p.Locations[to].Object == obj {
			to++
		}
		plan.add(p, opts, obj, from, to)
		from = to
	}
	plan.sort(p)
	return plan
}

// add lays out the locations [from, to) of one object.
func (plan *plan) add(p *ingest.Profile, opts *WriteOptions, id ingest.ObjectID, from, to int) {
	o := &p.Objects[id]
	locs := p.Locations[from:to]
	if _, frames := o.Interpreter(); frames || o.Kind == ingest.Unmapped && o.File.Path == "" {
		return // no mapping: the address is the Offset
	}
	first := len(plan.mappings)
	switch o.Kind {
	case ingest.ELF, ingest.VDSO:
		if o.RefSymbol == ingest.LinkedAddresses { // at 0, as they were read
			plan.mappings = append(plan.mappings, mapping{object: id})
			break
		}
		base := plan.base(o)
		for _, s := range elfSegments(o, id, opts, locs) {
			off := uint64(s.Offset)
			plan.mappings = append(plan.mappings, mapping{object: id, offset: off, delta: base,
				start: base + off, limit: base + off + s.Len})
		}
	case ingest.Kernel:
		plan.mappings = append(plan.mappings, kernelMapping(id, opts))
	case ingest.PerfMap:
		plan.mappings = append(plan.mappings, perfMapMapping(id, locs))
	default:
		plan.mappings = append(plan.mappings, otherMapping(o, id, opts, locs, plan.base(o)))
	}
	own := plan.mappings[first:]
	for i, l := range locs {
		k := 0
		for k < len(own)-1 && (l.Offset < addr.Offset(own[k].offset) ||
			uint64(l.Offset)-own[k].offset >= own[k].limit-own[k].start) {
			k++
		}
		own[k].used = true
		plan.mapping[from+i] = uint32(first + k + 1)
	}
}

// elfSegments returns the page-rounded executable segments of a user object in order of their
// offsets, so that each location is in one. Locations outside every known segment get additional
// segments.
func elfSegments(o *ingest.Object, id ingest.ObjectID, opts *WriteOptions,
	locs []ingest.Location) []ingest.SegmentRef {
	var segs []ingest.SegmentRef
	if opts.Layout != nil {
		for _, s := range opts.Layout(id) {
			segs = append(segs, roundSegment(uint64(s.Offset), s.Size))
		}
	}
	if len(segs) == 0 {
		for _, s := range o.Segments {
			segs = append(segs, roundSegment(uint64(s.Offset), s.Len))
		}
	}
	segs = slices.DeleteFunc(segs, func(s ingest.SegmentRef) bool { return s.Len == 0 })
	slices.SortFunc(segs, ingest.CompareSegments)
	var gaps []ingest.SegmentRef
	k := 0
	end := uint64(0) // of all segments that begin before the location
	for _, l := range locs {
		off := uint64(l.Offset)
		for k < len(segs) && uint64(segs[k].Offset) <= off {
			end = max(end, uint64(segs[k].Offset)+segs[k].Len)
			k++
		}
		if off < end {
			continue
		}
		page := roundSegment(off, 1)
		if n := len(gaps); n > 0 && (k == 0 || segs[k-1].Offset < gaps[n-1].Offset) {
			gaps[n-1].Len = uint64(page.Offset) + page.Len - uint64(gaps[n-1].Offset)
		} else {
			gaps = append(gaps, page)
		}
	}
	segs = append(segs, gaps...)
	slices.SortFunc(segs, ingest.CompareSegments)
	return slices.Compact(segs)
}

// roundSegment rounds to pages, within the address range from baseAddr.
func roundSegment(off, size uint64) ingest.SegmentRef {
	const last = ^uint64(pageSize-1) - baseAddr - numSlots<<slotShift
	start := min(pageFloor(off), last)
	end := min(pageCeil(off+min(size, last)), last)
	if end <= start {
		return ingest.SegmentRef{Offset: addr.Offset(start)}
	}
	return ingest.SegmentRef{Offset: addr.Offset(start), Len: end - start}
}

// kernelMapping is the mapping of a kernel: equal for all, so that kernels loaded at different
// addresses have equal addresses.
func kernelMapping(id ingest.ObjectID, opts *WriteOptions) mapping {
	m := mapping{object: id, start: kernelStart, limit: kernelEnd, delta: kernelStart}
	if shift, ok := kernelShift(opts, id); ok {
		m.delta += uint64(shift)
	}
	return m
}

// perfMapMapping covers code of a perf map at its own addresses.
func perfMapMapping(id ingest.ObjectID, locs []ingest.Location) mapping {
	start := pageFloor(uint64(locs[0].Offset))
	end := pageCeil(uint64(locs[len(locs)-1].Offset) + 1)
	return mapping{object: id, start: start, limit: end, offset: start}
}

// otherMapping is the mapping of a module, a JITed function or of addresses without an object.
func otherMapping(o *ingest.Object, id ingest.ObjectID, opts *WriteOptions, locs []ingest.Location,
	base uint64) mapping {
	end := uint64(locs[len(locs)-1].Offset) + 1
	switch o.Kind {
	case ingest.JIT:
		end = max(end, o.Length)
	case ingest.Module:
		if opts.Layout != nil {
			for _, s := range opts.Layout(id) {
				end = max(end, uint64(s.Offset)+s.Size)
			}
		}
		for _, s := range o.Segments {
			end = max(end, uint64(s.Offset)+s.Len)
		}
	}
	return mapping{object: id, start: base, limit: base + roundSegment(0, end).Len,
		delta: base}
}

func kernelShift(opts *WriteOptions, id ingest.ObjectID) (addr.Offset, bool) {
	if opts.RefShift == nil {
		return 0, false
	}
	return opts.RefShift(id)
}

// sort drops unused mappings and moves the main program's to the front.
func (plan *plan) sort(p *ingest.Profile) {
	order := make([]uint32, 0, len(plan.mappings))
	for i := range plan.mappings {
		if plan.mappings[i].used {
			order = append(order, uint32(i))
		}
	}
	main := func(i uint32) int {
		o := &p.Objects[plan.mappings[i].object]
		if o.Kind == ingest.ELF && o.File.Path == p.Meta.MainProgram {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return main(a) - main(b) })
	moved := make([]mapping, len(order))
	number := make([]uint32, len(plan.mappings)+1)
	for to, from := range order {
		moved[to] = plan.mappings[from]
		number[from+1] = uint32(to + 1)
	}
	plan.mappings = moved
	for i, m := range plan.mapping {
		plan.mapping[i] = number[m]
	}
}

// fileText is the filename of an object's mapping. Names in brackets keep pprof from looking for a
// file.
func fileText(o *ingest.Object, id ingest.ObjectID, opts *WriteOptions) string {
	name := texts.Printable(o.File.Path)
	bracketed := strings.HasPrefix(name, "[")
	switch {
	case o.Kind == ingest.Kernel && bracketed:
		if _, ok := kernelShift(opts, id); ok {
			return name + "_text"
		}
		return name + o.RefSymbol
	case o.Kind == ingest.JIT && !bracketed, o.Kind == ingest.Unmapped && !bracketed:
		return "[" + name + "]"
	}
	return name
}

// buildIDText is the build_id of a mapping: lower-case hexadecimal at true length, as pprof
// expects. The SHA-1 of a file without build ID is left out: pprof would refuse the file without
// one.
func buildIDText(id buildid.ID) string {
	if id.Space() == buildid.Content {
		return ""
	}
	return id.String()
}
