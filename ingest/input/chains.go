package input

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"runtime"
	"slices"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
)

// chainTable interns the parts of call chains, kernel or user, before any address is looked up,
// with the result of each. The key consists only of the words of a chain: processes share chains,
// and the address space or the time matters only if a result changes. The number of keys is
// therefore the number of distinct chains and results, also on hosts that constantly fork, load
// libraries and load BPF programs.
type chainTable struct {
	chains *intern.Table[chainValue]
	seed   maphash.Seed
	parts  *intern.Lists // results, in local locations; 0 is the empty list
	// recent caches results by (chain, context) for chains with several contexts.
	recent []chainAnswer
	// results are the parts of each chain with several parts, in order of occurrence.
	results map[intern.Ref][]uint32

	finder  *locator
	scratch []uint32
	words   []byte
}

// chainValue is the last result of a chain.
type chainValue struct {
	user, kernel addrspace.Version // of the result, 0 if it does not depend on them
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

// context returns the versions on which the result of the chain depends, 0 for others.
func (v *chainValue) context(user, kernel addrspace.Version) (u, k addrspace.Version) {
	if v.flags&partUser != 0 {
		u = user
	}
	if v.flags&partKernel != 0 {
		k = kernel
	}
	return u, k
}

// add interns an encoded part of a chain, with its hash, and returns its result in these versions
// of the address spaces. adopted marks a chain that another worker owns.
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
		if k != v.kernel || !t.same(part, v.user, u) {
			v.part = t.inContext(chain, v.part, part, u, k)
			v.frames = uint16(len(t.parts.At(v.part)))
		}
		v.user, v.kernel = u, k
	}
	return *v
}

// same reports whether a part has the same result in two versions of a process's address space.
// false is no certainty.
func (t *chainTable) same(part []byte, v, w addrspace.Version) bool {
	t.words = decodeChain(t.words[:0], part)
	return t.finder.same(t.words, v, w)
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

// chainHead is the size of the number of words, which precedes the bitmap.
const chainHead = 2

// maxWords bounds the words of a part of a chain; a record has fewer.
const maxWords = 1<<16 - 1

// encodeChain appends the words of a part of a chain in about half their size, the form in which
// chains are kept and compared: the number of words; a bit for each word, set if its difference
// from the previous word has 8 bytes; the differences, most of which fit in 4. The encoding is
// unique.
func encodeChain(dst, words []byte) []byte {
	n := min(len(words)/8, maxWords)
	start := len(dst)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	bitmap := len(dst)
	for range (n + 7) / 8 {
		dst = append(dst, 0)
	}
	last := uint64(0)
	for i := range n {
		word := binary.LittleEndian.Uint64(words[8*i:])
		delta := word - last
		last = word
		if int64(int32(delta)) == int64(delta) {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(delta))
			continue
		}
		dst[bitmap+i/8] |= 1 << (i % 8)
		dst = binary.LittleEndian.AppendUint64(dst, delta)
	}
	if n == 0 {
		return dst[:start]
	}
	return dst
}

// decodeChain appends the words of an encoded part.
func decodeChain(dst, b []byte) []byte {
	if len(b) < chainHead {
		return dst
	}
	n := int(binary.LittleEndian.Uint16(b))
	bitmap, b := b[chainHead:], b[chainHead+(n+7)/8:]
	last := uint64(0)
	for i := range n {
		if bitmap[i/8]>>(i%8)&1 == 0 {
			last += uint64(int64(int32(binary.LittleEndian.Uint32(b))))
			b = b[4:]
		} else {
			last += binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
		dst = binary.LittleEndian.AppendUint64(dst, last)
	}
	return dst
}

// altResult is a further result of a raw chain, in another worker, address space or time. It mostly
// equals the first.
type altResult struct {
	owner int        // the first worker that has the chain
	chain intern.Ref // its number there
	first uint32     // its first part there
	where int        // the worker of the other part
	part  uint32
}

// chainCount counts the chains of one role, once their words are freed.
type chainCount struct {
	chains     uint64 // distinct over all workers
	altResults []altResult
}

// joinChains finds the chains that several workers have, and frees the words: they are most of the
// memory of the second pass, after which only the results are needed.
func (f *folder) joinChains() {
	for role := range f.counts {
		tables := make([]*chainTable, len(f.workers))
		for i, w := range f.workers {
			tables[i] = [merge.NumRoles]*chainTable{w.kernelChains, w.userChains}[role]
		}
		f.counts[role] = countChains(tables, role)
		for _, t := range tables {
			t.chains, t.recent, t.results = nil, nil, nil
		}
	}
	for _, w := range f.workers {
		w.reader.records = nil
	}
	if f.counts[0].chains+f.counts[1].chains >= manyChains {
		runtime.GC() // milliseconds, as next to no pointers are there; frees about a third
	}
}

// manyChains is the number of distinct chains, or rows, from which freed tables are collected at
// once: some 10 MB. With fewer a collection costs more than everything else.
const manyChains = 64 << 10

// countChains compares the tables of the workers on all cores.
func countChains(tables []*chainTable, role int) chainCount {
	var counts []*chainCount
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, t := range tables {
		for k := range intern.NumParts {
			c := new(chainCount)
			counts = append(counts, c)
			wg.Go(func() {
				slots <- struct{}{}
				c.count(tables, i, t.chains.Part(k), role)
				<-slots
			})
		}
	}
	wg.Wait()
	var all chainCount
	for _, c := range counts {
		all.chains += c.chains
		all.altResults = append(all.altResults, c.altResults...)
	}
	return all
}

// count counts some chains of table i. A user part has one owner, by its hash, and is in another
// table only if that worker adopted it; a kernel part is in the tables of all owners of its user
// parts.
func (c *chainCount) count(tables []*chainTable, i int,
	chains iter.Seq[intern.Entry[chainValue]], role int,
) {
	t := tables[i]
	for e := range chains {
		m := altResult{owner: i, chain: e.Ref, where: i}
		m.part = t.firstPart(e.Ref, e.Value)
		m.first = m.part
		others := tables[:i]
		if role == merge.UserRole {
			others = nil
			if e.Value.flags&partAdopted != 0 {
				others = tables
			}
		}
		for k, other := range others {
			v, ref, ok := other.chains.Find(e.Key)
			if ok && (role == merge.KernelRole || v.flags&partAdopted == 0) {
				m.owner, m.chain, m.first = k, ref, other.firstPart(ref, v)
				break
			}
		}
		if m.owner == i {
			c.chains++
		} else {
			c.altResults = append(c.altResults, m)
		}
		if all := t.results[e.Ref]; len(all) > 0 {
			for _, m.part = range all[1:] {
				c.altResults = append(c.altResults, m)
			}
		}
	}
}

// firstPart returns the first result of a chain.
func (t *chainTable) firstPart(chain intern.Ref, v *chainValue) uint32 {
	if all := t.results[chain]; len(all) > 0 {
		return all[0]
	}
	return v.part
}

// distinct counts chains, and keys, which are pairs of a chain and a result. It needs the common
// ranks of the parts of all workers.
func (f *folder) distinct(st *ingest.Stats) {
	type key struct {
		owner int
		chain intern.Ref
		rank  uint32
	}
	for role, c := range f.counts {
		others := make(map[key]struct{})
		for _, m := range c.altResults {
			rank := f.shards[m.where].Rank[role][m.part]
			if rank != f.shards[m.owner].Rank[role][m.first] {
				others[key{m.owner, m.chain, rank}] = struct{}{}
			}
		}
		st.DistinctChains += c.chains
		st.DistinctKeys += c.chains + uint64(len(others))
	}
}
