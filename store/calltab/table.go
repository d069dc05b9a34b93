package calltab

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/calls"
	"symbolize/store/symtab"
)

// Table is a stored table of calls. It is for one goroutine at a time. Its chunks are decoded when they
// are asked, and answers of one that cannot be read are as of code without functions: see Err.
type Table struct {
	sum     summary
	dir     []entry
	symbols []symtab.Packed
	inline  bool // the blocks are in the header
	blocks  symtab.Blocks
	chunks  []*chunk          // decoded ones, at most keptChunks
	kept    [keptChunks]int32 // their numbers plus one, from the oldest on at next
	next    int
	err     error

	versions  []string
	imports   []byte
	resolvers [][]int32
	exports   [][]byte // blocks
	read      bool     // the symbols
}

// keptChunks bounds the memory of decoded chunks.
const keptChunks = 128

// entry describes a chunk.
type entry struct {
	first  int32 // number of its first function
	funcs  int32
	start  addr.Addr
	packed symtab.Packed
}

// Open reads a table's header. It keeps both arguments; blocks may be nil if the table is wholly in its
// header. Errors wrap symtab.ErrFormat or symtab.ErrVersion.
func Open(header []byte, blocks symtab.Blocks) (*Table, error) {
	payload, err := symtab.Payloads(header, magic, Version, tagInline)
	if err != nil {
		return nil, fmt.Errorf("table of calls: %w", err)
	}
	if v := header[len(magic)]; v < Version {
		return nil, formatError("version %d, which is read no more", v)
	}
	t := &Table{blocks: blocks, inline: payload[tagInline] != nil}
	if err := t.sum.read(payload[tagSummary]); err != nil {
		return nil, err
	}
	r := decode.New("chunks", payload[tagChunks], 0, false)
	first, start := uint64(0), addr.Addr(0)
	for r.Left() > 0 {
		n, distance := r.Uvarint(), r.Uvarint()
		if n == 0 || n > t.sum.funcs-first || distance > uint64(^addr.Addr(0)-start) {
			r.Fail("%d functions", n)
			break
		}
		start += addr.Addr(distance)
		c := entry{first: int32(first), funcs: int32(n), start: start}
		c.packed.Read(r)
		first += n
		t.dir = append(t.dir, c)
	}
	if r.Err() != nil || first != t.sum.funcs {
		return nil, formatError("chunks of %d functions of %d: %v", first, t.sum.funcs, r.Err())
	}
	if t.symbols, err = symtab.ReadPacked("symbols", payload[tagSymbols]); err != nil {
		return nil, fmt.Errorf("table of calls: %w", err)
	}
	if t.inline {
		packed := make([]symtab.Packed, len(t.dir))
		for i := range t.dir {
			packed[i] = t.dir[i].packed
		}
		if t.blocks, err = symtab.InlineBlocks(payload[tagInline], packed, t.symbols); err != nil {
			return nil, fmt.Errorf("table of calls: %w", err)
		}
	} else if blocks == nil {
		return nil, formatError("no blocks")
	}
	t.chunks = make([]*chunk, len(t.dir))
	return t, nil
}

// Err returns the first error of reading blocks.
func (t *Table) Err() error { return t.err }

// fail keeps the first error.
func (t *Table) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// block returns a block, unpacked, in memory of its own.
func (t *Table) block(kind symtab.BlockKind, i int) ([]byte, error) {
	stored, err := t.blocks.Block(kind, i)
	if err != nil {
		return nil, err
	}
	if kind == symtab.Chunk {
		return t.dir[i].packed.UnpackOwn(stored)
	}
	return t.symbols[i].UnpackOwn(stored) // stored is valid until the next block is read
}

// Digest reads the whole table, checks that it is as the format has it, and returns the digest of its
// content.
func (t *Table) Digest() (sum [32]byte, err error) {
	h := sha256.New()
	h.Write([]byte(digestDomain))
	covered := uint64(0)
	add := func(kind symtab.BlockKind, i int) {
		b, fail := t.block(kind, i)
		if err == nil {
			err = fail
		}
		h.Write(binary.AppendUvarint(nil, uint64(len(b))))
		h.Write(b)
	}
	for i := range t.dir {
		add(symtab.Chunk, i)
		c := t.chunk(i)
		if c == nil {
			return sum, t.err
		}
		for k := range c.funcs[:len(c.funcs)-1] {
			f := Func{t, c, k}
			covered += uint64(c.funcs[k].end - c.funcs[k].start)
			f.Calls()
			f.Jumps()
			f.Callers()
			t.state(c, k, math.MaxUint32)
		}
	}
	for i := range t.symbols {
		add(symtab.Strings, i)
	}
	t.readSymbols()
	if err == nil {
		err = t.err
	}
	if err == nil && covered != t.sum.covered {
		err = formatError("functions of %d bytes, the summary has %d", covered, t.sum.covered)
	}
	h.Sum(sum[:0])
	return sum, err
}

// NumFuncs returns the number of functions.
func (t *Table) NumFuncs() int { return int(t.sum.funcs) }

// Named returns the bytes of code in functions.
func (t *Table) Named() uint64 { return t.sum.covered }

// Start returns an address of the code.
func (t *Table) Start() addr.Addr { return t.dir[0].start }

// Linker reports whether the object is the dynamic linker, which stubs may call first.
func (t *Table) Linker() bool { return t.sum.linker }

// NumBlocks returns the number of blocks of a kind outside the header.
func (t *Table) NumBlocks(kind symtab.BlockKind) int {
	switch {
	case t.inline:
		return 0
	case kind == symtab.Chunk:
		return len(t.dir)
	}
	return len(t.symbols)
}

// chunkAt returns the chunk that has an address, nil for none.
func (t *Table) chunkAt(a addr.Addr) (*chunk, uint32) {
	i := sort.Search(len(t.dir), func(i int) bool { return t.dir[i].start > a }) - 1
	if i < 0 || a-t.dir[i].start > maxSpan {
		return nil, 0
	}
	return t.chunk(i), uint32(a - t.dir[i].start)
}

// chunk returns a decoded chunk; nil if it cannot be read.
func (t *Table) chunk(i int) *chunk {
	if c := t.chunks[i]; c != nil || t.err != nil {
		return c
	}
	b, err := t.block(symtab.Chunk, i)
	var c *chunk
	if err == nil {
		c, err = t.decode(&t.dir[i], b)
	}
	if err != nil {
		t.err = err
		return nil
	}
	if old := t.kept[t.next]; old > 0 {
		t.chunks[old-1] = nil
	}
	t.chunks[i], t.kept[t.next] = c, int32(i+1)
	t.next = (t.next + 1) % keptChunks
	return c
}

// Place is what a table has of an address.
type Place struct {
	Func  int32 // number of its function, -1 for none
	State calls.State
	// Unknown is set if calls in the function may be missing.
	Unknown bool
	Call    Target // of the call that ends behind the address
	Returns bool   // there is one
}

// At returns what holds at an address; at a call, of its last byte.
func (t *Table) At(a addr.Addr) Place {
	c, rel := t.chunkAt(a)
	if c == nil {
		return Place{Func: -1}
	}
	i := c.nearest(rel)
	p := Place{Func: -1, State: t.state(c, i, rel)}
	if f := &c.funcs[i]; f.start <= rel && rel < f.end {
		p.Func, p.Unknown = c.first+int32(i), f.flags&flagUnknown != 0
		p.Call, p.Returns = t.before(c, i, rel+1)
	}
	return p
}

// Func is a function.
type Func struct {
	t *Table
	c *chunk
	i int
}

// Func returns a function by its number; false if there is none, or if its chunk cannot be read.
func (t *Table) Func(n int32) (f Func, ok bool) {
	if n < 0 || uint64(n) >= t.sum.funcs {
		return f, false
	}
	i := sort.Search(len(t.dir), func(i int) bool { return t.dir[i].first > n }) - 1
	c := t.chunk(i)
	if c == nil {
		return f, false
	}
	return Func{t, c, int(n - c.first)}, true
}

// lists returns where its lists begin and end.
func (f Func) lists() (from, to *row) { return &f.c.funcs[f.i], &f.c.funcs[f.i+1] }

// number returns its number.
func (f Func) number() int32 { return f.c.first + int32(f.i) }

// Start returns the address of the function.
func (f Func) Start() addr.Addr { return f.c.start + addr.Addr(f.c.funcs[f.i].start) }

// Calls returns the calls of the function.
func (f Func) Calls() []Call {
	from, to := f.lists()
	list := make([]Call, to.calls-from.calls)
	returns, targets := f.t.items(f.c.returns, from.calls), f.t.items(f.c.targets, from.calls)
	at := uint64(from.start)
	for i := range list {
		before := at
		if at += min(returns.uvarint(), maxSpan); at == before || at > uint64(from.end) {
			f.t.fail(formatError("a call outside of its function"))
			return nil
		}
		list[i] = Call{f.c.start + addr.Addr(at), f.t.target(f.number(), f.c.kinds[int(from.calls)+i], targets.uvarint())}
	}
	return list
}

// Jumps returns the targets of jumps out of the function.
func (f Func) Jumps() []Target {
	from, to := f.lists()
	list := make([]Target, to.jumps-from.jumps)
	targets := f.t.items(f.c.jumpTargets, from.jumps)
	for i := range list {
		list[i] = f.t.target(f.number(), f.c.jumpKinds[int(from.jumps)+i], targets.uvarint())
	}
	return list
}

// Callers returns the functions that call it, or one that jumps to it, while the frame pointer is of a
// function further out or their own; false if others may, or if they are many.
func (f Func) Callers() ([]int32, bool) {
	from, to := f.lists()
	list := make([]int32, to.callersAt-from.callersAt)
	numbers := f.t.items(f.c.callers, from.callersAt)
	for i := range list {
		list[i] = f.t.target(f.number(), byte(calls.Local), numbers.uvarint()).N
	}
	return list, from.flags&flagClosed != 0
}

// Escapes reports whether it may jump to functions that Jumps does not have.
func (f Func) Escapes() bool { return f.c.funcs[f.i].flags&(flagLeaps|flagUnknown) != 0 }

// readSymbols reads the blocks of symbols, once.
func (t *Table) readSymbols() {
	if t.read || t.err != nil {
		return
	}
	t.read = true
	b, err := t.block(symtab.Strings, 0)
	if err == nil {
		err = t.decodeSymbols(b)
	}
	left := t.sum.exports
	for i := 1; i < len(t.symbols) && err == nil; i++ {
		if b, err = t.block(symtab.Strings, i); err == nil && uint64(len(b)) != min(left, exportsPerBlock)*exportSize {
			err = formatError("a block of %d bytes for %d exports", len(b), left)
		}
		t.exports = append(t.exports, b)
		left -= min(left, exportsPerBlock)
	}
	if err == nil && left > 0 {
		err = formatError("%d exports too few", left)
	}
	if err != nil {
		t.err, t.imports, t.resolvers, t.exports = err, nil, nil, nil
	}
}

// Import returns an imported symbol; false if there is none of this number.
func (t *Table) Import(n int32) (s Symbol, ok bool) {
	t.readSymbols()
	if n < 0 || (int(n)+1)*importSize > len(t.imports) {
		return s, false
	}
	b := t.imports[int(n)*importSize:]
	return Symbol{binary.LittleEndian.Uint64(b), t.version(b[8:])}, true
}

func (t *Table) version(b []byte) string {
	if n := int(binary.LittleEndian.Uint16(b)); n < len(t.versions) {
		return t.versions[n]
	}
	return ""
}

// Variants returns the functions that a resolver may return; nil if they are not known.
func (t *Table) Variants(resolver int32) []int32 {
	t.readSymbols()
	if resolver < 0 || int(resolver) >= len(t.resolvers) {
		return nil
	}
	return t.resolvers[resolver]
}

// Exports returns the exports of a name.
func (t *Table) Exports(name uint64) (list []Export) {
	t.readSymbols()
	for _, b := range t.exports {
		i := sort.Search(len(b)/exportSize, func(i int) bool {
			return binary.LittleEndian.Uint64(b[i*exportSize:]) >= name
		})
		for b = b[i*exportSize:]; len(b) > 0 && binary.LittleEndian.Uint64(b) == name; b = b[exportSize:] {
			x := Export{Version: t.version(b[12:]), Hidden: b[14]&flagHidden != 0, Resolver: b[14]&flagResolver != 0,
				N: int32(binary.LittleEndian.Uint32(b[8:])) - 1}
			if x.N < 0 || !x.Resolver && uint64(x.N) >= t.sum.funcs {
				x.N = -1
			}
			list = append(list, x)
		}
	}
	return list
}
