package input

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/intern"
	"symbolize/ingest/sideband"
)

// TestLocateInterrupted: a kernel address behind which no call can be is an interrupted
// first instruction, not a return address; a program that came later changes the answer.
func TestLocateInterrupted(t *testing.T) {
	const (
		kernel = sideband.NumFixed + iota
		inside // a JITed function within the kernel's mapping
		alone  // one with nothing before it
		module
	)
	sb := sideband.New()
	sb.Kernel.Mapped = true
	for _, kind := range []ingest.ObjectKind{ingest.Kernel, ingest.JIT, ingest.JIT, ingest.Module} {
		sb.Objects.List = append(sb.Objects.List, ingest.Object{Kind: kind})
	}
	b := addrspace.NewBuilder()
	add := func(time uint64, layer addrspace.Layer, start, end addr.PC, object uint32) {
		b.Kernel(time, layer, addrspace.Mapping{Start: start, End: end, Object: object})
	}
	add(0, addrspace.Base, 0xffffffff81000000, 0xffffffff82000000, kernel)
	add(0, addrspace.Base, 0xffffffffc0100000, 0xffffffffc0101000, module)
	add(0, addrspace.Program, 0xffffffff81800000, 0xffffffff81800100, inside)
	add(100, addrspace.Program, 0xffffffffc0002128, 0xffffffffc0002200, alone)
	sb.Spaces = b.Build()
	set, err := stackmap.Addresses(nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		name   string
		time   uint64
		pc     uint64
		object uint32 // marked as returned where symbol tables are to decide
		offset uint64
		steady bool
	}{
		{name: "return address", time: 100, pc: 0xffffffff81000100, object: kernel | returned,
			offset: 0xff, steady: true},
		{name: "start of a program", time: 100, pc: 0xffffffffc0002128, object: alone},
		{name: "before that program came", pc: 0xffffffffc0002128,
			object: sideband.UnmappedKernel},
		{name: "call at the start of a program", time: 100, pc: 0xffffffffc0002129, object: alone},
		{name: "end of a program", time: 100, pc: 0xffffffffc0002200, object: alone, offset: 0xd7},
		{name: "start of a program that has code before it", pc: 0xffffffff81800000,
			object: inside, steady: true},
		{name: "end of a program that has code behind it", pc: 0xffffffff81800100, object: inside,
			offset: 0xff, steady: true},
		{name: "start of a module", pc: 0xffffffffc0100000, object: module, steady: true},
		{name: "nothing", pc: 0xffffffffc0300000, object: sideband.UnmappedKernel, steady: true},
	} {
		var object uint32
		var offset uint64
		l := &locator{sb: sb, number: func(o uint32, off uint64, ret bool) uint32 {
			if ret {
				o = markReturned(sb.Objects, o)
			}
			object, offset = o, off
			return 0
		}}
		var words []byte
		for _, w := range []uint64{contextKernel, 0xffffffff81000004, tt.pc} {
			words = binary.LittleEndian.AppendUint64(words, w)
		}
		l.locate(words, nil, 0, sb.Spaces.Kernel(tt.time).Version())
		if object != tt.object || offset != tt.offset || (l.flags&partKernel == 0) != tt.steady {
			t.Errorf("%s: %d+%#x, flags %#x; want %d+%#x", tt.name, object, offset, l.flags,
				tt.object,
				tt.offset)
		}
		f := newStackFolder(&stackSource{file: &file{}, set: set}, sb)
		n := f.kernelAddress(tt.pc, true, kernelRole,
			origin{time: tt.time, timed: true})
		place := f.places.List()[n]
		if place.Object != tt.object || place.Offset != tt.offset {
			t.Errorf("%s: in a stack map %d+%#x; want %d+%#x", tt.name, place.Object, place.Offset,
				tt.object, tt.offset)
		}
	}
}

// TestSameIsLocated: a part is located as the first one of a locator is, whatever parts came before;
// if same reports that two address spaces agree on a part, the part is located
// equally in both, whatever the mappings and words are.
func TestSameIsLocated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 24))
	const units, processes = 12, 6
	base := addr.PC(0x400000)
	agreed := 0
	for range 200 {
		sb := sideband.New()
		for range 3 {
			sb.Objects.List = append(sb.Objects.List, ingest.Object{Kind: ingest.ELF})
		}
		b := addrspace.NewBuilder()
		for pid := range int32(processes) {
			for range 1 + rng.IntN(4) {
				start := base + addr.PC(rng.IntN(units)*16)
				b.Map(0, pid, addrspace.Mapping{Start: start, End: start + addr.PC(16*(1+rng.IntN(6))),
					PgOff: uint64(start-base) + 16*rng.Uint64N(2), Object: sideband.NumFixed + rng.Uint32N(3)})
			}
			if rng.IntN(4) == 0 {
				b.Comm(1, pid, pid, 1, true) // an exec: the next mappings are another program's
				b.Map(2, pid, addrspace.Mapping{Start: base, End: base + 64, Object: sideband.NumFixed})
			}
		}
		sb.Spaces = b.Build()
		pairs := intern.NewPairs()
		number := func(o uint32, off uint64, ret bool) uint32 {
			if ret {
				o = markReturned(sb.Objects, o)
			}
			return pairs.Add(intern.Pair{Object: o, Offset: off})
		}
		l, alone := &locator{sb: sb, number: number}, &locator{sb: sb, number: number}
		repeats := &locator{sb: sb, number: number}
		var outer []byte
		for range 50 {
			var words []byte
			for range rng.IntN(5) {
				w := uint64(base) + rng.Uint64N(units*16+20)
				if rng.IntN(30) == 0 {
					w = []uint64{0, 1, kernelHalf, contextUser, contextUserDeferred, plainEnd}[rng.IntN(6)]
				}
				words = binary.LittleEndian.AppendUint64(words, w)
			}
			// With frames in common with the part before the result is the same as without.
			words = append(words, outer[len(outer)-8*rng.IntN(len(outer)/8+1):]...)
			outer = words[:min(len(words), 64)]
			for _, pid := range []int32{0, 0, rng.Int32N(processes)} {
				version := sb.Spaces.Process(pid, 3).Version()
				alone.last = lastPart{}
				repeats.locate(nil, words, version, 0)
				alone.locate(nil, words, version, 0)
				if !slices.Equal(repeats.spots, alone.spots) || repeats.flags != alone.flags {
					t.Fatalf("% x: %v after others, %v alone", words, repeats.spots, alone.spots)
				}
				words = words[8*min(1, len(words)/8)*rng.IntN(2):]
			}
			v := sb.Spaces.Process(rng.Int32N(processes), rng.Uint64N(3)).Version()
			w := sb.Spaces.Process(rng.Int32N(processes), rng.Uint64N(3)).Version()
			if !l.same(words, v, w) {
				continue
			}
			agreed++
			l.locate(nil, words, v, 0)
			spots, flags := slices.Clone(l.spots), l.flags
			l.locate(nil, words, w, 0)
			if !slices.Equal(spots, l.spots) || flags != l.flags {
				t.Fatalf("% x in %d: %v, in %d: %v", words, v, spots, w, l.spots)
			}
		}
	}
	if agreed < 1000 {
		t.Errorf("only %d parts agreed", agreed)
	}
}
