package batch

// Record files are the files between the steps of package batch: named records,
// each the value of a Go type, found without reading the others.
//
// A file appears complete or not at all. All integers of the frame are little-endian.
//
//	"symbolize batch 2\n"
//	records        of one zstd frame each
//	index          a record: []entry, the names of the records, sorted, where they are, how long
//	               they are, and 16 bytes of their SHA-256
//	u64            where the index is
//	16 bytes       of the SHA-256 of the index
//	"batch end\n"
//
// A record holds the shape of a Go type, u32, and a value of it. The shape is the CRC32C of the
// names and kinds of all its fields: a file of another version of the program is refused, not
// misread. Values are written field by field:
//
//	bool, unsigned      uvarint (bool: one byte)
//	signed              varint (zigzag)
//	string, slice       uvarint length, then the bytes or elements
//	array, struct       its elements or fields
//	map                 uvarint length, then keys and values, sorted by the bytes of the keys
//	pointer             a byte, 0 for nil, then the value
//	buildid.ID          a byte, space<<1 | inexact; uvarint length; the bytes

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
)

const (
	fileHead = "symbolize batch 2\n"
	fileTail = "batch end\n"
	tailSize = 8 + sumSize + len(fileTail) // offset and checksum of the index before it

	sumSize   = 16      // bytes of a checksum
	maxRecord = 1 << 30 // bytes of a record, unpacked
)

// sumOf returns the checksum of a record, which also distinguishes records.
func sumOf(packed []byte) [sumSize]byte {
	sum := sha256.Sum256(packed)
	return [sumSize]byte(sum[:])
}

// frames are the packed records.
var frames = files.ZstdOptions{Level: files.ZstdFastest, Workers: 2, Limit: maxRecord}.Frames()

// ErrFormat is wrapped by the errors of files that are not from a batch, or damaged.
var ErrFormat = errors.New("not a whole file of a batch")

// entry is a record in a file's index.
type entry struct {
	Name   string
	Offset uint64
	Stored uint64   // bytes in the file
	Sum    [16]byte // of their SHA-256
}

// recordWriter writes the records of a file, which appears when it is complete.
type recordWriter struct {
	f     *files.File
	path  string
	at    uint64
	index []entry
}

// createRecords begins a file for a path, which has what the files of some paths have: users who may
// not read these may not read it. The caller ends it with Publish or Abandon.
func createRecords(path string, from ...string) (*recordWriter, error) {
	f, err := files.Create(path, files.PermOf(0o644, from...))
	if err != nil {
		return nil, err
	}
	w := &recordWriter{f: f, path: path}
	if err := w.write([]byte(fileHead)); err != nil {
		return nil, errors.Join(err, w.Abandon())
	}
	return w, nil
}

func (w *recordWriter) write(b []byte) error {
	n, err := w.f.Write(b)
	w.at += uint64(n)
	return err
}

// pack returns a record: the shape of a value's type and the value, compressed.
func pack(value any) []byte {
	v := reflect.ValueOf(value).Elem()
	raw := binary.LittleEndian.AppendUint32(nil, shape(v.Type()))
	return frames.Pack(nil, encode(raw, v))
}

// Put writes a record, in the form that Pack returns.
func (w *recordWriter) Put(name string, packed []byte) error {
	w.index = append(w.index, entry{name, w.at, uint64(len(packed)), sumOf(packed)})
	return w.write(packed)
}

// Publish ends the file and gives it its name.
func (w *recordWriter) Publish() error {
	slices.SortFunc(w.index, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	at := w.at
	packed := pack(&w.index)
	tail := binary.LittleEndian.AppendUint64(packed, at)
	sum := sumOf(packed)
	tail = append(tail, sum[:]...)
	err := w.write(append(tail, fileTail...))
	if err == nil {
		err = w.f.Publish(w.path)
	}
	return errors.Join(err, w.f.Discard())
}

// Abandon drops the file.
func (w *recordWriter) Abandon() error { return w.f.Discard() }

// recordFile is an open file of a batch.
type recordFile struct {
	f     *os.File
	path  string
	index []entry // sorted by name
}

// openRecords opens a file and reads its index.
func openRecords(path string) (*recordFile, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	b := &recordFile{f: f, path: path}
	if err := b.readIndex(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return b, nil
}

func (b *recordFile) Fail(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", b.path, fmt.Sprintf(format, args...), ErrFormat)
}

func (b *recordFile) readIndex() error {
	fi, err := b.f.Stat()
	if err != nil {
		return err
	}
	size := uint64(fi.Size())
	head, tail := make([]byte, len(fileHead)), make([]byte, tailSize)
	if size < uint64(len(head)+len(tail)) {
		return b.Fail("%d bytes", size)
	}
	_, err1 := b.f.ReadAt(head, 0)
	_, err2 := b.f.ReadAt(tail, int64(size)-int64(len(tail)))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	at := binary.LittleEndian.Uint64(tail)
	end := size - uint64(len(tail))
	if string(head) != fileHead || string(tail[8+sumSize:]) != fileTail || at > end {
		return b.Fail("no head or no end")
	}
	return b.read(entry{"index", at, end - at, [sumSize]byte(tail[8:])}, &b.index)
}

// find returns the entry of a name.
func (b *recordFile) find(name string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(b.index, name, func(e entry, name string) int {
		return strings.Compare(e.Name, name)
	})
	if !ok {
		return entry{}, false
	}
	return b.index[i], true
}

// Get reads the record of a name into a value; false for none.
func (b *recordFile) Get(name string, value any) (bool, error) {
	e, ok := b.find(name)
	if !ok {
		return false, nil
	}
	return true, b.read(e, value)
}

// packed returns the bytes of a record, checked.
func (b *recordFile) packed(e entry) ([]byte, error) {
	fi, err := b.f.Stat()
	if err != nil {
		return nil, err
	}
	if e.Offset > uint64(fi.Size()) || e.Stored > uint64(fi.Size())-e.Offset {
		return nil, b.Fail("record %q lies outside the file", e.Name)
	}
	packed := make([]byte, e.Stored)
	if _, err := b.f.ReadAt(packed, int64(e.Offset)); err != nil {
		return nil, err
	}
	if sumOf(packed) != e.Sum {
		return nil, b.Fail("record %q at %d is damaged", e.Name, e.Offset)
	}
	return packed, nil
}

// read reads a record into the value that value points to.
func (b *recordFile) read(e entry, value any) error {
	packed, err := b.packed(e)
	if err != nil {
		return err
	}
	return b.unpack(e, packed, value)
}

// unpack reads the bytes of a record into the value that value points to.
func (b *recordFile) unpack(e entry, packed []byte, value any) error {
	raw, err := frames.Unpack(packed)
	if err != nil {
		return b.Fail("record %q at %d: %v", e.Name, e.Offset, err)
	}
	v := reflect.ValueOf(value).Elem()
	if len(raw) < 4 || binary.LittleEndian.Uint32(raw) != shape(v.Type()) {
		return b.Fail("record %q was written by another version of this program", e.Name)
	}
	return decodeRecord(b.path+": record "+e.Name, raw[4:], value)
}

// encodeRecord returns the bytes of the value that a pointer points to, without the shape.
func encodeRecord(value any) []byte { return encode(nil, reflect.ValueOf(value).Elem()) }

// decodeRecord reads a whole value that encodeRecord wrote into the value that a pointer points to.
// Errors begin with name and wrap ErrFormat.
func decodeRecord(name string, raw []byte, value any) error {
	r := decode.New(name, raw, 0, false)
	decodeInto(r, reflect.ValueOf(value).Elem())
	if r.Err() == nil && r.Left() > 0 {
		r.Fail("%d bytes more than the record has", r.Left())
	}
	if r.Err() != nil {
		return fmt.Errorf("%w: %w", r.Err(), ErrFormat)
	}
	return nil
}

func (b *recordFile) Close() error { return b.f.Close() }
