package input

import (
	"encoding/binary"
	"iter"
	"math"

	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
)

// chain is a call chain in the form in which workers exchange and hash it: the length of the kernel
// part in bytes, a word, then the words of the kernel part and of the user part.
type chain []byte

// newChain returns the chain of two parts, in the memory of c.
func newChain(c chain, kpart, part []byte) chain {
	c = binary.LittleEndian.AppendUint64(c[:0], uint64(len(kpart)))
	return append(append(c, kpart...), part...)
}

func (c chain) parts() (kpart, part []byte) {
	n := binary.LittleEndian.Uint64(c)
	return c[8 : 8+n : 8+n], c[8+n:]
}

// chainTable interns call chains before any address is looked up, with the result of each, and
// counts their samples. The key
// consists only of the words of a chain: processes share chains, and the address space or the time
// matters only if a result changes. The number of keys is therefore the number of distinct chains,
// also on hosts that constantly fork, load libraries and load BPF programs.
type chainTable struct {
	chains intern.Table[chainValue]
	stacks *intern.Forest  // results, in local locations
	more   *merge.RowTable // samples that a chainValue does not count
	// recent caches results by (chain, context) for chains with several contexts.
	recent []chainAnswer

	finder  *locator
	scratch []uint32
}

// chainValue is the last result of a chain, with the samples that have this result and one label:
// most chains have no others.
type chainValue struct {
	user, kernel addrspace.Version // of the result, 0 if it does not depend on them
	stack        uint32
	label        uint32
	weight       uint64
	count        uint32
	frames       uint16
	flags        uint8
}

func (v *chainValue) row() merge.Row {
	return merge.Row{Stack: v.stack, Label: v.label, Count: uint64(v.count), Weight: v.weight}
}

type chainAnswer struct {
	user, kernel addrspace.Version
	chain        intern.Hash
	stack        uint32
	frames       uint16
}

const recentBits = 14

func newChainTable(finder *locator) *chainTable {
	return &chainTable{stacks: intern.NewForest(), more: merge.NewRowTable(), finder: finder}
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

// add interns a chain, with its hash, and returns its result in these versions of the address
// spaces. It is valid until the next add.
func (t *chainTable) add(h intern.Hash, c chain, user, kernel addrspace.Version) *chainValue {
	v, fresh := t.chains.Add(h)
	if fresh {
		v.stack, v.frames = t.locate(c, user, kernel)
		v.flags = t.finder.flags
		v.user, v.kernel = v.context(user, kernel)
		return v
	}
	if u, k := v.context(user, kernel); u != v.user || k != v.kernel {
		if _, part := c.parts(); k != v.kernel || !t.finder.same(part, v.user, u) {
			t.move(v)
			v.stack, v.frames = t.inContext(chainAnswer{user: u, kernel: k, chain: h}, c, user, kernel)
		}
		v.user, v.kernel = u, k
	}
	return v
}

// count counts the samples of a message with the result of its chain.
func (t *chainTable) count(v *chainValue, m *message) {
	if v.count > math.MaxUint32-m.count {
		t.move(v)
	}
	if v.count == 0 {
		v.label = m.label
	}
	if v.label == m.label {
		v.count, v.weight = v.count+m.count, v.weight+m.weight
	} else {
		t.more.Add(merge.Row{Stack: v.stack, Label: m.label, Count: uint64(m.count), Weight: m.weight})
	}
}

// move moves the samples that v counts.
func (t *chainTable) move(v *chainValue) {
	if v.count > 0 {
		t.more.Add(v.row())
		v.count, v.weight = 0, 0
	}
}

// rows returns the samples. Some rows can have the same stack and label.
func (t *chainTable) rows() iter.Seq[merge.Row] {
	return func(yield func(merge.Row) bool) {
		for _, v := range t.chains.All() {
			if v.count > 0 && !yield(v.row()) {
				return
			}
		}
		t.more.All()(yield)
	}
}

// inContext returns the result of a known chain in another context than the last. key has the chain
// and the context.
func (t *chainTable) inContext(key chainAnswer, c chain, user, kernel addrspace.Version,
) (stack uint32, frames uint16) {
	if t.recent == nil {
		t.recent = make([]chainAnswer, 1<<recentBits)
	}
	at := (uint64(key.user)<<32 ^ uint64(key.kernel)<<48 ^ key.chain.Hi) * 0x9e3779b97f4a7c15
	known := &t.recent[at>>(64-recentBits)]
	if known.chain != key.chain || known.user != key.user || known.kernel != key.kernel {
		*known = key
		known.stack, known.frames = t.locate(c, user, kernel)
	}
	return known.stack, known.frames
}

func (t *chainTable) locate(c chain, user, kernel addrspace.Version) (stack uint32, frames uint16) {
	kpart, part := c.parts()
	t.finder.locate(kpart, part, user, kernel)
	t.scratch = t.scratch[:0]
	for i := range t.finder.spots {
		t.scratch = append(t.scratch, t.finder.spots[i].place)
	}
	return t.stacks.Add(t.scratch), uint16(len(t.scratch))
}
