package unwindtab

import (
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
	"symbolize/store/symtab"
)

// plainRow is a row for comparisons.
type plainRow struct {
	start addr.Addr
	rule  cfi.Rule
}

// rowsOf lists the rows of a Builder, with expressions by the first number that has their
// bytes.
func rowsOf(b *cfi.Builder) (rows []plainRow) {
	b.Rows(func(at addr.Addr, rule uint32) { rows = append(rows, plainRow{at, b.Rules[rule]}) })
	return rows
}

// build makes a Builder with functions of random rows.
func build(seed uint64, funcs int) *cfi.Builder {
	r := rand.New(rand.NewPCG(seed, 1))
	b := cfi.NewBuilder(cfi.ArchOf(elf.EM_X86_64))
	at := addr.Addr(0x1000)
	for range funcs {
		size := addr.Addr(16 + r.IntN(400))
		b.Func(addr.Range{Start: at, End: at + size})
		for off := addr.Addr(0); off < size; off += addr.Addr(1 + r.IntN(40)) {
			b.Row(at+off, randomRule(r, b))
		}
		at += size + addr.Addr(r.IntN(3)*12)
	}
	return b
}

func randomRule(r *rand.Rand, b *cfi.Builder) *cfi.Rule {
	rule := cfi.Rule{Kind: cfi.Frame, CFA: cfi.Where{How: cfi.Register, Reg: 7,
		Off: int32(8 * r.IntN(20))},
		RA: cfi.Where{How: cfi.AtCFA, Off: -8}}
	switch r.IntN(20) {
	case 0:
		rule = cfi.Rule{Kind: cfi.End}
	case 1:
		n, _ := b.Expr([]byte{0x77, byte(r.IntN(4)), 6})
		rule.CFA, rule.Signal = cfi.Where{How: cfi.Expr, Off: n}, true
	case 2:
		n, _ := b.Expr([]byte{0x76, byte(r.IntN(4))})
		rule.Saved[0] = cfi.Where{How: cfi.AtExpr, Off: n}
	case 3:
		rule.Saved[1] = cfi.Where{How: cfi.Register, Reg: 13}
		rule.Saved[2] = cfi.Where{How: cfi.CFAPlus, Off: -1 << 31}
		rule.Saved[3] = cfi.Where{How: cfi.Undefined}
	default:
		rule.Saved[0] = cfi.Where{How: cfi.AtCFA, Off: -16}
	}
	return &rule
}

// TestRoundTrip looks every row up, at its first and last byte, in tables in one header and
// in several chunks.
func TestRoundTrip(t *testing.T) {
	for _, funcs := range []int{1, 3, 100, 4000} {
		b := build(uint64(funcs), funcs)
		rows := rowsOf(b)
		e := Encode(b)
		if e == nil {
			t.Fatal("no table")
		}
		tab, err := Open(e.Header, e)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := tab.Digest()
		if err != nil || sum != e.Digest {
			t.Fatalf("digest %x, %v; want %x", sum, err, e.Digest)
		}
		if n, all := tab.NumFuncs(), tab.NumRows(); n != funcs || all != len(rows) {
			t.Errorf("%d functions, %d rows; want %d, %d", n, all, funcs, len(rows))
		}
		if tab.ChunkOf(rows[0].start-1) != -1 {
			t.Error("an address before the first row is found")
		}
		chunks := make(map[int]*Chunk)
		for i, r := range rows {
			last := r.start
			if i+1 < len(rows) {
				last = rows[i+1].start - 1
			}
			for _, a := range []addr.Addr{r.start, last, r.start + (last-r.start)/2} {
				if got := find(t, tab, chunks, a); !same(b, &r.rule, tab, got) {
					t.Fatalf("%d functions: %#x: %+v, want %+v", funcs, a, *got, r.rule)
				}
			}
		}
	}
}

// find looks an address up; chunks holds the decoded chunks.
func find(t testing.TB, tab *Table, chunks map[int]*Chunk, a addr.Addr) *cfi.Rule {
	i := tab.ChunkOf(a)
	if chunks[i] == nil {
		c, err := tab.Chunk(i)
		if err != nil {
			t.Fatal(err)
		}
		chunks[i] = c
	}
	return &tab.Rules[chunks[i].Rule(a)]
}

// same compares rules, with the bytes of their expressions.
func same(b *cfi.Builder, x *cfi.Rule, tab *Table, y *cfi.Rule) bool {
	text := func(r *cfi.Rule, exprs [][]byte) string {
		c := *r
		s := ""
		for _, w := range []*cfi.Where{&c.CFA, &c.RA, &c.Saved[0], &c.Saved[1], &c.Saved[2],
			&c.Saved[3], &c.Saved[4], &c.Saved[5]} {
			if w.How == cfi.Expr || w.How == cfi.AtExpr {
				s += fmt.Sprintf("%x;", exprs[w.Off])
				w.Off = 0
			}
		}
		return fmt.Sprintf("%+v %s", c, s)
	}
	return text(x, b.Exprs) == text(y, tab.Exprs)
}

// TestOrder: functions in another order give the same bytes.
func TestOrder(t *testing.T) {
	ranges := []addr.Range{{Start: 0x1000, End: 0x1040}, {Start: 0x1040, End: 0x1100}, {Start: 0x2000, End: 0x2100}}
	var all [][]byte
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}} {
		b := cfi.NewBuilder(cfi.ArchOf(elf.EM_X86_64))
		for _, i := range order {
			b.Func(ranges[i])
			for k := range 3 {
				n, _ := b.Expr([]byte{0x70, byte(i), byte(k)})
				b.Row(ranges[i].Start+addr.Addr(4*k), &cfi.Rule{Kind: cfi.Frame,
					CFA: cfi.Where{How: cfi.Expr, Off: n}, RA: cfi.Where{How: cfi.AtCFA, Off: -8}})
			}
		}
		all = append(all, Encode(b).Header)
	}
	if !slices.Equal(all[0], all[1]) {
		t.Errorf("%x\n%x", all[0], all[1])
	}
}

// TestTruncated cuts a header with inline blocks at every length: an error each time.
func TestTruncated(t *testing.T) {
	e := Encode(build(7, 20))
	if len(e.Chunks) > 0 {
		t.Fatal("not inline")
	}
	for n := range e.Header {
		tab, err := Open(e.Header[:n:n], nil)
		if err == nil {
			_, err = tab.Digest()
		}
		if !errors.Is(err, symtab.ErrFormat) && !errors.Is(err, symtab.ErrVersion) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

// TestDamaged flips every bit of the header and of the blocks: an error of the format, or a
// table with a digest of its own, which the manifest does not have. Bits that zstd does not
// use make no difference.
func TestDamaged(t *testing.T) {
	small := Encode(build(7, 20))
	same := 0
	for i := range small.Header {
		for bit := range 8 {
			h := slices.Clone(small.Header)
			h[i] ^= 1 << bit
			tab, err := Open(h, nil)
			var sum [32]byte
			if err == nil {
				sum, err = tab.Digest()
			}
			switch {
			case err == nil && sum == small.Digest:
				same++
			case err != nil && !errors.Is(err, symtab.ErrFormat) && !errors.Is(err, symtab.ErrVersion):
				t.Errorf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
	if same > len(small.Header)/8 {
		t.Errorf("%d bits of %d bytes make no difference", same, len(small.Header))
	}
}

func FuzzTable(f *testing.F) {
	f.Add(Encode(build(1, 1)).Header)
	f.Add(Encode(build(7, 20)).Header)
	f.Fuzz(func(t *testing.T, header []byte) {
		tab, err := Open(header, nil)
		if err != nil {
			return
		}
		sum, err := tab.Digest()
		for i := range tab.NumChunks() {
			c, err := tab.Chunk(i)
			if err != nil {
				continue
			}
			for _, a := range []addr.Addr{c.start, c.start + 1, c.start + 1<<20, ^addr.Addr(0)} {
				if tab.ChunkOf(a) == i && int(c.Rule(a)) >= len(tab.Rules) {
					t.Error("rule out of range")
				}
			}
		}
		if again, err2 := tab.Digest(); (err == nil) != (err2 == nil) || sum != again {
			t.Errorf("%v, then %v", err, err2)
		}
	})
}

// BenchmarkEncode counts 12 bytes for each row.
func BenchmarkEncode(b *testing.B) {
	rows := build(1, 30_000)
	n := 0
	rows.Rows(func(addr.Addr, uint32) { n++ })
	b.SetBytes(12 * int64(n))
	for b.Loop() {
		Encode(rows)
	}
}

func BenchmarkChunk(b *testing.B) {
	e := Encode(build(1, 3000))
	tab, err := Open(e.Header, e)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(e.Size())
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		c, err := tab.Chunk(0)
		if err != nil {
			b.Fatal(err)
		}
		rows = len(c.starts)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
}
