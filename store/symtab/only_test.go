package symtab

import (
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/ingest/addr"
)

// TestOnlyNames limits tables of overlapping symbols to random addresses: look-ups there give the
// same as the whole table, and all names with a size are covered.
func TestOnlyNames(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		space := []uint64{50, 1000, 1 << 20}[seed%3]
		funcs := randomFuncs(rng, 1+rng.IntN(200), space)
		addrs := randomAddrs(rng, rng.IntN(20), space)
		b := NewBuilder(Options{})
		b.Only(addrs)
		for _, f := range funcs {
			b.Add(f)
		}
		e := b.Encode()
		tab := open(t, e)
		for _, a := range addrs {
			h, err := tab.Lookup(a)
			if err != nil {
				t.Fatal(err)
			}
			if checkHit(t, tab, funcs, a, h); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if tab.NumFuncs() > len(addrs) {
			t.Fatalf("seed %d: %d functions at %d addresses", seed, tab.NumFuncs(), len(addrs))
		}
		whole := open(t, encode(t, Options{}, funcs...))
		for _, a := range randomAddrs(rng, 50, space) {
			h, err := whole.Lookup(a)
			if err != nil {
				t.Fatal(err)
			}
			in, err := tab.Lookup(a)
			covered := slices.ContainsFunc(b.Covered(), func(r addr.Range) bool { return r.Start <= a && a < r.End })
			if err != nil || covered != (h.OK && h.Flags&Unsized == 0) {
				t.Fatalf("seed %d: %#x: whole %+v, limited %+v, covered %v, %v", seed, a, h, in, covered, err)
			}
		}
	}
}

func randomAddrs(rng *rand.Rand, n int, space uint64) []addr.Addr {
	addrs := make([]addr.Addr, n)
	for i := range addrs {
		addrs[i] = addr.Addr(rng.Uint64N(space + space/4))
	}
	slices.Sort(addrs)
	return addrs
}

// TestOnlyFrames is TestOnlyNames for functions with inlined calls and lines. Callers may leave
// out functions that NeedsAny leaves out.
func TestOnlyFrames(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		funcs, end := randomDebug(rng, 1+rng.IntN(40))
		addrs := randomAddrs(rng, 1+rng.IntN(10), uint64(end))
		b := NewBuilder(Options{Columns: true})
		b.Only(addrs)
		for i := range funcs {
			if seed%2 == 0 || b.NeedsAny(funcs[i].ranges) {
				funcs[i].add(b)
			}
		}
		e := b.Encode()
		tab := open(t, e)
		for _, a := range addrs {
			want := ""
			for k := range funcs {
				if in(funcs[k].ranges, a) {
					want = funcs[k].frames(a, true)
				}
			}
			_, frames, err := tab.LookupFrames(a, nil)
			if got := showFrames(t, tab, frames); err != nil || got != want {
				t.Fatalf("seed %d: %#x\ngot  %s, %v\nwant %s", seed, a, got, err, want)
			}
		}
		if tab.NumFuncs() > len(addrs) {
			t.Fatalf("seed %d: %d functions at %d addresses", seed, tab.NumFuncs(), len(addrs))
		}
	}
}

// TestOnlyResets has a Builder make a whole table after a limited one.
func TestOnlyResets(t *testing.T) {
	b := NewBuilder(Options{})
	b.Only([]addr.Addr{})
	f := Func{Start: 16, Size: 16, Name: "f"}
	for _, want := range []int{0, 1} {
		b.Add(f)
		e := b.Encode()
		if tab := open(t, e); tab.NumFuncs() != want || len(b.Covered()) != 1 {
			t.Fatalf("%d functions, want %d; covered %v", tab.NumFuncs(), want, b.Covered())
		}
		b.Reset()
	}
}
