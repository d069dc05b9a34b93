package db

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"

	"github.com/dgraph-io/badger/v4"

	"symbolize/ingest/decode"
	"symbolize/store"
	"symbolize/store/db/files"
)

// The journal lists the transactions that were committed to db/ since it was cloned, in order. A
// writer that ended without publishing leaves it behind: the next one clones the generation again
// and repeats them (replay.go). Badger's own files are not opened again, because damage after a
// power failure ends the process inside Badger, or makes Badger start with an empty database
// without an error.
//
//	JOURNAL   records: length u32le | CRC-32C u32le | payload
//
// The CRC goes over the CRC of the record before (u32le, 0 at first) and the payload. The
// first payload names the generation that db/ was cloned from:
//
//	"symbolize journal 1\n" | number LEB128 | CRC-32C of its SUMS u32le; both 0 for none
//
// Each other one is a transaction, a sequence of
//
//	op u8 | key length LEB128 | key |
//	  opPut: value length LEB128 | value      a value that is small
//	  opLog: value length LEB128 | sum u32le  one in the value log, with its envelope's checksum
//
// A record is written after Badger has committed the transaction. It is not synced: a loss by
// power failure in it, or in the value logs, ends the replay there.
const journalMagic = "symbolize journal 1\n"

// Operations of a journal.
const (
	opRemove = 0
	opPut    = 1
	opLog    = 2
)

// maxRecord bounds a record: the keys and small values of a transaction.
const maxRecord = 2 * maxTxn

// recordHead is the bytes in front of a payload.
const recordHead = 8

// base names the generation that a database was cloned from; zero for none.
type base struct {
	gen uint64
	sum uint32 // of its SUMS
}

// journal is the journal of an open database.
type journal struct {
	f    *os.File
	size int64
	sum  uint32 // of the last record
	buf  []byte
	err  error // sticky: records after a lost one must not be repeated
}

// newJournal makes a journal for a clone of from.
func newJournal(path string, from base) (*journal, error) {
	f, err := files.Open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	j := &journal{f: f}
	b := append(j.begin(), journalMagic...)
	b = binary.AppendUvarint(b, from.gen)
	if err := j.end(binary.LittleEndian.AppendUint32(b, from.sum)); err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

func (j *journal) begin() []byte { return append(j.buf[:0], make([]byte, recordHead)...) }

// end fills in the head of the record in b and writes it.
func (j *journal) end(b []byte) error {
	j.buf = b
	payload := b[recordHead:]
	sum := recordSum(j.sum, payload)
	binary.LittleEndian.PutUint32(b, uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[4:], sum)
	if _, err := j.f.WriteAt(b, j.size); err != nil {
		j.err = fmt.Errorf("journal: %w", err)
		return j.err
	}
	j.size, j.sum = j.size+int64(len(b)), sum
	return nil
}

func recordSum(before uint32, payload []byte) uint32 {
	sum := crc32.Checksum(binary.LittleEndian.AppendUint32(nil, before), castagnoli)
	return crc32.Update(sum, castagnoli, payload)
}

// prepare encodes a transaction for commit. Badger adds a version to the keys that it has
// committed, so that afterwards it would be too late.
func (j *journal) prepare(entries []*badger.Entry) error {
	if j == nil {
		return nil // the database is not resumed
	}
	if j.err != nil {
		return j.err
	}
	b := j.begin()
	for _, e := range entries {
		op := byte(opPut)
		switch {
		case e.Value == nil:
			op = opRemove
		case len(e.Value) >= valueThreshold:
			op = opLog
		}
		b = append(b, op)
		b = binary.AppendUvarint(b, uint64(len(e.Key)))
		b = append(b, e.Key...)
		if op == opRemove {
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(e.Value)))
		if op == opPut {
			b = append(b, e.Value...)
		} else {
			b = append(b, e.Value[len(e.Value)-crc32.Size:]...)
		}
	}
	j.buf = b
	return nil
}

// commit appends the transaction that was prepared, and that Badger has committed.
func (j *journal) commit() error {
	if j == nil {
		return nil
	}
	return j.end(j.buf)
}

// close closes the file; the journal stays.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.f.Close()
}

// journalReader reads a journal that another process wrote.
type journalReader struct {
	r    *bufio.Reader
	at   int64
	size int64
	sum  uint32
	buf  []byte
	from base
}

// errEndOfJournal: no more records follow. The last may be half of one, which its
// writer was killed in.
var errEndOfJournal = errors.New("end of the journal")

// readJournal reads the first record. Its error wraps ErrDamaged or the file system's.
func readJournal(f io.ReaderAt, size int64) (*journalReader, error) {
	j := &journalReader{r: bufio.NewReader(io.NewSectionReader(f, 0, size)), size: size}
	b, err := j.next()
	if errors.Is(err, errEndOfJournal) {
		return nil, store.Damagef("journal: %d bytes, no head", size)
	}
	if err != nil {
		return nil, err
	}
	r := decode.New("journal", b, 0, false)
	if magic := r.Bytes(uint64(len(journalMagic))); string(magic) != journalMagic {
		return nil, store.Damagef("journal: another program's")
	}
	j.from = base{gen: r.Uvarint(), sum: r.U32()}
	if r.Err() != nil || r.Left() > 0 {
		return nil, store.Damagef("journal: %v", r.Err())
	}
	return j, nil
}

// next returns the next payload, valid until the next call: errEndOfJournal at the end, or an error
// that wraps ErrDamaged if the following bytes are not a record.
func (j *journalReader) next() ([]byte, error) {
	left := j.size - j.at
	var head [recordHead]byte
	if left < recordHead {
		return nil, errEndOfJournal
	}
	if _, err := io.ReadFull(j.r, head[:]); err != nil {
		return nil, store.Damagef("journal: offset %d: %v", j.at, err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > maxRecord {
		return nil, store.Damagef("journal: offset %d: record of %d bytes", j.at, n)
	}
	if n > left-recordHead {
		return nil, errEndOfJournal
	}
	if int64(cap(j.buf)) < n {
		j.buf = make([]byte, n)
	}
	b := j.buf[:n]
	if _, err := io.ReadFull(j.r, b); err != nil {
		return nil, store.Damagef("journal: offset %d: %v", j.at, err)
	}
	sum := recordSum(j.sum, b)
	if sum != binary.LittleEndian.Uint32(head[4:]) {
		return nil, store.Damagef("journal: offset %d: checksum %08x", j.at, sum)
	}
	j.at, j.sum = j.at+recordHead+n, sum
	return b, nil
}

// change is one operation of a transaction.
type change struct {
	op    byte
	key   []byte
	value []byte // of opPut
	size  uint64 // of a value in the log
	sum   uint32 // of its envelope
}

// decodeTxn decodes a record. The changes alias it.
func decodeTxn(b []byte) ([]change, error) {
	r := decode.New("journal", b, 0, false)
	var list []change
	for r.Left() > 0 {
		c := change{op: r.U8()}
		c.key = r.Bytes(r.Uvarint())
		switch c.op {
		case opRemove:
		case opPut:
			c.value = r.Bytes(r.Uvarint())
		case opLog:
			c.size, c.sum = r.Uvarint(), r.U32()
		default:
			return nil, store.Damagef("journal: operation %d", c.op)
		}
		if r.Err() != nil {
			return nil, store.Damagef("%v", r.Err())
		}
		if len(c.key) == 0 || len(c.key) > math.MaxUint16 {
			return nil, store.Damagef("journal: key of %d bytes", len(c.key))
		}
		list = append(list, c)
	}
	return list, nil
}
