package gopclntab

import (
	"bytes"
	"errors"
	"runtime/metrics"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// walk decodes the whole table and checks its order.
func walk(t testing.TB, in Input) (functions int) {
	t.Helper()
	tab, err := New(in)
	var de *decode.Error
	if err != nil {
		if !errors.As(err, &de) {
			t.Errorf("error %v is no decode.Error", err)
		}
		return 0
	}
	lost, err := tab.Functions(func(f *Function) bool {
		functions++
		check(t, tab, f)
		return true
	})
	if (lost > 0) != (err != nil) || err != nil && !errors.As(err, &de) {
		t.Errorf("lost %d, error %v", lost, err)
	}
	if functions > tab.numFuncs {
		t.Errorf("%d functions of %d", functions, tab.numFuncs)
	}
	return functions
}

// check checks the guarantees in the comments of Function.
func check(t testing.TB, tab *Table, f *Function) {
	t.Helper()
	if f.End <= f.Start || len(f.Lines) > 0 && f.Lines[0].Addr != f.Start {
		t.Errorf("%x-%x begins with line %+v", f.Start, f.End, f.Lines[0])
	}
	for i, l := range f.Lines {
		if i > 0 && l.Addr <= f.Lines[i-1].Addr || l.Addr >= f.End && i > 0 {
			t.Errorf("line %d of %x-%x at %x", i, f.Start, f.End, l.Addr)
		}
		tab.File(l.File)
	}
	tab.File(f.File)
	var open []int32 // callers of the next, for the order
	for i, c := range f.Inlines {
		for len(open) > 0 && open[len(open)-1] != c.Parent {
			open = open[:len(open)-1]
		}
		if len(open) == 0 && c.Parent != NoParent || int(c.Depth) != len(open)+1 ||
			len(c.Ranges) == 0 {
			t.Errorf("call %d: %+v is not in pre-order", i, c)
		}
		open = append(open, int32(i))
		tab.File(c.File)
		tab.File(c.CallFile)
		around := []addr.Range{f.Range}
		if c.Parent >= 0 && int(c.Parent) < i {
			around = f.Inlines[c.Parent].Ranges
		}
		for j, r := range c.Ranges {
			for len(around) > 0 && around[0].End <= r.Start {
				around = around[1:]
			}
			if len(around) == 0 || r.Start < around[0].Start || r.End > around[0].End ||
				r.End <= r.Start || j > 0 && r.Start <= c.Ranges[j-1].End {
				t.Errorf("range %d of call %d: %+v", j, i, c)
			}
		}
	}
}

// maxWalk bounds the allocations for decoding a table of a few KiB.
const maxWalk = 1 << 20

// bounded runs a function that decodes a table and checks its allocations.
func bounded(t *testing.T, what string, at int, f func()) {
	t.Helper()
	allocated := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	before := allocated()
	f()
	if d := allocated() - before; d > maxWalk {
		t.Errorf("%s %d: %d bytes allocated", what, at, d)
	}
}

// TestTruncated cuts tables, and the trees, at every length.
func TestTruncated(t *testing.T) {
	for _, r := range releases {
		for _, m := range targets[:2] {
			t.Run(r.name+"/"+m.String(), func(t *testing.T) {
				b := build(r, m, sample()...)
				in := b.input()
				for n := range b.data {
					in.Data = b.data[:n:n]
					bounded(t, "cut at", n, func() { walk(t, in) })
				}
				for n := range b.trees {
					in := built{b.data, b.trees[:n:n]}.input()
					if got := walk(t, in); got != 4 {
						t.Errorf("trees cut at %d: %d functions", n, got)
					}
				}
			})
		}
	}
}

// TestDamaged changes every byte of tables and trees, one at a time.
func TestDamaged(t *testing.T) {
	for i, r := range releases {
		m := targets[i%len(targets)]
		t.Run(r.name+"/"+m.String(), func(t *testing.T) {
			b := build(r, m, sample()...)
			for _, part := range [][]byte{b.data, b.trees} {
				for i := range part {
					old := part[i]
					for _, v := range []byte{old ^ 1, old ^ 4, old ^ 0x10, old ^ 0x80, 0xff} {
						part[i] = v
						bounded(t, "damaged at", i, func() { walk(t, b.input()) })
					}
					part[i] = old
				}
			}
		})
	}
}

func FuzzTable(f *testing.F) {
	for i, r := range releases {
		b := build(r, targets[i%len(targets)], sample()...)
		f.Add(b.data, b.trees)
	}
	f.Fuzz(func(t *testing.T, data, trees []byte) { walk(t, built{data, trees}.input()) })
}

// FuzzFind looks for tables in files.
func FuzzFind(f *testing.F) {
	f.Add(program().Bytes())
	b := program()
	b.NoHeaders = true
	f.Add(b.Bytes())
	b = program()
	b.Segments, b.Sections[1].Name = nil, ".rodata"
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if file := openAny(b); file != nil {
			tab, err := Find(file)
			if err == nil && tab != nil {
				walk(t, tab.in)
			}
		}
	})
}

// TestFindDamaged changes every byte of a small program, and cuts it.
func TestFindDamaged(t *testing.T) {
	b := program().Bytes()
	if tab, err := Find(openELF(t, "test", b)); err != nil || tab == nil || tab.trees.base == nil {
		t.Fatalf("table %v, error %v in the whole file", tab, err)
	}
	try := func(b []byte) {
		file := openAny(b)
		if file == nil {
			return
		}
		tab, err := Find(file)
		var de *decode.Error
		if err != nil && !errors.As(err, &de) {
			t.Errorf("error %v is no decode.Error", err)
		}
		if err == nil && tab != nil {
			walk(t, tab.in)
		}
	}
	for i := range b {
		try(b[:i])
		c := bytes.Clone(b)
		c[i] ^= 0xff
		try(c)
	}
}
