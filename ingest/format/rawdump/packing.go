package rawdump

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"symbolize/ingest/decode"
)

// Packing is the layout of the pairs in a raw dump. All but Plain are for data that compresses
// badly; the pairs are the same.
type Packing uint32

// The packings; see the package comment.
const (
	Plain   Packing = iota
	Trimmed         // values without the zeros at their ends
	Columns         // blocks of pairs, byte by byte
)

// Bounds of a pair, key and value, in packed dumps, in bytes. A block of Columns is held in
// memory; the file of a Trimmed dump may hold much less than its pairs have.
const (
	MaxColumnPair  = 256
	MaxTrimmedPair = 1 << 20
)

const (
	// maxBlock is how many pairs are in a block at most; in one of Columns they are as
	// many, but in the last.
	maxBlock = 1 << 16
	// trimmedBytes is how many bytes of values a writer collects for a block.
	trimmedBytes = 2 << 20
	countSize    = 4 // bytes of a block's number of pairs, and of a value's length
)

// errPacking: a header's packing is unknown, or not for such pairs.
var errPacking = errors.New("no packing of raw dumps")

// check reports whether pairs of this size can be packed so.
func (p Packing) check(pair uint64) error {
	most := [...]uint64{Plain: maxPair, Trimmed: MaxTrimmedPair, Columns: MaxColumnPair}
	if int(p) >= len(most) || pair > most[p] {
		return fmt.Errorf("%w: %d, of pairs of %d bytes", errPacking, p, pair)
	}
	return nil
}

// transpose writes the n rows of src, of this size each, to dst by columns: their first
// bytes, then their second ones, and so on.
func transpose(dst, src []byte, size int) {
	n, at := len(src)/max(size, 1), 0
	for column := range size {
		for i := range n {
			dst[at] = src[i*size+column]
			at++
		}
	}
}

// untranspose is the inverse of transpose.
func untranspose(dst, src []byte, size int) {
	n, at := len(src)/max(size, 1), 0
	for column := range size {
		for i := range n {
			dst[i*size+column] = src[at]
			at++
		}
	}
}

// addPair writes a pair in the dump's packing.
func (d *Writer) addPair(key, value []byte) error {
	switch d.h.Packing {
	case Trimmed:
		n := len(value)
		for n > 0 && value[n-1] == 0 {
			n--
		}
		d.block = append(d.block, key...)
		d.lengths = binary.LittleEndian.AppendUint32(d.lengths, uint32(n))
		d.values = append(d.values, value[:n]...)
		if len(d.lengths) == maxBlock*countSize || len(d.values) >= trimmedBytes {
			return d.flushBlock()
		}
		return nil
	case Columns:
		d.block = append(append(d.block, key...), value...)
		if len(d.block) == maxBlock*(len(key)+len(value)) {
			return d.flushBlock()
		}
		return nil
	}
	d.w.Write(key) // Flush reports the error
	_, err := d.w.Write(value)
	return err
}

// flushBlock writes the pairs that wait for their block to be full.
func (d *Writer) flushBlock() error {
	size := int(uint64(d.h.KeySize) + d.h.Stride())
	if d.h.Packing == Trimmed {
		if len(d.lengths) == 0 {
			return nil
		}
		size = int(d.h.KeySize)
		count := uint32(len(d.lengths) / countSize)
		d.w.Write(binary.LittleEndian.AppendUint32(nil, count))
	}
	d.writeColumns(d.block, size)
	d.writeColumns(d.lengths, countSize)
	_, err := d.w.Write(d.values)
	d.block, d.lengths, d.values = d.block[:0], d.lengths[:0], d.values[:0]
	return err
}

func (d *Writer) writeColumns(rows []byte, size int) {
	out := make([]byte, len(rows))
	transpose(out, rows, size)
	d.w.Write(out)
}

// fillColumns reads the block that begins here.
func (d *Reader) fillColumns() bool {
	n := int(min(d.left, maxBlock)) * d.pair
	if cap(d.buf) < n { // no more than the rest of the file
		d.buf, d.packed = make([]byte, n), make([]byte, n)
	}
	d.buf, d.packed, d.base = d.buf[:n], d.packed[:n], d.at
	if !d.readAt(d.packed) {
		return false
	}
	untranspose(d.buf, d.packed, d.pair)
	return true
}

// trimmedBlock is a block of a dump without the zeros at the ends of values.
type trimmedBlock struct {
	stream        *bufio.Reader // from where the reader is
	keys, lengths []byte        // of the pairs that are left
	packed        []byte
	value         []byte
}

// nextTrimmed returns the next pair of a dump without the zeros at the ends of values.
func (d *Reader) nextTrimmed() (key, value []byte, ok bool) {
	if d.trimmed == nil {
		left := d.size - d.at
		d.trimmed = &trimmedBlock{value: make([]byte, d.Header.Stride()),
			stream: bufio.NewReaderSize(io.NewSectionReader(d.r, d.at, left),
				int(min(dumpBlock, left+1)))}
	}
	t := d.trimmed
	if len(t.lengths) == 0 && !d.fillTrimmed(t) {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(t.lengths)
	if uint64(n) > uint64(len(t.value)) {
		return d.fail(fmt.Sprintf("%d bytes of a value that has %d", n, len(t.value)))
	}
	if _, err := io.ReadFull(t.stream, t.value[:n]); err != nil {
		return d.failCut(err)
	}
	clear(t.value[n:])
	k := int(d.Header.KeySize)
	key, t.keys, t.lengths = t.keys[:k:k], t.keys[k:], t.lengths[countSize:]
	d.at += int64(n)
	d.left--
	return key, t.value, true
}

// fillTrimmed reads the keys and lengths of the block that begins here.
func (d *Reader) fillTrimmed(t *trimmedBlock) bool {
	var count [countSize]byte
	got, err := io.ReadFull(t.stream, count[:])
	if got == 0 && errors.Is(err, io.EOF) && d.Header.Entries == UnknownEntries {
		d.left = 0
		return false
	}
	if err != nil {
		d.failCut(err)
		return false
	}
	n, k := uint64(binary.LittleEndian.Uint32(count[:])), uint64(d.Header.KeySize)
	if n == 0 || n > min(maxBlock, d.left) {
		d.fail(fmt.Sprintf("a block of %d pairs", n))
		return false
	}
	d.at += countSize
	size := n * (k + countSize)
	if size > uint64(d.size-d.at) {
		d.failCut(io.EOF)
		return false
	}
	t.packed = slices.Grow(t.packed[:0], int(size))[:size]
	if _, err := io.ReadFull(t.stream, t.packed); err != nil {
		d.failCut(err)
		return false
	}
	d.at += int64(size)
	plain := make([]byte, size)
	t.keys, t.lengths = plain[:n*k], plain[n*k:]
	untranspose(t.keys, t.packed[:n*k], int(k))
	untranspose(t.lengths, t.packed[n*k:], countSize)
	return true
}

// failCut is fail where the file did not have the wanted bytes.
func (d *Reader) failCut(err error) (key, value []byte, ok bool) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return d.fail("the dump is cut off in the middle of its pairs")
	}
	return d.fail(err.Error())
}

// fail ends the reading with damage at the present pair.
func (d *Reader) fail(reason string) (key, value []byte, ok bool) {
	d.err = &decode.Error{Name: d.name, Offset: d.at, Reason: reason}
	d.left = 0
	return nil, nil, false
}
