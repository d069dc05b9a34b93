package ingest

import (
	"slices"

	"symbolize/ingest/addrspace"
	"symbolize/ingest/intern"
)

// chainTable interns the parts of call chains, kernel or user, before anything is
// looked up, and remembers what each came to. A chain is its words and nothing
// else: processes share chains, and time enters only where an answer changed. So
// the number of keys stays that of the distinct chains (and meanings), whatever
// forks, loads libraries or loads BPF programs.
type chainTable struct {
	chains *intern.Table[chainValue]
	parts  intern.Lists // what chains came to, in local locations; 0 is the empty list
	// recent holds answers by (chain, context) for chains that are met in several
	// contexts; a miss costs a look-up, no more.
	recent []chainAnswer
	// meanings are all parts that a chain has come to, for those with more than one.
	meanings map[uint32][]uint32

	finder  *placeFinder
	scratch []uint32
}

// chainValue is what is known of a chain: its last answer.
type chainValue struct {
	context uint64 // in which it was given
	part    uint32
	frames  uint16
	flags   uint8
}

type chainAnswer struct {
	context uint64
	chain   uint32 // number + 1
	part    uint32
}

const recentBits = 14

func newChainTable(finder *placeFinder) *chainTable {
	t := &chainTable{chains: intern.New[chainValue](), finder: finder}
	t.parts.Add(nil)
	return t
}

// contextOf is what the meaning of a chain depends on besides its words.
func (v *chainValue) contextOf(user, kernel addrspace.Version) uint64 {
	var c uint64
	if v.flags&partUser != 0 {
		c = uint64(user) << 32
	}
	if v.flags&partKernel != 0 {
		c |= uint64(kernel)
	}
	return c
}

// add interns a part of a chain and returns what it comes to in these versions of
// the address spaces.
func (t *chainTable) add(words []byte, user, kernel addrspace.Version) chainValue {
	if len(words) == 0 {
		return chainValue{}
	}
	chain, v, fresh := t.chains.Add(words)
	if fresh {
		list := t.locate(words, user, kernel)
		v.part, v.frames, v.flags = t.parts.Add(list), uint16(len(list)), t.finder.flags
		v.context = v.contextOf(user, kernel)
		return *v
	}
	if c := v.contextOf(user, kernel); c != v.context {
		v.part = t.elsewhere(chain, v.part, words, c, user, kernel)
		v.frames = uint16(len(t.parts.At(v.part)))
		v.context = c
	}
	return *v
}

// elsewhere answers for a known chain in another context than the last.
func (t *chainTable) elsewhere(chain, last uint32, words []byte, context uint64,
	user, kernel addrspace.Version,
) uint32 {
	if t.recent == nil {
		t.recent = make([]chainAnswer, 1<<recentBits)
	}
	h := (context ^ uint64(chain)<<40 ^ uint64(chain)) * 0x9e3779b97f4a7c15
	known := &t.recent[h>>(64-recentBits)]
	if known.chain == chain+1 && known.context == context {
		return known.part
	}
	*known = chainAnswer{context, chain + 1, last}
	list := t.locate(words, user, kernel)
	if slices.Equal(list, t.parts.At(last)) {
		return last
	}
	all := t.meanings[chain]
	for _, part := range all {
		if slices.Equal(list, t.parts.At(part)) {
			known.part = part
			return part
		}
	}
	if t.meanings == nil {
		t.meanings = make(map[uint32][]uint32)
	}
	if len(all) == 0 {
		all = append(all, last)
	}
	known.part = t.parts.Add(list)
	t.meanings[chain] = append(all, known.part)
	return known.part
}

func (t *chainTable) locate(words []byte, user, kernel addrspace.Version) []uint32 {
	t.scratch = t.finder.find(t.scratch[:0], words, user, kernel)
	return t.scratch
}

// placeFinder numbers the places that addresses lie in.
type placeFinder struct {
	locator
	places *intern.Pairs
}

// find appends the local locations of a part of a chain.
func (f *placeFinder) find(out []uint32, words []byte, user, kernel addrspace.Version) []uint32 {
	f.locate(words, user, kernel)
	for i := range f.spots {
		s := &f.spots[i]
		pl := intern.Pair{Object: s.object, Offset: s.offset}
		if s.known == nil {
			out = append(out, f.places.Add(pl))
			continue
		}
		// A later address of this very chain may have taken the slot.
		if s.known.place == 0 || s.known.object != s.object || s.known.offset != s.offset {
			n := f.places.Add(pl)
			if s.known.object == s.object && s.known.offset == s.offset {
				s.known.place = n + 1
			}
			out = append(out, n)
			continue
		}
		out = append(out, s.known.place-1)
	}
	return out
}
