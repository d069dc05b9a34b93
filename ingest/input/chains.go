package input

import (
	"hash/maphash"
	"slices"

	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/fold/intern"
)

// chainTable interns the parts of call chains, kernel or user, before any address is
// looked up, with the result of each. The key is the words of a chain alone: processes
// share chains, and the address space or the time enters only where a result changed. So
// the number of keys is that of the distinct chains and results, also on hosts that fork,
// load libraries and load BPF programs all the time.
type chainTable struct {
	chains *intern.Table[chainValue]
	seed   maphash.Seed
	parts  *intern.Lists // results, in local locations; 0 is the empty list
	// recent caches results by (chain, context) for chains with several contexts.
	recent []chainAnswer
	// results are the parts of each chain that has several, in the order of their coming.
	results map[intern.Ref][]uint32

	finder  *locator
	scratch []uint32
	words   []byte
}

// chainValue is the last result of a chain.
type chainValue struct {
	user, kernel addrspace.Version // of the result, 0 where it does not depend on them
	part         uint32
	frames       uint16
	flags        uint8
}

type chainAnswer struct {
	user, kernel addrspace.Version
	chain        intern.Ref
	part         uint32
	valid        bool
}

const recentBits = 14

func newChainTable(seed maphash.Seed, finder *locator) *chainTable {
	t := &chainTable{
		chains: intern.New[chainValue](seed), seed: seed, parts: new(intern.Lists), finder: finder,
	}
	t.parts.Add(nil)
	return t
}

// context returns the versions that the result of the chain depends on, 0 for others.
func (v *chainValue) context(user, kernel addrspace.Version) (u, k addrspace.Version) {
	if v.flags&partUser != 0 {
		u = user
	}
	if v.flags&partKernel != 0 {
		k = kernel
	}
	return u, k
}

// add interns an encoded part of a chain and returns its result in these versions of the
// address spaces. hash is that of part; adopted marks a chain that another worker owns.
func (t *chainTable) add(hash uint64, part []byte, user, kernel addrspace.Version, adopted bool,
) chainValue {
	if len(part) == 0 {
		return chainValue{}
	}
	v, chain, fresh := t.chains.AddHashed(hash, part)
	if fresh {
		list := t.locate(part, user, kernel)
		v.part, v.frames, v.flags = t.parts.Add(list), uint16(len(list)), t.finder.flags
		if adopted {
			v.flags |= partAdopted
		}
		v.user, v.kernel = v.context(user, kernel)
		return *v
	}
	if u, k := v.context(user, kernel); u != v.user || k != v.kernel {
		v.part = t.inContext(chain, v.part, part, u, k)
		v.frames = uint16(len(t.parts.At(v.part)))
		v.user, v.kernel = u, k
	}
	return *v
}

// inContext returns the result of a known chain in another context than the last.
func (t *chainTable) inContext(chain intern.Ref, last uint32, part []byte,
	user, kernel addrspace.Version,
) uint32 {
	if t.recent == nil {
		t.recent = make([]chainAnswer, 1<<recentBits)
	}
	h := (uint64(user)<<32 ^ uint64(kernel)<<48 ^ uint64(chain)) * 0x9e3779b97f4a7c15
	known := &t.recent[h>>(64-recentBits)]
	if known.valid && known.chain == chain && known.user == user && known.kernel == kernel {
		return known.part
	}
	*known = chainAnswer{user, kernel, chain, last, true}
	list := t.locate(part, user, kernel)
	if slices.Equal(list, t.parts.At(last)) {
		return last
	}
	all := t.results[chain]
	for _, other := range all {
		if slices.Equal(list, t.parts.At(other)) {
			known.part = other
			return other
		}
	}
	if t.results == nil {
		t.results = make(map[intern.Ref][]uint32)
	}
	if len(all) == 0 {
		all = append(all, last)
	}
	known.part = t.parts.Add(list)
	t.results[chain] = append(all, known.part)
	return known.part
}

func (t *chainTable) locate(part []byte, user, kernel addrspace.Version) []uint32 {
	t.words = decodeChain(t.words[:0], part)
	t.finder.locate(t.words, user, kernel)
	t.scratch = t.scratch[:0]
	for i := range t.finder.spots {
		t.scratch = append(t.scratch, t.finder.spots[i].place)
	}
	return t.scratch
}
