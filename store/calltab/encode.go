package calltab

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
	"symbolize/store/symtab"
)

// Encode makes the stored form of a table; nil for one without functions, or with blocks over the limit. Its Digest is over the raw
// blocks.
func Encode(t *calls.Table) *symtab.Encoded {
	if len(t.Funcs) == 0 {
		return nil
	}
	e := encoder{t: t, BlockWriter: symtab.NewBlockWriter(digestDomain), resolvers: make(map[addr.Addr]int32),
		versions: map[string]uint16{"": 0}, texts: []string{""}}
	for a := range t.Resolvers {
		e.order = append(e.order, a)
	}
	slices.Sort(e.order)
	for i, a := range e.order {
		e.resolvers[a] = int32(i)
	}
	e.findCallers()
	e.chunks()
	e.symbols()
	return e.finish()
}

// encoder is the state of Encode.
type encoder struct {
	*symtab.BlockWriter
	t         *calls.Table
	sum       summary
	order     []addr.Addr // of resolvers
	resolvers map[addr.Addr]int32
	versions  map[string]uint16
	texts     []string
	callers   [][]int32 // by function, if it is closed
	closed    []bool
	row       int // of the next state
}

// target returns the stored form of a target; what is in no function is Indirect.
func (e *encoder) target(x calls.Target) Target {
	n := int32(-1)
	switch x.Kind {
	case calls.Local:
		n = int32(e.t.Func(x.At))
	case calls.Imported:
		n = int32(x.At)
	case calls.Resolved:
		if i, ok := e.resolvers[x.At]; ok {
			n = i
		}
	}
	if n < 0 {
		return Target{}
	}
	return Target{N: n, Kind: x.Kind}
}

// findCallers lists the functions that call each one at places where the frame pointer is of a function
// further out or their own, directly or by jumps of others; not of functions of which others know the
// address, or that have many callers.
func (e *encoder) findCallers() {
	called, jumped := make([][]int32, len(e.t.Funcs)), make([][]int32, len(e.t.Funcs))
	add := func(lists [][]int32, x Target, from int) {
		if x.Kind == calls.Local {
			if l := lists[x.N]; len(l) == 0 || l[len(l)-1] != int32(from) {
				lists[x.N] = append(l, int32(from))
			}
		}
	}
	for f := range e.t.Funcs {
		for _, c := range e.t.CallsOf(f) {
			if own, passes := e.t.FrameAt(f, c); own || passes {
				add(called, e.target(c.Target), f)
			}
		}
		for _, x := range e.t.JumpsOf(f) {
			add(jumped, e.target(x), f)
		}
	}
	e.callers, e.closed = make([][]int32, len(e.t.Funcs)), make([]bool, len(e.t.Funcs))
	for f := range e.t.Funcs {
		e.callers[f], e.closed[f] = e.callersOf(int32(f), called, jumped)
	}
}

func (e *encoder) callersOf(f int32, called, jumped [][]int32) (list []int32, ok bool) {
	const maxJumpers = 64
	all := []int32{f}
	for i := 0; i < len(all); i++ {
		if e.t.Funcs[all[i]].Open || len(all) > maxJumpers {
			return nil, false
		}
		list = append(list, called[all[i]]...)
		for _, j := range jumped[all[i]] {
			if !slices.Contains(all, j) {
				all = append(all, j)
			}
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) > maxCallers {
		return nil, false
	}
	return list, true
}

// chunks writes the functions and states.
func (e *encoder) chunks() {
	funcs := e.t.Funcs
	e.sum.funcs, e.sum.linker = uint64(len(funcs)), e.t.Linker
	last := addr.Addr(0)
	for from := 0; from < len(funcs); {
		to := from
		for to < len(funcs) && to-from < chunkFuncs && funcs[to].End-funcs[from].Start <= maxSpan {
			to++
		}
		to = max(to, from+1)
		end := ^addr.Addr(0)
		if to < len(funcs) {
			end = funcs[to].Start
		}
		start := funcs[from].Start
		if from == 0 && len(e.t.States) > 0 && e.t.States[0].At < start && funcs[to-1].End-e.t.States[0].At <= maxSpan {
			start = e.t.States[0].At // of stubs, which are no functions
		}
		e.Dir[symtab.Chunk] = binary.AppendUvarint(e.Dir[symtab.Chunk], uint64(to-from))
		e.Dir[symtab.Chunk] = binary.AppendUvarint(e.Dir[symtab.Chunk], uint64(start-last))
		last = start
		e.Add(symtab.Chunk, e.chunk(from, to, start, end))
		from = to
	}
}

// chunk returns the chunk of some functions from an address to the start of the next one.
func (e *encoder) chunk(from, to int, start, end addr.Addr) []byte {
	var cols [15][]byte
	put := func(c int, v uint64) { cols[c] = binary.AppendUvarint(cols[c], v) }
	target := func(c int, x Target, f int) {
		cols[c] = append(cols[c], byte(x.Kind)|bit(x.Own, kindOwn)|bit(x.Passes, kindPasses))
		if x.Kind == calls.Local {
			cols[c+1] = binary.AppendVarint(cols[c+1], int64(x.N)-int64(f))
		} else {
			put(c+1, uint64(x.N))
		}
	}
	at := start
	for f := from; f < to; f++ {
		fn := &e.t.Funcs[f]
		put(0, uint64(fn.Start-at))
		put(1, uint64(fn.End-fn.Start))
		at = fn.End
		e.sum.covered += uint64(fn.End - fn.Start)
		cols[2] = append(cols[2], bit(fn.Open, flagOpen)|bit(fn.Unknown, flagUnknown)|
			bit(fn.Leaps, flagLeaps)|bit(e.closed[f], flagClosed))
		put(3, uint64(len(e.t.CallsOf(f))))
		put(4, uint64(len(e.t.JumpsOf(f))))
		put(5, uint64(len(e.callers[f])))
		before := fn.Start
		for _, c := range e.t.CallsOf(f) {
			put(7, uint64(c.Return-before))
			before = c.Return
			x := e.target(c.Target)
			x.Own, x.Passes = e.t.FrameAt(f, c)
			target(8, x, f)
		}
		for _, x := range e.t.JumpsOf(f) {
			target(10, e.target(x), f)
		}
		for _, c := range e.callers[f] {
			cols[12] = binary.AppendVarint(cols[12], int64(c)-int64(f))
		}
		first, next := fn.Start, end
		if f == from {
			first = start
		}
		if f+1 < to {
			next = e.t.Funcs[f+1].Start
		}
		rows := e.states(first, next)
		put(6, uint64(len(rows)))
		for _, r := range rows {
			put(13, uint64(r.At-first))
			first = r.At
			cols[14] = append(cols[14], byte(r.State))
		}
	}
	return slices.Concat(cols[:]...)
}

func bit(set bool, b byte) byte {
	if set {
		return b
	}
	return 0
}

// states returns the rows of the addresses from start to end, the first one at start.
func (e *encoder) states(start, end addr.Addr) []calls.Row {
	rows := []calls.Row{{At: start, State: e.t.State(start)}}
	for ; e.row < len(e.t.States) && e.t.States[e.row].At < end; e.row++ {
		if r := e.t.States[e.row]; r.At > start && r.At-start <= maxSpan {
			rows = append(rows, r)
		}
	}
	return rows
}

// Hash returns the hash of a symbol's name.
func Hash(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.LittleEndian.Uint64(sum[:])
}

func (e *encoder) version(v string) uint16 {
	n, ok := e.versions[v]
	if !ok && len(e.texts) < 1<<16 {
		n = uint16(len(e.texts))
		e.versions[v], e.texts = n, append(e.texts, v)
	}
	return n
}

// symbols writes imports, resolvers and exports.
func (e *encoder) symbols() {
	t := e.t
	e.sum.imports, e.sum.exports, e.sum.resolvers = uint64(len(t.Imports)), uint64(len(t.Exports)), uint64(len(e.order))
	var imports []byte
	for _, s := range t.Imports {
		imports = binary.LittleEndian.AppendUint64(imports, Hash(s.Name))
		imports = binary.LittleEndian.AppendUint16(imports, e.version(s.Version))
	}
	for _, a := range e.order {
		var list []int32
		for _, v := range t.Resolvers[a] {
			f := int32(t.Func(v))
			if f < 0 {
				list = nil
				break
			}
			list = append(list, f)
		}
		imports = binary.AppendUvarint(imports, uint64(len(list)))
		for _, f := range list {
			imports = binary.AppendUvarint(imports, uint64(f))
		}
	}
	exports := make([][]byte, 0, len(t.Exports))
	for i := range t.Exports {
		x := &t.Exports[i]
		n, flags := int32(t.Func(x.At)), bit(x.Hidden, flagHidden)
		if x.Resolver {
			var ok bool
			if n, ok = e.resolvers[x.At]; !ok {
				n = -1
			}
			flags |= flagResolver
		}
		b := binary.LittleEndian.AppendUint64(nil, Hash(x.Name))
		b = binary.LittleEndian.AppendUint32(b, uint32(n+1))
		b = binary.LittleEndian.AppendUint16(b, e.version(x.Version))
		exports = append(exports, append(b, flags, 0))
	}
	slices.SortFunc(exports, func(a, b []byte) int {
		return cmp.Or(cmp.Compare(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)),
			slices.Compare(a[8:], b[8:]))
	})
	first := binary.AppendUvarint(nil, uint64(len(e.texts)))
	for _, v := range e.texts {
		first = append(binary.AppendUvarint(first, uint64(len(v))), v...)
	}
	e.Add(symtab.Strings, append(first, imports...))
	for list := range slices.Chunk(exports, exportsPerBlock) {
		e.Add(symtab.Strings, slices.Concat(list...))
	}
}

func (e *encoder) finish() *symtab.Encoded {
	head := append([]byte(magic), Version, 0)
	head = symtab.AppendTagged(head, tagSummary, e.sum.append(nil))
	head = symtab.AppendTagged(head, tagChunks, e.Dir[symtab.Chunk])
	head = symtab.AppendTagged(head, tagSymbols, e.Dir[symtab.Strings])
	out := e.Finish(head, tagInline, inlineSize)
	if out != nil {
		out.Funcs, out.Named = int(e.sum.funcs), e.sum.covered
	}
	return out
}
