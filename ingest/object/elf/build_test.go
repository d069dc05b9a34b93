package elf

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/decode"
)

// form is a class and byte order.
type form struct {
	class elf.Class
	big   bool
}

func (f form) String() string { return fmt.Sprintf("%v/big=%v", f.class, f.big) }

var forms = []form{
	{class: elf.ELFCLASS64}, {class: elf.ELFCLASS64, big: true},
	{class: elf.ELFCLASS32}, {class: elf.ELFCLASS32, big: true},
}

var testID = []byte("0123456789abcdefghij")

// open opens a built file, which must be valid.
func open(t testing.TB, b *elfbuild.File) *File {
	t.Helper()
	return openBytes(t, b.Bytes())
}

func openBytes(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Open("test.so", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// lib is a library in a form; all its parts use that byte order.
func lib(fm form, funcs ...elfbuild.Func) *elfbuild.File {
	return inForm(fm, elfbuild.Lib(testID, 256, funcs...))
}

func inForm(fm form, f *elfbuild.File) *elfbuild.File {
	f.Class, f.BigEndian = fm.class, fm.big
	for i := range f.Sections {
		if f.Sections[i].Name == ".note.gnu.build-id" {
			f.Sections[i].Data = f.BuildIDNote(testID)
		}
	}
	return f
}

// symbols prints all symbols of a table, one a line.
func symbols(t testing.TB, f *File, table Table) []string {
	t.Helper()
	var all []string
	err := f.Symbols(table, func(s Symbol) bool {
		all = append(all, fmt.Sprintf("%s %#x+%#x end %#x", s.Name, uint64(s.Addr), s.Size,
			uint64(s.End)))
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// stubsOf prints all PLT stubs, one a line.
func stubsOf(t testing.TB, f *File) []string {
	t.Helper()
	var all []string
	err := f.PLT(func(s Symbol) bool {
		all = append(all, fmt.Sprintf("%s %#x+%#x", s.Name, uint64(s.Addr), s.Size))
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

func compare(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got  %s\n want %s", what,
			strings.Join(got, "\n      "), strings.Join(want, "\n      "))
	}
}

// wantError checks that an error names the file and contains text.
func wantError(t testing.TB, err error, text string) {
	t.Helper()
	var de *decode.Error
	if !errors.As(err, &de) || !strings.Contains(err.Error(), text) ||
		!strings.Contains(err.Error(), "test.so") {
		t.Errorf("error %v, want a decode.Error of test.so with %q", err, text)
	}
}
