package bundle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
)

// A segment's head; see "Unfinished" in the package comment.
const (
	segmentMagic   = "\x5e\x2a\x4d\x18\x38\x00\x00\x00BUNDSEG\n" // a skippable zstd frame
	segmentVersion = 1
	segmentHead    = 64
	versionAt      = 16
	lengthAt       = 24
	digestAt       = 32

	segmentWindow = 1 << 20  // of zstd in bytes, which bounds the memory
	segmentSpool  = 64 << 10 // bytes of a merged segment kept in memory
	maxSegments   = 1 << 16  // of one file: a week, with one segment in 10 s
)

// errSegment reports a damaged segment.
var errSegment = errors.New("a part of the recording is damaged and left out")

// segment is a whole segment of an unfinished bundle.
type segment struct {
	at, size int64 // of its packed tar
}

// isSegment reports whether a file begins like an unfinished bundle.
func isSegment(head []byte) bool { return bytes.HasPrefix(head, []byte(segmentMagic)) }

// segmentAt reads the head of the segment at an offset of a file of the given size.
func segmentAt(r io.ReaderAt, at, size int64) (s segment, digest []byte, ok bool) {
	if size-at < segmentHead {
		return s, nil, false
	}
	var head [segmentHead]byte
	if n, _ := r.ReadAt(head[:], at); n < len(head) || !isSegment(head[:]) {
		return s, nil, false
	}
	o := binary.LittleEndian
	length := o.Uint64(head[lengthAt:])
	if o.Uint32(head[versionAt:]) != segmentVersion || length > uint64(size-at-segmentHead) {
		return s, nil, false
	}
	return segment{at + segmentHead, int64(length)}, head[digestAt:], true
}

// segments finds the whole segments of an unfinished bundle. Data after the last head was being
// written when the recorder ended; a damaged segment before it is a warning.
func segments(name string, r io.ReaderAt, size int64) (list []segment, damage []error) {
	var bad []int64
	for at := int64(0); len(list) < maxSegments; {
		s, digest, ok := segmentAt(r, at, size)
		if !ok {
			break
		}
		sum := sha256.New()
		n, err := io.Copy(sum, io.NewSectionReader(r, s.at, s.size))
		if err == nil && n == s.size && bytes.Equal(sum.Sum(nil), digest) {
			for _, at := range bad {
				damage = append(damage, &decode.Error{Name: name, Offset: at,
					Reason: errSegment.Error()})
			}
			bad = bad[:0]
			list = append(list, s)
		} else if len(bad) < maxWarnings {
			bad = append(bad, at)
		}
		at = s.at + s.size
	}
	return list, damage
}

// openSegment opens a segment.
func openSegment(name string, r io.ReaderAt, s segment) (*Bundle, error) {
	b := &Bundle{Name: name, index: make(map[string]int), spool: files.NewSpool(segmentSpool)}
	return b, b.open(io.NewSectionReader(r, s.at, s.size), s.size)
}

// appendSegment packs the writer's entries with a manifest and appends them as a segment to f, at
// *size. After an error the file is unchanged.
func (w *Writer) appendSegment(f *os.File, size *int64, m *Manifest) (err error) {
	head, err := w.manifest(m)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Truncate(*size))
		}
	}()
	sum := sha256.New()
	out := &countedWriter{w: io.MultiWriter(io.NewOffsetWriter(f, *size+segmentHead), sum)}
	if err := w.write(out, head, modified(m), w.segmentPacker()); err != nil {
		return err
	}
	if _, err := f.WriteAt(segmentHeader(out.n, sum.Sum(nil)), *size); err != nil {
		return err
	}
	*size += segmentHead + out.n
	return nil
}

// segmentHeader returns the head of a segment of this length and digest.
func segmentHeader(length int64, digest []byte) []byte {
	o := binary.LittleEndian
	b := append(make([]byte, 0, segmentHead), segmentMagic...)
	b = o.AppendUint64(b, segmentVersion)
	return append(o.AppendUint64(b, uint64(length)), digest...)
}

// modified is the modification time of the entries of a bundle.
func modified(m *Manifest) time.Time {
	return time.Unix(int64(m.End.Realtime/uint64(time.Second)), 0)
}

// segmentPacker returns the encoder of segments, which is reused.
func (w *Writer) segmentPacker() *files.ZstdWriter {
	if w.packer == nil {
		w.packer = files.ZstdOptions{Level: files.ZstdFastest, Window: segmentWindow, Lean: true}.Writer(nil)
	}
	return w.packer
}

type countedWriter struct {
	w io.Writer
	n int64
}

func (c *countedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// Flush makes the entries since the last Flush durable, and forgets them: they are appended to the
// file at the writer's path, an unfinished bundle created by the first Flush. m describes these
// entries, with Begin, End and Lost; Commit merges the manifests. Facts about the kernel, such as
// its symbols, are left out if the last ones flushed are equal.
func (w *Writer) Flush(m *Manifest) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spool == nil {
		return fmt.Errorf("%s: %w", w.path, ErrClosed)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", w.path, err)
		}
	}()
	w.leaveOutKept()
	if w.unfinished != nil {
		if err := w.appendSegment(w.unfinished, &w.flushed, m); err != nil {
			return err
		}
		if err := w.unfinished.Sync(); err != nil {
			return err
		}
		return w.forget()
	}
	f, err := files.Create(w.path, bundlePerm)
	if err != nil {
		return err
	}
	err = w.appendSegment(f.File, &w.flushed, m)
	if err = cmp.Or(err, f.Sync()); err == nil {
		err = f.Publish(w.path)
	}
	if err != nil {
		w.flushed = 0
		return errors.Join(err, f.Discard())
	}
	w.unfinished = f.File
	return w.forget()
}

// leaveOutKept removes the entries of the kernel that an earlier segment has with the same content.
func (w *Writer) leaveOutKept() {
	w.entries = slices.DeleteFunc(w.entries, func(e spooled) bool {
		sum, ok := w.kept[e.Name]
		return ok && sum == e.sum
	})
}

// Flushed returns the size of the unfinished bundle, bytes; 0 if there is none yet.
func (w *Writer) Flushed() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flushed
}

// forget empties the spool, and notes which entries of the kernel were flushed.
func (w *Writer) forget() error {
	if w.kept == nil {
		w.kept = make(map[string][sha256.Size]byte)
	}
	for _, e := range w.entries {
		if strings.HasPrefix(e.Name, kernelDir) {
			w.kept[e.Name] = e.sum
		}
	}
	w.entries, w.size = w.entries[:0], 0
	clear(w.names)
	return w.spool.Truncate(0)
}

// openUnfinished opens an unfinished bundle: it merges its segments into one bundle in a temporary
// file.
func (b *Bundle) openUnfinished(r io.ReaderAt, size int64) error {
	list, damage := segments(b.Name, r, size)
	b.Warnings = append(b.Warnings, damage...)
	if len(list) == 0 {
		return fmt.Errorf("%s: %w: it is cut off in its first part", b.Name, ErrNotBundle)
	}
	w, err := createTemp()
	if err != nil {
		return err
	}
	defer w.Abort()
	m, warnings, err := mergeSegments(b.Name, r, list, w)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		b.warn(warning)
	}
	b.adopt(w, m)
	end := time.Unix(0, int64(m.End.Realtime)).UTC().Format(time.RFC3339)
	b.Manifest.Warnings = append(b.Manifest.Warnings,
		"the recording was cut off: the bundle is complete to "+end)
	return nil
}

// adopt makes the entries of a writer the bundle's, which then owns the writer's file.
func (b *Bundle) adopt(w *Writer, m *Manifest) {
	w.sort()
	b.Manifest = *m
	b.Manifest.Format, b.Manifest.Entries = m.version(), w.listed()
	b.spool = files.SpoolOf(w.spool, w.size)
	w.spool = nil
	for i := range w.entries {
		e := &w.entries[i]
		b.index[e.Name] = i
		b.entries = append(b.entries, entry{name: e.Name, at: e.at, size: e.Size, sum: e.sum})
	}
}
