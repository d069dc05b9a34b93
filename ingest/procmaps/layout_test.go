package procmaps

import "testing"

// TestLayoutWidens: memory that grows is one mapping.
func TestLayoutWidens(t *testing.T) {
	line := func(start, end uint64, path string) Line {
		m := Mapping{Start: start, End: end, File: File{Path: path}}
		return Line{m, m.Line()}
	}
	var layout Layout
	for _, c := range []struct {
		l    Line
		want bool
	}{
		{l: line(0x2000, 0x3000, ""), want: true},
		{l: line(0x2000, 0x4000, ""), want: true},
		{l: line(0x1000, 0x3000, ""), want: true},
		{l: line(0x2000, 0x2800, ""), want: true},
		{l: line(0x2000, 0x3000, "[heap]")},
		{l: line(0x6000, 0x7000, "[heap]"), want: true},
		{l: line(0x3000, 0x6800, "")},
	} {
		if got := layout.Add([]Line{line(0x9000, 0x9800, "first"), c.l}); got != c.want {
			t.Errorf("%s: added %v", c.l.Text, got)
		}
	}
	low, heap, first := line(0x1000, 0x4000, "").Text, line(0x6000, 0x7000, "[heap]").Text, line(0x9000, 0x9800, "first").Text
	if got, want := string(layout.Text()), low+heap+first; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLayoutOfMaps: to all mappings of a process further memory is added, as that of a run-time
// compiler.
func TestLayoutOfMaps(t *testing.T) {
	const maps = "1000-4000 r-xp 00000000 00:00 0\n4000-5000 rw-p 00000000 00:00 0\n" +
		"9000-9800 r-xp 00001000 08:01 7 /srv/app/bin/app\n"
	line := func(text string) Line {
		m, ok := ParseCode(text)
		if !ok {
			t.Fatalf("%q", text)
		}
		return Line{m, text}
	}
	for _, tt := range []struct {
		name    string
		more    []string
		refused bool
		further string // behind maps
	}{
		{name: "a part", more: []string{"2000-3000 r-xp 00000000 00:00 0\n"}},
		{name: "more, twice", more: []string{"a000-b000 r-xp 00000000 00:00 0\n", "a000-b000 r-xp 00000000 00:00 0\n"},
			further: "a000-b000 r-xp 00000000 00:00 0\n"},
		{name: "grown", more: []string{"1000-4800 r-xp 00000000 00:00 0\n"},
			further: "00001000-00004800 r-xp 00000000 00:00 0 \n"},
		{name: "grown over another file", more: []string{"1000-9400 r-xp 00000000 00:00 0\n"}, refused: true},
		{name: "the file renamed", more: []string{"9000-9800 r-xp 00001000 08:01 7 /srv/app/bin/app (deleted)\n"}},
		{name: "another file", more: []string{"9000-9800 r-xp 00001000 08:01 8 /srv/app/bin/app\n"}, refused: true},
		{name: "another part of the file", more: []string{"9000-9800 r-xp 00002000 08:01 7 /srv/app/bin/app\n"},
			refused: true},
		{name: "one of two fits", more: []string{"a000-b000 r-xp 00000000 00:00 0\n",
			"9000-9800 r-xp 00000000 00:00 0\n"}, refused: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			layout := NewLayout([]byte(maps))
			var lines []Line
			for _, text := range tt.more {
				lines = append(lines, line(text))
			}
			if got := layout.Add(lines); got == tt.refused {
				t.Errorf("added: %v", got)
			}
			if got := string(layout.Text()); got != maps+tt.further {
				t.Errorf("%q, want %q", got, maps+tt.further)
			}
		})
	}
}
