package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
)

// Errors of Open and Entry.
var (
	// ErrNotBundle is the error of a file that is not a tar with the manifest as first entry.
	ErrNotBundle = errors.New("not a capture bundle")
	// ErrNewer is the error of a manifest with an unknown format.
	ErrNewer = errors.New("bundle has a newer format")
	// ErrNoEntry is the error of a missing or damaged entry.
	ErrNoEntry = errors.New("no such entry in the bundle")
	// ErrTooLarge is the error of an entry over the caller's limit.
	ErrTooLarge = errors.New("entry is too large")
)

// Bundle is an opened bundle. It is immutable and safe for concurrent use until Close.
type Bundle struct {
	Name     string // as given to Open, for messages
	Manifest Manifest
	// Warnings list the damaged or missing parts of the bundle, in the order of detection; a
	// *decode.Error has the offset in the unpacked tar. There are at most 100.
	Warnings []error

	copyBuf []byte
	spool   *files.Spool
	entries []entry // in the order of the tar
	index   map[string]int
}

type entry struct {
	name     string
	at, size int64
	sum      [sha256.Size]byte
}

const (
	tarBlock    = 512
	tarMagic    = "ustar"
	tarMagicAt  = 257
	detectBytes = 256 << 10 // more than the maximum of a zstd block
)

// IsBundle reports whether a file with these first bytes is a bundle. 512 bytes are enough for
// bundles made by a Writer or uncompressed ones; bundles packed by other programs need a whole zstd
// block, which Detect reads.
func IsBundle(head []byte) bool {
	if isSegment(head) {
		return true
	}
	if files.PackingOf(head) == files.Zstd {
		r := files.ZstdReader(bytes.NewReader(head), maxWindow)
		defer r.Close()
		block := make([]byte, tarBlock)
		n, _ := io.ReadFull(r, block) // the bytes before the end of head
		head = block[:n]
	}
	return isTar(head)
}

// isTar reports whether the first block of a tar is the header of the manifest.
func isTar(head []byte) bool {
	if len(head) < tarBlock || string(head[tarMagicAt:][:len(tarMagic)]) != tarMagic {
		return false
	}
	name, _, _ := strings.Cut(string(head[:100]), "\x00")
	return strings.TrimPrefix(name, "./") == ManifestName
}

// Detect is IsBundle for a file, of which it reads at most 256 KiB.
func Detect(r io.ReaderAt, size int64) bool {
	head := make([]byte, min(max(size, 0), tarBlock))
	if n, err := r.ReadAt(head, 0); n < len(head) && err != nil {
		return false
	}
	if IsBundle(head) {
		return true
	}
	if files.PackingOf(head) != files.Zstd || size <= tarBlock {
		return false
	}
	head = make([]byte, min(size, detectBytes))
	n, _ := r.ReadAt(head, 0)
	return IsBundle(head[:n])
}

// Open reads a whole bundle and unpacks it, to a temporary file if it is large. r is not used after
// Open. Damage after the manifest becomes a warning; an error means that nothing of the bundle can
// be used. name is used in messages only.
func Open(name string, r io.ReaderAt, size int64) (*Bundle, error) {
	b := &Bundle{Name: name, index: make(map[string]int), spool: files.NewSpool(0)}
	head := make([]byte, segmentHead)
	n, _ := r.ReadAt(head, 0)
	open := b.open
	if isSegment(head[:n]) {
		open = b.openUnfinished
	}
	if err := open(r, size); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// open reads a bundle that is one tar.
func (b *Bundle) open(r io.ReaderAt, size int64) error {
	var in io.Reader = bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 1<<16)
	head := make([]byte, files.MagicBytes)
	if n, _ := r.ReadAt(head, 0); files.PackingOf(head[:n]) == files.Zstd {
		z := files.ZstdReader(in, maxWindow)
		defer z.Close()
		in = z
	}
	if err := b.read(&tarReader{r: in, limit: min(maxTotal, files.MaxUnpacked(size, 0))}); err != nil {
		return err
	}
	b.check()
	return nil
}

// OpenFile opens the bundle at a path.
func OpenFile(path string) (*Bundle, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return Open(path, f, fi.Size())
}

// tarReader counts and limits the bytes of the unpacked tar.
type tarReader struct {
	r     io.Reader
	read  int64
	limit int64
}

func (t *tarReader) Read(b []byte) (int, error) {
	if t.read >= t.limit {
		return 0, fmt.Errorf("it unpacks to more than %d MiB", t.limit>>20)
	}
	n, err := t.r.Read(b[:min(int64(len(b)), t.limit-t.read)])
	t.read += int64(n)
	return n, err
}

// read reads the manifest and all entries up to the end or to damage.
func (b *Bundle) read(counted *tarReader) error {
	t := tar.NewReader(counted)
	h, err := t.Next()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", b.Name, ErrNotBundle, err)
	}
	if path.Clean(h.Name) != ManifestName || h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%s: %w: its first entry is %q", b.Name, ErrNotBundle, h.Name)
	}
	if err := b.readManifest(t, h.Size, counted); err != nil {
		return err
	}
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			b.damage(counted, "the tar cannot be read further: %v", unexpected(err))
			return nil
		}
		if len(b.entries) >= maxEntries {
			b.damage(counted, "over the limit of %d entries", maxEntries)
			return nil
		}
		if !b.readEntry(t, h, counted) {
			return nil
		}
	}
}

func (b *Bundle) readManifest(t io.Reader, size int64, at *tarReader) error {
	fail := func(format string, args ...any) error {
		return &decode.Error{Name: b.Name + ": " + ManifestName, Offset: at.read,
			Reason: fmt.Sprintf(format, args...)}
	}
	if size > maxManifest {
		return fail("%d bytes are over the limit of %d", size, maxManifest)
	}
	text, err := io.ReadAll(io.LimitReader(t, maxManifest))
	if err != nil {
		return fail("%v", unexpected(err))
	}
	if err := json.Unmarshal(text, &b.Manifest); err != nil {
		return fail("%v", err)
	}
	switch m := &b.Manifest; {
	case m.Format < 1:
		return fail("format %d", m.Format)
	case m.Format > Format:
		return fmt.Errorf("%s: %w: %d, %d is the newest that is read", b.Name, ErrNewer, m.Format,
			Format)
	}
	return nil
}

// readEntry spools an entry and reports whether reading can continue.
func (b *Bundle) readEntry(t io.Reader, h *tar.Header, at *tarReader) bool {
	name := path.Clean(h.Name)
	switch {
	case h.Typeflag == tar.TypeDir:
		return true
	case h.Typeflag != tar.TypeReg || isSparse(h):
		b.damage(at, "entry %q is not a regular file and is left out", h.Name)
		return true
	case !validName(name), name == ManifestName:
		b.damage(at, "entry %q has an invalid name and is left out", h.Name)
		return true
	}
	if _, ok := b.index[name]; ok {
		b.damage(at, "a second entry %q is left out", name)
		return true
	}
	e := entry{name: name, at: b.spool.Size()}
	sum := sha256.New()
	if err := b.copy(io.TeeReader(t, sum), h.Size); err != nil {
		b.spool.Truncate(e.at)
		b.damage(at, "entry %q is left out: %v", name, unexpected(err))
		return false
	}
	e.size = b.spool.Size() - e.at
	sum.Sum(e.sum[:0])
	b.index[name] = len(b.entries)
	b.entries = append(b.entries, e)
	return true
}

// copy spools an entry of size bytes; a large one is unpacked while the spool is written.
func (b *Bundle) copy(r io.Reader, size int64) error {
	if size > files.QueueBlock {
		return errors.Join(files.CopyToSpool(context.Background(), b.spool, r))
	}
	if b.copyBuf == nil {
		b.copyBuf = make([]byte, copySize)
	}
	_, err := io.CopyBuffer(b.spool, r, b.copyBuf)
	return err
}

// isSparse reports whether an entry has holes, which have no bytes in the tar and can have any
// size.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// unexpected replaces the errors for the end of the input.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut off")
	}
	return err
}

// check compares the entries with the manifest's list.
func (b *Bundle) check() {
	listed := make(map[string]bool, len(b.Manifest.Entries))
	missing := 0
	first := ""
	for _, want := range b.Manifest.Entries {
		if listed[want.Name] {
			continue
		}
		listed[want.Name] = true
		i, ok := b.index[want.Name]
		switch {
		case !ok:
			missing++
			first = cmp.Or(first, want.Name)
		case want.SHA256 != hex.EncodeToString(b.entries[i].sum[:]):
			delete(b.index, want.Name)
			b.warn(fmt.Errorf("%s: entry %q is left out: its content is not what was recorded",
				b.Name, want.Name))
		}
	}
	b.entries = slices.DeleteFunc(b.entries, func(e entry) bool {
		_, ok := b.index[e.name]
		return !ok
	})
	for i, e := range b.entries {
		b.index[e.name] = i
	}
	if missing > 0 {
		b.warn(fmt.Errorf("%s: %d of %d entries are missing, the first is %q", b.Name, missing,
			len(listed), first))
	}
}

func (b *Bundle) warn(err error) {
	if len(b.Warnings) < maxWarnings {
		b.Warnings = append(b.Warnings, err)
	}
}

func (b *Bundle) damage(at *tarReader, format string, args ...any) {
	b.warn(&decode.Error{Name: b.Name, Offset: at.read, Reason: fmt.Sprintf(format, args...)})
}

// Close releases the bundle's resources.
func (b *Bundle) Close() error { return b.spool.Close() }

// Names returns the names of all entries except the manifest, in the order of the tar.
func (b *Bundle) Names() []string {
	names := make([]string, len(b.entries))
	for i := range b.entries {
		names[i] = b.entries[i].name
	}
	return names
}

// Has reports whether there is an entry of this name.
func (b *Bundle) Has(name string) bool {
	_, ok := b.index[name]
	return ok
}

// Entry returns the content of an entry and its size in bytes. It is valid until Close and safe for
// concurrent use.
func (b *Bundle) Entry(name string) (io.ReaderAt, int64, error) {
	i, ok := b.index[name]
	if !ok {
		return nil, 0, fmt.Errorf("%s: %s: %w", b.Name, name, ErrNoEntry)
	}
	e := b.entries[i]
	return io.NewSectionReader(b.spool, e.at, e.size), e.size, nil
}

// ReadEntry returns the content of an entry of at most limit bytes.
func (b *Bundle) ReadEntry(name string, limit int64) ([]byte, error) {
	r, size, err := b.Entry(name)
	if err != nil {
		return nil, err
	}
	if size > min(limit, math.MaxInt) {
		return nil, fmt.Errorf("%s: %s: %w: %d bytes, over the limit of %d", b.Name, name,
			ErrTooLarge, size, limit)
	}
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); n < len(data) {
		return nil, fmt.Errorf("%s: %s: %w", b.Name, name, err)
	}
	return data, nil
}
