package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"symbolize/ingest/files"
)

// Errors of a Writer.
var (
	// ErrName is the error of a name that is not a clean relative path, is too long, or is the
	// name of the manifest.
	ErrName = errors.New("not a name for an entry of a bundle")
	// ErrDuplicate is the error of a second entry of one name.
	ErrDuplicate = errors.New("entry exists already")
	// ErrClosed is the error after Commit or Abort.
	ErrClosed = errors.New("bundle writer is closed")
)

// Writer makes a bundle. Entries are collected in a temporary file beside the target; Commit writes
// the target atomically. A Writer is safe for concurrent use.
type Writer struct {
	path string

	mu      sync.Mutex
	spool   *os.File // nil after Commit and Abort
	named   bool     // the spool has a name
	size    int64
	entries []spooled
	names   map[string]bool

	unfinished *os.File                     // of Flush, nil before
	flushed    int64                        // its size
	packer     *files.ZstdWriter            // of segments
	merged     map[string]uint64            // see Merged
	kept       map[string][sha256.Size]byte // flushed entries of the kernel: see Flush
	copyBuf    []byte
}

type spooled struct {
	EntryInfo
	sum [sha256.Size]byte
	at  int64 // in the spool
}

// bundlePerm lets no other user read the record of a host.
const bundlePerm = 0o600

// Create prepares a bundle to be written to path, following symbolic links. The file appears with
// Commit; an existing file stays until then. If path exists it must be a regular file.
func Create(path string) (*Writer, error) {
	path, err := files.Target(path)
	if err != nil {
		return nil, err
	}
	f, err := files.Create(path, bundlePerm)
	if err != nil {
		return nil, err
	}
	named := f.Unname() != nil // without a name nothing is left after a crash; else drop removes it
	return &Writer{path: path, spool: f.File, named: named, names: make(map[string]bool)}, nil
}

// tempPattern is the pattern of the names of temporary files.
const tempPattern = "symbolize-bundle-*"

// createTemp makes a writer of temporary entries, in a file without a name.
func createTemp() (*Writer, error) {
	f, err := files.Temp(tempPattern)
	if err != nil {
		return nil, err
	}
	return &Writer{path: f.Name(), spool: f, names: make(map[string]bool)}, nil
}

// Add adds an entry. The package comment lists the names.
func (w *Writer) Add(name string, data []byte) error {
	return w.AddReader(name, bytes.NewReader(data))
}

// AddReader adds an entry with the content of r. If that fails there is no such entry, and the
// writer stays usable.
func (w *Writer) AddReader(name string, r io.Reader) error {
	if !validName(name) || name == ManifestName {
		return fmt.Errorf("%q: %w", name, ErrName)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.spool == nil:
		return fmt.Errorf("%s: %w", name, ErrClosed)
	case w.names[name]:
		return fmt.Errorf("%s: %w", name, ErrDuplicate)
	case len(w.entries) >= maxEntries-1:
		return fmt.Errorf("%s: a bundle holds at most %d entries", name, maxEntries)
	}
	sum := sha256.New()
	to := io.MultiWriter(io.NewOffsetWriter(w.spool, w.size), sum)
	if w.copyBuf == nil {
		w.copyBuf = make([]byte, copySize)
	}
	n, err := io.CopyBuffer(to, io.LimitReader(r, maxTotal-w.size+1), w.copyBuf)
	if err == nil && n > maxTotal-w.size {
		err = fmt.Errorf("a bundle holds at most %d GiB", maxTotal>>30)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	e := spooled{at: w.size, EntryInfo: EntryInfo{Name: name, Size: n}}
	e.SHA256 = hex.EncodeToString(sum.Sum(e.sum[:0]))
	w.entries = append(w.entries, e)
	w.names[name] = true
	w.size += n
	return nil
}

// Has reports whether the bundle has an entry of this name.
func (w *Writer) Has(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[name]
}

// Commit writes the bundle: the manifest, in which it sets Format and Entries, then the entries.
// The file appears under its name when it is complete and on disk, and replaces the file of Flush,
// which it includes. The writer is closed, also after an error.
func (w *Writer) Commit(m *Manifest) error {
	if w.Flushed() == 0 {
		return w.commit(m)
	}
	if err := w.Flush(m); err != nil {
		w.Abort()
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.drop()
	whole, err := w.finish()
	if err == nil {
		*m = *whole
	}
	return err
}

// Finish is Commit after all entries were flushed. It returns the manifest.
func (w *Writer) Finish() (*Manifest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.drop()
	if w.unfinished == nil {
		return nil, fmt.Errorf("%s: %w", w.path, ErrClosed)
	}
	return w.finish()
}

// finish replaces the unfinished bundle by a bundle of all its segments.
func (w *Writer) finish() (*Manifest, error) {
	list, damage := segments(w.path, w.unfinished, w.flushed)
	if len(damage) > 0 {
		return nil, damage[0]
	}
	merged, err := createTemp()
	if err != nil {
		return nil, err
	}
	merged.path = w.path
	defer merged.Abort()
	m, _, err := mergeSegments(w.path, w.unfinished, list, merged)
	if err != nil {
		return nil, err
	}
	w.merged = merged.merged
	return m, merged.commit(m)
}

// Rename moves the flushed part to another path, which becomes the path of the bundle. It returns
// fs.ErrExist if the path exists.
func (w *Writer) Rename(path string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unfinished != nil {
		if err := files.Rename(w.path, path); err != nil {
			return err
		}
	} else if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	w.path = path
	return nil
}

// Path returns the path of the bundle.
func (w *Writer) Path() string { return w.path }

// Merged returns the number of pairs of an entry that Commit merged.
func (w *Writer) Merged(name string) (pairs int, ok bool) {
	n, ok := w.merged[name]
	return int(n), ok
}

func (w *Writer) commit(m *Manifest) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spool == nil {
		return fmt.Errorf("%s: %w", w.path, ErrClosed)
	}
	defer w.drop()
	head, err := w.manifest(m)
	if err != nil {
		return err
	}
	out, err := files.Create(w.path, bundlePerm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", w.path, errors.Join(err, out.Discard()))
		}
	}()
	err = w.write(out, head, modified(m), commitOptions.Writer(nil))
	if err = cmp.Or(err, out.Sync()); err != nil {
		return err
	}
	return out.Commit(w.path)
}

// manifest lists the entries in the manifest, and returns its bytes.
func (w *Writer) manifest(m *Manifest) ([]byte, error) {
	w.sort()
	m.Format = m.version()
	m.Entries = w.listed()
	head, err := EncodeManifest(m)
	if err != nil {
		return nil, fmt.Errorf("%s: manifest: %w", w.path, err)
	}
	return head, nil
}

func (w *Writer) sort() {
	slices.SortFunc(w.entries, func(a, b spooled) int { return entryOrder(a.Name, b.Name) })
}

func (w *Writer) listed() []EntryInfo {
	list := make([]EntryInfo, len(w.entries))
	for i, e := range w.entries {
		list[i] = e.EntryInfo
	}
	return list
}

// EncodeManifest returns the bytes of manifest.json.
func EncodeManifest(m *Manifest) ([]byte, error) {
	b, err := encodeJSON(m)
	if err == nil && len(b) > maxManifest {
		return nil, fmt.Errorf("%d bytes are over the limit of %d", len(b), maxManifest)
	}
	return b, err
}

// Sizes of buffers, bytes.
const (
	writeBuffer = 256 << 10
	copySize    = 32 << 10
)

// commitOptions are those of committed bundles. The best level makes a bundle a tenth smaller and
// costs four to six times the processor time, half of all that a capture of 30 s needs. A larger
// window needs more memory, and makes files smaller by a thousandth.
var commitOptions = files.ZstdOptions{Level: files.ZstdBetter, Window: 1 << 20, Lean: true}

// write writes the packed tar to out.
func (w *Writer) write(out io.Writer, manifest []byte, modified time.Time,
	pack *files.ZstdWriter) error {
	buffered := bufio.NewWriterSize(out, writeBuffer)
	pack.Reset(buffered)
	defer pack.Close() // a second Close does nothing
	t := tar.NewWriter(pack)
	if err := t.WriteHeader(header(ManifestName, int64(len(manifest)), modified)); err != nil {
		return err
	}
	if err := pack.Close(); err != nil { // ends the frame by which the file is recognized
		return err
	}
	pack.Reset(buffered)
	if _, err := t.Write(manifest); err != nil {
		return err
	}
	// A truncated file is readable up to the end of a zstd block of 128 KiB: the manifest and the
	// side band, which the rest depends on, end with a block.
	if err := cmp.Or(t.Flush(), pack.Flush()); err != nil {
		return err
	}
	for _, e := range w.entries {
		if err := t.WriteHeader(header(e.Name, e.Size, modified)); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if _, err := io.Copy(t, io.NewSectionReader(w.spool, e.at, e.Size)); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if e.Name != PerfDataName {
			continue
		}
		if err := cmp.Or(t.Flush(), pack.Flush()); err != nil {
			return err
		}
	}
	return cmp.Or(t.Close(), pack.Close(), buffered.Flush())
}

func header(name string, size int64, modified time.Time) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644,
		ModTime: modified}
}

// Abort discards the bundle. The unfinished bundle of Flush stays. After Commit it does nothing.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop()
}

// drop removes the spool.
func (w *Writer) drop() {
	if w.spool == nil {
		return
	}
	name := w.spool.Name()
	w.spool.Close()
	if w.named {
		os.Remove(name)
	}
	w.spool = nil
	if w.unfinished != nil {
		w.unfinished.Close()
		w.unfinished = nil
	}
}
