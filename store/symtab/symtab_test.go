package symtab

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

// encode builds a table or fails the test.
func encode(t testing.TB, opts Options, funcs ...Func) *Encoded {
	t.Helper()
	b := NewBuilder(opts)
	for _, f := range funcs {
		b.Add(f)
	}
	return b.Encode()
}

// Lookup looks up one address.
func (t *Table) Lookup(a addr.Addr) (Hit, error) {
	var hit [1]Hit
	err := t.Join([]addr.Addr{a}, hit[:])
	return hit[0], err
}

// LookupFrames looks up one address and appends its frames to dst, in the form of JoinFrames.
func (t *Table) LookupFrames(a addr.Addr, dst []Frame) (hit Hit, frames []Frame, err error) {
	err = t.JoinFrames([]addr.Addr{a}, func(_ int, h Hit, f []Frame) {
		hit = h
		dst = append(dst, f...)
	})
	return hit, dst, err
}

// Range returns the addresses from the first range's start to the last one's end.
func (t *Table) Range() addr.Range {
	return addr.Range{Start: addr.Addr(t.h.first), End: addr.Addr(t.h.end)}
}

// open opens a table and checks all its invariants, the digest among them.
func open(t testing.TB, e *Encoded) *Table {
	t.Helper()
	tab, err := Open(e.Header, e)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := tab.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if sum != e.Digest {
		t.Fatalf("digest read back %x, encoded %x", sum[:4], e.Digest[:4])
	}
	return tab
}

// text formats the ranges of a table: "10-20 f" for a whole function, "20-30 f@10/40" for a part,
// with "?" for unsized ones.
func text(t testing.TB, tab *Table) string {
	t.Helper()
	var out []string
	for p, err := range tab.Pieces() {
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprintf("%d-%d %s", p.Range.Start, p.Range.End, p.Func.Name)
		if p.Range.Start != p.Func.Start || uint64(p.Range.End-p.Range.Start) != p.Func.Size {
			s += fmt.Sprintf("@%d/%d", p.Func.Start, p.Func.Size)
		}
		if p.Func.Flags&Unsized != 0 {
			s += "?"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func TestFlatten(t *testing.T) {
	const max = ^addr.Addr(0)
	tests := []struct {
		name string
		in   []Func
		want string
	}{
		{name: "none"},
		{name: "one", in: []Func{{10, 10, "f", 0}}, want: "10-20 f"},
		{name: "apart", in: []Func{{30, 5, "g", 0}, {10, 10, "f", 0}}, want: "10-20 f, 30-35 g"},
		{name: "touching", in: []Func{{10, 10, "f", 0}, {20, 5, "g", 0}},
			want: "10-20 f, 20-25 g"},
		{name: "at address 0", in: []Func{{0, 1, "f", 0}}, want: "0-1 f"},
		{name: "inner", in: []Func{{10, 30, "f", 0}, {20, 5, "g", 0}},
			want: "10-20 f@10/30, 20-25 g, 25-40 f@10/30"},
		{name: "two inner", in: []Func{{10, 30, "f", 0}, {15, 5, "g", 0}, {30, 5, "h", 0}},
			want: "10-15 f@10/30, 15-20 g, 20-30 f@10/30, 30-35 h, 35-40 f@10/30"},
		{name: "nested three deep",
			in:   []Func{{10, 40, "f", 0}, {20, 20, "g", 0}, {25, 5, "h", 0}},
			want: "10-20 f@10/40, 20-25 g@20/20, 25-30 h, 30-40 g@20/20, 40-50 f@10/40"},
		{name: "overlapping ends", in: []Func{{10, 20, "f", 0}, {20, 20, "g", 0}},
			want: "10-20 f@10/20, 20-40 g"},
		{name: "outer ends inside inner",
			in:   []Func{{10, 20, "f", 0}, {20, 20, "g", 0}, {35, 20, "h", 0}},
			want: "10-20 f@10/20, 20-35 g@20/20, 35-55 h"},
		{name: "alias shorter than the better", in: []Func{{10, 10, "f", Weak}, {10, 20, "g", 0}},
			want: "10-30 g"},
		{name: "alias longer goes on", in: []Func{{10, 20, "_f", 0}, {10, 10, "g", 0}},
			want: "10-20 g, 20-30 _f@10/20"},
		{name: "sized before unsized",
			in:   []Func{{10, 30, "ff", Unsized}, {10, 10, "g", Local | Weak | NoType}},
			want: "10-20 g"},
		{name: "typed before label",
			in: []Func{{10, 10, "ff", NoType}, {10, 10, "g", Local | Weak}}, want: "10-20 g"},
		{name: "strong before weak", in: []Func{{10, 10, "ff", Weak}, {10, 10, "g", Local}},
			want: "10-20 g"},
		{name: "global before local", in: []Func{{10, 10, "ff", Local}, {10, 10, "__g", 0}},
			want: "10-20 __g"},
		{name: "fewest underscores", in: []Func{{10, 10, "__longer", 0}, {10, 10, "_f", 0}},
			want: "10-20 _f"},
		{name: "longest", in: []Func{{10, 10, "b", 0}, {10, 10, "aa", 0}}, want: "10-20 aa"},
		{name: "longest of three",
			in:   []Func{{10, 10, "a", 0}, {10, 10, "aaa", 0}, {10, 10, "aa", 0}},
			want: "10-20 aaa"},
		{name: "system call before its old name",
			in: []Func{{10, 10, "SyS_read", 0}, {10, 10, "sys_read", 0}}, want: "10-20 sys_read"},
		{name: "unsized flag kept", in: []Func{{10, 10, "f", Unsized | Local}}, want: "10-20 f?"},
		{name: "same name twice", in: []Func{{10, 10, "f", 0}, {20, 10, "f", 0}},
			want: "10-20 f, 20-30 f"},
		{name: "wraps", in: []Func{{max - 4, 100, "f", 0}},
			want: fmt.Sprintf("%d-%d f", max-4, max)},
		{name: "last address", in: []Func{{max, 1, "f", 0}}},
		{name: "empty and nameless left out",
			in: []Func{{10, 0, "f", 0}, {10, 10, "", 0}, {10, 9, "\x00x", 0}}},
		{name: "name cut at NUL", in: []Func{{10, 10, "f\x00g", 0}}, want: "10-20 f"},
		{name: "name too long", in: []Func{{10, 10, strings.Repeat("x", MaxName+1), 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := text(t, open(t, encode(t, Options{}, tt.in...))); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			slices.Reverse(tt.in)
			if got := text(t, open(t, encode(t, Options{}, tt.in...))); got != tt.want {
				t.Errorf("the other way round: got %s", got)
			}
		})
	}
}

// randomFuncs makes symbols that overlap, nest and repeat.
func randomFuncs(rng *rand.Rand, n int, space uint64) []Func {
	funcs := make([]Func, n)
	for i := range funcs {
		f := &funcs[i]
		f.Start = addr.Addr(rng.Uint64N(space))
		f.Size = 1 + rng.Uint64N(1+space/uint64(1+rng.IntN(4*n)))
		f.Name = fmt.Sprintf("%sfn%d", strings.Repeat("_", rng.IntN(3)), rng.IntN(n))
		f.Flags = Flags(rng.IntN(16))
		f.Flags &= Flags(rng.IntN(16)) // a quarter of the bits
	}
	return funcs
}

// better is the oracle's choice between two symbols at an address; i and j are places in the list of
// symbols.
func better(funcs []Func, i, j int) bool {
	a, b := funcs[i], funcs[j]
	if a.Start != b.Start {
		return a.Start > b.Start
	}
	if a.Flags&b.Flags&Unsized != 0 {
		return i > j
	}
	for _, f := range []Flags{Unsized, NoType, Weak, Local} {
		if a.Flags&f != b.Flags&f {
			return a.Flags&f == 0
		}
	}
	under := func(s string) int { return len(s) - len(strings.TrimLeft(s, "_")) }
	return cmp.Or(cmp.Compare(under(a.Name), under(b.Name)), cmp.Compare(len(b.Name), len(a.Name)),
		cmp.Compare(i, j)) < 0
}

// oracle finds the function that covers an address by trying them all.
func oracle(funcs []Func, a addr.Addr) (best Func, ok bool) {
	at := -1
	for i, f := range funcs {
		sized := func(o Func) bool { return o.Start == f.Start && o.Flags&Unsized == 0 }
		if f.Flags&Unsized != 0 && slices.ContainsFunc(funcs, sized) {
			continue
		}
		if a >= f.Start && uint64(a-f.Start) < f.Size && (!ok || better(funcs, i, at)) {
			best, ok, at = f, true, i
		}
	}
	best.Flags &= Unsized
	return best, ok
}

func TestJoinAgainstOracle(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		space := []uint64{50, 1000, 1 << 20}[seed%3]
		funcs := randomFuncs(rng, 1+rng.IntN(200), space)
		opts := Options{ChunkSize: 1 << (2 + rng.IntN(10)), StringSize: 1 << (2 + rng.IntN(8))}
		if rng.IntN(2) == 0 {
			opts.InlineSize = -1
		}
		tab := open(t, encode(t, opts, funcs...))
		addrs := make([]addr.Addr, 400)
		for i := range addrs {
			addrs[i] = addr.Addr(rng.Uint64N(space + space/4))
		}
		slices.Sort(addrs)
		hits := make([]Hit, len(addrs))
		if err := tab.Join(addrs, hits); err != nil {
			t.Fatal(err)
		}
		for i, a := range addrs {
			checkHit(t, tab, funcs, a, hits[i])
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		one, err := tab.Lookup(addrs[0])
		if err != nil || one != hits[0] {
			t.Fatalf("seed %d: look-up gives %+v, %v; join %+v", seed, one, err, hits[0])
		}
	}
}

func checkHit(t *testing.T, tab *Table, funcs []Func, a addr.Addr, h Hit) {
	t.Helper()
	want, ok := oracle(funcs, a)
	if !ok {
		if h != (Hit{}) {
			t.Errorf("%#x: got %+v, nothing is there", a, h)
		}
		return
	}
	name, err := tab.Name(h.Name)
	if err != nil {
		t.Fatal(err)
	}
	if got := (Func{h.Start, h.Size, name, h.Flags}); !h.OK || got != want {
		t.Errorf("%#x: got %+v, want %+v", a, got, want)
	}
}

func TestFunctionsAreNumberedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	funcs := randomFuncs(rng, 500, 5000)
	tab := open(t, encode(t, Options{ChunkSize: 64, StringSize: 64, InlineSize: -1}, funcs...))
	byNumber := map[uint32]Func{}
	for p, err := range tab.Pieces() {
		if err != nil {
			t.Fatal(err)
		}
		if old, ok := byNumber[p.Number]; ok && old != p.Func {
			t.Fatalf("number %d is both %v and %v", p.Number, old, p.Func)
		}
		byNumber[p.Number] = p.Func
	}
	n := uint32(0)
	for f, err := range tab.All() {
		if err != nil || byNumber[n] != f {
			t.Fatalf("function %d: %v, %v; want %v", n, f, err, byNumber[n])
		}
		n++
	}
	if int(n) != tab.NumFuncs() || len(byNumber) != tab.NumFuncs() {
		t.Errorf("%d functions listed, %d seen, %d counted", n, len(byNumber), tab.NumFuncs())
	}
}

// shuffled returns the symbols in random order, except that symbols of one address keep their
// order.
func shuffled(rng *rand.Rand, funcs []Func) []Func {
	byStart := map[addr.Addr][]Func{}
	for _, f := range funcs {
		byStart[f.Start] = append(byStart[f.Start], f)
	}
	out := slices.Clone(funcs)
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	for i := range out {
		rest := byStart[out[i].Start]
		out[i], byStart[out[i].Start] = rest[0], rest[1:]
	}
	return out
}

// TestAliasesAsPerf compares with perf script 6.1 for addresses of this list: of
// kallsyms the last name of an address, of ELF files the first among equals.
func TestAliasesAsPerf(t *testing.T) {
	tests := []struct {
		name  string
		flags Flags
		names []string // as listed, all at one address
		want  string
	}{
		{name: "kallsyms: system call", flags: Unsized,
			names: []string{"__do_sys_getpid", "__ia32_sys_getpid", "__x64_sys_getpid"},
			want:  "__x64_sys_getpid"},
		{name: "kallsyms: last, though weak names and shorter ones come before", flags: Unsized,
			names: []string{"memset", "__memset", "__pi_memset"}, want: "__pi_memset"},
		{name: "kallsyms: suffix", flags: Unsized,
			names: []string{"do_compat_epoll_pwait.part.0", "do_epoll_pwait.part.0"},
			want:  "do_epoll_pwait.part.0"},
		{name: "libc: equal length", flags: 0,
			names: []string{"__libc_openat64", "__GI___openat64"}, want: "__libc_openat64"},
		{name: "libc: the other way round", flags: 0,
			names: []string{"__GI___openat64", "__libc_openat64"},
			want:  "__GI___openat64"},
		{name: "underscores before order", flags: 0, names: []string{"__read", "read", "_read"},
			want: "read"},
		{name: "length before order", flags: 0, names: []string{"a", "ccc", "bb", "ddd"},
			want: "ccc"},
	}
	for _, tt := range tests {
		var funcs []Func
		for _, n := range tt.names {
			funcs = append(funcs, Func{10, 10, n, tt.flags})
		}
		got, _, _ := strings.Cut(text(t, open(t, encode(t, Options{}, funcs...))), "?")
		if want := "10-20 " + tt.want; got != want {
			t.Errorf("%s: got %s, want %s", tt.name, got, want)
		}
	}
	sized := []Func{{10, 30, "longer", Unsized}, {10, 10, "f", Local}, {10, 30, "last", Unsized}}
	if got := text(t, open(t, encode(t, Options{}, sized...))); got != "10-20 f" {
		t.Errorf("sized between unsized: got %s", got)
	}
}

func TestSameBytesWhateverTheOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	funcs := randomFuncs(rng, 3000, 1<<20)
	first := encode(t, Options{}, funcs...)
	b := NewBuilder(Options{}) // used again: nothing may be left of the table before
	for range 3 {
		b.Reset()
		for _, f := range shuffled(rng, funcs) {
			b.Add(f)
		}
		e := b.Encode()
		if !slices.Equal(e.Header, first.Header) || e.Digest != first.Digest ||
			!slices.EqualFunc(e.Chunks, first.Chunks, slices.Equal) ||
			!slices.EqualFunc(e.Strings, first.Strings, slices.Equal) {
			t.Fatal("bytes differ")
		}
	}
	small := encode(t, Options{ChunkSize: 100, StringSize: 100}, funcs...)
	if small.Digest != first.Digest {
		t.Error("the digest depends on where blocks are cut")
	}
	funcs[0].Name += "x"
	if encode(t, Options{}, funcs...).Digest == first.Digest {
		t.Error("the digest does not see a name")
	}
}

func TestSizes(t *testing.T) {
	var funcs []Func
	for i := range 20_000 {
		funcs = append(funcs, Func{addr.Addr(i * 32), 30, fmt.Sprintf("function_number_%d", i), 0})
	}
	e := encode(t, Options{InlineSize: -1}, funcs...)
	tab := open(t, e)
	if len(e.Chunks) == 0 || len(e.Strings) < 2 || tab.NumBlocks(Chunk) != len(e.Chunks) ||
		tab.NumBlocks(Strings) != len(e.Strings) {
		t.Fatalf("%d chunks, %d string blocks", len(e.Chunks), len(e.Strings))
	}
	raw := rawSize(t, e)
	if e.Funcs != 20_000 || e.Named != 600_000 || raw < 400_000 {
		t.Errorf("funcs %d, named %d, raw %d", e.Funcs, e.Named, raw)
	}
	if e.Size() > raw/4 {
		t.Errorf("%d bytes of %d are left after compression", e.Size(), raw)
	}
	one := encode(t, Options{}, funcs[:3]...)
	if len(one.Chunks)+len(one.Strings) != 0 || open(t, one).NumBlocks(Chunk) != 0 {
		t.Error("a small table does not stand whole in its header")
	}
	if len(one.Header) > 120 {
		t.Errorf("three functions take %d bytes", len(one.Header))
	}
	if r := tab.Range(); r != (addr.Range{Start: 0, End: 19_999*32 + 30}) {
		t.Errorf("range %v", r)
	}
}

func TestOversizedString(t *testing.T) {
	long := strings.Repeat("_ZN", 100_000)
	tab := open(t, encode(t, Options{}, Func{1, 1, "a", 0}, Func{2, 1, long, 0}, Func{3, 1, "b", 0}))
	for i, want := range []string{"a", long, "b"} {
		if got, err := tab.Name(NameID(i)); err != nil || got != want {
			t.Errorf("name %d: %.10q…, %v", i, got, err)
		}
	}
	if _, err := tab.Name(3); !errors.Is(err, ErrFormat) {
		t.Errorf("name 3: %v", err)
	}
}

func TestJoinRefusesShortHits(t *testing.T) {
	tab := open(t, encode(t, Options{}, Func{1, 1, "a", 0}))
	defer func() {
		if what := recover(); what != nil {
			t.Errorf("panic: %v", what)
		}
	}()
	if err := tab.Join(make([]addr.Addr, 2), make([]Hit, 1)); err == nil {
		t.Error("no error")
	}
}

func TestBlockKind(t *testing.T) {
	if got := fmt.Sprint(Chunk, Strings); got != "chunk string block" {
		t.Errorf("kinds print as %q", got)
	}
}
