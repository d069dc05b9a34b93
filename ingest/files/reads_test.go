package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOfMachine(t *testing.T) {
	at := func(err error) error { return &fs.PathError{Op: "read", Path: "x", Err: err} }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{io.EOF, false},
		{errors.New("input/output error"), false},
		{at(syscall.EIO), true},
		{at(syscall.ESTALE), true},
		{fmt.Errorf("section: %w", at(syscall.ETIMEDOUT)), true},
		{at(syscall.ENOSPC), true},
		{fmt.Errorf("x: %w", ErrFull), true},
		{at(syscall.ENOENT), false},
		{at(syscall.EACCES), false},
		{at(syscall.EINVAL), false}, // of an offset that no file has
	} {
		if got := OfMachine(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

// broken fails at each read.
type broken struct{ err error }

func (b broken) ReadAt([]byte, int64) (int, error) { return 0, b.err }

func TestReads(t *testing.T) {
	var r Reads
	read := func(f io.ReaderAt) { r.Of(f).ReadAt(make([]byte, 8), 0) }
	read(strings.NewReader("abc"))
	read(broken{io.ErrUnexpectedEOF})
	if err := r.Err(); err != nil {
		t.Errorf("of the file: %v", err)
	}
	read(broken{syscall.EIO})
	read(broken{syscall.ESTALE})
	if err := r.Err(); err != syscall.EIO {
		t.Errorf("the first error: %v", err)
	}
	var none *Reads
	none.Note(syscall.EIO)
	if in := strings.NewReader(""); none.Of(in) != io.ReaderAt(in) || none.Err() != nil {
		t.Error("a nil pointer notes something")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, in := range []io.ReaderAt{f, r.Of(f)} {
		if got, ok := FileOf(in); !ok || got != f {
			t.Errorf("%T: %v", in, got)
		}
	}
}
