//go:build unix

package db

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/fixtures/sweep"
	"symbolize/store"
)

// abandon leaves a writer as SIGKILL does: db/ as it is, and the lock free.
func abandon(tb testing.TB, w *Writer) {
	tb.Helper()
	if err := w.lock.Close(); err != nil {
		tb.Fatal(err)
	}
	w.lock = nil // so that Close does nothing: Badger would wait for its files
}

// copyStore copies a store with its holes: Badger's logs are files of 128 MiB with little
// in them.
func copyStore(tb testing.TB, from, to string) {
	tb.Helper()
	links := make(map[uint64]string)
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return skipMissing(err)
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if e.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return skipMissing(err)
		}
		if first, ok := links[st.Ino]; ok {
			return os.Link(first, target)
		}
		links[st.Ino] = target
		return skipMissing(copySparse(path, target))
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func copySparse(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); ; {
		data, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || data >= info.Size() {
			return out.Truncate(info.Size())
		}
		if err != nil {
			return err
		}
		if at, err = unix.Seek(int(in.Fd()), data, unix.SEEK_HOLE); err != nil {
			return err
		}
		n := min(at, info.Size()) - data
		_, err = io.Copy(io.NewOffsetWriter(out, data), io.NewSectionReader(in, data, n))
		if err != nil {
			return err
		}
	}
}

// interruptedStore returns a store of 7 published objects with 7 more in a db/ that its
// writer left.
func interruptedStore(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "store")
	fillStore(tb, path, 0, 7)
	w := openTestWriter(tb, path)
	for n := 7; n < 14; n++ {
		mustMerge(tb, w, testContribution(tb, n, 20+n*40)) // some with parts in the log
		if err := w.PutDir(fmt.Sprint("/", n), store.DirRows{{Name: "f", ID: testID(n)}}); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.flushed(); err != nil {
		tb.Fatal(err)
	}
	abandon(tb, w)
	return path
}

// objectsOf returns how many of n objects have whole sources in a store.
func objectsOf(tb testing.TB, v store.View, n int) (have int) {
	tb.Helper()
	for i := range n {
		ms, err := v.Find(testID(i))
		if err != nil {
			tb.Fatal(err)
		}
		if len(ms) == 1 && len(ms[0].Sources) == 1 {
			funcs := 20 + i
			if i >= 7 {
				funcs = 20 + i*40
			}
			checkObject(tb, v, i, funcs)
			have++
		}
	}
	return have
}

// TestTornLive damages each file that an interrupted writer left, as a power failure does.
// The next writer opens, has all that was published and, if the file is not one that it
// needs, all that was not; and reports it in one line if it has not.
func TestTornLive(t *testing.T) {
	from := interruptedStore(t)
	entries, err := os.ReadDir(filepath.Join(from, liveName))
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string]func(path string, size int64) error{
		"nothing": func(string, int64) error { return nil },
		"removed": func(path string, _ int64) error { return os.Remove(path) },
		"cut by a byte": func(path string, size int64) error {
			return os.Truncate(path, max(size-1, 0))
		},
		"half":  func(path string, size int64) error { return os.Truncate(path, size/2) },
		"empty": func(path string, _ int64) error { return os.Truncate(path, 0) },
		"zeros": func(path string, size int64) error {
			return errors.Join(os.Truncate(path, 0), os.Truncate(path, size))
		},
		"rubbish": func(path string, size int64) error {
			b := []byte(strings.Repeat("\xff\x80\x7f", int(min(size, 64<<10)/3)))
			return os.WriteFile(path, b, 0o644)
		},
		"a directory": func(path string, _ int64) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
		},
	}
	for _, e := range entries {
		needed := e.Name() == journalName || isLog(e.Name())
		for name, damage := range damages {
			if !needed && name != "removed" && name != "cut by a byte" && name != "zeros" {
				continue // nobody reads it
			}
			t.Run(e.Name()+" "+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "store")
				copyStore(t, from, path)
				file := filepath.Join(path, liveName, e.Name())
				info, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				if err := damage(file, info.Size()); err != nil {
					t.Fatal(err)
				}
				checkTorn(t, path, name == "nothing" || !needed)
			})
		}
	}
}

// checkTorn opens a store of 7 published and 7 other objects for writing, and indexes on.
func checkTorn(t *testing.T, path string, whole bool) {
	t.Helper()
	w := openTestWriter(t, path)
	have := objectsOf(t, w, 14)
	if have < 7 || whole && have != 14 {
		t.Errorf("%d of 14 objects, 7 were published", have)
	}
	if n := len(w.Warnings()); n > 1 || whole && n > 0 {
		t.Errorf("warnings: %q", w.Warnings())
	}
	mustMerge(t, w, testContribution(t, 14, 3))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if v := mustVerify(t, path); v.Objects != have+1 || len(v.Problems) > 0 {
		t.Errorf("%d objects, want %d; %v", v.Objects, have+1, v.Problems)
	}
	for _, name := range []string{liveName, leftName} {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

// TestInterruptedReplay abandons writer after writer, also in the middle of taking up the work that
// the one before had left.
func TestInterruptedReplay(t *testing.T) {
	path := interruptedStore(t)
	w := openTestWriter(t, path)
	mustMerge(t, w, testContribution(t, 14, 9))
	abandon(t, w)
	if err := setLeft(path); err != nil {
		t.Fatal(err)
	}
	// A replay that had come halfway.
	if _, err := clone(path, 1, nil); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(filepath.Join(path, gensName, tmpPrefix+"7"), 0o755)
	w = openTestWriter(t, path)
	if len(w.Warnings()) > 0 || objectsOf(t, w, 14) != 14 {
		t.Errorf("%d objects, warnings %q", objectsOf(t, w, 14), w.Warnings())
	}
	checkObject(t, w, 14, 9)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if v := mustVerify(t, path); v.Objects != 15 || len(v.Problems) > 0 {
		t.Errorf("%+v", v)
	}
	if _, err := os.Stat(filepath.Join(path, gensName, tmpPrefix+"7")); err == nil {
		t.Error("leftovers of a killed run are still there")
	}
}

// TestAside keeps work based on another generation, until GC.
func TestAside(t *testing.T) {
	path := interruptedStore(t)
	aside := filepath.Join(path, asideName)
	saved := filepath.Join(t.TempDir(), "store")
	copyStore(t, path, saved)
	fillStore(t, path, 14, 15) // generation 2
	copyStore(t, filepath.Join(saved, liveName), filepath.Join(path, liveName))
	w := openTestWriter(t, path)
	if n := objectsOf(t, w, 14); n != 14 || len(w.Warnings()) != 1 ||
		!strings.Contains(w.Warnings()[0], "set aside in "+aside) {
		t.Errorf("%d objects, warnings %q", n, w.Warnings())
	}
	if _, err := os.Stat(filepath.Join(aside, journalName)); err != nil {
		t.Error(err)
	}
	if _, err := w.GC(t.Context(), GCOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(aside); err == nil {
		t.Error("GC keeps what was set aside")
	}
}

// TestOldJournal sets the work of a killed writer of a version with another journal aside, and goes
// on from what was published.
func TestOldJournal(t *testing.T) {
	path := interruptedStore(t)
	name := filepath.Join(path, liveName, journalName)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head := b[recordHead:][:binary.LittleEndian.Uint32(b)]
	copy(head, "symbolize journal 1\n")
	binary.LittleEndian.PutUint32(b[4:], recordSum(0, head))
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	w := openTestWriter(t, path)
	if n := objectsOf(t, w, 14); n != 7 || len(w.Warnings()) != 1 ||
		!strings.Contains(w.Warnings()[0], "of another version of this program") {
		t.Errorf("%d objects, warnings %q", n, w.Warnings())
	}
}

// TestJournalTruncated reads each prefix of a journal, and a journal with each byte changed:
// a prefix of its transactions comes out.
func TestJournalTruncated(t *testing.T) {
	path := interruptedStore(t)
	b, err := os.ReadFile(filepath.Join(path, liveName, journalName))
	if err != nil {
		t.Fatal(err)
	}
	count := func(b []byte) (n int, err error) {
		j, err := readJournal(strings.NewReader(string(b)), int64(len(b)))
		for err == nil {
			var record []byte
			if record, err = j.next(); err == nil {
				_, err = decodeTxn(record)
				n++
			}
		}
		return n, err
	}
	all, err := count(b)
	if all < 7 || !errors.Is(err, errEndOfJournal) {
		t.Fatalf("%d transactions, %v", all, err)
	}
	rnd := sweep.Rand(t)
	for n := range sweep.Of(rnd, len(b), 400) {
		if got, err := count(b[:n]); got > all || !errors.Is(err, errEndOfJournal) &&
			!errors.Is(err, store.ErrDamaged) {
			t.Fatalf("%d bytes: %d transactions, %v", n, got, err)
		}
	}
	for n := range sweep.Of(rnd, len(b), 400) {
		c := []byte(string(b))
		c[n] ^= 0x10
		if got, err := count(c); got >= all || !errors.Is(err, errEndOfJournal) &&
			!errors.Is(err, store.ErrDamaged) {
			t.Fatalf("byte %d: %d of %d transactions, %v", n, got, all, err)
		}
	}
}

// sealedJournal returns a journal with these transactions and right sums.
func sealedJournal(txns ...[]byte) (b []byte) {
	head := append([]byte(journalMagic), 1, 2, 3, 4, 5)
	sum := uint32(0)
	for _, payload := range append([][]byte{head}, txns...) {
		sum = recordSum(sum, payload)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
		b = append(binary.LittleEndian.AppendUint32(b, sum), payload...)
	}
	return b
}

func FuzzJournal(f *testing.F) {
	f.Add(false, []byte{})
	f.Add(false, []byte("\x1e\x00\x00\x00\x00\x00\x00\x00"+journalMagic+"\x01aaaa"))
	f.Add(false, sealedJournal([]byte{1, 'k', 0}))
	f.Add(true, []byte{1, 'k', 0, 1, 'k', 2, 'v', 'v', 1, 'k', 5, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, seal bool, b []byte) {
		if seal {
			b = sealedJournal(b[:len(b)/2], b[len(b)/2:], b)
		}
		j, err := readJournal(strings.NewReader(string(b)), int64(len(b)))
		if err != nil {
			if seal {
				t.Error(err)
			}
			return
		}
		records := 0
		for ; err == nil; records++ {
			var record []byte
			if record, err = j.next(); err != nil {
				break
			}
			list, err := decodeTxn(record)
			for _, e := range list {
				if err != nil || len(e.Key) == 0 || len(e.Key)+len(e.Value) > len(record) {
					t.Errorf("%+v of %d bytes, %v", e, len(record), err)
				}
			}
		}
		if seal && records != 3 {
			t.Errorf("%d of 3 records: %v", records, err)
		}
	})
}

// failingReader fails to read behind its bytes, as a disk with a bad block does.
type failingReader struct{ good []byte }

func (r failingReader) ReadAt(b []byte, at int64) (int, error) {
	n := copy(b, r.good[min(at, int64(len(r.good))):])
	if n < len(b) {
		return n, unix.EIO
	}
	return n, nil
}

// TestJournalUnread has no damage where this machine cannot read: what is damaged is set aside.
func TestJournalUnread(t *testing.T) {
	for _, good := range []int{0, 4, recordHead, recordHead + 3} {
		head := make([]byte, recordHead+8)
		head[0] = 8 // bytes of a record
		if _, err := readJournal(failingReader{head[:good]}, int64(len(head))); !errors.Is(err, unix.EIO) ||
			errors.Is(err, store.ErrDamaged) {
			t.Errorf("read up to %d: %v", good, err)
		}
	}
}
