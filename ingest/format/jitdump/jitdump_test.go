package jitdump_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/jitbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/jitdump"
)

func open(b []byte) (*jitdump.File, error) {
	return jitdump.Open("d", bytes.NewReader(b), int64(len(b)))
}

// text prints the content of a file, a line for each placement and source line.
func text(t *testing.T, f *jitdump.File) string {
	t.Helper()
	var b strings.Builder
	for _, p := range f.Placed {
		l := &f.Loads[p.Load]
		code, err := f.Code(l)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&b, "%d %x %s %x\n", p.Time, p.Addr, l.Name, code)
		lines, err := f.Lines(l)
		if err != nil {
			t.Error(err)
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "  +%d %s:%d:%d\n", line.Offset, line.File, line.Line, line.Column)
		}
	}
	return b.String()
}

func TestOpen(t *testing.T) {
	for _, big := range []bool{false, true} {
		d := jitbuild.New(big, 77, 62, 5, 1)
		d.Load(10, 0x1000, 1, "a", []byte{1, 2})
		d.Lines(20, 0x2000, jitbuild.Line{Addr: 0x2000, Line: 7, Discriminator: 3, File: "x.js"},
			jitbuild.Line{Addr: 0x2001, Line: 8, File: "\xff"},
			jitbuild.Line{Addr: 0x2003, Line: 9, File: "y.js"}) // behind the function's end
		d.Unwinding(20, []byte{9}, nil)
		d.Load(20, 0x2000, 2, "b c", []byte{3, 4})
		d.Move(30, 0x1000, 0x3000, 2, 1)
		d.Close(40)
		d.Load(50, 0x9000, 9, "behind the end", []byte{9})
		f, err := open(d.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		want := "10 1000 a 0102\n20 2000 b c 0304\n  +0 x.js:7:0\n  +1 x.js:8:0\n30 3000 a 0102\n"
		if got := text(t, f); got != want {
			t.Errorf("big endian %v: got\n%swant\n%s", big, got, want)
		}
		if f.PID != 77 || f.Machine != 62 || f.Start != 5 || !f.ArchTime || f.BigEndian != big {
			t.Errorf("header %+v", f)
		}
		for i := range f.Loads {
			l := &f.Loads[i]
			if f.At(l.Code) != l || f.At(l.Code+1) != l || f.At(l.Code+2) != nil || f.At(l.Code-1) != nil {
				t.Errorf("At does not find %s alone", l.Name)
			}
		}
	}
}

// TestFrames has the unwinding information of the functions after it, and records with wrong sizes.
func TestFrames(t *testing.T) {
	for _, big := range []bool{false, true} {
		d := jitbuild.New(big, 77, 62, 5, 0)
		d.Unwinding(1, []byte("not the last one"), nil)
		d.Unwinding(2, []byte("section"), []byte("header"))
		d.Load(2, 0x1000, 1, "a", []byte{1, 2})
		d.Load(3, 0x2000, 2, "none", []byte{3, 4})
		at := len(d.Bytes())
		d.Unwinding(4, []byte("section"), []byte("header"))
		d.Load(4, 0x3000, 3, "b", []byte{5, 6})
		for _, c := range []struct {
			name   string
			at     int // of a number in the last record
			value  uint64
			frames []string
		}{
			{name: "whole", at: 16, value: 13, frames: []string{"section", "", "section"}},
			{name: "longer than the record", at: 16, value: 17, frames: []string{"section", "", "error"}},
			{name: "huge", at: 16, value: 1<<64 - 1, frames: []string{"section", "", "error"}},
			{name: "a header longer than all", at: 24, value: 14, frames: []string{"section", "", "error"}},
		} {
			b := slices.Clone(d.Bytes())
			var order binary.ByteOrder = binary.LittleEndian
			if big {
				order = binary.BigEndian
			}
			order.PutUint64(b[at+c.at:], c.value)
			f, err := open(b)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.frames {
				got, off, err := f.Frames(&f.Loads[i])
				if (err != nil) != (want == "error") || err == nil && string(got) != want ||
					len(got) > 0 && string(b[off:][:len(got)]) != want {
					t.Errorf("%s, big endian %v: function %d: %q at %d, %v, want %q", c.name, big, i, got,
						off, err, want)
				}
			}
		}
	}
}

// TestV8Lines: V8 adds the 64 bytes of an ELF header to the addresses of lines, and columns.
func TestV8Lines(t *testing.T) {
	d := jitbuild.New(false, 1, 62, 0, 0)
	d.Lines(1, 0x1000, jitbuild.Line{Addr: 0x1040, Line: 1, Discriminator: 5, File: "a"},
		jitbuild.Line{Addr: 0x1050, Line: 2, Discriminator: 6, File: "a"})
	d.Load(1, 0x1000, 1, "f", make([]byte, 0x20))
	f, err := open(d.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := []jitdump.Line{{Offset: 0, File: "a", Line: 1, Column: 5}, {Offset: 16, File: "a", Line: 2, Column: 6}}
	if got, err := f.Lines(&f.Loads[0]); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// TestRubbishFiles: entries with bytes of freed memory as their files, NULs among them, keep their
// lines, and the file of the function's name if it is as long; others are an error.
func TestRubbishFiles(t *testing.T) {
	for _, c := range []struct{ name, rubbish, want string }{
		{name: "JS:*f /srv/a.js:1:13", rubbish: "\xe0\x00\x00\x01\x02\xff4|", want: "/srv/a.js"},
		{name: "JS:*f /srv/another.js:1:13", rubbish: "\xe0\x00\x00\x01\x02\xff4|"},
		{name: "JS:*f", rubbish: "\xe0\x00\x00\x01\x02\xff4|"},
		{name: "JS:*f /srv/a.js:1:13", rubbish: "\xe0", want: "error"},
	} {
		d := jitbuild.New(false, 1, 62, 0, 0)
		d.Lines(1, 0x1000, jitbuild.Line{Addr: 0x1000, Line: 1, File: c.rubbish + "x"},
			jitbuild.Line{Addr: 0x1010, Line: 2, File: "/srv/a.js"})
		d.Load(1, 0x1000, 1, c.name, make([]byte, 0x20))
		f, err := open(d.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		want := []jitdump.Line{{Offset: 0, File: c.want, Line: 1}, {Offset: 16, File: c.want, Line: 2}}
		got, err := f.Lines(&f.Loads[0])
		if c.want == "error" {
			if err == nil || len(got) > 0 {
				t.Errorf("%v, %v", got, err)
			}
		} else if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, want)
		}
	}
}

// TestIdentity: a file that grows keeps its identity; another process's has another.
func TestIdentity(t *testing.T) {
	id := func(pid int32, loads uint64) string {
		d := jitbuild.New(false, pid, 62, 5, 0)
		for i := range loads {
			d.Load(i, 0x1000*i, i, "f", []byte{1})
		}
		f, err := open(d.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Identity()
		if err != nil {
			t.Fatal(err)
		}
		if got.IsZero() {
			return ""
		}
		return got.String()
	}
	if id(1, 1) != id(1, 3) || id(1, 1) == id(2, 1) || id(1, 0) != "" || id(1, 1) == "" {
		t.Errorf("%s %s %s %q", id(1, 1), id(1, 3), id(2, 1), id(1, 0))
	}
}

func TestOverlaps(t *testing.T) {
	f, err := open(jitbuild.Dump(false))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Overlaps(); got != 1 {
		t.Errorf("%d functions overlap, want gamma alone", got)
	}
}

// TestReused: addresses of several functions, one after another.
func TestReused(t *testing.T) {
	for _, c := range []struct {
		name string
		at   []uint64 // of functions of 16 bytes, one after another
		move bool     // the first goes to 0x900 and back
		want []addr.Range
	}{
		{name: "none"},
		{name: "side by side", at: []uint64{0x100, 0x110}},
		{name: "one in place of another", at: []uint64{0x100, 0x100},
			want: []addr.Range{{Start: 0x100, End: 0x110}}},
		{name: "a part", at: []uint64{0x100, 0x10c, 0x118, 0x200},
			want: []addr.Range{{Start: 0x10c, End: 0x110}, {Start: 0x118, End: 0x11c}}},
		{name: "adjacent", at: []uint64{0x100, 0x110, 0x108}, want: []addr.Range{{Start: 0x108, End: 0x118}}},
		{name: "moved away and back", at: []uint64{0x100}, move: true},
		{name: "moved away, another, and back", at: []uint64{0x100, 0x100}, move: true,
			want: []addr.Range{{Start: 0x100, End: 0x110}}},
	} {
		d := jitbuild.New(false, 7, 62, 1, 0)
		for i, at := range c.at {
			d.Load(uint64(i+1), at, uint64(i), fmt.Sprint("f", i), make([]byte, 16))
		}
		if c.move {
			d.Move(50, c.at[0], 0x900, 16, 0)
			d.Move(60, 0x900, c.at[0], 16, 0)
		}
		f, err := open(d.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Reused(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// TestBadRecords: a record that makes no sense is counted, and those behind it are read.
func TestBadRecords(t *testing.T) {
	load := func(change func(record []byte)) []byte {
		d := jitbuild.New(false, 1, 62, 0, 0)
		at := len(d.Bytes())
		d.Load(1, 0x1000, 1, "f", []byte{1})
		change(d.Bytes()[at:])
		d.Load(2, 0x2000, 2, "g", []byte{2})
		return d.Bytes()
	}
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"code beyond the record": {in: load(func(r []byte) { le.PutUint64(r[40:], 2) }),
			want: "2 left|code of 2 bytes"},
		"no code": {in: load(func(r []byte) { le.PutUint64(r[40:], 0) }),
			want: "code of 0 bytes"},
		"end of the addresses": {in: load(func(r []byte) { le.PutUint64(r[32:], ^uint64(0)) }),
			want: "at 0xffff"},
		"endless name": {in: load(func(r []byte) { r[57] = 'x'; r[58] = 'x' }),
			want: "name without an end"},
		"a move of nothing": {in: load(func(r []byte) { r[0] = 1 }), want: "MOVE record of"},
	} {
		f, err := open(c.in)
		if err != nil || f.Bad != 1 || len(f.Loads) != 1 || f.Loads[0].Name != "g" {
			t.Errorf("%s: %v, %+v", name, err, f)
			continue
		}
		if !slices.ContainsFunc(strings.Split(c.want, "|"), func(s string) bool {
			return strings.Contains(f.FirstBad.Error(), s)
		}) {
			t.Errorf("%s: %v", name, f.FirstBad)
		}
	}
}

func TestDamaged(t *testing.T) {
	for name, in := range map[string]string{"empty": "", "another file": "\x7fELF", "header alone": "DTiJ\x01\x00\x00\x00"} {
		if f, err := open([]byte(in)); f != nil || err == nil {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	d := jitbuild.Dump(false)
	d[4] = 2
	if _, err := open(d); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
}

// walk reads all that a file has.
func walk(f *jitdump.File) {
	for i := range f.Loads {
		f.Code(&f.Loads[i])
		f.Lines(&f.Loads[i])
		f.Frames(&f.Loads[i])
	}
	f.Identity()
	f.Overlaps()
}

// TestTruncated: of each part of a file the whole records are read.
func TestTruncated(t *testing.T) {
	for _, big := range []bool{false, true} {
		whole := jitbuild.Dump(big)
		last := 0
		for n := range len(whole) {
			f, err := open(whole[:n])
			if f == nil {
				continue
			}
			walk(f)
			if len(f.Loads) < last || err == nil && len(f.Loads) == 3 {
				t.Errorf("%d bytes: %d functions, %v", n, len(f.Loads), err)
			}
			last = len(f.Loads)
		}
		if last != 2 {
			t.Errorf("%d functions before the last byte", last)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(jitbuild.Dump(false))
	f.Add(jitbuild.Dump(true))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := open(b)
		if d == nil {
			if err == nil {
				t.Fatal("neither a file nor an error")
			}
			return
		}
		for i := range d.Placed {
			if d.Placed[i].Load >= len(d.Loads) {
				t.Fatal("a placement of no function")
			}
		}
		walk(d)
	})
}
