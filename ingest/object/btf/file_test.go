package btf

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/object/elf"
)

// TestReadFile reads one object's types from the ELF file, a raw file and packed files, and files
// that have none.
func TestReadFile(t *testing.T) {
	const object = "../../../fixtures/maps/kinds.bpf.o"
	whole := must.Read(t, object)
	f, err := elf.Open(object, bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := FromELF(f)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(whole)
	z.Close()
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		must.Write(t, path, b)
		return path
	}
	for _, path := range []string{object, write("o.gz", packed.Bytes()), write("raw", want.Raw())} {
		got, err := ReadFile(path, nil)
		if err != nil || !bytes.Equal(got.Raw(), want.Raw()) {
			t.Errorf("%s: other types, %v", path, err)
		}
	}
	for path, want := range map[string]error{
		"../../../fixtures/objects/bin/fixed":  ErrNoSection,
		write("text", []byte("nothing\n")):     ErrNoFile,
		write("empty", nil):                    ErrNoFile,
		write("cut.gz", packed.Bytes()[:2000]): ErrNoFile,
		dir:                                    ErrNoFile,
		filepath.Join(dir, "none"):             os.ErrNotExist,
	} {
		if got, err := ReadFile(path, nil); got != nil || !errors.Is(err, want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	// A truncated file has an error with its position.
	if _, err := ReadFile(write("cut", want.Raw()[:len(want.Raw())/2]), nil); err == nil ||
		!strings.Contains(err.Error(), "cut: offset") {
		t.Errorf("half of it: %v", err)
	}
	// A wrong base shifts the references of these types.
	got, err := ReadFile(object, want)
	if err != nil || got.Len() != 2*want.Len()-1 {
		t.Errorf("over a base of %d types: %v, %v", want.Len(), got, err)
	}
}
