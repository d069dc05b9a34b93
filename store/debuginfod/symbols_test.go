package debuginfod

import (
	"bytes"
	"debug/elf"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	object "symbolize/ingest/object/elf"
)

// sectionsOf serves the sections of files by build ID, as debuginfod does.
func sectionsOf(t *testing.T, files map[string]string) func(n int, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	return func(_ int, w http.ResponseWriter, r *http.Request) {
		words := strings.Split(r.URL.Path, "/") // "", buildid, ID, section, NAME
		f, err := elf.Open(files[words[2]])
		if err != nil || len(words) != 5 {
			http.NotFound(w, r)
			return
		}
		defer f.Close()
		s := f.Section(words[4])
		if s == nil {
			http.NotFound(w, r)
			return
		}
		b, err := s.Data()
		if err != nil {
			t.Error(err)
		}
		w.Write(b)
	}
}

// functions returns the symbols of code of a file, by name and address, and the ends of those
// without a size.
func functions(t *testing.T, path string) map[object.Symbol]uint64 {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := object.Open(path, r, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[object.Symbol]uint64)
	err = f.Symbols(object.Symtab, func(s object.Symbol) bool {
		end := uint64(s.End)
		s.End = 0
		all[s] = end
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestGetSymbols: the file that is made of sections has the functions of the whole one that have a
// size, and names nothing that the whole one does not.
func TestGetSymbols(t *testing.T) {
	paths, err := filepath.Glob("../../fixtures/objects/bin/*")
	if err != nil {
		t.Fatal(err)
	}
	files, tried := make(map[string]string), 0
	for _, path := range paths {
		f, err := elf.Open(path)
		if err != nil || f.Section(".symtab") == nil || f.Section(".note.gnu.build-id") == nil {
			continue
		}
		note, err := f.Section(".note.gnu.build-id").Data()
		if err := errors.Join(err, f.Close()); err != nil || f.Class != elf.ELFCLASS64 {
			continue
		}
		id := buildid.New(note[16:])
		files[id.Hex()] = path
		url, _ := serve(t, sectionsOf(t, files))
		c := New(options(t, url), nil)
		made, fetched, err := c.GetSymbols(t.Context(), id)
		if err != nil || !fetched {
			t.Errorf("%s: %t, %v", path, fetched, err)
			continue
		}
		want, got := functions(t, path), functions(t, made)
		for s, end := range got {
			if whole, ok := want[s]; !ok || end > whole {
				t.Errorf("%s: %+v to %#x is not in the whole file, or longer than to %#x", path, s, end, whole)
			}
		}
		for s := range want {
			if _, ok := got[s]; !ok && s.Size > 0 {
				t.Errorf("%s: %+v is missing", path, s)
			}
		}
		if again, fetched, err := c.GetSymbols(t.Context(), id); again != made || fetched || err != nil {
			t.Errorf("%s, again: %s, %t, %v", path, again, fetched, err)
		}
		tried++
	}
	if tried < 2 {
		t.Errorf("%d files were tried", tried)
	}
}

// TestGetSymbolsRefused: sections of another file, damaged ones and none.
func TestGetSymbolsRefused(t *testing.T) {
	files, ids := programs(t)
	one := filepath.Join(t.TempDir(), "one")
	must.Write(t, one, files[0])
	whole := sectionsOf(t, map[string]string{ids[0].Hex(): one, ids[1].Hex(): one})
	for _, tt := range []struct {
		name     string
		id       buildid.ID
		answer   func(n int, w http.ResponseWriter, r *http.Request)
		notFound bool
		want     string
	}{
		{name: "another file", id: ids[1], answer: whole, want: "build ID"},
		{name: "no sections", id: ids[0], notFound: true,
			answer: func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }},
		{name: "cut table", id: ids[0], notFound: true,
			answer: func(n int, w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".symtab") {
					w.Write(make([]byte, 100))
					return
				}
				whole(n, w, r)
			}},
		{name: "other strings", id: ids[0], notFound: true,
			answer: func(n int, w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".strtab") {
					w.Write([]byte{0})
					return
				}
				whole(n, w, r)
			}},
	} {
		url, _ := serve(t, tt.answer)
		path, _, err := New(options(t, url), nil).GetSymbols(t.Context(), tt.id)
		if err == nil || errors.Is(err, ErrNotFound) != tt.notFound || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s, %v", tt.name, path, err)
		}
	}
}

// FuzzSymbolFile: whatever a server sends becomes a file that can be read, or an error.
func FuzzSymbolFile(f *testing.F) {
	note := append([]byte{4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0}, "GNU\x00abcd"...)
	symbol := append(make([]byte, 24), 1, 0, 0, 0, 2, 0, 1, 0, 0, 16, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0)
	f.Add(note, symbol, []byte("\x00main\x00"))
	last := bytes.Clone(symbol)
	last[30], last[31] = 0xff, 0xfe // the last index of a section
	f.Add(note, last, []byte("\x00main\x00"))
	f.Fuzz(func(t *testing.T, note, symtab, strtab []byte) {
		b, err := symbolFile(note, symtab, strtab)
		if err != nil {
			return
		}
		file, err := object.Open("made", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatalf("a file that cannot be read: %v", err)
		}
		_ = file.Symbols(object.Symtab, func(object.Symbol) bool { return true })
	})
}
