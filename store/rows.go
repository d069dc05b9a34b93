package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

// PathRow is the state of one file at the last index run: as long as it stays the same, the file
// needs no more than a stat.
type PathRow struct {
	Name     string // in its directory
	Dev      uint64 // as mapping records have it, see files.MappedDevice
	Inode    uint64
	Gen      uint64 // inode generation; 0 where the file system has none
	Size     uint64 // bytes
	MtimeNs  int64  // ns since 1970
	CtimeNs  int64
	Producer uint32     // revision of the decoders that read it
	ID       buildid.ID // zero: no object
	Aliased  bool       // aliases of ID were made of the file
	// Looked are the places where a debug file was looked for and not found; a file
	// that has come there since makes the row stale.
	Looked []string
	Error  string // why a file that looked like an object is none, or was not read whole
}

// DirRows are the path rows of one directory, sorted by Name, without duplicates.
type DirRows []PathRow

// Sort puts the rows into order; of rows with one name the first stays.
func (d DirRows) Sort() DirRows {
	slices.SortStableFunc(d, func(a, b PathRow) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(d, func(a, b PathRow) bool { return a.Name == b.Name })
}

// Find returns the row of a name, or nil. The rows must be sorted.
func (d DirRows) Find(name string) *PathRow {
	i, ok := slices.BinarySearchFunc(d, name, func(r PathRow, n string) int {
		return cmp.Compare(r.Name, n)
	})
	if !ok {
		return nil
	}
	return &d[i]
}

// Proof returns the identity of the file when the row was made.
func (r *PathRow) Proof() buildid.FileProof {
	return buildid.FileProof{Dev: r.Dev, Inode: r.Inode, Gen: r.Gen, Size: r.Size,
		MtimeNs: r.MtimeNs, CtimeNs: r.CtimeNs}
}

// rowsVersion is the version of stored path rows. A directory's are stored as
//
//	version u8 | compression u8 | raw size LEB128 | rows
//
// where compression is 0 for plain bytes and 1 for one zstd frame. Raw, they are the number of rows
// and then each row against the one before it (the first against zeros):
//
//	flags u8 | name: bytes shared, bytes new, those bytes |
//	[dev] | inode delta | [generation] | size | mtime s, ns | ctime s, ns |
//	[producer] | [ID: space u8, length u8, bytes] |
//	[looked: count, each a length and bytes] | [error: length, bytes]
//
// Deltas and seconds are zig-zag LEB128; ctime is the distance from mtime.
const rowsVersion = 1

// Flags of a row: which of the fields in brackets are there.
const (
	rowDev = 1 << iota // differs from the row before
	rowGen
	rowProducer // differs from the row before
	rowID
	rowLooked
	rowError
	rowAliased
	rowFlags // first bit that is not used
)

// Bounds of the rows of one directory.
const (
	maxRowsRaw  = 32 << 20 // bytes before compression
	maxRows     = 1 << 20
	maxLooked   = 64
	minRowBytes = 10
	// compressRows is the raw size from which rows are compressed; below it the frame costs as much
	// as it saves.
	compressRows = 256
)

// EncodeRows returns the stored form of sorted rows.
func EncodeRows(rows DirRows) ([]byte, error) {
	if len(rows) > maxRows {
		return nil, fmt.Errorf("path rows: %w: %d files, at most %d", ErrTooLarge, len(rows),
			maxRows)
	}
	raw := binary.AppendUvarint(make([]byte, 0, 32*len(rows)+8), uint64(len(rows)))
	names, prev := 0, new(PathRow)
	for i := range rows {
		raw = appendRow(raw, &rows[i], prev)
		prev = &rows[i]
		names += len(prev.Name)
	}
	if size := max(len(raw), names); size > maxRowsRaw {
		return nil, fmt.Errorf("path rows: %w: %d bytes, at most %d", ErrTooLarge, size, maxRowsRaw)
	}
	b := binary.AppendUvarint([]byte{rowsVersion, 0}, uint64(len(raw)))
	if len(raw) >= compressRows {
		b[1] = 1
		if z := Compress(b, raw); len(z) < len(b)+len(raw) {
			return z, nil
		}
		b[1] = 0
	}
	return append(b, raw...), nil
}

func appendRow(b []byte, r, prev *PathRow) []byte {
	var flags byte
	set := func(bit byte, on bool) {
		if on {
			flags |= bit
		}
	}
	set(rowDev, r.Dev != prev.Dev)
	set(rowGen, r.Gen != 0)
	set(rowProducer, r.Producer != prev.Producer)
	set(rowID, !r.ID.IsZero())
	set(rowLooked, len(r.Looked) > 0)
	set(rowError, r.Error != "")
	set(rowAliased, r.Aliased)
	b = append(b, flags)
	shared := sharedPrefix(r.Name, prev.Name)
	b = binary.AppendUvarint(b, uint64(shared))
	b = appendString(b, r.Name[shared:])
	if flags&rowDev != 0 {
		b = binary.AppendUvarint(b, r.Dev)
	}
	b = binary.AppendVarint(b, int64(r.Inode-prev.Inode))
	if flags&rowGen != 0 {
		b = binary.AppendUvarint(b, r.Gen)
	}
	b = binary.AppendUvarint(b, r.Size)
	msec, mns := splitNanos(r.MtimeNs)
	csec, cns := splitNanos(r.CtimeNs)
	b = binary.AppendUvarint(binary.AppendVarint(b, msec), mns)
	b = binary.AppendUvarint(binary.AppendVarint(b, csec-msec), cns)
	if flags&rowProducer != 0 {
		b = binary.AppendUvarint(b, uint64(r.Producer))
	}
	if flags&rowID != 0 {
		b = append(b, byte(r.ID.Space()), byte(r.ID.Len()))
		b = append(b, r.ID.Bytes()...)
	}
	if flags&rowLooked != 0 {
		b = binary.AppendUvarint(b, uint64(len(r.Looked)))
		for _, l := range r.Looked {
			b = appendString(b, l)
		}
	}
	if flags&rowError != 0 {
		b = appendString(b, r.Error)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// splitNanos splits a time into seconds, rounded down, and the rest.
func splitNanos(ns int64) (sec int64, rest uint64) {
	sec = ns / 1e9
	r := ns % 1e9
	if r < 0 {
		sec, r = sec-1, r+1e9
	}
	return sec, uint64(r)
}

// DecodeRows is the inverse of encodeRows, for any input.
func DecodeRows(name string, b []byte) (DirRows, error) {
	r := decode.New(name, b, 0, false)
	if v := r.U8(); r.Err() == nil && v != rowsVersion {
		r.Fail("path rows version %d, this program knows %d", v, rowsVersion)
	}
	compression := r.U8()
	size := Bounded(r, maxRowsRaw)
	if r.Err() != nil {
		return nil, r.Err()
	}
	raw := r.Bytes(uint64(r.Left()))
	switch compression {
	case 0:
	case 1:
		var err error
		if raw, err = Decompress(raw, size); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	default:
		r.Fail("unknown compression %d", compression)
		return nil, r.Err()
	}
	if uint64(len(raw)) != size {
		r.Fail("%d bytes of rows, header says %d", len(raw), size)
		return nil, r.Err()
	}
	return readRows(decode.New(name, raw, 0, false))
}

func readRows(r *decode.Reader) (DirRows, error) {
	n := count(r, "rows", maxRows, minRowBytes)
	if r.Err() != nil {
		return nil, r.Err()
	}
	rows := make(DirRows, n)
	names := make([]byte, 0, 16*n) // of all rows, to become one string
	ends := make([]int, n)
	start, before := 0, new(PathRow) // of the row before: where its name is, and itself
	for i := range rows {
		prev := names[start:]
		flags := r.U8()
		if flags >= rowFlags {
			r.Fail("unknown flags %#x", flags)
		}
		shared := Bounded(r, uint64(len(prev)))
		rest := r.Bytes(Bounded(r, MaxPath))
		at := len(names)
		if shared+uint64(len(rest)) > MaxPath || at+int(shared)+len(rest) > maxRowsRaw {
			// A few bytes can expand to many by shared heads.
			r.Fail("names of over %d bytes, or of over %d together", MaxPath, maxRowsRaw)
			return nil, r.Err()
		}
		names = append(append(names, prev[:shared]...), rest...)
		if r.Err() == nil && i > 0 && bytes.Compare(names[at:], names[start:at]) <= 0 {
			r.Fail("row %d is not in order", i)
		}
		start, ends[i] = at, len(names)
		readRow(r, flags, &rows[i], before)
		before = &rows[i]
		if r.Err() != nil {
			return nil, r.Err()
		}
	}
	if r.Left() > 0 {
		r.Fail("%d bytes too many", r.Left())
		return nil, r.Err()
	}
	all, at := string(names), 0
	for i := range rows {
		rows[i].Name, at = all[at:ends[i]], ends[i]
	}
	return rows, nil
}

// readRow reads the fields after the name of a row.
func readRow(r *decode.Reader, flags byte, row, prev *PathRow) {
	row.Dev, row.Producer, row.Aliased = prev.Dev, prev.Producer, flags&rowAliased != 0
	if flags&rowDev != 0 {
		row.Dev = r.Uvarint()
	}
	row.Inode = prev.Inode + uint64(r.Varint())
	if flags&rowGen != 0 {
		row.Gen = r.Uvarint()
	}
	row.Size = r.Uvarint()
	sec, ns := r.Varint(), Bounded(r, 1e9-1)
	row.MtimeNs = sec*1e9 + int64(ns)
	sec += r.Varint()
	row.CtimeNs = sec*1e9 + int64(Bounded(r, 1e9-1))
	if flags&rowProducer != 0 {
		row.Producer = uint32(Bounded(r, math.MaxUint32))
	}
	if flags&rowID != 0 {
		space := buildid.Space(r.U8())
		row.ID = buildid.Make(space, r.Bytes(uint64(r.U8())))
		if r.Err() == nil && row.ID.IsZero() {
			r.Fail("no build ID")
		}
	}
	if flags&rowLooked != 0 {
		for range count(r, "places", maxLooked, 1) {
			row.Looked = append(row.Looked, readString(r))
		}
	}
	if flags&rowError != 0 {
		row.Error = readString(r)
	}
}

func readString(r *decode.Reader) string {
	return string(r.Bytes(Bounded(r, MaxPath)))
}

// MaxBlocks bounds the blocks of one kind in one table: at 64 KiB raw each that is a table of 64
// GiB.
const MaxBlocks = 1 << 20

// CheckDir refuses path rows that are over a limit of the store.
func CheckDir(dir string, rows DirRows) error {
	if len(dir) == 0 || len(dir) > MaxPath {
		return fmt.Errorf("directory name: %w: %d bytes, at most %d", ErrTooLarge, len(dir),
			MaxPath)
	}
	for i := range rows {
		r := &rows[i]
		if len(r.Name) > MaxPath || len(r.Error) > MaxPath || len(r.Looked) > maxLooked {
			return fmt.Errorf("path row %q: %w", r.Name, ErrTooLarge)
		}
	}
	return nil
}

// MaxPath bounds paths: of a source, and of a directory, which is a key. PATH_MAX is 4,096.
const MaxPath = 16 << 10
