package cfi

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	ingestelf "symbolize/ingest/object/elf"
)

// ranges lists the ranges of all entries.
func ranges(t testing.TB, s *EHFrame) (out []string, lost int, err error) {
	t.Helper()
	lost, err = s.Frames(func(r CodeRange) bool {
		if r.End <= r.Start {
			t.Errorf("empty range %x-%x", r.Start, r.End)
		}
		out = append(out, fmt.Sprintf("%x-%x", uint64(r.Start), uint64(r.End)))
		return true
	})
	return out, lost, err
}

// TestSignalFrames: the augmentation S, before or after the encoding of pointers, marks the
// code that signal handlers return to.
func TestSignalFrames(t *testing.T) {
	f := &frames{class64: true}
	const enc = formatU8
	for i, augmentation := range []string{"zR", "zRS", "zSR", "zR"} {
		f.common(1, augmentation, enc)
		f.function(enc, uint64(0x401000+0x100*i), 0x20)
	}
	var got []string
	lost, err := f.section().Frames(func(r CodeRange) bool {
		got = append(got, fmt.Sprintf("%x %v", uint64(r.Start), r.Signal))
		return true
	})
	want := []string{"401000 false", "401100 true", "401200 true", "401300 false"}
	if lost > 0 || err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, lost %d, %v; want %q", got, lost, err, want)
	}
}

// TestEncodings reads all encodings of pointers.
func TestEncodings(t *testing.T) {
	formats := []byte{formatPtr, formatULEB, formatU4, formatU8, formatSPtr, formatSLEB,
		formatS4, formatS8}
	bases := []byte{0, basePC, baseText, baseData, baseAligned}
	for _, fm := range forms {
		for _, format := range formats {
			for _, base := range bases {
				// The table is above the code, so that differences are negative.
				if base >= basePC && base != baseAligned && base != baseText &&
					(format == formatULEB || fm.class64 && format == formatU4) {
					continue // cannot express a negative one
				}
				enc := format | base
				if base == baseAligned && format != formatPtr {
					continue
				}
				f := &frames{class64: fm.class64, big: fm.big}
				f.common(1, "zR", enc)
				f.function(enc, 0x401000, 0x20)
				f.function(enc, 0x401020, 0)
				f.function(enc, 0x401020, 0x10)
				got, lost, err := ranges(t, f.section())
				if !slices.Equal(got, []string{"401000-401020", "401020-401030"}) || lost > 0 ||
					err != nil {
					t.Errorf("%+v encoding %#x: %v, lost %d, %v", fm, enc, got, lost, err)
				}
			}
		}
	}
}

// TestShort reads two-byte pointers, which reach code near their base.
func TestShort(t *testing.T) {
	for _, enc := range []byte{formatU2 | baseText, formatS2 | basePC} {
		f := &frames{class64: true}
		f.common(1, "zR", enc)
		start := uint64(textBase + 0x1000)
		if enc&baseMask == basePC {
			start = tableAddr - 0x1000
		}
		f.function(enc, start, 0x20)
		got, lost, err := ranges(t, f.section())
		want := fmt.Sprintf("%x-%x", start, start+0x20)
		if !slices.Equal(got, []string{want}) || lost > 0 || err != nil {
			t.Errorf("encoding %#x: %v, want %s; lost %d, %v", enc, got, want, lost, err)
		}
	}
}

// TestCommonEntries reads the known forms of compilers' common entries.
func TestCommonEntries(t *testing.T) {
	const enc = basePC | formatS4
	for _, fm := range forms {
		for _, long := range []bool{false, true} {
			f := &frames{class64: fm.class64, big: fm.big, long: long}
			f.common(1, "")
			f.function(formatPtr, 0x401000, 1)
			f.common(1, "eh")
			f.function(formatPtr, 0x402000, 2)
			f.common(3, "zR", enc)
			f.function(enc, 0x403000, 3)
			f.common(4, "zR", enc)
			f.function(enc, 0x404000, 4)
			f.common(1, "zPLR", 0x9b, 1, 2, 3, 4, 0x1b, enc) // C++
			f.function(enc, 0x405000, 5)
			f.common(1, "zRS", enc) // signal trampoline
			f.function(enc, 0x406000, 6)
			f.common(1, "zRBG", enc) // AArch64
			f.function(enc, 0x407000, 7)
			f.b = append(f.b, 0, 0, 0, 0) // terminator of an object, and more behind it
			f.common(1, "zSR", enc)
			f.function(enc, 0x408000, 8)
			f.b = append(f.b, 0, 0, 0, 0)
			got, lost, err := ranges(t, f.section())
			want := []string{"401000-401001", "402000-402002", "403000-403003", "404000-404004",
				"405000-405005", "406000-406006", "407000-407007", "408000-408008"}
			if !slices.Equal(got, want) || lost > 0 || err != nil {
				t.Errorf("%+v long %v: %v, lost %d, %v", fm, long, got, lost, err)
			}
		}
	}
}

// TestDamagedEntries loses the damaged entries, and no others.
func TestDamagedEntries(t *testing.T) {
	for _, c := range []struct {
		name string
		add  func(f *frames)
		want string
	}{
		{name: "version", add: func(f *frames) { f.common(9, ""); f.function(0, 0x402000, 1) },
			want: "version 9"},
		{name: "augmentation",
			add:  func(f *frames) { f.common(1, "armcc+"); f.function(0, 0x402000, 1) },
			want: "unknown augmentation"},
		{name: "z augmentation",
			add:  func(f *frames) { f.common(1, "zXR", 0); f.function(0, 0x402000, 1) },
			want: "unknown augmentation"},
		{name: "long augmentation", add: func(f *frames) {
			f.common(1, "z"+strings.Repeat("S", maxAugmentation))
			f.function(0, 0x402000, 1)
		}, want: "does not end"},
		{name: "indirect",
			add:  func(f *frames) { f.common(1, "zR", indirect); f.function(0, 0x402000, 1) },
			want: "encoding 0x80"},
		{name: "omitted",
			add:  func(f *frames) { f.common(1, "zR", omitted); f.function(0, 0x402000, 1) },
			want: "encoding 0xff"},
		{name: "format",
			add:  func(f *frames) { f.common(1, "zR", 7); f.function(0, 0x402000, 1) },
			want: "unknown way"},
		{name: "base",
			add:  func(f *frames) { f.common(1, "zR", 0x40); f.function(0, 0x402000, 1) },
			want: "unknown way"},
		{name: "before the section",
			add:  func(f *frames) { f.cie = -100; f.function(0, 0x402000, 1) },
			want: "before the section"},
		{name: "no common entry", add: func(f *frames) {
			f.common(1, "")
			f.cie = len(f.b)
			f.function(0, 0x401500, 0) // of itself
		}, want: "no common entry"},
		{name: "wraps",
			add:  func(f *frames) { f.common(1, ""); f.function(0, ^uint64(0)-8, 100) },
			want: "after the last address"},
		{name: "short", add: func(f *frames) { f.b = append(f.b, 2, 0, 0, 0, 1, 1) },
			want: "too short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &frames{class64: true}
			f.common(1, "")
			f.function(formatPtr, 0x401000, 1)
			c.add(f)
			f.common(1, "")
			f.function(formatPtr, 0x403000, 1)
			got, lost, err := ranges(t, f.section())
			var de *decode.Error
			if !slices.Equal(got, []string{"401000-401001", "403000-403001"}) || lost != 1 ||
				!errors.As(err, &de) || !strings.Contains(err.Error(), c.want) ||
				de.Offset < 0x100 {
				t.Errorf("%v, lost %d, %v; want %q", got, lost, err, c.want)
			}
		})
	}
}

func TestEHFrameStop(t *testing.T) {
	f := everything(true, false)
	n := 0
	if lost, err := f.section().Frames(func(CodeRange) bool { n++; return n < 2 }); n != 2 ||
		lost != 0 || err != nil {
		t.Errorf("%d visited, lost %d, %v", n, lost, err)
	}
}

// TestEHFrameTruncated cuts a section at every length.
func TestEHFrameTruncated(t *testing.T) {
	for _, fm := range forms {
		s := everything(fm.class64, fm.big).section()
		whole, _, _ := ranges(t, s)
		b := s.Data
		for n := range b {
			s.Data = b[:n:n]
			got, lost, err := ranges(t, s)
			if len(got) > len(whole) || !slices.Equal(got, whole[:len(got)]) ||
				(lost > 0) != (err != nil) {
				t.Errorf("cut at %d: %v, lost %d, %v", n, got, lost, err)
			}
		}
	}
}

// TestEHFrameDamaged flips every bit of a section.
func TestEHFrameDamaged(t *testing.T) {
	for _, fm := range forms {
		s := everything(fm.class64, fm.big).section()
		for i := range s.Data {
			for bit := range 8 {
				s.Data[i] ^= 1 << bit
				if _, lost, err := ranges(t, s); (lost > 0) != (err != nil) {
					t.Errorf("lost %d, %v", lost, err)
				}
				s.Data[i] ^= 1 << bit
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	s := everything(true, false).section()
	n := 0
	if allocs := testing.AllocsPerRun(10, func() {
		s.Frames(func(CodeRange) bool { n++; return true })
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func FuzzRanges(f *testing.F) {
	for i, fm := range forms {
		f.Add(everything(fm.class64, fm.big).b, byte(i))
	}
	f.Fuzz(func(t *testing.T, b []byte, form byte) {
		fm := forms[form%4]
		s := (&frames{b: b, class64: fm.class64, big: fm.big}).section()
		if got, lost, err := ranges(t, s); (lost > 0) != (err != nil) || len(got)+lost > len(b)/4+1 {
			t.Errorf("%d ranges of %d bytes, lost %d, %v", len(got), len(b), lost, err)
		}
	})
}

func openELF(t testing.TB, name string, b []byte) *ingestelf.File {
	t.Helper()
	f, err := ingestelf.Open(name, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFindEHFrame(t *testing.T) {
	f := everything(true, false)
	text := elfbuild.Section{Name: ".text", Flags: elfbuild.Code, Addr: textBase,
		Data: make([]byte, 16)}
	got := elfbuild.Section{Name: ".got", Flags: elfbuild.Data, Addr: gotAddr,
		Data: make([]byte, 16)}
	frame := elfbuild.Section{Name: ".eh_frame", Flags: elf.SHF_ALLOC, Addr: tableAddr, Data: f.b}
	file := &elfbuild.File{Sections: []elfbuild.Section{text, got, frame}}
	s, err := FindEHFrame(openELF(t, "test", file.Bytes()))
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	want, _, _ := ranges(t, f.section())
	if out, lost, err := ranges(t, s); !slices.Equal(out, want) || lost != 0 || err != nil {
		t.Errorf("%v, lost %d, %v", out, lost, err)
	}
	rel := *file
	rel.Type = elf.ET_REL
	for name, f := range map[string]*elfbuild.File{
		"none": {Sections: file.Sections[:2]}, "debug file": file.DebugOnly(), "object": &rel,
	} {
		if s, err := FindEHFrame(openELF(t, name, f.Bytes())); s != nil || err != nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// system returns the unwind tables of programs of this system.
func system(t testing.TB) (sections []*EHFrame, files []*ingestelf.File) {
	t.Helper()
	for _, path := range []string{"/bin/bash", "/bin/ls", "/usr/bin/perl", "/bin/sh"} {
		b, err := os.ReadFile(path)
		if err != nil || !ingestelf.IsELF(b) {
			continue
		}
		f := openELF(t, path, b)
		s, err := FindEHFrame(f)
		if err != nil {
			t.Fatal(err)
		}
		if s != nil {
			sections, files = append(sections, s), append(files, f)
		}
	}
	if len(sections) == 0 {
		t.Skip("SKIPPED: no programs with .eh_frame on " + runtime.GOOS)
	}
	return sections, files
}

// TestHeader compares the starts of functions with those in .eh_frame_hdr, the index
// that the linker made.
func TestHeader(t *testing.T) {
	sections, files := system(t)
	for i, s := range sections {
		hdr := files[i].Section(".eh_frame_hdr")
		if hdr == nil || !s.Class64 || s.BigEndian {
			continue
		}
		b, err := files[i].Data(hdr, 0)
		if err != nil {
			t.Fatal(err)
		}
		// version 1, table of data-relative four-byte pairs, four-byte count
		if len(b) < 12 || b[0] != 1 || b[2] != formatU4 || b[3] != baseData|formatS4 {
			continue
		}
		var want []addr.Addr
		for n := binary.LittleEndian.Uint32(b[8:]); n > 0; n-- {
			off := int32(binary.LittleEndian.Uint32(b[12+8*len(want):]))
			want = append(want, hdr.Addr+addr.Addr(int64(off)))
		}
		var got []addr.Addr
		lost, err := s.Frames(func(r CodeRange) bool {
			got = append(got, r.Start)
			if _, _, ok := files[i].Mapped(r.End - 1); !ok {
				t.Errorf("%s: %x-%x is not in the file", s.Name, r.Start, r.End)
			}
			return true
		})
		slices.Sort(got)
		if !slices.Equal(got, want) || lost != 0 || err != nil {
			t.Errorf("%s: %d functions, want %d; lost %d, %v", s.Name, len(got), len(want), lost,
				err)
		}
		t.Logf("%s: %d functions", s.Name, len(got))
	}
}

func BenchmarkRanges(b *testing.B) {
	sections, _ := system(b)
	s := sections[0]
	b.SetBytes(int64(len(s.Data)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = 0
		s.Frames(func(CodeRange) bool { n++; return true })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/range")
}
