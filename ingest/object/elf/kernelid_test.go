package elf

import (
	"bytes"
	"debug/elf"
	"slices"
	"testing"

	"symbolize/fixtures/elfbuild"
)

// TestKernelIDVisibility: visibility of a build ID to both generations of kernels.
func TestKernelIDVisibility(t *testing.T) {
	id := bytes.Repeat([]byte{0xab}, 20)
	long := bytes.Repeat([]byte{0xcd}, 24)
	note := elf.PT_NOTE
	// behind puts the note last, behind text bytes of code.
	behind := func(text int, id []byte) *elfbuild.File {
		f := elfbuild.Lib(id, uint64(text))
		f.Sections = append(f.Sections[1:], f.Sections[0])
		return f
	}
	without := func() *elfbuild.File {
		f := elfbuild.Lib(id, 64)
		f.Segments = slices.DeleteFunc(f.Segments,
			func(s elfbuild.Segment) bool { return s.Type == note })
		return f
	}
	other := func(name string, kind uint32, desc []byte) *elfbuild.File {
		f := elfbuild.Lib(id, 64)
		f.Sections[0].Data = append(f.Note(name, kind, desc, 4), f.Sections[0].Data...)
		return f
	}
	headers := func(n int) *elfbuild.File {
		f := elfbuild.Lib(id, 64)
		f.Segments = slices.Insert(f.Segments, 0, slices.Repeat([]elfbuild.Segment{
			{Type: elf.PT_GNU_STACK}}, n)...)
		return f
	}
	class32 := elfbuild.Lib(id, 64)
	class32.Class, class32.Machine = elf.ELFCLASS32, elf.EM_386
	big := elfbuild.Lib(id, 64)
	big.BigEndian, big.Machine = true, elf.EM_S390
	big.Sections[0].Data = big.BuildIDNote(id)
	goFile := without()
	goFile.Sections = append(goFile.Sections, elfbuild.Section{Name: ".go.buildinfo", Data: []byte{1}})
	for _, c := range []struct {
		name        string
		file        *elfbuild.File
		now, before IDVisibility
		isGo        bool
	}{
		{"usual", elfbuild.Lib(id, 64), Seen, Seen, false},
		{"8 bytes", elfbuild.Lib(id[:8], 64), Seen, Seen, false},
		{"32 bits", class32, Seen, Seen, false},
		{"big-endian", big, Seen, Seen, false},
		{"none", elfbuild.Lib(nil, 64), NoNote, NoNote, false},
		{"too long", elfbuild.Lib(long, 64), LongID, LongID, false},
		{"in a section alone", without(), OutsideNotes, OutsideNotes, false},
		{"of Go", goFile, OutsideNotes, OutsideNotes, true},
		{"behind another note", other("Go\x00", 4, []byte("x")), Seen, Seen, false},
		{"beyond the first page", behind(5000, id), Seen, BeyondPage, false},
		{"too long and beyond", behind(5000, long), LongID, LongID, false},
		{"71 headers", headers(68), Seen, Seen, false},
		{"80 headers", headers(77), Seen, BeyondPage, false},
		{"300 headers", headers(297), LateHeader, LateHeader, false},
	} {
		data := c.file.Bytes()
		f, err := Open(c.name, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		now, before, err := f.KernelIDVisibility()
		if now != c.now || before != c.before || err != nil || f.IsGo() != c.isGo {
			t.Errorf("%s: %v, before 6.12 %v, Go %v, %v", c.name, now, before, f.IsGo(), err)
		}
	}
	if numVisibilities.String() != "unknown" || OutsideNotes.String() != "note outside PT_NOTE" {
		t.Error("texts")
	}
}

// FuzzKernelIDVisibility: every file that opens has a result, and a visible ID is the one that
// Open finds.
func FuzzKernelIDVisibility(f *testing.F) {
	f.Add(elfbuild.Lib(bytes.Repeat([]byte{1}, 20), 16).Bytes())
	f.Add(elfbuild.Lib(bytes.Repeat([]byte{1}, 30), 5000).Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open("x", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		now, before, err := file.KernelIDVisibility()
		if err != nil {
			t.Fatal(err) // the file was long enough
		}
		if before == Seen && now != Seen || now == NoNote && !file.ID.IsZero() {
			t.Fatalf("%v, before 6.12 %v, ID %v", now, before, file.ID)
		}
	})
}
