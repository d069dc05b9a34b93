package db

import (
	"context"
	"testing"

	"symbolize/store"
)

// benchTables returns tables of about 200 KB raw, the mean of real libraries with debug files.
func benchTables(b *testing.B) []*store.Contribution {
	b.Helper()
	var cs []*store.Contribution
	for n := range 16 {
		cs = append(cs, testContribution(b, n, 5000))
	}
	return cs
}

func BenchmarkMerge(b *testing.B) {
	cs := benchTables(b)
	w := openTestWriter(b, "")
	size := int64(0)
	for _, c := range cs {
		size += c.Sources[0].Table.Size()
	}
	b.SetBytes(size / int64(len(cs)))
	n := 0
	for b.Loop() {
		c := *cs[n%len(cs)]
		c.Manifest.ID = testID(n)
		if err := w.Merge(context.Background(), &c); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// BenchmarkMergeSmall writes the typical object of /usr/lib: one short table.
func BenchmarkMergeSmall(b *testing.B) {
	c := testContribution(b, 0, 30)
	w := openTestWriter(b, "")
	n := 0
	for b.Loop() {
		c.Manifest.ID = testID(n)
		if err := w.Merge(context.Background(), c); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// benchStore is a store of 2,000 small objects, as /usr/lib of a small machine gives.
func benchStore(b *testing.B) string {
	b.Helper()
	w := openTestWriter(b, "")
	c := testContribution(b, 0, 30)
	for n := range 2000 {
		c.Manifest.ID = testID(n)
		mustMerge(b, w, c)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return w.path
}

func BenchmarkOpenReader(b *testing.B) {
	path := benchStore(b)
	for b.Loop() {
		r, err := OpenReader(path)
		if err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}

func BenchmarkFind(b *testing.B) {
	r := openTestReader(b, benchStore(b))
	n := 0
	for b.Loop() {
		ms, err := r.Find(testID(n % 2000))
		if err != nil || len(ms) != 1 {
			b.Fatal(ms, err)
		}
		if _, err := r.Open(ms[0], 0); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

func BenchmarkVerify(b *testing.B) {
	r := openTestReader(b, benchStore(b))
	for b.Loop() {
		v, err := r.Verify(context.Background())
		if err != nil || !v.Sound() {
			b.Fatal(v, err)
		}
		b.SetBytes(v.Bytes)
	}
}
