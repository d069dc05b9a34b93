package unwindtab

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/cfi"
	"symbolize/store/symtab"
)

// Version is the format that this package writes. It reads every version from 1 to this one.
const Version = 1

const (
	magic = "UNWTAB"

	chunkRows  = 1 << 14
	inlineSize = 8 << 10 // bytes of blocks that are kept in the header

	// maxSpan bounds the code of a chunk: starts of rows are 32-bit numbers in memory.
	maxSpan = 1<<32 - 1
)

// Tags of a header.
const (
	tagSummary = 1 + iota
	tagChunks
	tagDictionary
	tagInline
)

// encoder collects the rows of a table.
type encoder struct {
	b       *cfi.Builder
	number  []uint64 // by rule of the Builder: its number in the table
	starts  []addr.Addr
	rules   []uint32
	last    addr.Addr // start of the chunk before
	dir     []byte
	chunks  [][]byte
	raw     []byte
	order   []uint32
	rows    uint64
	covered uint64
	digest  hash.Hash // of the content so far
	before  addr.Addr // start of the row that was hashed last
	hashed  []byte
}

// Encode makes a table of the rows of b, with its form in the store; nil without rows. The Digest
// of the result is over the content, independent of division and compression. Its Named is the
// bytes of code that have a rule.
func Encode(b *cfi.Builder) *symtab.Encoded {
	e := encoder{b: b, digest: sha256.New()}
	e.numberRules()
	if e.rows == 0 {
		return nil
	}
	head := digestHead(b.Arch, uint64(b.Funcs()), e.rows, e.covered)
	for _, r := range e.order {
		head = e.digestRule(head, &b.Rules[r], b.Exprs)
	}
	e.digest.Write(head)
	b.Rows(func(start addr.Addr, rule uint32) {
		if n := len(e.starts); n == chunkRows || n > 0 && start-e.starts[0] > maxSpan {
			e.flush()
		}
		e.starts, e.rules = append(e.starts, start), append(e.rules, rule)
	})
	e.flush()
	return e.finish()
}

// numberRules numbers rules by their frequency, equally frequent ones by content: the order in
// which functions were added changes nothing. It counts the rows, and the bytes that have a rule.
func (e *encoder) numberRules() {
	count := make([]int, len(e.b.Rules))
	last, current, rows, covered := addr.Addr(0), uint32(0), uint64(0), uint64(0)
	e.b.Rows(func(start addr.Addr, rule uint32) {
		count[rule]++
		rows++
		if current != 0 {
			covered += uint64(start - last)
		}
		last, current = start, rule
	})
	e.rows, e.covered = rows, covered
	text := make([][]byte, len(count))
	var used []uint32
	for i, n := range count {
		if n > 0 {
			used = append(used, uint32(i))
			text[i] = e.appendRule(nil, &e.b.Rules[i], func(n int32) []byte {
				return e.b.Exprs[n]
			})
		}
	}
	slices.SortFunc(used, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(count[y], count[x]), bytes.Compare(text[x], text[y]))
	})
	e.number = make([]uint64, len(count))
	e.order = used
	for i, r := range used {
		e.number[r] = uint64(i)
	}
}

// appendRule appends a rule in encoded form; expr encodes the number of an expression.
func (e *encoder) appendRule(b []byte, r *cfi.Rule, expr func(n int32) []byte) []byte {
	kind := byte(r.Kind)
	if r.Signal {
		kind |= signalBit
	}
	b = append(b, kind)
	if r.Kind != cfi.Frame {
		return b
	}
	where := func(w *cfi.Where) {
		b = append(b, byte(w.How))
		switch w.How {
		case cfi.Register:
			b = binary.AppendVarint(append(b, w.Reg), int64(w.Off))
		case cfi.AtCFA, cfi.CFAPlus:
			b = binary.AppendVarint(b, int64(w.Off))
		case cfi.AtExpr, cfi.Expr:
			b = append(b, expr(w.Off)...)
		}
	}
	where(&r.CFA)
	where(&r.RA)
	for i := range e.b.Arch.Saved {
		where(&r.Saved[i])
	}
	return b
}

// flush writes the open chunk.
func (e *encoder) flush() {
	raw, sum := e.raw[:0], e.hashed[:0]
	for i, r := range e.rules {
		n := e.number[r]
		raw = binary.AppendUvarint(raw, n)
		sum = binary.AppendUvarint(sum, uint64(e.starts[i]-e.before))
		sum = binary.AppendUvarint(sum, n)
		e.before = e.starts[i]
	}
	e.digest.Write(sum)
	for _, i := range e.byRule() {
		raw = binary.AppendUvarint(raw, uint64(e.starts[i+1]-e.starts[i]))
	}
	stored, entry := symtab.Pack(raw)
	e.chunks = append(e.chunks, stored)
	e.dir = binary.AppendUvarint(e.dir, uint64(e.starts[0]-e.last))
	e.dir = binary.AppendUvarint(e.dir, uint64(len(e.starts)))
	e.dir = entry.Append(e.dir)
	e.last, e.raw, e.hashed = e.starts[0], raw, sum
	e.starts, e.rules = e.starts[:0], e.rules[:0]
}

// byRule returns the rows of the open chunk but the last in the order of their rules' numbers, and
// of their addresses.
func (e *encoder) byRule() []uint32 {
	rows := e.rules[:len(e.rules)-1]
	places := make([]uint32, len(e.order)+1)
	for _, r := range rows {
		places[e.number[r]+1]++
	}
	for i := 1; i < len(places); i++ {
		places[i] += places[i-1]
	}
	order := make([]uint32, len(rows))
	for i, r := range rows {
		at := &places[e.number[r]]
		order[*at] = uint32(i)
		*at++
	}
	return order
}

// dictionary encodes the rules in use, and the expressions in the order of their first use.
func (e *encoder) dictionary() []byte {
	number := make(map[int32]uint64)
	var exprs []int32
	var rules []byte
	for _, r := range e.order {
		rules = e.appendRule(rules, &e.b.Rules[r], func(n int32) []byte {
			k, ok := number[n]
			if !ok {
				k = uint64(len(exprs))
				number[n] = k
				exprs = append(exprs, n)
			}
			return binary.AppendUvarint(nil, k)
		})
	}
	d := binary.AppendUvarint(nil, uint64(len(e.order)))
	d = binary.AppendUvarint(d, uint64(len(exprs)))
	d = append(d, rules...)
	for _, n := range exprs {
		d = binary.AppendUvarint(d, uint64(len(e.b.Exprs[n])))
		d = append(d, e.b.Exprs[n]...)
	}
	return d
}

// finish writes the header.
func (e *encoder) finish() *symtab.Encoded {
	raw := e.dictionary()
	stored, entry := symtab.Pack(raw)
	head := append([]byte(magic), Version, 0)
	var p []byte
	for _, v := range []uint64{uint64(e.b.Arch.ELF), uint64(e.b.Funcs()), e.rows, e.covered} {
		p = binary.AppendUvarint(p, v)
	}
	head = symtab.AppendTagged(head, tagSummary, p)
	head = symtab.AppendTagged(head, tagChunks, e.dir)
	head = symtab.AppendTagged(head, tagDictionary, entry.Append(nil))
	out := &symtab.Encoded{Header: head, Funcs: e.b.Funcs(), Named: e.covered}
	blocks := len(stored)
	for _, c := range e.chunks {
		blocks += len(c)
	}
	if blocks <= inlineSize {
		all := slices.Concat(append(slices.Clone(e.chunks), stored)...)
		out.Header = symtab.AppendTagged(head, tagInline, all)
	} else {
		out.Chunks, out.Strings = e.chunks, [][]byte{stored}
	}
	e.digest.Sum(out.Digest[:0])
	return out
}

// digestDomain separates digests of tables from other hashes.
const digestDomain = "symbolize unwindtab 1\n"

// digestHead returns the summary of a table as its digest has it; the rules and the rows follow.
func digestHead(a *machine.Arch, funcs, rows, covered uint64) []byte {
	b := []byte(digestDomain)
	for _, v := range []uint64{uint64(a.ELF), funcs, rows, covered} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// digestRule appends a rule with its expressions.
func (e *encoder) digestRule(b []byte, r *cfi.Rule, exprs [][]byte) []byte {
	return e.appendRule(b, r, func(n int32) []byte {
		return append(binary.AppendUvarint(nil, uint64(len(exprs[n]))), exprs[n]...)
	})
}

// Digest reads the whole table, checks that it is as the format has it, and returns the digest
// of its content.
func (t *Table) Digest() (sum [32]byte, err error) {
	h := sha256.New()
	buf := digestHead(t.arch, t.funcs, t.rows, t.covered)
	e := encoder{b: &cfi.Builder{Arch: t.arch}}
	for i := range t.Rules {
		buf = e.digestRule(buf, &t.Rules[i], t.Exprs)
	}
	h.Write(buf)
	sums := sums{t: t}
	for i := range t.chunks {
		c, err := t.Chunk(i)
		if err != nil {
			return sum, err
		}
		buf = sums.add(c, buf[:0])
		h.Write(buf)
	}
	if err := sums.check(); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// sums adds up the fields of a summary.
type sums struct {
	t       *Table
	covered uint64
	last    addr.Addr
	rule    uint32
	used    []bool
}

// add appends the rows of a chunk to b.
func (s *sums) add(c *Chunk, b []byte) []byte {
	if s.used == nil {
		s.used = make([]bool, len(s.t.Rules))
	}
	for i, off := range c.starts {
		start, rule := c.start+addr.Addr(off), uint32(c.rules[i])
		if s.t.Rules[s.rule].Kind != cfi.NoRule && s.last != 0 {
			s.covered += uint64(start - s.last)
		}
		b = binary.AppendUvarint(b, uint64(start-s.last))
		b = binary.AppendUvarint(b, uint64(rule))
		s.last, s.rule = start, rule
		s.used[rule] = true
	}
	return b
}

func (s *sums) check() error {
	switch {
	case s.t.Rules[s.rule].Kind != cfi.NoRule:
		return formatError("the last row has a rule")
	case s.covered != s.t.covered:
		return formatError("rules for %d bytes, the summary has %d", s.covered, s.t.covered)
	case slices.Contains(s.used, false):
		return formatError("a rule that no row uses")
	}
	return nil
}
