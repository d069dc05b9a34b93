package symtab

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
)

// digestDomain separates digests of tables from other hashes; it changes with the content
// that a digest covers.
const (
	digestDomain = "symbolize symtab 1\n"
	debugDomain  = "symbolize symtab 1 with debug information\n"
)

// digest adds one range to the digest.
func (e *encoder) digest(start, end uint64, c *candidate) {
	e.sumBuf = appendDigest(e.sumBuf, start, end, c.number-1, c.start, c.size,
		c.flags&(Unsized|Nameless), c.name)
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

// Digest reads the whole table back and checks every invariant of the format: ranges ascending,
// disjoint and inside their chunks and functions, the parts of a function agreeing, counts and ends
// as in the directories, numbers in range, names whole and not empty; segments that fill their
// ranges, calls in order, each in some segment, every file and name used in the order of the
// numbers. It returns the digest of the content, which equals the digest of Encode, or the first
// violation.
func (t *Table) Digest() (sum [32]byte, err error) {
	v := verifier{t: t, sum: sha256.New(), buf: []byte(digestDomain), parts: make(map[uint32]part)}
	if t.h.debug {
		v.buf = []byte(debugDomain)
	}
	for i := range t.h.chunks {
		if err := v.chunk(i); err != nil {
			return sum, err
		}
	}
	for i := range t.h.texts() {
		if err := v.text(i); err != nil {
			return sum, err
		}
	}
	if err := v.sums(); err != nil {
		return sum, err
	}
	v.sum.Write(v.buf)
	v.sum.Sum(sum[:0])
	t.named = v.named
	return sum, nil
}

// Named returns the bytes of code that have a name, as Digest has counted them.
func (t *Table) Named() uint64 { return t.named }

// verifier is the state of one Digest.
type verifier struct {
	t     *Table
	sum   hash.Hash
	buf   []byte
	parts map[uint32]part // of the functions that are not one whole range
	named uint64

	extra, files            hash.Hash // of the strings of debug information
	nextExtra, nextFile     uint64    // numbers that nothing before has used
	scopes, segments, lined uint64
	seen                    []bool // calls of a range that a segment shows
}

// part holds the values on which the parts of a function must agree.
type part struct {
	start, size uint64
	name        uint32
	flags       Flags
}

func (v *verifier) chunk(i int) error {
	if err := v.t.openChunk(i, v.t.debugCursor()); err != nil {
		return err
	}
	c := &v.t.cur
	for c.next() {
		var name []byte
		if c.flags&Nameless == 0 {
			var err error
			if name, err = v.t.nameBytes(NameID(c.name)); err != nil {
				return err
			}
			if len(name) == 0 || len(name) > MaxName {
				return formatError("name of %d bytes at address %#x", len(name), c.start)
			}
			v.named += c.end - c.start
		}
		if c.funcStart != c.start || c.funcSize != c.end-c.start || c.resumed {
			p := part{c.funcStart, c.funcSize, c.name, c.flags}
			if old, ok := v.parts[c.number]; ok != c.resumed || ok && old != p {
				return formatError("parts of function %d do not agree at address %#x",
					c.number, c.start)
			}
			v.parts[c.number] = p
		}
		v.buf = appendDigest(v.buf, c.start, c.end, c.number, c.funcStart, c.funcSize, c.flags,
			name)
		if v.t.h.debug {
			if err := v.debug(c); err != nil {
				return err
			}
		}
		if len(v.buf) >= 4096 {
			v.sum.Write(v.buf)
			v.buf = v.buf[:0]
		}
	}
	if err := c.close(); err != nil || !v.t.h.debug {
		return err
	}
	return v.t.debug.close()
}

// debug checks the calls and segments of a range.
func (v *verifier) debug(c *chunkCursor) error {
	d := &v.t.debug
	if err := d.load(c.start, c.end-c.start, nil); err != nil {
		return err
	}
	fn := d.subOf(d.fn)
	if d.fn != 0 && (c.flags&Nameless != 0 || fn.name != NameID(c.name)) {
		return formatError("function of another name at address %#x", c.start)
	}
	v.use(fn)
	v.buf = appendSubDigest(v.buf, fn)
	v.buf = binary.AppendUvarint(v.buf, uint64(len(d.calls)))
	for i := range d.calls {
		sub := d.subOf(d.calls[i].sub)
		v.use(sub)
		v.useFile(d.calls[i].file)
		v.buf = appendCallDigest(v.buf, &d.calls[i], sub)
	}
	v.buf = appendSegmentsDigest(v.buf, d.segs)
	v.seen = append(v.seen[:0], make([]bool, len(d.calls))...)
	for i := range d.segs {
		s := &d.segs[i]
		v.useFile(s.file)
		if s.file != NoFile && s.line != 0 {
			v.lined += s.size
		}
		for k := s.call; k >= 0 && !v.seen[k]; k = d.calls[k].parent {
			v.seen[k] = true
		}
	}
	if slices.Contains(v.seen, false) {
		return formatError("inlined call that no address shows at address %#x", c.start)
	}
	v.scopes += uint64(len(d.calls))
	v.segments += uint64(len(d.segs))
	return nil
}

// use records the use of a subprogram's name and file. Numbers are assigned in the order of first
// use, so that each is at most the next new one; premature uses show in nextExtra and nextFile at
// the end.
func (v *verifier) use(s subInfo) {
	if s.name != NoName && uint64(s.name) == v.t.h.strs+v.nextExtra {
		v.nextExtra++
	}
	v.useFile(s.file)
}

func (v *verifier) useFile(f FileID) {
	if f != NoFile && uint64(f) == v.nextFile {
		v.nextFile++
	}
}

// text checks string block i.
func (v *verifier) text(i int) error {
	tb, err := v.t.textBlock(i)
	if err != nil || !v.t.h.debug {
		return err
	}
	if i >= v.t.h.firstShown() {
		return nil // derived from the names
	}
	e := v.t.h.text(i)
	sum := &v.files
	if i < len(v.t.h.strings) {
		if e.first < v.t.h.strs {
			return nil // names of functions are in the digest by function
		}
		sum = &v.extra
	}
	if *sum == nil {
		*sum = sha256.New()
	}
	last := -1
	for _, end := range tb.ends {
		if int(end) == last+1 || int(end)-last > MaxName+1 {
			return formatError("string of %d bytes in block %d", int(end)-last-1, i)
		}
		last = int(end)
	}
	(*sum).Write(tb.text)
	return nil
}

// sums checks the sums of debug information and adds its strings to the digest.
func (v *verifier) sums() error {
	h := v.t.h
	if !h.debug {
		return nil
	}
	if v.scopes != h.scopes || v.segments != h.segments || v.lined != h.lined {
		return formatError("sums of calls or segments differ from the summary")
	}
	if v.nextExtra != h.extraStrs || v.nextFile != h.files {
		return formatError("names or files are not numbered by their first use")
	}
	for _, p := range [...]struct {
		count uint64
		sum   hash.Hash
	}{{h.extraStrs, v.extra}, {h.files, v.files}} {
		if p.sum == nil {
			p.sum = sha256.New()
		}
		v.buf = binary.AppendUvarint(v.buf, p.count)
		v.buf = p.sum.Sum(v.buf)
	}
	return nil
}
