package annotate

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// loop is code with jumps up and down, a call of itself, and an inlined call.
const loop = "\x55" + // 0 push %rbp
	"\x48\x85\xff" + // 1 test %rdi,%rdi
	"\x74\x0c" + // 4 je 12
	"\x48\xff\xcf" + // 6 dec %rdi
	"\x75\xfb" + // 9 jne 6
	"\xe8\xf0\xff\xff\xff" + // b call 0
	"\xeb\xf4" + // 10 jmp 6
	"\x5d\xc3" // 12 pop %rbp; ret

// code gives one function its bytes; others have none.
type code struct {
	name   string
	source func(line uint32) (text string, lines int)
	bytes  string
}

func (c code) Code(_ *ingest.Object, f *HotFunction) (*Code, error) {
	if f.SystemName != c.name {
		return nil, errors.New("no file <b>with</b> this build ID")
	}
	return &Code{Machine: "x86_64", PC: 0x401000, Bytes: []byte(c.bytes),
		Origin: "bin/app",
		Notes:  []string{"a note"}, Lines: c.lines}, nil
}

func (c code) lines(offsets []int) []CodeLine {
	list := make([]CodeLine, len(offsets))
	for i, at := range offsets {
		l := CodeLine{File: "/src/loop.c", Line: 3}
		switch {
		case at >= 6 && at < 0xb:
			l = CodeLine{File: "/src/inner.h", Line: 12, Inlined: []string{"operator<"}}
		case at >= 0xb:
			l.Line = 9
		}
		l.Source, l.FileLines = c.source(l.Line)
		list[i] = l
	}
	return list
}

const hostile = "</style><script>alert(\"1\")</script>]]>\x1b[31m\u202e\xff"

func annotation(name, bytes string, source func(uint32) (string, int)) *Annotation {
	b := profilebuild.New(profilebuild.Clock())
	o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/opt/" + hostile}})
	place := func(off addr.Offset, fn string, sym uint64) profilebuild.Place {
		pl := profilebuild.Place{Object: o, Offset: off}
		b.Name(pl, sym, profilebuild.Frame{Name: fn})
		return pl
	}
	row := func(weight uint64, pl profilebuild.Place) {
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: weight, Weight: weight * 1e6,
			Stack: []profilebuild.Place{pl}})
	}
	row(60, place(0x1009, name, 9))
	row(30, place(0x100b, name, 0xb))
	row(9, place(0x1000, name, 0))
	row(1, place(0x9000, "gone", 4))
	return New(b.Profile(), code{name, source, bytes}, Options{})
}

func fits(line uint32) (string, int) { return "\tline <" + string(rune('0'+line%10)) + ">;", 20 }

func write(t *testing.T, a *Annotation) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, a); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	got := write(t, annotation("loop", loop, fits))
	golden.Compare(t, "loop.html", []byte(got))
}

var (
	link   = regexp.MustCompile(`href="#([^"]*)"`)
	anchor = regexp.MustCompile(`id="([^"]*)"`)
)

// TestPage: links lead to rows, jumps inside the function are arrows, text is escaped, and
// nothing is loaded or run.
func TestPage(t *testing.T) {
	page := write(t, annotation(hostile, loop, fits))
	var ids []string
	for _, m := range anchor.FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	slices.Sort(ids)
	if n := len(ids); n < 10 || len(slices.Compact(slices.Clone(ids))) != n {
		t.Errorf("%d anchors, not all distinct: %v", n, ids)
	}
	links := link.FindAllStringSubmatch(page, -1)
	for _, m := range links {
		if _, ok := slices.BinarySearch(ids, m[1]); !ok {
			t.Errorf("a link leads to #%s, which is not there", m[1])
		}
	}
	if len(links) < 7 { // the function, three lines, three jumps and the call
		t.Errorf("only %d links", len(links))
	}
	if up, down := strings.Count(page, `class="up"`), strings.Count(page, `class="down"`); up != 2 ||
		down != 1 {
		t.Errorf("%d arrows up and %d down", up, down)
	}
	for _, bad := range []string{"<script", "\x1b", "\u202e", "\xff", "http:", "https:", "onload"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, "default-src &#39;none&#39;") {
		t.Error("the page has no policy")
	}
}

// TestDisagreement: source that cannot be the compiled one is a warning, other source is not.
func TestDisagreement(t *testing.T) {
	for _, tt := range []struct {
		name   string
		source func(uint32) (string, int)
		want   string
	}{
		{name: "fits", source: fits},
		{name: "no file", source: func(uint32) (string, int) { return "", 0 }},
		{name: "too short", source: func(line uint32) (string, int) { return "x", 8 },
			want: "loop.c: there is code of line 9, and the file has only 8"},
		{name: "empty lines", source: func(line uint32) (string, int) {
			return map[uint32]string{3: "x", 9: "\t", 12: "y"}[line], 20
		}, want: "loop.c: of 2 lines with code 1 are empty or comments, as line 9"},
		{name: "comments", source: func(line uint32) (string, int) {
			return map[uint32]string{3: "x", 9: "y", 12: " /* it */"}[line], 20
		}, want: "inner.h: of 1 lines with code 1 are empty or comments, as line 12"},
	} {
		page := write(t, annotation("loop", loop, tt.source))
		if got := strings.Contains(page, "does not fit the line table"); got != (tt.want != "") ||
			!strings.Contains(page, tt.want) {
			t.Errorf("%s: warning %v, want %q", tt.name, got, tt.want)
		}
	}
}

// TestLarge: of a large function only instructions near samples are shown, and others are counted;
// jumps for which there is no lane are counted.
func TestLarge(t *testing.T) {
	nops := strings.Repeat("\x90", 3*manyInstructions)
	page := write(t, annotation("loop", loop+nops, fits))
	if rows := strings.Count(page, "<tr"); rows > 300 {
		t.Errorf("%d rows", rows)
	}
	if !strings.Contains(page, "instructions without samples") {
		t.Error("what is left out is not counted")
	}
	jumps := ""
	for i := range 40 { // all to the end, from which none is free of another
		jumps += "\x74" + string([]byte{byte(2 * (39 - i))})
	}
	page = write(t, annotation("loop", jumps+"\xc3", fits))
	if drawn := strings.Count(page, `class="down"`); drawn != maxLanes ||
		!strings.Contains(page, "24 jumps are not drawn: there is no space") {
		t.Errorf("%d jumps are drawn", drawn)
	}
}
