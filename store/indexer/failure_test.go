package indexer

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/store"
)

// inflatesLarge gives sections of debug information, one inflated into a temporary file: it is
// padded to 2 MiB.
func inflatesLarge(t *testing.T) map[string][]byte {
	t.Helper()
	secs := program(text).Sections()
	var z bytes.Buffer
	z.WriteString("ZLIB")
	line := append(secs[".debug_line"], make([]byte, 2<<20)...)
	z.Write(binary.BigEndian.AppendUint64(nil, uint64(len(line))))
	w := zlib.NewWriter(&z)
	if _, err := w.Write(line); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	delete(secs, ".debug_line")
	secs[".zdebug_line"] = z.Bytes()
	return secs
}

// TestNoRoomForSections has a run that cannot inflate: it reports its own failure, not the
// file's, and the next one reads the file again, be it walked or the debug file of another.
func TestNoRoomForSections(t *testing.T) {
	for name, debug := range map[string]bool{"walked": false, "debug file": true} {
		t.Run(name, func(t *testing.T) {
			root, roots, m := realDir(t), realDir(t), newMemory()
			id := buildid.New([]byte(debugID))
			runtime := filepath.Join(root, "lib.so")
			bad := runtime
			large := withSections(elfbuild.Lib([]byte(debugID), 0x1000,
				elfbuild.Func{Name: "outer_symbol", Size: 0x40}), inflatesLarge(t)).Bytes()
			if debug {
				bad = buildid.DebugPaths(id, []string{roots})[0]
				must.Write(t, runtime, elfbuild.Lib([]byte(debugID), 0x1000).Bytes())
			}
			must.Write(t, bad, large)
			settle()
			opts := Options{DebugRoots: []string{roots}}
			t.Setenv("TMPDIR", filepath.Join(root, "nowhere"))
			sum := m.index(t, opts, root)
			if len(sum.Problems) != 1 || !sum.Problems[0].Run || sum.Problems[0].Path != bad ||
				sum.Problems[0].Hint == "" || sum.Skipped[SkipFailed] != 1 {
				t.Errorf("without room: %+v, skipped %v", sum.Problems, sum.Skipped)
			}
			t.Setenv("TMPDIR", root)
			sum = m.index(t, opts, root)
			if len(sum.Problems) != 0 || sum.Read == 0 {
				t.Errorf("with room: %d read, %+v", sum.Read, sum.Problems)
			}
			if !slices.ContainsFunc(m.object(t, id).Sources, func(s store.SourceInfo) bool {
				return s.Kind == store.DWARF && s.Producer == Producer
			}) {
				t.Error("no debug information that counts as whole")
			}
			m.again(t, opts, root)
		})
	}
}

// failingAt fails with EIO at one of the reads of a file.
type failingAt struct {
	io.ReaderAt
	left *int
}

func (r *failingAt) ReadAt(b []byte, at int64) (int, error) {
	if *r.left--; *r.left == 0 {
		return 0, &fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}
	}
	return r.ReaderAt.ReadAt(b, at)
}

// TestReadErrors fails each read of a file once: the run reports its own failure, and the next one
// makes the same store as one without failures.
func TestReadErrors(t *testing.T) {
	for name, content := range map[string][]byte{
		"lib.so":     programFile().Bytes(),
		"kallsyms":   []byte("ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000100 T a\n"),
		"perf-7.map": []byte("1000 10 one\n1010 10 two\n"),
	} {
		t.Run(name, func(t *testing.T) {
			root := realDir(t)
			path := filepath.Join(root, name)
			must.Write(t, path, content)
			settle()
			opts := Options{KallsymsID: buildid.New([]byte(debugID))}
			want := newMemory()
			want.index(t, opts, path)
			for n := 1; ; n++ {
				left := n
				opts.faulty = func(r io.ReaderAt) io.ReaderAt { return &failingAt{r, &left} }
				m := newMemory()
				sum := m.index(t, opts, path)
				if left > 0 {
					if n == 1 {
						t.Fatal("nothing was read")
					}
					return
				}
				if len(sum.Problems) != 1 || !sum.Problems[0].Run || sum.Skipped[SkipFailed] != 1 {
					t.Errorf("read %d fails: %+v, skipped %v", n, sum.Problems, sum.Skipped)
				}
				opts.faulty = nil
				if sum = m.index(t, opts, path); len(sum.Problems) != 0 || m.dump(t, root) != want.dump(t, root) {
					t.Errorf("after read %d failed: %+v\n%s\nwant\n%s", n, sum.Problems, m.dump(t, root),
						want.dump(t, root))
				}
			}
		})
	}
}

// TestAgain reads an unchanged file that rows have as damaged.
func TestAgain(t *testing.T) {
	path := filepath.Join(realDir(t), "lib.so")
	must.Write(t, path, programFile().Bytes())
	settle()
	m := newMemory()
	m.index(t, Options{}, path)
	for again, want := range map[bool]uint64{false: 0, true: 1} {
		if sum := m.index(t, Options{Again: again}, path); sum.Read != want {
			t.Errorf("again %v: %d read", again, sum.Read)
		}
	}
}

func TestOfRun(t *testing.T) {
	at := func(err error) error { return &fs.PathError{Op: "open", Path: "x", Err: err} }
	for _, c := range []struct {
		err error
		run bool
	}{
		{run: false},
		{err: errors.New("no space left on device")},
		{err: at(syscall.ENOENT)},
		{err: at(syscall.EACCES)},
		{err: at(syscall.EIO), run: true},
		{err: at(syscall.ESTALE), run: true}, // of a network file system
		{err: at(syscall.EOVERFLOW)},         // of an offset in the file
		{err: at(syscall.EMFILE), run: true},
		{err: at(syscall.ENFILE), run: true},
		{err: at(syscall.ENOSPC), run: true},
		{err: fmt.Errorf("mapping: %w", at(syscall.ENOMEM)), run: true},
		{err: errors.Join(errors.New("first"), &runError{errors.New("anything")}), run: true},
	} {
		got := ofRun(c.err)
		if (got != nil) != c.run {
			t.Errorf("%v: %v", c.err, got)
		}
		if got != nil && strings.Count(got.Error(), "the next run") != 1 {
			t.Errorf("%v", got)
		}
	}
}
