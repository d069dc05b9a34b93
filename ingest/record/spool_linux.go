package record

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

// spool keeps data by id in a temporary file, so that memory holds 16 bytes for each. It is for one
// goroutine.
type spool struct {
	file    *os.File
	buf     *bufio.Writer
	size    int64
	entries []spooled
	sorted  bool
}

type spooled struct {
	id  uint32
	len uint32
	at  int64
}

// newSpool makes a spool whose file has no name, so that nothing is left of it after a crash.
func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "symbolize-capture-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &spool{file: f, buf: bufio.NewWriterSize(f, 1<<18)}, nil
}

func (s *spool) close() { s.file.Close() }

// add keeps b under an id.
func (s *spool) add(id uint32, b []byte) error {
	if _, err := s.buf.Write(b); err != nil {
		return err
	}
	s.entries = append(s.entries, spooled{id: id, len: uint32(len(b)), at: s.size})
	s.size += int64(len(b))
	s.sorted = false
	return nil
}

// reset forgets all entries.
func (s *spool) reset() error {
	s.buf.Reset(s.file)
	s.entries, s.size, s.sorted = s.entries[:0], 0, false
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return err
}

// sort puts the entries in the order of their ids. A second one of an id is dropped.
func (s *spool) sort() {
	if s.sorted {
		return
	}
	slices.SortStableFunc(s.entries, func(a, b spooled) int { return cmp.Compare(a.id, b.id) })
	s.entries = slices.CompactFunc(s.entries, func(a, b spooled) bool { return a.id == b.id })
	s.sorted = true
}

// read returns the content of an entry in buf, or in a new buffer if it is too small.
func (s *spool) read(e spooled, buf []byte) ([]byte, error) {
	if err := s.buf.Flush(); err != nil {
		return nil, err
	}
	buf = slices.Grow(buf[:0], int(e.len))[:e.len]
	_, err := s.file.ReadAt(buf, e.at)
	return buf, err
}

// section returns a reader of a feature's bytes: the number of entries, then all of
// them by id.
func (s *spool) section() io.Reader {
	s.sort()
	return &sectionReader{s: s, buf: binary.NativeEndian.AppendUint32(nil, uint32(len(s.entries)))}
}

// sectionReader reads the entries of a spool in their order.
type sectionReader struct {
	s    *spool
	next int
	buf  []byte // the rest of the entry at hand
	room []byte
}

func (r *sectionReader) Read(b []byte) (int, error) {
	for len(r.buf) == 0 {
		if r.next == len(r.s.entries) {
			return 0, io.EOF
		}
		var err error
		if r.room, err = r.s.read(r.s.entries[r.next], r.room); err != nil {
			return 0, err
		}
		r.buf = r.room
		r.next++
	}
	n := copy(b, r.buf)
	r.buf = r.buf[n:]
	return n, nil
}

// find returns the entry of an id. The spool must be sorted.
func (s *spool) find(id uint32) (spooled, bool) {
	i, ok := slices.BinarySearchFunc(s.entries, id, func(e spooled, id uint32) int {
		return cmp.Compare(e.id, id)
	})
	if !ok {
		return spooled{}, false
	}
	return s.entries[i], true
}
