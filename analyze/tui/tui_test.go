package tui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"symbolize/analyze/calltree"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// code is an annotation as package annotate writes it.
const code = "event: cpu-clock\n\n  Percent | Offset | Source code\n" +
	"          |        | \x1b[34m; a.c:1  \tint f(void)\x1b[0m\n" +
	" \x1b[32m    1.00\x1b[0m |      0 |    push %rbp\n" +
	">\x1b[31m   71.00\x1b[0m |      1 | \x1b[1mmov %rsp,%rbp\x1b[0m\n" +
	" \x1b[31m   28.00\x1b[0m |      4 |    ret\n"

// run shows a profile on a simulated screen, presses keys (see press), and returns the UI with what
// is on the screen before the last page is closed.
func run(t *testing.T, p *ingest.Profile, width, height int, keys string) (*UI, string) {
	t.Helper()
	screen := tcell.NewSimulationScreen("UTF-8")
	u := New(p, screen, Options{Title: "x.data", Color: true,
		Annotate: func(n *calltree.Node, event int, stacks bool) (string, error) {
			if n.Name != "main" && !strings.HasPrefix(n.Name, "memcpy") {
				return "", errors.New("no code\x1b of " + n.Name)
			}
			return code, nil
		},
		Missing: func(int) (string, error) { return "not indexed\n  symbolize index X\n", nil }})
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	defer screen.Fini()
	screen.SetSize(width, height)
	for _, word := range strings.Fields(keys) {
		u.draw()
		press(u, word)
	}
	u.draw()
	return u, contents(screen)
}

// press presses a key by its name, or the letters of a word.
func press(u *UI, word string) {
	for key, name := range tcell.KeyNames {
		if name == word {
			u.key(tcell.NewEventKey(key, 0, tcell.ModNone))
			return
		}
	}
	for _, r := range word {
		u.key(tcell.NewEventKey(tcell.KeyRune, r, tcell.ModNone))
	}
}

// contents is the text of a screen, with » before rows in reverse.
func contents(screen tcell.SimulationScreen) string {
	cells, width, height := screen.GetContents()
	var b strings.Builder
	for y := range height {
		mark, line := "  ", ""
		for x := range width {
			cell := &cells[y*width+x]
			if _, _, attr := cell.Style.Decompose(); attr&tcell.AttrReverse != 0 {
				mark = "» "
			}
			line += string(cell.Runes)
		}
		b.WriteString(strings.TrimRight(mark+line, " ") + "\n")
	}
	return b.String()
}

func TestScreens(t *testing.T) {
	var all bytes.Buffer
	every, calls := profilebuild.EveryKind(), profilebuild.Calls(2, true)
	for _, tt := range []struct {
		name          string
		p             *ingest.Profile
		width, height int // 100 and 24 if not set
		keys          string
	}{
		{name: "functions", p: every},
		{name: "narrow", p: every, width: 44, height: 10},
		{name: "unfolded", p: every, keys: "Enter Down Enter"},
		{name: "folded-again", p: every, keys: "Enter Down Left Left"},
		{name: "by-cum", p: every, keys: "2"},
		{name: "tree", p: calls, keys: "3 E"},
		{name: "callers", p: calls, keys: "Down < E"},
		{name: "callees", p: calls, keys: "2 > E"},
		{name: "filtered", p: every, keys: "/ m E M Enter"},
		{name: "filter-edited", p: every, keys: "/ main Backspace2 x"},
		{name: "filter-cleared", p: every, keys: "/ zzz Enter Esc"},
		{name: "object", p: every, keys: "/ main Enter d"},
		{name: "found-in-tree", p: calls, keys: "3 C / f1_3 Enter n"},
		{name: "found-before", p: calls, keys: "3 C / f1_3 Enter N"},
		{name: "found-in-code", p: every, keys: "/ memcpy Enter a / PUSH Enter"},
		{name: "not-found", p: calls, keys: "3 / nothing Enter"},
		{name: "code", p: every, keys: "/ memcpy Enter a"},
		{name: "code-next", p: every, keys: "/ memcpy Enter a Tab"},
		{name: "code-instructions", p: every, keys: "/ memcpy Enter a s"},
		{name: "code-scrolled", p: every, keys: "/ memcpy Enter a Right"},
		{name: "no-code", p: every, keys: "/ ext4_read Enter a"},
		{name: "unnamed", p: every, keys: "/ [libc Enter a"},
		{name: "next-event", p: every, keys: "Tab"},
		{name: "missing", p: every, keys: "m"},
		{name: "help", p: every, keys: "h"},
		{name: "back", p: every, keys: "h q"},
		{name: "end", p: calls, height: 8, keys: "End"},
		{name: "empty", p: &ingest.Profile{}, keys: "Down a < Enter 3 Tab n"},
		{name: "tiny", p: every, width: 8, height: 2, keys: "Down Down"},
	} {
		_, text := run(t, tt.p, cmp.Or(tt.width, 100), cmp.Or(tt.height, 24), tt.keys)
		fmt.Fprintf(&all, "-- %s: %s --\n%s", tt.name, tt.keys, text)
	}
	golden.Compare(t, "screens.txt", all.Bytes())
}

// TestQuit: q quits at the first page only, ^C anywhere, and the end of ctx is an error.
func TestQuit(t *testing.T) {
	for _, tt := range []struct {
		keys string
		done bool
	}{
		{keys: "q", done: true}, {keys: "h q"}, {keys: "h q q", done: true},
		{keys: "h Ctrl-C", done: true}, {keys: "/ Ctrl-C", done: true}, {keys: "Esc"},
		{keys: "/ q"}, {keys: "Left"},
	} {
		if u, _ := run(t, profilebuild.EveryKind(), 80, 24, tt.keys); u.done != tt.done {
			t.Errorf("%s: done %v", tt.keys, u.done)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	u := New(profilebuild.EveryKind(), tcell.NewSimulationScreen("UTF-8"), Options{})
	if err := u.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of ctx: %v", err)
	}
}

// TestAgainstTree: every row of an opened tree has the values of the report of tree.
func TestAgainstTree(t *testing.T) {
	for seed := range uint64(10) {
		p := profilebuild.Calls(seed, true)
		u, _ := run(t, p, 100, 24, "3 E")
		want := calltree.NewTree(p, calltree.Options{}, calltree.TreeOptions{MinShare: minShare})
		var list []*calltree.Branch
		var add func([]*calltree.Branch)
		add = func(branches []*calltree.Branch) {
			for _, b := range branches {
				list = append(list, b)
				add(b.Children)
			}
		}
		add(want.Roots)
		i := 0
		for _, e := range u.page().visible {
			if e.rest {
				continue
			}
			if i >= len(list) || list[i].Flat != e.flat || list[i].Cum != e.cum {
				t.Fatalf("seed %d: row %d differs from the tree", seed, i)
			}
			i++
		}
		if i != len(list) || i < 10 {
			t.Fatalf("seed %d: %d rows, want %d", seed, i, len(list))
		}
	}
}
