package symtab

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// digestDomain keeps digests of tables apart from other hashes; it changes when
// the content that a digest covers does.
const digestDomain = "symbolize symtab 1\n"

// digest adds one range to the digest.
func (e *encoder) digest(start, end uint64, c *candidate) {
	e.sumBuf = appendDigest(e.sumBuf, start, end, c.number-1, c.start, c.size, c.flags&Unsized, c.name)
	if len(e.sumBuf) >= 4096 {
		e.sum.Write(e.sumBuf)
		e.sumBuf = e.sumBuf[:0]
	}
}

func appendDigest[S string | []byte](b []byte, start, end uint64, number uint32,
	funcStart, funcSize uint64, flags Flags, name S) []byte {
	for _, v := range [...]uint64{
		start, end, uint64(number), funcStart, funcSize, uint64(flags), uint64(len(name)),
	} {
		b = binary.AppendUvarint(b, v)
	}
	return append(b, name...)
}

// Verify reads the whole table back and checks every invariant of the format:
// ranges ascending, disjoint and inside their chunks and functions, the parts of a
// function agreeing, counts and ends as in the directories, numbers in range,
// names whole and not empty. It returns the first violation.
func (t *Table) Verify() error {
	_, err := t.Digest()
	return err
}

// Digest is Verify and returns the digest of the content, which is the one that
// Encode gave.
func (t *Table) Digest() (sum [32]byte, err error) {
	v := verifier{t: t, sum: sha256.New(), buf: []byte(digestDomain), parts: make(map[uint32]part)}
	for i := range t.h.chunks {
		if err := v.chunk(i); err != nil {
			return sum, err
		}
	}
	for i := range t.h.strings {
		if _, err := t.textBlock(i); err != nil {
			return sum, err
		}
	}
	v.sum.Write(v.buf)
	v.sum.Sum(sum[:0])
	return sum, nil
}

// verifier is the state of one Digest.
type verifier struct {
	t     *Table
	sum   hash.Hash
	buf   []byte
	parts map[uint32]part // of the functions that are not one whole range
}

// part is what the parts of a function must agree on.
type part struct {
	start, size uint64
	name        uint32
	flags       Flags
}

func (v *verifier) chunk(i int) error {
	if err := v.t.openChunk(i); err != nil {
		return err
	}
	c := &v.t.cur
	for c.next() {
		name, err := v.t.nameBytes(NameID(c.name))
		if err != nil {
			return err
		}
		if len(name) == 0 || len(name) > MaxName {
			return formatError("name of %d bytes at address %#x", len(name), c.start)
		}
		if c.funcStart != c.start || c.funcSize != c.end-c.start || c.resumed {
			p := part{c.funcStart, c.funcSize, c.name, c.flags}
			if old, ok := v.parts[c.number]; ok != c.resumed || ok && old != p {
				return formatError("parts of function %d do not agree at address %#x", c.number, c.start)
			}
			v.parts[c.number] = p
		}
		v.buf = appendDigest(v.buf, c.start, c.end, c.number, c.funcStart, c.funcSize, c.flags, name)
		if len(v.buf) >= 4096 {
			v.sum.Write(v.buf)
			v.buf = v.buf[:0]
		}
	}
	return c.close()
}
