package db

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/store"
)

// factsHead begins facts, see the package comment.
const factsHead = "symbolize facts 1\n"

// Types of records. Those of 'm', 'd' and 'b' are prefixes of keys, too.
const (
	recordHead = 'h'
	recordEnd  = 'e'
)

// maxRecord bounds a record, in bytes.
const maxRecord = 64 << 20

// openPrefix begins the names of facts that are not committed.
const openPrefix = ".open-"

// head is the first record of facts.
type head struct {
	replaced []digest
}

func (h *head) encode() (b []byte) {
	for _, d := range h.replaced {
		b = append(b, d[:]...)
	}
	return b
}

// factsWriter writes facts.
type factsWriter struct {
	dir, tmp string
	f        *os.File
	buf      *bufio.Writer
	sum      hash.Hash
	records  uint64
	id       digest // once they are finished
}

// newFacts begins a file of facts.
func newFacts(root string, h head) (*factsWriter, error) {
	w := &factsWriter{dir: filepath.Join(root, factsName), sum: sha256.New()}
	w.tmp = filepath.Join(w.dir, fmt.Sprintf("%s%d-%x", openPrefix, os.Getpid(), rand.Uint64()))
	var err error
	if w.f, err = files.OpenPlain(w.tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return nil, spaceError(err)
	}
	w.buf = bufio.NewWriter(io.MultiWriter(w.f, w.sum))
	if _, err = w.buf.WriteString(factsHead); err == nil {
		err = w.add(recordHead, h.encode())
	}
	if err != nil {
		return nil, errors.Join(err, w.discard())
	}
	return w, nil
}

// add appends a record.
func (w *factsWriter) add(kind byte, payload ...[]byte) error {
	n := 0
	for _, b := range payload {
		n += len(b)
	}
	head := binary.AppendUvarint([]byte{kind}, uint64(n))
	sum := crc32.Checksum(head, castagnoli)
	w.buf.Write(head)
	for _, b := range payload {
		sum = crc32.Update(sum, castagnoli, b)
		w.buf.Write(b)
	}
	w.records++
	_, err := w.buf.Write(binary.LittleEndian.AppendUint32(nil, sum)) // has the errors before, too
	return spaceError(err)
}

// flush hands all records to the system: they survive the end of this process.
func (w *factsWriter) flush() error { return spaceError(w.buf.Flush()) }

// finish ends the facts. They are on disk then, and do not count until commit.
func (w *factsWriter) finish() error {
	err := w.add(recordEnd, binary.AppendUvarint(nil, w.records))
	err = errors.Join(err, w.flush())
	if err == nil {
		err = w.f.Sync()
	}
	w.sum.Sum(w.id[:0])
	return spaceError(errors.Join(err, w.f.Close()))
}

// commit gives finished facts their name.
func (w *factsWriter) commit() error {
	if err := os.Rename(w.tmp, filepath.Join(w.dir, w.id.String())); err != nil {
		return err
	}
	return files.SyncDir(w.dir)
}

// discard removes uncommitted facts.
func (w *factsWriter) discard() error {
	w.f.Close() // they may be finished
	return os.Remove(w.tmp)
}

// listFacts returns the committed facts of a store, and the names of files of uncommitted ones.
func listFacts(root string) (list map[digest]bool, open []string, err error) {
	if err := files.CheckDirs(root, factsName); err != nil {
		return nil, nil, err
	}
	list = make(map[digest]bool)
	err = eachName(filepath.Join(root, factsName), func(name string) error {
		if id, ok := store.ParseDigest(name); ok {
			list[id] = true
		} else if strings.HasPrefix(name, openPrefix) {
			open = append(open, name)
		}
		return nil
	})
	return list, open, err
}

// readFacts calls fn for the records of a file of facts up to the first damaged one, without head
// and end. The payload is valid during the call. whole is false if there is no end; sum is the
// digest of a whole file. With a nil fn only the head is read.
func readFacts(path string, fn func(kind byte, payload []byte) error) (h head, sum digest, whole bool,
	err error) {
	f, err := files.OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return h, sum, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return h, sum, false, err
	}
	all := sha256.New()
	r := bufio.NewReaderSize(io.TeeReader(f, all), 64<<10)
	text := make([]byte, len(factsHead))
	if _, err := io.ReadFull(r, text); err != nil || string(text) != factsHead {
		if ok := strings.HasPrefix(string(text), "symbolize facts "); ok && err == nil {
			return h, sum, false, fmt.Errorf("%s: %w: %q", path, store.ErrVersion, text)
		}
		return h, sum, false, skipDamage(cutOff(err))
	}
	var payload []byte
	for n := uint64(0); ; n++ {
		kind, err := nextRecord(r, info.Size(), &payload)
		if err != nil {
			return h, sum, false, skipDamage(cutOff(err))
		}
		switch {
		case n == 0 && kind == recordHead:
			if h, err = parseHead(payload); err != nil || fn == nil {
				return h, sum, err == nil, err
			}
		case n == 0:
			return h, sum, false, nil
		case kind == recordEnd:
			count, _ := binary.Uvarint(payload)
			if _, err := r.ReadByte(); err != io.EOF || count != n {
				return h, sum, false, nil
			}
			all.Sum(sum[:0])
			return h, sum, true, nil
		default:
			if err := fn(kind, payload); err != nil {
				return h, sum, false, err
			}
		}
	}
}

// cutOff makes the end of a file, or damage, no error of this machine.
func cutOff(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return store.ErrDamaged
	}
	return err
}

// nextRecord reads one record of a file of size bytes.
func nextRecord(r *bufio.Reader, size int64, payload *[]byte) (kind byte, err error) {
	if kind, err = r.ReadByte(); err != nil {
		return 0, err
	}
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, err
	}
	if n > maxRecord || int64(n) > size {
		return 0, store.ErrDamaged
	}
	if uint64(cap(*payload)) < n {
		*payload = make([]byte, n)
	}
	*payload = (*payload)[:n]
	if _, err := io.ReadFull(r, *payload); err != nil {
		return 0, err
	}
	var stored [4]byte
	if _, err := io.ReadFull(r, stored[:]); err != nil {
		return 0, err
	}
	sum := crc32.Checksum(binary.AppendUvarint([]byte{kind}, n), castagnoli)
	if crc32.Update(sum, castagnoli, *payload) != binary.LittleEndian.Uint32(stored[:]) {
		return 0, store.ErrDamaged
	}
	return kind, nil
}

func parseHead(b []byte) (h head, err error) {
	r := decode.New("head of facts", b, 0, false)
	for r.Err() == nil && r.Left() > 0 {
		var d digest
		copy(d[:], r.Bytes(uint64(len(d))))
		h.replaced = append(h.replaced, d)
	}
	if r.Err() != nil {
		return h, store.Damagef("%v", r.Err())
	}
	return h, nil
}

// headOf reads the head of committed facts.
func headOf(root string, id digest) (head, error) {
	path := filepath.Join(root, factsName, id.String())
	h, _, whole, err := readFacts(path, nil)
	if err == nil && !whole {
		err = store.Damagef("facts %s", id)
	}
	return h, err
}

// skipDamage returns err unless it is damage.
func skipDamage(err error) error {
	if errors.Is(err, store.ErrDamaged) {
		return nil
	}
	return err
}

// skipMissing returns err unless a file is missing.
func skipMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
