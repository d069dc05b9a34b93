package symtab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"symbolize/ingest/addr"
)

// showStarts joins addrs and prints name@start of each frame, name@? where it is unknown.
func showStarts(t *testing.T, tab *Table, addrs []addr.Addr) (out []string) {
	t.Helper()
	err := tab.JoinFrames(addrs, func(i int, _ Hit, frames []Frame) {
		text := fmt.Sprintf("%#x", addrs[i])
		if got := len(tab.Starts()); got != len(frames) {
			t.Fatalf("%d starts of %d frames", got, len(frames))
		}
		for k, s := range tab.Starts() {
			name := "-"
			if frames[k].Name != NoName {
				var err error
				if name, err = tab.Name(frames[k].Name); err != nil {
					t.Fatal(err)
				}
			}
			if s.OK {
				text += fmt.Sprintf(" %s@%#x", name, s.Addr)
			} else {
				text += " " + name + "@?"
			}
		}
		out = append(out, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStarts: a call starts with its code, or with the code of calls within it; calls in several
// pieces have no start.
func TestStarts(t *testing.T) {
	f := one("fn", 0x1000, 0x1100, 1)
	f.inlines = []testInline{
		{name: "a", parent: NoParent, ranges: rng1(0x1010, 0x1050)},
		{name: "b", parent: 0, ranges: rng1(0x1010, 0x1030)},
		{name: "c", parent: NoParent,
			ranges: []addr.Range{{Start: 0x1060, End: 0x1070}, {Start: 0x1080, End: 0x1090}}},
		{name: "d", parent: 2, ranges: rng1(0x1080, 0x1090)},
		{name: "e", parent: NoParent, ranges: rng1(0x10f0, 0x1100)},
	}
	bare := testFunc{ranges: rng1(0x2000, 0x2010), lines: []testLine{{addr: 0x2000, file: "/a.S",
		line: 1, col: 0}}}
	e := encodeDebug(t, Options{}, []testFunc{f, one("next", 0x1100, 0x1200, 1), bare})
	tab := open(t, e)
	if tab.Starts() != nil {
		t.Error("starts before they were asked for")
	}
	tab.KeepStarts()
	got := showStarts(t, tab, []addr.Addr{0x1000, 0x1018, 0x1030, 0x1060, 0x1088, 0x10ff, 0x1100,
		0x2004})
	want := []string{
		"0x1000 fn@0x1000", "0x1018 b@0x1010 a@0x1010 fn@0x1000", "0x1030 a@0x1010 fn@0x1000",
		"0x1060 c@? fn@0x1000", "0x1088 d@0x1080 c@? fn@0x1000", "0x10ff e@0x10f0 fn@0x1000",
		"0x1100 next@0x1100", "0x2004 -@?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestStartsChangeNoFrames: frames are the same with and without starts.
func TestStartsChangeNoFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	funcs, end := randomDebug(rng, 60)
	e := encodeDebug(t, Options{ChunkSize: 512, Columns: true}, funcs)
	var addrs []addr.Addr
	for a := addr.Addr(0); a < end; a += addr.Addr(1 + rng.IntN(5)) {
		addrs = append(addrs, a)
	}
	var texts [2]string
	for i := range texts {
		tab := open(t, e)
		if i == 1 {
			tab.KeepStarts()
		}
		err := tab.JoinFrames(addrs, func(k int, hit Hit, frames []Frame) {
			texts[i] += fmt.Sprintf("%d %v %v\n", k, hit, frames)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if texts[0] != texts[1] || len(texts[0]) < 1000 {
		t.Errorf("with starts:\n%.500s\nwithout:\n%.500s", texts[1], texts[0])
	}
}
