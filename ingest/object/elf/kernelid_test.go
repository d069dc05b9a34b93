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
		{name: "usual", file: elfbuild.Lib(id, 64), now: Seen, before: Seen},
		{name: "8 bytes", file: elfbuild.Lib(id[:8], 64), now: Seen, before: Seen},
		{name: "32 bits", file: class32, now: Seen, before: Seen},
		{name: "big-endian", file: big, now: Seen, before: Seen},
		{name: "none", file: elfbuild.Lib(nil, 64), now: NoNote, before: NoNote},
		{name: "too long", file: elfbuild.Lib(long, 64), now: LongID, before: LongID},
		{name: "in a section alone", file: without(), now: OutsideNotes, before: OutsideNotes},
		{name: "of Go", file: goFile, now: OutsideNotes, before: OutsideNotes, isGo: true},
		{name: "behind another note", file: other("Go\x00", 4, []byte("x")), now: Seen,
			before: Seen},
		{name: "beyond the first page", file: behind(5000, id), now: Seen, before: BeyondPage},
		{name: "too long and beyond", file: behind(5000, long), now: LongID, before: LongID},
		{name: "71 headers", file: headers(68), now: Seen, before: Seen},
		{name: "80 headers", file: headers(77), now: Seen, before: BeyondPage},
		{name: "300 headers", file: headers(297), now: LateHeader, before: LateHeader},
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
