package annotate

import (
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// TestParts: each function is a part of its own, instructions name the line of source that they are
// of, and locations lead to their instructions.
func TestParts(t *testing.T) {
	p := profilebuild.New(profilebuild.Clock())
	o := p.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/app"}})
	for _, off := range []addr.Offset{0, 7, 9, 0x13, 0x40} { // 7 is inside of dec, 40 after the code
		place := profilebuild.Place{Object: o, Offset: 0x1000 + off}
		p.Name(place, uint64(off), profilebuild.Frame{Name: "loop<b>"})
		p.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1, Stack: []profilebuild.Place{place}})
	}
	other := profilebuild.Place{Object: o, Offset: 0x9000}
	p.Name(other, 0, profilebuild.Frame{Name: "other"})
	p.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1, Stack: []profilebuild.Place{other}})
	prof := p.Profile()
	source := func(uint32) (string, int) { return "a < b", 20 }
	a := New(prof, code{name: "loop<b>", bytes: loop, source: source}, Options{})
	parts, err := NewParts(a)
	if err != nil || len(parts.Functions) != 1 {
		t.Fatalf("%+v, %v", parts, err)
	}
	f := parts.Functions[0]
	if f.SystemName != "loop<b>" || f.Object != "/bin/app" ||
		!strings.HasPrefix(f.HTML, `<section id="f1">`) || strings.Contains(f.HTML, "<b>") ||
		!strings.Contains(f.HTML, `<tr id="f1i9" data-line="f1i6" class="`) {
		t.Errorf("%+v", f)
	}
	if len(f.Calls) != 1 || f.Calls[0].SystemName != "operator<" || f.Calls[0].Value != 2 ||
		!slices.Equal(f.Calls[0].Offsets, []int{6, 9}) {
		t.Errorf("calls %+v", f.Calls)
	}
	if !strings.Contains(parts.List, `<a href="#f1">`) || !strings.Contains(parts.List, "no file &lt;b&gt;") {
		t.Errorf("%q", parts.List)
	}
	line := a.Lines(prof)
	var got []uint32
	for i := range prof.Locations {
		got = append(got, line(ingest.LocationID(i)))
	}
	want := []uint32{1 << 20, 1<<20 | 6, 1<<20 | 9, 1<<20 | 0x13, 0, 0}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("lines %x, want %x", got, want)
		}
	}
	if parts, err := NewParts(&Annotation{}); parts != nil || err != nil {
		t.Errorf("of nothing: %v, %v", parts, err)
	}
}
