package bundle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/decode"
)

// Addresses in users' stacks that no process has; see "Stacks" in the package comment.
const (
	OutsideAddress = 0         // outside of all that the process could run
	GoneAddress    = 1<<56 - 1 // the process had ended before its mappings could be read
)

// Packing says how the pairs of a raw dump lie in it. All but Plain are for what packs
// badly as it is; the pairs are the same.
type Packing uint32

// The packings; see "Raw dump" in the package comment.
const (
	Plain   Packing = iota
	Trimmed         // values without the zeros at their ends
	Columns         // blocks of pairs, word by word
)

const (
	// columnBlock is how many pairs stand in a block of Columns, the last having fewer.
	columnBlock = 1 << 16
	// maxColumnPair bounds a pair in Columns, bytes: a block is held in memory.
	maxColumnPair = 256
	columnWord    = 4
	// maxTrimmedPair bounds a pair of what is Trimmed, bytes, of which the file may hold
	// much less.
	maxTrimmedPair = 1 << 20
	lengthSize     = 4 // of the length before the value
)

// errPacking says that a header's packing is none that is known, or not for such pairs.
var errPacking = errors.New("no packing of raw dumps")

// check reports whether pairs of this size can be packed so.
func (p Packing) check(pair uint64) error {
	most := [...]uint64{Plain: maxPair, Trimmed: maxTrimmedPair, Columns: maxColumnPair}
	if int(p) >= len(most) || pair > most[p] {
		return fmt.Errorf("%w: %d, of pairs of %d bytes", errPacking, p, pair)
	}
	return nil
}

// transpose writes the n pairs of src, of this size each, to dst by columns of words; the
// bytes of the last column may be fewer than a word.
func transpose(dst, src []byte, pair int) {
	n, at := len(src)/pair, 0
	for from := 0; from < pair; from += columnWord {
		width := min(columnWord, pair-from)
		for i := range n {
			at += copy(dst[at:], src[i*pair+from:][:width])
		}
	}
}

// untranspose is the inverse of transpose.
func untranspose(dst, src []byte, pair int) {
	n, at := len(src)/pair, 0
	for from := 0; from < pair; from += columnWord {
		width := min(columnWord, pair-from)
		for i := range n {
			at += copy(dst[i*pair+from:][:width], src[at:])
		}
	}
}

// addPair writes a pair in the dump's packing. Flush reports errors of writing.
func (d *DumpWriter) addPair(key, value []byte) error {
	switch d.h.Packing {
	case Trimmed:
		n := len(value)
		for n > 0 && value[n-1] == 0 {
			n--
		}
		d.w.Write(key)
		d.w.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
		_, err := d.w.Write(value[:n])
		return err
	case Columns:
		d.block = append(append(d.block, key...), value...)
		if len(d.block) == columnBlock*(len(key)+len(value)) {
			return d.flushBlock()
		}
		return nil
	}
	d.w.Write(key)
	_, err := d.w.Write(value)
	return err
}

// flushBlock writes the pairs that wait for their block to be full.
func (d *DumpWriter) flushBlock() error {
	if len(d.block) == 0 {
		return nil
	}
	out := make([]byte, len(d.block))
	transpose(out, d.block, int(uint64(d.h.KeySize)+d.h.Stride()))
	d.block = d.block[:0]
	_, err := d.w.Write(out)
	return err
}

// fillColumns reads the block that begins here.
func (d *DumpReader) fillColumns() bool {
	n := int(min(d.left, columnBlock)) * d.pair
	if cap(d.buf) < n { // no more than what is left of the file
		d.buf, d.packed = make([]byte, n), make([]byte, n)
	}
	d.buf, d.packed, d.base = d.buf[:n], d.packed[:n], d.at
	if !d.readAt(d.packed) {
		return false
	}
	untranspose(d.buf, d.packed, d.pair)
	return true
}

// nextTrimmed returns the next pair of a dump without the zeros at the ends of values.
func (d *DumpReader) nextTrimmed() (key, value []byte, ok bool) {
	k := int(d.Header.KeySize)
	if d.stream == nil {
		d.stream = bufio.NewReaderSize(io.NewSectionReader(d.r, d.at, d.size-d.at), dumpBlock)
		d.buf = make([]byte, lengthSize+d.pair)
	}
	head, value := d.buf[:k+lengthSize], d.buf[k+lengthSize:]
	got, err := io.ReadFull(d.stream, head)
	if got == 0 && errors.Is(err, io.EOF) && d.Header.Entries == UnknownEntries {
		d.left = 0
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(head[k:])
	if err == nil && uint64(n) > uint64(len(value)) {
		return d.fail(fmt.Sprintf("%d bytes of a value that has %d", n, len(value)))
	}
	if err == nil {
		_, err = io.ReadFull(d.stream, value[:n])
	}
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return d.fail("the dump is cut off in the middle of its pairs")
	case err != nil:
		return d.fail(err.Error())
	}
	clear(value[n:])
	d.at += int64(len(head)) + int64(n)
	d.left--
	return head[:k:k], value, true
}

// fail ends the reading with damage at the present pair.
func (d *DumpReader) fail(reason string) (key, value []byte, ok bool) {
	d.err = &decode.Error{Name: d.name, Offset: d.at, Reason: reason}
	d.left = 0
	return nil, nil, false
}
