package input

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"symbolize/ingest/addrspace"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/intern"
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
	numbers *intern.Pairs // of places

	fresh, later []*queued // of a batch: of new chains, and more of them
	one          [1]*queued
	// While locate runs:
	locating bool
	pending  []intern.Pair // places without a number
	number   []uint32      // of these
	places   []uint32      // of all chains
	ends     []located     // by chain
}

// located is the end of the places of a located chain, with its flags.
type located struct {
	end   int
	flags uint8
}

// chainValue is the last result of a chain, with the samples that have this result and one label:
// most chains have no others. It is 24 bytes: with their hashes the values are half of the memory of
// a recording with many chains.
type chainValue struct {
	user, kernel addrspace.Version // of the result, 0 if it does not depend on them
	stack        uint32
	label        uint32
	weight       uint32
	frames       uint16
	count        uint8
	flags        uint8
}

func (v *chainValue) row() merge.Row {
	return merge.Row{Stack: v.stack, Label: v.label, Count: uint64(v.count), Weight: uint64(v.weight)}
}

type chainAnswer struct {
	user, kernel addrspace.Version
	chain        intern.Hash
	stack        uint32
	frames       uint16
}

const recentBits = 14

func newChainTable(finder *locator) *chainTable {
	return &chainTable{stacks: intern.NewForest(), more: merge.NewRowTable(), finder: finder,
		numbers: intern.NewPairs()}
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

// add counts the messages of a batch with the results of their chains. New chains are located
// together.
func (t *chainTable) add(list []queued, count func(*queued, *chainValue)) {
	t.fresh, t.later = t.fresh[:0], t.later[:0]
	var hashes [intern.GroupSize]intern.Hash
	for group := range slices.Chunk(list, intern.GroupSize) {
		for i := range group {
			hashes[i] = group[i].hash
		}
		t.chains.ReadAhead(hashes[:len(group)])
		for i := range group {
			m := &group[i]
			n, fresh := t.chains.Number(m.hash)
			m.entry = n
			switch v := t.chains.At(n); {
			case fresh:
				v.flags = partNew
				t.fresh = append(t.fresh, m)
			case v.flags&partNew != 0:
				t.later = append(t.later, m)
			default:
				count(m, t.inContext(v, m))
			}
		}
	}
	slices.SortFunc(t.fresh, compareContexts)
	t.locate(t.fresh, func(m *queued, stack uint32, frames uint16, flags uint8) {
		v := t.chains.At(m.entry)
		v.stack, v.frames, v.flags = stack, frames, flags
		v.user, v.kernel = v.context(m.user, m.kernel)
		count(m, v)
	})
	for _, m := range t.later {
		count(m, t.inContext(t.chains.At(m.entry), m))
	}
}

// compareContexts orders messages by the context of their chains, then by the chains from the
// outermost frame.
func compareContexts(a, b *queued) int {
	if a.user != b.user {
		return cmp.Compare(a.user, b.user)
	}
	if a.kernel != b.kernel {
		return cmp.Compare(a.kernel, b.kernel)
	}
	i, k := len(a.chain), len(b.chain)
	for i > 0 && k > 0 {
		i, k = i-8, k-8
		x, y := binary.LittleEndian.Uint64(a.chain[i:]), binary.LittleEndian.Uint64(b.chain[k:])
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(i, k)
}

// inContext returns the value of a known chain, with its result in the context of a message.
func (t *chainTable) inContext(v *chainValue, m *queued) *chainValue {
	if u, k := v.context(m.user, m.kernel); u != v.user || k != v.kernel {
		if _, part := m.chain.parts(); k != v.kernel || !t.finder.same(part, v.user, u) {
			t.move(v)
			v.stack, v.frames = t.result(chainAnswer{user: u, kernel: k, chain: m.hash}, m)
		}
		v.user, v.kernel = u, k
	}
	return v
}

// count counts the samples of a message with the result of its chain: in v as far as its fields can
// hold them.
func (t *chainTable) count(v *chainValue, m *message) {
	small := m.count <= math.MaxUint8 && m.weight <= math.MaxUint32
	if small && (uint32(v.count)+m.count > math.MaxUint8 ||
		uint64(v.weight)+m.weight > math.MaxUint32) {
		t.move(v)
	}
	if v.count == 0 {
		v.label = m.label
	}
	if small && v.label == m.label {
		v.count, v.weight = v.count+uint8(m.count), v.weight+uint32(m.weight)
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

// result returns the result of a known chain in another context than the last. key has the chain
// and the context.
func (t *chainTable) result(key chainAnswer, m *queued) (stack uint32, frames uint16) {
	if t.recent == nil {
		t.recent = make([]chainAnswer, 1<<recentBits)
	}
	at := (uint64(key.user)<<32 ^ uint64(key.kernel)<<48 ^ key.chain.Hi) * 0x9e3779b97f4a7c15
	known := &t.recent[at>>(64-recentBits)]
	if known.chain != key.chain || known.user != key.user || known.kernel != key.kernel {
		*known = key
		t.one[0] = m
		t.locate(t.one[:], func(_ *queued, stack uint32, frames uint16, _ uint8) {
			known.stack, known.frames = stack, frames
		})
	}
	return known.stack, known.frames
}

// postponed is the lowest number of a place that is not numbered yet.
const postponed = 1 << 31

// place returns the number of a place, which locate postpones.
func (t *chainTable) place(p intern.Pair) uint32 {
	if !t.locating {
		return t.numbers.Add(p)
	}
	t.pending = append(t.pending, p)
	return postponed + uint32(len(t.pending)-1)
}

// locate calls done for the chains of messages with their results. It numbers places together, so
// that cache misses, which are most of the time, overlap.
func (t *chainTable) locate(list []*queued, done func(m *queued, stack uint32, frames uint16, flags uint8)) {
	t.pending, t.places, t.ends = t.pending[:0], t.places[:0], t.ends[:0]
	t.locating = true
	for _, m := range list {
		kpart, part := m.chain.parts()
		t.finder.locate(kpart, part, m.user, m.kernel)
		for i := range t.finder.spots {
			t.places = append(t.places, t.finder.spots[i].place)
		}
		t.ends = append(t.ends, located{len(t.places), t.finder.flags})
	}
	t.locating = false
	t.number = t.numbers.AddAll(t.number[:0], t.pending)
	t.finder.settle(t.number)
	for i, p := range t.places {
		if p >= postponed {
			t.places[i] = t.number[p-postponed]
		}
	}
	from := 0
	for i, m := range list {
		to := t.ends[i].end
		done(m, t.stacks.Add(t.places[from:to]), uint16(to-from), t.ends[i].flags)
		from = to
	}
}
