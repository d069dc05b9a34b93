package cfi

import (
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

// rule returns a rule that its CFA identifies.
func rule(n int) *Rule {
	return &Rule{Kind: Frame, CFA: Where{How: Register, Reg: 7, Off: int32(n)}}
}

// list prints the rows of b: "1000:8 1010:-", with the offset of the CFA, "-" for no rule.
func list(b *Builder) string {
	var words []string
	b.Rows(func(at addr.Addr, n uint32) {
		text := "-"
		if r := b.Rules[n]; r.Kind != NoRule {
			text = fmt.Sprint(r.CFA.Off)
		}
		words = append(words, fmt.Sprintf("%x:%s", uint64(at), text))
	})
	return strings.Join(words, " ")
}

func TestRows(t *testing.T) {
	type fn struct {
		start, end addr.Addr
		rows       []addr.Addr // offset, CFA, …
	}
	for _, c := range []struct {
		name    string
		sources [][]fn
		want    string
	}{
		{name: "none"},
		{name: "equal neighbours are one",
			sources: [][]fn{{{0x1000, 0x1010, []addr.Addr{0, 8, 4, 16, 8, 16}},
				{0x1010, 0x1020, []addr.Addr{0, 16}}}}, want: "1000:8 1004:16 1020:-"},
		{name: "padding keeps the rule, a gap does not",
			sources: [][]fn{{{0x1000, 0x1001, []addr.Addr{0, 8}},
				{0x1010, 0x1020, []addr.Addr{0, 16}}, {0x1030, 0x1040, []addr.Addr{0, 24}}}},
			want: "1000:8 1010:16 1020:- 1030:24 1040:-"},
		{name: "in any order", sources: [][]fn{{{0x2000, 0x2010, []addr.Addr{0, 8}},
			{0x1000, 0x1010, []addr.Addr{0, 16}}}}, want: "1000:16 1010:- 2000:8 2010:-"},
		{name: "the later of two rows at one address",
			sources: [][]fn{{{0x1000, 0x1010, []addr.Addr{0, 8, 0, 16}}}},
			want:    "1000:16 1010:-"},
		{name: "rows outside are left out",
			sources: [][]fn{{{0x1000, 0x1010, []addr.Addr{0, 8, 0x10, 16}}}},
			want:    "1000:8 1010:-"},
		{name: "no row at the start", sources: [][]fn{{{0x1000, 0x1010, []addr.Addr{4, 8}}}},
			want: "1004:8 1010:-"},
		{name: "overlap in a source", sources: [][]fn{{{0x1000, 0x1010, []addr.Addr{0, 8}},
			{0x1008, 0x1018, []addr.Addr{0, 16, 4, 24, 8, 32}}}}, want: "1000:8 1010:32 1018:-"},
		{name: "a worse source fills gaps", sources: [][]fn{{{0x1000, 0x1010, []addr.Addr{0, 8}},
			{0x1020, 0x1030, []addr.Addr{0, 8}}}, {{0xff0, 0x1040, []addr.Addr{0, 16}}}},
			want: "ff0:16 1000:8 1010:16 1020:8 1030:16 1040:-"},
		{name: "a better source covers all", sources: [][]fn{{{0x1000, 0x1100, []addr.Addr{0, 8}}},
			{{0x1010, 0x1020, []addr.Addr{0, 16}}, {0x1030, 0x1200, []addr.Addr{0, 24, 0xf0, 32}}}},
			want: "1000:8 1100:24 1120:32 1200:-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuilder(ArchOf(elf.EM_X86_64))
			for _, source := range c.sources {
				for _, f := range source {
					b.Func(addr.Range{Start: f.start, End: f.end})
					for i := 0; i < len(f.rows); i += 2 {
						b.Row(f.start+f.rows[i], rule(int(f.rows[i+1])))
					}
				}
				b.NextSource()
			}
			if got := list(b); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestRowsAgainstMap compares rows of random functions with a rule for each byte.
func TestRowsAgainstMap(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		b := NewBuilder(ArchOf(elf.EM_X86_64))
		var want [0x400]int
		for range 1 + r.IntN(3) {
			var have [0x400]int // of this source, by first function
			type fn struct{ start, end int }
			var funcs []fn
			for range r.IntN(8) {
				start := r.IntN(0x300)
				funcs = append(funcs, fn{start, start + 1 + r.IntN(0x100)})
			}
			for i, f := range funcs {
				b.Func(addr.Range{Start: addr.Addr(f.start), End: addr.Addr(f.end)})
				b.Row(addr.Addr(f.start), rule(1+int(seed)*1000+f.start*8+i))
			}
			for at := range have {
				first := -1
				for i, f := range funcs {
					// That which begins first; of equal ones the first that was added.
					if f.start <= at && at < f.end && (first < 0 || f.start < funcs[first].start) {
						first = i
					}
				}
				if first >= 0 && want[at] == 0 {
					want[at] = 1 + int(seed)*1000 + funcs[first].start*8 + first
				}
			}
			b.NextSource()
		}
		var got [0x400]int
		last, lastRule := 0, 0
		b.Rows(func(at addr.Addr, n uint32) {
			for ; last < int(at); last++ {
				got[last] = lastRule
			}
			lastRule = int(b.Rules[n].CFA.Off)
		})
		for at := range want {
			// Padding has the rule of the function before.
			if want[at] != 0 && got[at] != want[at] {
				t.Fatalf("seed %d: at %#x: %d, want %d", seed, at, got[at], want[at])
			}
		}
	}
}

func TestLimits(t *testing.T) {
	b := NewBuilder(ArchOf(elf.EM_X86_64))
	for _, r := range []addr.Range{{Start: 8, End: 8}, {Start: 9, End: 8}, {Start: 0, End: 1 << 32}} {
		if b.Func(r) {
			t.Errorf("%#x is a function", r)
		}
	}
	if _, ok := b.Expr(make([]byte, maxExpr+1)); ok {
		t.Error("an expression of any length")
	}
	b.Func(addr.Range{Start: 0, End: 1 << 20})
	for i := range maxRules + 10 {
		b.Row(addr.Addr(i), rule(i))
	}
	if len(b.Rules) != maxRules || b.Dropped() != 11 {
		t.Errorf("%d rules, %d dropped", len(b.Rules), b.Dropped())
	}
}

func TestCovered(t *testing.T) {
	b := NewBuilder(ArchOf(elf.EM_X86_64))
	b.Func(addr.Range{Start: 0x1000, End: 0x1010})
	b.Func(addr.Range{Start: 0x2000, End: 0x2010})
	b.NextSource()
	for a, want := range map[addr.Addr]bool{0xfff: false, 0x1000: true, 0x100f: true, 0x1010: false,
		0x2000: true} {
		if got := b.Covered(a); got != want {
			t.Errorf("%#x: %v", a, got)
		}
	}
	for a, want := range map[addr.Addr]addr.Addr{0: 0x1000, 0x1000: 0x2000, 0x1800: 0x2000, 0x2000: 0} {
		if got, ok := b.Next(a); got != want || ok != (want != 0) {
			t.Errorf("%#x: %#x", a, got)
		}
	}
}

// TestRestorers finds the functions that signal handlers return to.
func TestRestorers(t *testing.T) {
	const x86, rt, old, arm = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", "\xb8\xad\x00\x00\x00\xcd\x80",
		"\x58\xb8\x77\x00\x00\x00\xcd\x80", "\x68\x11\x80\xd2\x01\x00\x00\xd4"
	gap := strings.Repeat(".", 24) // more than padding
	for _, c := range []struct {
		name    string
		machine elf.Machine
		code    string
		want    string // starts of rows, n for those without a rule
	}{
		{name: "x86-64", machine: elf.EM_X86_64, code: "1234" + x86 + gap + x86,
			want: "103 10e:n 124 12f:n"},
		{name: "i386, both", machine: elf.EM_386, code: "1234" + old + gap + rt,
			want: "103 105 10d:n 123 12c:n"},
		{name: "arm64", machine: elf.EM_AARCH64, code: arm, want: "ff 109:n"},
		{name: "of another machine", machine: elf.EM_AARCH64, code: x86 + rt + old},
		{name: "cut off", machine: elf.EM_X86_64, code: x86[:8]},
		{name: "none", machine: elf.EM_X86_64},
	} {
		b := NewBuilder(ArchOf(c.machine))
		b.Restorers(0x100, []byte(c.code))
		var got []string
		b.Rows(func(at addr.Addr, n uint32) {
			text := fmt.Sprintf("%x", uint64(at))
			if r := b.Rules[n]; r.Kind != Frame || !r.Signal {
				text += ":n"
			}
			got = append(got, text)
		})
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

// TestBottoms finds the functions in which the stacks of contexts end, from the byte before, at
// which return addresses are looked up.
func TestBottoms(t *testing.T) {
	const now, old = "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74", "\x48\x89\xdc\x5f\x48\x85\xff\x74"
	for _, c := range []struct {
		name    string
		machine elf.Machine
		code    string
		want    string // starts of rows, n for those without a rule
	}{
		{name: "of now", machine: elf.EM_X86_64, code: "1234" + now, want: "103 10f:n"},
		{name: "with endbr64", machine: elf.EM_X86_64, code: "1234\xf3\x0f\x1e\xfa" + now, want: "103 113:n"},
		{name: "before 2.28", machine: elf.EM_X86_64, code: old, want: "ff 108:n"},
		{name: "of another machine", machine: elf.EM_386, code: now},
		{name: "cut off", machine: elf.EM_X86_64, code: now[:10]},
	} {
		b := NewBuilder(ArchOf(c.machine))
		b.Bottoms(0x100, []byte(c.code))
		var got []string
		b.Rows(func(at addr.Addr, n uint32) {
			text := fmt.Sprintf("%x", uint64(at))
			if b.Rules[n].Kind != End {
				text += ":n"
			}
			got = append(got, text)
		})
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

// TestSignalARM64: what the vdso's directives say of a signal's frame does not count.
func TestSignalARM64(t *testing.T) {
	b := NewBuilder(ArchOf(elf.EM_AARCH64))
	b.Func(addr.Range{Start: 0x100, End: 0x110})
	b.Row(0x100, &Rule{Kind: Frame, Signal: true, CFA: Where{How: Register, Reg: 29},
		RA: Where{How: AtCFA, Off: 8}})
	want, _ := b.SignalRule(&b.Arch.Signals[0], 0)
	b.Rows(func(at addr.Addr, n uint32) {
		if at == 0x100 && b.Rules[n] != want {
			t.Errorf("%+v, want %+v", b.Rules[n], want)
		}
	})
}

// TestPack changes one field of a rule at a time: rules are one only where all of their fields are
// equal.
func TestPack(t *testing.T) {
	base := Rule{Kind: Frame}
	seen := map[packedRule]Rule{base.pack(): base}
	try := func(r Rule) {
		t.Helper()
		if have, ok := seen[r.pack()]; ok && have != r {
			t.Errorf("%+v and %+v are one", have, r)
		}
		seen[r.pack()] = r
	}
	for k := range NumKinds {
		try(Rule{Kind: k})
		try(Rule{Kind: k, Signal: true})
	}
	for i := range 2 + MaxSaved {
		for _, w := range []Where{{How: Undefined}, {How: Expr}, {Reg: 1}, {Reg: 0xff}, {Off: 1},
			{Off: -1}, {Off: -1 << 31}, {How: 2, Reg: 1, Off: 1}} {
			r := base
			switch i {
			case 0:
				r.CFA = w
			case 1:
				r.RA = w
			default:
				r.Saved[i-2] = w
			}
			try(r)
		}
	}
	if want := 2*int(NumKinds) + 8*(2+MaxSaved); len(seen) != want {
		t.Errorf("%d packed rules of %d", len(seen), want)
	}
}
