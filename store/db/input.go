package db

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/store"
	"symbolize/store/symtab"
)

// An input is
//
//	"symbolize input 1\n"
//	size of the directory u32, its CRC-32C u32
//	directory
//	the bytes of all parts
//
// and its directory
//
//	sources LEB128, and of each
//	  kind u8 | digest of the table 32 | chunks, string blocks, pieces of raw, raw size LEB128
//	  of each part: size LEB128, CRC-32C u32
//
// with the parts of a source in the order header, chunks, string blocks, pieces of the captured
// input (zstd, store.RawPiece bytes each but the last). Integers are little-endian. A blob is a
// source of kind 0 with pieces alone; its digest is its store.BlobID.
const inputHead = "symbolize input 1\n"

// Bounds of an input.
const (
	inputFixed = len(inputHead) + 8
	// inputAhead is how many bytes of an input are read at once to find its directory. Inputs that are
	// not larger are kept with it.
	inputAhead = 16 << 10
	maxParts   = 3*store.MaxBlocks + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// digest is the SHA-256 of a file: its name.
type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// parseDigest returns the digest that a file's name has.
func parseDigest(name string) (d digest, ok bool) {
	if len(name) != 2*len(d) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(name))
	return d, err == nil && d.String() == name
}

// newInput is an input to be written.
type newInput struct {
	id    digest
	parts [][]byte // the whole file
	size  int64
}

// encodeInput makes the input of some sources, and completes their infos with where they are.
func encodeInput(sources []store.NewSource) *newInput {
	in := &newInput{parts: [][]byte{nil}}
	dir := binary.AppendUvarint(nil, uint64(len(sources)))
	add := func(b []byte) {
		in.parts = append(in.parts, b)
		dir = binary.AppendUvarint(dir, uint64(len(b)))
		dir = binary.LittleEndian.AppendUint32(dir, crc32.Checksum(b, castagnoli))
	}
	for i := range sources {
		s := &sources[i]
		pieces := compressPieces(s.Raw)
		s.Info.RawPieces, s.Info.RawStored = uint32(len(pieces)), 0
		for _, p := range pieces {
			s.Info.RawStored += uint64(len(p))
		}
		dir = append(dir, byte(s.Info.Kind))
		table := s.Table
		if table == nil { // of a blob
			table = &symtab.Encoded{Digest: s.Info.Digest}
		}
		dir = append(dir, table.Digest[:]...)
		for _, n := range []int{len(table.Chunks), len(table.Strings), len(pieces), len(s.Raw)} {
			dir = binary.AppendUvarint(dir, uint64(n))
		}
		if s.Info.Kind != 0 {
			add(table.Header)
		}
		for _, blocks := range [][][]byte{table.Chunks, table.Strings, pieces} {
			for _, b := range blocks {
				add(b)
			}
		}
	}
	head := append(make([]byte, 0, inputFixed+len(dir)), inputHead...)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(dir)))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(dir, castagnoli))
	in.parts[0] = append(head, dir...)
	h := sha256.New()
	for _, b := range in.parts {
		h.Write(b)
		in.size += int64(len(b))
	}
	h.Sum(in.id[:0])
	for i := range sources {
		info := &sources[i].Info
		info.Input = in.id
		if info.RawInput = (digest{}); len(sources[i].Raw) > 0 {
			info.RawInput = in.id
		}
	}
	return in
}

// blobSource is the source that a blob is kept as.
func blobSource(id store.BlobID, data []byte) store.NewSource {
	return store.NewSource{Info: store.SourceInfo{Digest: id}, Raw: data}
}

func compressPieces(raw []byte) (pieces [][]byte) {
	for len(raw) > 0 {
		n := min(len(raw), store.RawPiece)
		pieces = append(pieces, store.Compress(nil, raw[:n]))
		raw = raw[n:]
	}
	return pieces
}

// equal reports whether a file has the content of the input.
func (in *newInput) equal(r io.Reader) bool {
	var buf []byte
	for _, b := range in.parts {
		buf = append(buf[:0], make([]byte, len(b))...)
		if _, err := io.ReadFull(r, buf); err != nil || !bytes.Equal(buf, b) {
			return false
		}
	}
	n, err := r.Read(make([]byte, 1))
	return n == 0 && err == io.EOF
}

// part is the place of a part in its input.
type part struct {
	offset int64
	size   uint64
	sum    uint32
}

// inputSource is a source in the directory of an input.
type inputSource struct {
	kind            store.SourceKind
	digest          [32]byte
	chunks, strings int
	rawSize         uint64
	parts           []part
}

// input is the directory of an input, and its bytes if they are few.
type input struct {
	id      digest
	size    int64
	sources []inputSource
	whole   []byte // nil for a large one
}

// readInput reads the directory of an input. Damage wraps store.ErrDamaged.
func readInput(id digest, f io.ReaderAt, size int64) (*input, error) {
	head := make([]byte, min(size, inputAhead))
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, readFailure("input "+id.String(), err)
	}
	in := &input{id: id, size: size}
	if int64(len(head)) == size {
		in.whole = head
	}
	if len(head) < inputFixed || string(head[:len(inputHead)]) != inputHead {
		return nil, store.Damagef("input %s: no input", id)
	}
	n := int64(binary.LittleEndian.Uint32(head[len(inputHead):]))
	sum := binary.LittleEndian.Uint32(head[len(inputHead)+4:])
	if n > size-int64(inputFixed) {
		return nil, store.Damagef("input %s: directory of %d bytes in %d", id, n, size)
	}
	dir := head[inputFixed:]
	if int64(len(dir)) < n {
		dir = make([]byte, n)
		if _, err := f.ReadAt(dir, int64(inputFixed)); err != nil {
			return nil, readFailure("input "+id.String(), err)
		}
	}
	dir = dir[:n]
	if crc32.Checksum(dir, castagnoli) != sum {
		return nil, store.Damagef("input %s: checksum of the directory", id)
	}
	if err := in.parse(dir, int64(inputFixed)+n); err != nil {
		return nil, store.Damagef("input %s: %v", id, err)
	}
	return in, nil
}

// parse reads a directory; the parts begin at offset at.
func (in *input) parse(dir []byte, at int64) error {
	r := decode.New("directory", dir, 0, false)
	for range store.Bounded(r, store.MaxSources) {
		s := inputSource{kind: store.SourceKind(r.U8())}
		copy(s.digest[:], r.Bytes(32))
		s.chunks = int(store.Bounded(r, store.MaxBlocks))
		s.strings = int(store.Bounded(r, store.MaxBlocks))
		n := s.chunks + s.strings + int(store.Bounded(r, store.MaxBlocks))
		s.rawSize = store.Bounded(r, math.MaxInt64)
		if s.kind != 0 {
			n++
		}
		if r.Err() == nil && n > min(maxParts, r.Left()/5) {
			r.Fail("%d parts, %d bytes left", n, r.Left())
		}
		if r.Err() != nil {
			return r.Err()
		}
		s.parts = make([]part, n)
		for i := range s.parts {
			p := part{offset: at, size: store.Bounded(r, uint64(in.size))}
			copyU32(&p.sum, r)
			if at += int64(p.size); at > in.size {
				r.Fail("parts of over %d bytes", in.size)
			}
			s.parts[i] = p
		}
		if r.Err() != nil {
			return r.Err()
		}
		in.sources = append(in.sources, s)
	}
	if r.Err() == nil && (r.Left() > 0 || at != in.size) {
		r.Fail("%d bytes too many, parts end at %d of %d", r.Left(), at, in.size)
	}
	return r.Err()
}

func copyU32(v *uint32, r *decode.Reader) {
	if b := r.Bytes(4); len(b) == 4 {
		*v = binary.LittleEndian.Uint32(b)
	}
}

// source returns the source with a kind and the digest of its table.
func (in *input) source(kind store.SourceKind, sum [32]byte) (*inputSource, error) {
	for i := range in.sources {
		if s := &in.sources[i]; s.kind == kind && s.digest == sum {
			return s, nil
		}
	}
	return nil, store.Damagef("input %s has no %s table %x", in.id, kind, sum)
}

// block returns the place of a block.
func (s *inputSource) block(kind symtab.BlockKind, i int) (part, bool) {
	first, n := 1, s.chunks
	if kind == symtab.Strings {
		first, n = 1+s.chunks, s.strings
	}
	if i < 0 || i >= n {
		return part{}, false
	}
	return s.parts[first+i], true
}

// raw returns the parts of the captured input.
func (s *inputSource) raw() []part {
	n := s.chunks + s.strings
	if s.kind != 0 {
		n++
	}
	return s.parts[n:]
}

// read returns a part, in the memory of buf or of the input.
func (in *input) read(f io.ReaderAt, p part, buf *[]byte) ([]byte, error) {
	var b []byte
	if in.whole != nil {
		b = in.whole[p.offset : p.offset+int64(p.size) : p.offset+int64(p.size)]
	} else {
		if uint64(cap(*buf)) < p.size {
			*buf = make([]byte, p.size)
		}
		b = (*buf)[:p.size]
		if _, err := f.ReadAt(b, p.offset); err != nil {
			return nil, readFailure("input "+in.id.String(), err)
		}
	}
	if crc32.Checksum(b, castagnoli) != p.sum {
		return nil, store.Damagef("input %s: checksum at byte %d", in.id, p.offset)
	}
	return b, nil
}

// unpackRaw puts the pieces of a captured input or blob together.
func (in *input) unpackRaw(f io.ReaderAt, s *inputSource) (raw []byte, err error) {
	var buf []byte
	for _, p := range s.raw() {
		frame, err := in.read(f, p, &buf)
		if err != nil {
			return nil, err
		}
		piece, err := store.Decompress(frame, min(s.rawSize-uint64(len(raw)), store.RawPiece))
		if err != nil {
			return nil, store.Damagef("input %s: %v", in.id, err)
		}
		raw = append(raw, piece...)
	}
	if uint64(len(raw)) != s.rawSize {
		return nil, store.Damagef("input %s: %d bytes of %d", in.id, len(raw), s.rawSize)
	}
	return raw, nil
}

// readFailure returns the error of something that could not be read: damage, unless this machine
// failed to read it, which it may not the next time.
func readFailure(what string, err error) error {
	if files.OfMachine(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return store.Damagef("%s: %v", what, err)
}
