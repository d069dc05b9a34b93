package db

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/store"
)

// The journal contains the transactions written to db/ since db/ was cloned, complete and in order.
// If a writer ends without publishing, the journal stays: the next writer clones the newest
// generation and repeats the transactions. It does not open the Badger files of the previous
// writer. After a power failure, damage in these files can end the process inside Badger, or make
// Badger start with an empty database without an error. So values are written twice: to the journal
// and to Badger.
//
//	JOURNAL   records: length u32le | CRC-32C u32le | payload
//
// length is the length of the payload. The CRC covers the CRC of the preceding record (u32le, 0 for
// the first record) and the payload. The first payload names the generation that db/ was cloned
// from:
//
//	"symbolize journal 2\n" | number LEB128 | CRC-32C of its SUMS u32le; both 0 for none
//
// Every other payload is a transaction, a sequence of
//
//	key length LEB128 | key | value length LEB128 | value
//
// An empty value removes the key: the envelope of a stored value is never empty.
//
// A record is written before Badger commits the transaction. Records are not synced: if a power
// failure damages a record, the replay ends before it.
const journalMagic = "symbolize journal 2\n"

// maxRecord limits the payload of a record: a transaction, or the largest value that Badger
// accepts.
const maxRecord = vlogFileSize + 2*maxTxn

// recordHead is the number of bytes before a payload.
const recordHead = 8

// base names the generation that a database was cloned from. The zero base means none.
type base struct {
	gen uint64
	sum uint32 // CRC-32C of its SUMS file
}

// journal is the journal of an open database.
type journal struct {
	f    *os.File
	from base
	size int64
	sum  uint32 // CRC of the last record
	buf  []byte
}

// newJournal creates the journal of a clone of the generation from.
func newJournal(path string, from base) (*journal, error) {
	f, err := files.OpenPlain(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	j := &journal{f: f, from: from}
	b := append(make([]byte, recordHead), journalMagic...)
	b = binary.AppendUvarint(b, from.gen)
	if err := j.write(binary.LittleEndian.AppendUint32(b, from.sum)); err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// write fills in the head of the record b and appends b to the journal. If it fails, it truncates
// the journal to its old length.
func (j *journal) write(b []byte) error {
	sum := recordSum(j.sum, b[recordHead:])
	binary.LittleEndian.PutUint32(b, uint32(len(b)-recordHead))
	binary.LittleEndian.PutUint32(b[4:], sum)
	if _, err := j.f.WriteAt(b, j.size); err != nil {
		return fmt.Errorf("journal: %w", errors.Join(err, j.f.Truncate(j.size)))
	}
	j.size, j.sum = j.size+int64(len(b)), sum
	return nil
}

func recordSum(before uint32, payload []byte) uint32 {
	sum := crc32.Checksum(binary.LittleEndian.AppendUint32(nil, before), castagnoli)
	return crc32.Update(sum, castagnoli, payload)
}

// add appends a transaction.
func (j *journal) add(entries []*badger.Entry) error {
	if j == nil {
		return nil // no other writer will resume the database
	}
	b := append(j.buf[:0], make([]byte, recordHead)...)
	for _, e := range entries {
		b = binary.AppendUvarint(b, uint64(len(e.Key)))
		b = append(b, e.Key...)
		b = binary.AppendUvarint(b, uint64(len(e.Value)))
		b = append(b, e.Value...)
	}
	j.buf = b
	return j.write(b)
}

// close closes the file and does not remove it.
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
	from base
}

// errEndOfJournal means that no complete record follows. The journal may end with part of a record,
// if its writer was killed while writing.
var errEndOfJournal = errors.New("end of the journal")

// readJournal reads the first record and returns a reader of the others. Errors wrap ErrDamaged.
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
		return nil, store.Damagef("journal: of another version of this program")
	}
	j.from = base{gen: r.Uvarint(), sum: r.U32()}
	if r.Err() != nil || r.Left() > 0 {
		return nil, store.Damagef("journal: %v", r.Err())
	}
	return j, nil
}

// next returns the next payload. The error is errEndOfJournal at the end of the journal; it wraps
// ErrDamaged if the next bytes are not a record.
func (j *journalReader) next() ([]byte, error) {
	left := j.size - j.at
	var head [recordHead]byte
	if left < recordHead {
		return nil, errEndOfJournal
	}
	if _, err := io.ReadFull(j.r, head[:]); err != nil {
		return nil, readFailure(fmt.Sprintf("journal: offset %d", j.at), err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > maxRecord {
		return nil, store.Damagef("journal: offset %d: record of %d bytes", j.at, n)
	}
	if n > left-recordHead {
		return nil, errEndOfJournal
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(j.r, b); err != nil {
		return nil, readFailure(fmt.Sprintf("journal: offset %d", j.at), err)
	}
	sum := recordSum(j.sum, b)
	if sum != binary.LittleEndian.Uint32(head[4:]) {
		return nil, store.Damagef("journal: offset %d: checksum %08x", j.at, sum)
	}
	j.at, j.sum = j.at+recordHead+n, sum
	return b, nil
}

// transaction returns the entries of the next record.
func (j *journalReader) transaction() ([]*badger.Entry, error) {
	b, err := j.next()
	if err != nil {
		return nil, err
	}
	return decodeTxn(b)
}

// decodeTxn decodes the payload of a transaction. The entries share the memory of b.
func decodeTxn(b []byte) ([]*badger.Entry, error) {
	r := decode.New("journal", b, 0, false)
	var list []*badger.Entry
	for r.Left() > 0 {
		e := &badger.Entry{Key: r.Bytes(r.Uvarint())}
		if value := r.Bytes(r.Uvarint()); len(value) > 0 {
			e.Value = value
		}
		if r.Err() != nil {
			return nil, store.Damagef("%v", r.Err())
		}
		if len(e.Key) == 0 || len(e.Key) > math.MaxUint16 {
			return nil, store.Damagef("journal: key of %d bytes", len(e.Key))
		}
		list = append(list, e)
	}
	return list, nil
}

// setLeft renames the db/ of an interrupted writer to left/; takeLeft repeats its transactions. If
// left/ already exists, db/ is from an interrupted replay: setLeft removes db/, and the replay
// starts again.
func setLeft(root string) error {
	dir, left := filepath.Join(root, liveName), filepath.Join(root, leftName)
	_, err := os.Lstat(left)
	if err == nil {
		return removeTree(dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Rename(dir, left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, files.SyncDir(root))
}

// takeLeft repeats the transactions of an interrupted writer in the open database, if both
// databases were cloned from the same generation. That generation contains everything that was
// published, so damage in left/ cannot lose published data.
func (w *Writer) takeLeft(ctx context.Context) error {
	left := filepath.Join(w.path, leftName)
	if _, err := os.Lstat(left); err != nil {
		return skipMissing(err)
	}
	done, err := w.repeat(ctx, left)
	switch {
	case err == nil:
		return removeTree(left)
	case !errors.Is(err, store.ErrDamaged):
		return err
	}
	aside := filepath.Join(w.path, asideName)
	w.log.warn("an interrupted run left work that cannot be taken up: %v; %d of its transactions were, "+
		"the rest is set aside in %s: index the same files again", err, done, aside)
	return errors.Join(os.RemoveAll(aside), os.Rename(left, aside))
}

// skipMissing returns nil if err means that a file does not exist, otherwise err.
func skipMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// repeat repeats the transactions of the journal in dir up to the first incomplete or damaged one,
// and returns the number of repeated transactions. Its error wraps ErrDamaged if the journal is
// missing, damaged, or of another generation. The transactions before the damage are in the
// database even then.
func (w *Writer) repeat(ctx context.Context, dir string) (done int, err error) {
	f, err := files.OpenPlain(filepath.Join(dir, journalName), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, store.Damagef("it has no journal")
	}
	if err != nil {
		return 0, asDamage(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	j, err := readJournal(f, info.Size())
	if err != nil {
		return 0, err
	}
	b := &batch{ctx: ctx, w: w}
	for ; ; done++ {
		list, err := j.transaction()
		switch {
		case errors.Is(err, errEndOfJournal):
			return done, b.commit()
		case err == nil && j.from != w.journal.from:
			return 0, store.Damagef("it goes on from generation %d, which is not the newest sound one",
				j.from.gen)
		case errors.Is(err, store.ErrDamaged):
			return done, cmp.Or(b.commit(), err)
		case err != nil:
			return done, err
		}
		for _, e := range list {
			if err := b.add(e); err != nil {
				return done, err
			}
		}
	}
}
