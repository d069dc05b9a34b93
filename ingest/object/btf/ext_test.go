package btf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/elf"
)

// extParts has the words of a .BTF.ext: each part is its record size, then its sections.
type extParts [3][]uint32

func (p *extParts) bytes(b *builder, headerWords int) []byte {
	out := b.order.AppendUint16(nil, magic)
	out = append(out, version, 0)
	out = b.order.AppendUint32(out, uint32(8+4*headerWords))
	at := 0
	for i := range headerWords / 2 {
		out = b.order.AppendUint32(out, uint32(at))
		out = b.order.AppendUint32(out, uint32(4*len(p[i])))
		at += 4 * len(p[i])
	}
	for _, part := range p[:headerWords/2] {
		for _, w := range part {
			out = b.order.AppendUint32(out, w)
		}
	}
	return out
}

// extOf builds types and a .BTF.ext of two sections; the records of lines have an additional
// word.
func extOf(big bool) (b *builder, types []byte, parts *extParts) {
	b = newBuilder(big)
	proto := b.add(KindFuncProto, "", false, 0, 0)
	fn := uint32(b.ref(KindFunc, "run", proto))
	text, xdp := b.name(".text"), b.name("xdp")
	file, line, access := b.name("a.c"), b.name("return 0;"), b.name("0:1")
	return b, b.bytes(), &extParts{
		{8, text, 2, 0, fn, 16, fn, xdp, 1, 0, fn},
		{20, text, 2, 0, file, line, 7<<10 | 3, 99, 8, file, line, 8 << 10, 99,
			xdp, 1, 0, file, 0, 1<<10 | 1023, 99},
		{16, xdp, 1, 24, fn, access, 2},
	}
}

// TestExt reads all three parts in both byte orders, and a header without the third.
func TestExt(t *testing.T) {
	for _, big := range []bool{false, true} {
		b, raw, parts := extOf(big)
		types, err := Parse("test", raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		const noCores = "[{.text [{0 2} {16 2}] [{0 7 3 a.c return 0;} {8 8 0 a.c return 0;}] []}" +
			" {xdp [{0 2}] [{0 1 1023 a.c }] []}]"
		x, err := parseExt("test", parts.bytes(b, 4), 0, types)
		if got := fmt.Sprint(x.Sections); err != nil || got != noCores {
			t.Errorf("%s, error %v", got, err)
		}
		x, err = parseExt("test", parts.bytes(b, 6), 0, types)
		want := strings.TrimSuffix(noCores, "[]}]") + "[{24 2 0:1 2}]}]"
		if got := fmt.Sprint(x.Sections); err != nil || got != want {
			t.Errorf("%s, error %v", got, err)
		}
		if s := sectionOf(x, "xdp"); s == nil || s.Name != "xdp" || sectionOf(x, "none") != nil {
			t.Errorf("sections %v", s)
		}
	}
}

// TestExtDamaged: each damage has its reason and position; the valid part before is kept.
func TestExtDamaged(t *testing.T) {
	for _, big := range []bool{false, true} {
		b, raw, parts := extOf(big)
		types, err := Parse("test", raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		ext := parts.bytes(b, 6)
		lines := 32 + 4*len(parts[0])
		for _, c := range []struct {
			at          int
			v           uint32
			want        string
			funcs, rows int // of .text that are kept
		}{
			{at: 0, v: 0, want: "magic", funcs: 0, rows: 0},
			{at: 4, v: 8, want: "a header of 8 bytes", funcs: 0, rows: 0},
			{at: 8, v: 1 << 30, want: "past the end", funcs: 0, rows: 0},
			{at: 12, v: 1 << 30, want: "bytes wanted", funcs: 0, rows: 0},
			{at: 32, v: 4, want: "records of 4 bytes", funcs: 0, rows: 0},
			{at: 36, v: 1 << 30, want: "a section's name", funcs: 0, rows: 0},
			{at: 40, v: 0xffffffff, want: "bytes wanted", funcs: 0, rows: 0},
			{at: 56, v: 77, want: "type 77 of 3", funcs: 1, rows: 0},
			{at: lines, v: 8, want: "records of 8 bytes", funcs: 2, rows: 0},
			{at: lines + 36, v: 1 << 30, want: "behind all strings", funcs: 2, rows: 1},
		} {
			x, err := parseExt("test", put(big, ext, c.at, c.v), 1000, types)
			var e *decode.Error
			if !errors.As(err, &e) || !strings.Contains(e.Reason, c.want) || e.Offset < 1000 ||
				e.Offset > int64(1000+len(ext)) {
				t.Errorf("%#x at %d: error %v, want %q", c.v, c.at, err, c.want)
				continue
			}
			var funcs, rows int
			if s := sectionOf(x, ".text"); s != nil {
				funcs, rows = len(s.Funcs), len(s.Lines)
			}
			if funcs != c.funcs || rows != c.rows {
				t.Errorf("%#x at %d: %d functions and %d lines are kept, want %d and %d",
					c.v, c.at, funcs, rows, c.funcs, c.rows)
			}
		}
		for n := range ext {
			if _, err := parseExt("test", ext[:n:n], 0, types); err == nil {
				t.Fatalf("%d bytes of %d are whole", n, len(ext))
			}
		}
	}
}

// openELF opens a file of the fixtures.
func openELF(t testing.TB, path string) (*elf.File, []byte) {
	t.Helper()
	raw := must.Read(t, path)
	f, err := elf.Open(path, bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return f, raw
}

// sectionOf returns the description of a section of code, or nil.
func sectionOf(x *Ext, name string) *ExtSection {
	for i := range x.Sections {
		if x.Sections[i].Name == name {
			return &x.Sections[i]
		}
	}
	return nil
}
