package input

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/sideband"
)

// someMappings is a process with two files mapped, and a kernel.
func someMappings() *sideband.State {
	sb := sideband.New()
	sb.Kernel.Mapped = true
	for _, path := range []string{"/bin/a", "/lib/b", ingest.KernelMapName} {
		kind := ingest.ELF
		if path == ingest.KernelMapName {
			kind = ingest.Kernel
		}
		sb.Objects.List = append(sb.Objects.List,
			ingest.Object{Kind: kind, File: ingest.FileRef{Path: path}})
	}
	b := addrspace.NewBuilder()
	mapping := func(start, end uint64, object uint32) addrspace.Mapping {
		return addrspace.Mapping{Start: addr.PC(start), End: addr.PC(end), Object: object}
	}
	b.Map(0, 7, mapping(0x400000, 0x480000, sideband.NumFixed))
	b.Map(0, 7, mapping(0x7f0000000000, 0x7f0000100000, sideband.NumFixed+1))
	b.Kernel(0, addrspace.Base, mapping(0xffffffff81000000, 0xffffffff82000000, sideband.NumFixed+2))
	sb.Spaces = b.Build()
	return sb
}

// locatorOf returns a locator that numbers places as (object, offset) makes them.
func locatorOf(sb *sideband.State) *locator {
	return &locator{sb: sb, number: func(object uint32, offset uint64, _ bool) uint32 {
		return object*1_000_003 + uint32(offset)
	}}
}

// result returns the places of a part of a chain.
func result(l *locator, words []byte) (places []uint32, cut bool) {
	l.locate(nil, words, l.sb.Spaces.Process(7, 0).Version(), l.sb.Spaces.Kernel(0).Version())
	for _, s := range l.spots {
		places = append(places, s.place)
	}
	return places, l.flags&partCut != 0
}

// randomUserPart is a user chain with all that frame-pointer unwinding can bring.
func randomUserPart(rng *rand.Rand) []byte {
	var words []byte
	for range rng.IntN(9) {
		var w uint64
		switch rng.IntN(12) {
		case 0:
			w = rng.Uint64N(lowestCode)
		case 1:
			w = 0xffffffff81000000 + rng.Uint64N(100)
		case 2:
			w = rng.Uint64()
		case 3:
			w = 0x7ffd00000000 + rng.Uint64N(1<<20)
		case 4:
			if rng.IntN(4) == 0 {
				w = contextMax + rng.Uint64N(4095)
			} else {
				w = plainJunk + rng.Uint64N(3)
			}
		case 5:
			w = procmaps.Vsyscall + rng.Uint64N(8192)
		case 6:
			w = 0x480000 // returns to the very end of a mapping
		case 7:
			w = []uint64{contextUser, contextKernel, contextGuest, contextUserDeferred}[rng.IntN(4)]
			if rng.IntN(3) > 0 {
				w = 0x400000
			}
		default:
			w = 0x400000 + rng.Uint64N(0x80000)
			if rng.IntN(2) == 0 {
				w = 0x7f0000000000 + rng.Uint64N(0x100000)
			}
		}
		words = binary.LittleEndian.AppendUint64(words, w)
	}
	return words
}

// TestSimplify holds that a simplified part comes to the same, for any junk.
func TestSimplify(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	sb := someMappings()
	l := locatorOf(sb)
	var sp splitter
	changed := 0
	for range 200000 {
		words := randomUserPart(rng)
		want, wantCut := result(l, words)
		plain := sp.simplify(slices.Clone(words), sb.Spaces)
		if !slices.Equal(plain, words) {
			changed++
		}
		got, cut := result(l, plain)
		if !slices.Equal(got, want) || cut != wantCut {
			t.Fatalf("%x\nsimplified to %x:\n%v %v, want %v %v", words, plain, got, cut, want,
				wantCut)
		}
		if hasFrames(words) != (len(want) > 0) {
			t.Fatalf("%x: hasFrames is %v, there are %d", words, hasFrames(words), len(want))
		}
	}
	if changed < 1000 {
		t.Errorf("only %d parts were simplified", changed)
	}
}

// TestSimplifyJoins makes one of chains that differ in junk.
func TestSimplifyJoins(t *testing.T) {
	sb := someMappings()
	seen := map[string]bool{}
	var sp splitter
	for i := range uint64(100) {
		var words []byte
		for _, w := range []uint64{0x400010, 0x400020, 0x7ffd00000000 + i*4096, 3 + i,
			0x123456789000 + i} {
			words = binary.LittleEndian.AppendUint64(words, w)
		}
		seen[string(sp.simplify(words, sb.Spaces))] = true
	}
	if len(seen) != 1 {
		t.Errorf("%d chains, want 1", len(seen))
	}
}

func TestUserIPIndex(t *testing.T) {
	for _, tc := range []struct {
		arch string
		mask uint64
		want int
	}{
		{arch: "x86_64", mask: 0xff0fff, want: 8},
		{arch: "x86_64", mask: 1<<8 | 1<<7, want: 1},
		{arch: "x86_64", mask: 0xff, want: -1},
		{arch: "aarch64", mask: 1<<33 - 1, want: 32},
		{arch: "aarch64", mask: 1<<32 - 1, want: -1},
		{arch: "loongarch64", mask: 1<<32 - 1, want: 0},
		{arch: "riscv64", mask: ^uint64(0), want: -1},
		{arch: "", mask: 0xff0fff, want: -1},
	} {
		if got := userIPIndex(tc.arch, tc.mask); got != tc.want {
			t.Errorf("%s %#x: %d, want %d", tc.arch, tc.mask, got, tc.want)
		}
	}
}

func TestHotChains(t *testing.T) {
	var h frequentChains
	for i := range 3 * frequentMost {
		if got, want := h.often(5<<32), i >= frequentFrom-1; got != want {
			t.Fatalf("meeting %d: often is %v", i+1, got)
		}
	}
	// Another chain replaces it only after as many occurrences.
	other := uint64(5<<32 | 1<<60)
	for range frequentMost {
		if h.often(other) {
			t.Fatal("a chain is met often that was just met")
		}
	}
	h.often(other)
	if h.often(5 << 32) {
		t.Error("a forgotten chain is still met often")
	}
}
