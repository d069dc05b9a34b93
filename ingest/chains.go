package ingest

import (
	"encoding/binary"
	"hash/maphash"

	"symbolize/ingest/addrspace"
	"symbolize/ingest/intern"
)

// chainTable interns the parts of call chains, kernel or user, before anything is
// looked up, and remembers what each came to. A chain is its words and nothing
// else: processes share chains, and time enters only where an answer changed. So
// the number of keys stays that of the distinct chains (and meanings), whatever
// forks, loads libraries or loads BPF programs.
type chainTable struct {
	chains  *intern.Table
	located *intern.Table // lists of local locations; 0 is the empty list
	pages   [][]chainEntry
	// recent holds answers by (chain, context) for chains that are met in several
	// contexts; a miss costs a look-up, no more.
	recent []chainAnswer
	// others are the meanings of a chain beyond its first.
	others map[chainMeaning]struct{}

	loc     *locator
	locs    *intern.Pairs // shared by both tables of a worker
	scratch []byte
}

// chainEntry is what is known of a chain.
type chainEntry struct {
	context uint64 // of the last answer
	part    uint32 // that answer: number in located
	first   uint32 // the first answer ever
	flags   uint8
}

type chainAnswer struct {
	context uint64
	chain   uint32 // number + 1
	part    uint32
}

// chainMeaning is one of several meanings of a chain.
type chainMeaning struct{ chain, part uint32 }

const (
	entryPageBits = 11
	entryPage     = 1 << entryPageBits
	recentSize    = 1 << 14
)

func newChainTable(seed maphash.Seed, loc *locator, locs *intern.Pairs) *chainTable {
	t := &chainTable{chains: intern.New(seed), located: intern.New(seed), loc: loc, locs: locs}
	t.located.Add(nil)
	return t
}

func (t *chainTable) entry(chain uint32) *chainEntry {
	return &t.pages[chain>>entryPageBits][chain&(entryPage-1)]
}

// context is what the meaning of a chain depends on besides its words.
func (e *chainEntry) contextOf(user, kernel addrspace.Version) uint64 {
	var c uint64
	if e.flags&partUser != 0 {
		c = uint64(user) << 32
	}
	if e.flags&partKernel != 0 {
		c |= uint64(kernel)
	}
	return c
}

// add interns a part of a chain and returns the number of its located form.
func (t *chainTable) add(words []byte, user, kernel addrspace.Version) (part uint32, flags uint8) {
	if len(words) == 0 {
		return 0, 0
	}
	chain, fresh := t.chains.Add(words)
	if fresh {
		if int(chain>>entryPageBits) == len(t.pages) {
			t.pages = append(t.pages, make([]chainEntry, entryPage))
		}
		e := t.entry(chain)
		part = t.locate(words, user, kernel)
		e.part, e.first, e.flags = part, part, t.loc.flags
		e.context = e.contextOf(user, kernel)
		return part, e.flags
	}
	e := t.entry(chain)
	if c := e.contextOf(user, kernel); c != e.context {
		e.part = t.elsewhere(chain, e, words, c, user, kernel)
		e.context = c
	}
	return e.part, e.flags
}

// elsewhere answers for a known chain in another context than the last.
func (t *chainTable) elsewhere(chain uint32, e *chainEntry, words []byte, context uint64,
	user, kernel addrspace.Version,
) uint32 {
	if t.recent == nil {
		t.recent = make([]chainAnswer, recentSize)
	}
	h := (context ^ uint64(chain)<<40 ^ uint64(chain)) * 0x9e3779b97f4a7c15
	known := &t.recent[h>>(64-14)]
	if known.chain != chain+1 || known.context != context {
		*known = chainAnswer{context, chain + 1, t.locate(words, user, kernel)}
	}
	if known.part != e.first {
		if t.others == nil {
			t.others = make(map[chainMeaning]struct{})
		}
		t.others[chainMeaning{chain, known.part}] = struct{}{}
	}
	return known.part
}

func (t *chainTable) locate(words []byte, user, kernel addrspace.Version) uint32 {
	t.loc.locate(words, user, kernel)
	t.scratch = t.scratch[:0]
	for _, s := range t.loc.spots {
		n := t.locs.Add(intern.Pair{Object: s.object, Offset: s.offset})
		t.scratch = binary.LittleEndian.AppendUint32(t.scratch, n)
	}
	part, _ := t.located.Add(t.scratch)
	return part
}

// frames returns how many locations a located part has.
func (t *chainTable) frames(part uint32) int { return len(t.located.Key(part)) / 4 }
