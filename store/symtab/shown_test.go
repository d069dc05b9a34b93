package symtab

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// testDemangler leaves names with an even first letter as they are.
var testDemangler = &Demangler{ID: "test 1", Name: func(s string) string {
	if s[0]%2 == 0 {
		return s
	}
	return "shown " + s
}}

// encodeShown makes a table of several blocks of names.
func encodeShown(t testing.TB, funcs []testFunc, by *Demangler) *Encoded {
	t.Helper()
	b := NewBuilder(Options{ChunkSize: 200, StringSize: 128, InlineSize: -1, Columns: true})
	b.Demangle(by)
	for i := range funcs {
		funcs[i].add(b)
	}
	return b.Encode()
}

// TestDemangled compares every name of tables with the result of the Demangler, and the content
// with a table without.
func TestDemangled(t *testing.T) {
	funcs, _ := randomDebug(rand.New(rand.NewPCG(7, 7)), 40)
	plain, e := encodeShown(t, funcs, nil), encodeShown(t, funcs, testDemangler)
	if plain.Version != plainVersion || e.Version != Version {
		t.Errorf("versions %d and %d", plain.Version, e.Version)
	}
	if plain.Digest != e.Digest {
		t.Error("demangled names change the digest")
	}

	tab, without := open(t, e), open(t, plain)
	if _, err := tab.Digest(); err != nil {
		t.Error(err)
	}
	if tab.DemangledBy() != "test 1" || without.DemangledBy() != "" {
		t.Errorf("demangled by %q and %q", tab.DemangledBy(), without.DemangledBy())
	}
	if got, want := debugText(t, tab), debugText(t, without); got != want {
		t.Error("demangled names change the frames")
	}
	if len(tab.h.shown) < 4 || tab.h.extraStrs == 0 {
		t.Fatalf("%d blocks, %d names of inlined functions: too few", len(tab.h.shown), tab.h.extraStrs)
	}
	for n := range NameID(tab.NumNames()) {
		name, err := tab.Name(n)
		if err != nil {
			t.Fatal(err)
		}
		want := testDemangler.Name(name)
		if want == name {
			want = ""
		}
		if got, err := tab.Demangled(n); got != want || err != nil {
			t.Errorf("%s is %q, %v", name, got, err)
		}
		if got, err := without.Demangled(n); got != "" || err != nil {
			t.Errorf("%s is %q, %v in a table without", name, got, err)
		}
	}
	if _, err := tab.Demangled(NameID(tab.NumNames())); err == nil {
		t.Error("a name that does not exist")
	}
}

// TestDemangledSymbols keeps names of a table of symbols; one that is small has none.
func TestDemangledSymbols(t *testing.T) {
	for _, inline := range []int{-1, 1 << 20} {
		b := NewBuilder(Options{InlineSize: inline, StringSize: 64})
		b.Demangle(testDemangler)
		for _, f := range likeC(100) {
			b.Add(f)
		}
		e := b.Encode()
		tab, shown := open(t, e), 0
		for n := range NameID(tab.NumNames()) {
			if s, err := tab.Demangled(n); err != nil {
				t.Fatal(err)
			} else if s != "" {
				shown++
			}
		}
		if want := inline < 0; (shown > 0) != want || (e.Version == Version) != want {
			t.Errorf("inline size %d: %d names, version %d", inline, shown, e.Version)
		}
	}
}

// TestDemangledHostile has names that grow beyond all bounds, and some with a NUL.
func TestDemangledHostile(t *testing.T) {
	large := strings.Repeat("x", maxShownBlock/2)
	funcs := []testFunc{one("ab", 10, 20, 1), one("cd", 20, 30, 1), one("ef", 30, 40, 1),
		one("gh", 40, 50, 1)}
	e := encodeShown(t, funcs, &Demangler{ID: "hostile", Name: func(s string) string {
		if s == "ab" {
			return "a\x00b"
		}
		return large
	}})
	tab := open(t, e)
	var sizes []int
	for n := range NameID(tab.NumNames()) {
		s, err := tab.Demangled(n)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(s))
	}
	// The second of two halves of a block does not fit, for lack of space for their ends.
	if want := []int{0, len(large), 0, 0}; !slices.Equal(sizes, want) {
		t.Errorf("sizes %v, want %v", sizes, want)
	}
}

// TestDemangledDirectory damages the part of the header about demangled names.
func TestDemangledDirectory(t *testing.T) {
	funcs, _ := randomDebug(rand.New(rand.NewPCG(7, 7)), 10)
	h, err := parseHeader(encodeShown(t, funcs, testDemangler).Header)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		damage func(h *header)
		want   string
	}{
		{name: "a block less", damage: func(h *header) { h.shown = h.shown[1:] },
			want: "blocks of demangled names"},
		{name: "other counts", damage: func(h *header) { h.shown[0].strs-- },
			want: "9 demangled names and 10 names"},
		{name: "a long identification",
			damage: func(h *header) { h.shownBy = strings.Repeat("x", 256) },
			want:   "identification of 256 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bad := *h
			bad.shown = slices.Clone(h.shown)
			bad.strings = h.strings[:len(h.strings)-len(h.extra)] // as a writer has them
			test.damage(&bad)
			if _, err := parseHeader(bad.append(nil)); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
