package symtab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/ingest/addr"
)

// likeC makes n functions as a C++ library has them: aligned, of varied sizes,
// with names that share prefixes.
func likeC(n int) []Func {
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"Reader", "parse", "Impl", "string", "vector", "update", "detail", "apply"}
	funcs := make([]Func, n)
	at := uint64(0x1000)
	for i := range funcs {
		size := 8 + rng.Uint64N(600)
		w := func() string { return words[rng.IntN(len(words))] }
		name := fmt.Sprintf("_ZN7library%d%s%s%dEv%d", i/50, w(), w(), i, rng.IntN(9))
		funcs[i] = Func{addr.Addr(at), size, name, 0}
		at += (size + 15) &^ 15
	}
	return funcs
}

func BenchmarkEncode(b *testing.B) {
	funcs := likeC(20_000)
	bl := NewBuilder(Options{})
	b.ReportAllocs()
	for b.Loop() {
		bl.Reset()
		for _, f := range funcs {
			bl.Add(f)
		}
		e, err := bl.Encode()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(e.RawSize)
		b.ReportMetric(float64(e.Size)/float64(e.Funcs), "bytes/function")
	}
}

func benchTable(b *testing.B, n int) (*Table, *Encoded) {
	e := encode(b, Options{}, likeC(n)...)
	tab, err := Open(e.Header, e)
	if err != nil {
		b.Fatal(err)
	}
	return tab, e
}

// BenchmarkJoin is the batch: 100,000 sorted addresses, 100,000 functions.
func BenchmarkJoin(b *testing.B) {
	tab, _ := benchTable(b, 100_000)
	rng := rand.New(rand.NewPCG(1, 3))
	r := tab.Range()
	addrs := make([]addr.Addr, 100_000)
	for i := range addrs {
		addrs[i] = r.Start + addr.Addr(rng.Uint64N(uint64(r.End-r.Start)))
	}
	slices.Sort(addrs)
	hits := make([]Hit, len(addrs))
	b.SetBytes(int64(len(addrs)) * 8)
	b.ReportAllocs()
	for b.Loop() {
		if err := tab.Join(addrs, hits); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNames(b *testing.B) {
	tab, e := benchTable(b, 100_000)
	b.SetBytes(e.RawSize)
	b.ReportAllocs()
	for b.Loop() {
		for i := range tab.NumNames() {
			if _, err := tab.nameBytes(NameID(i)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	tab, e := benchTable(b, 100_000)
	b.SetBytes(e.RawSize)
	for b.Loop() {
		if err := tab.Verify(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	_, e := benchTable(b, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(e.Header, e); err != nil {
			b.Fatal(err)
		}
	}
}
