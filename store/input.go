package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/typetab"
	"symbolize/store/unwindtab"
)

// inputHead begins an input.
const inputHead = "symbolize input 1\n"

// Bounds of an input.
const (
	inputFixed = len(inputHead) + 8
	// inputAhead is how many bytes of an input are read at once to find its directory. Inputs that are
	// not larger are kept with it.
	inputAhead = 16 << 10
	maxParts   = 3*MaxBlocks + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest is the SHA-256 of a file of a store on disk: its name.
type Digest [sha256.Size]byte

// String returns the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest is the inverse of String.
func ParseDigest(name string) (d Digest, ok bool) {
	if len(name) != 2*len(d) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(name))
	return d, err == nil && d.String() == name
}

// NewInput is an input to be written.
type NewInput struct {
	ID    Digest
	Parts [][]byte // the whole file
	Size  int64
}

// EncodeInput makes the input of some sources, and completes their infos with where they are.
func EncodeInput(sources []NewSource) *NewInput {
	in := &NewInput{Parts: [][]byte{nil}}
	dir := binary.AppendUvarint(nil, uint64(len(sources)))
	add := func(b []byte) {
		in.Parts = append(in.Parts, b)
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
	in.Parts[0] = append(head, dir...)
	h := sha256.New()
	for _, b := range in.Parts {
		h.Write(b)
		in.Size += int64(len(b))
	}
	h.Sum(in.ID[:0])
	for i := range sources {
		info := &sources[i].Info
		info.Input = in.ID
		if info.RawInput = (Digest{}); len(sources[i].Raw) > 0 {
			info.RawInput = in.ID
		}
	}
	return in
}

// BlobSource is the source that a blob is kept as.
func BlobSource(id BlobID, data []byte) NewSource {
	return NewSource{Info: SourceInfo{Digest: id}, Raw: data}
}

func compressPieces(raw []byte) (pieces [][]byte) {
	for len(raw) > 0 {
		n := min(len(raw), RawPiece)
		pieces = append(pieces, Compress(nil, raw[:n]))
		raw = raw[n:]
	}
	return pieces
}

// Equal reports whether a file has the content of the input.
func (in *NewInput) Equal(r io.Reader) bool {
	var buf []byte
	for _, b := range in.Parts {
		buf = append(buf[:0], make([]byte, len(b))...)
		if _, err := io.ReadFull(r, buf); err != nil || !bytes.Equal(buf, b) {
			return false
		}
	}
	n, err := r.Read(make([]byte, 1))
	return n == 0 && err == io.EOF
}

// Part is the place of a part in its input.
type Part struct {
	offset int64
	size   uint64
	sum    uint32
}

// InputSource is a source in the directory of an input.
type InputSource struct {
	Kind            SourceKind // 0 for a blob
	Digest          [32]byte   // of the table; of a blob its BlobID
	Chunks, Strings int
	RawSize         uint64
	parts           []Part
}

// Input is the directory of an input, and its bytes if they are few. An input is a file of a store
// with the tables and the captured input of one Contribution, or with a blob, named by its Digest:
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
// input (zstd, RawPiece bytes each but the last). Integers are little-endian. A blob is a
// source of kind 0 with pieces alone; its digest is its BlobID.
type Input struct {
	ID      Digest
	Size    int64
	Sources []InputSource
	whole   []byte // nil for a large one
}

// Whole reports whether all parts are in memory: no file is needed to read them.
func (in *Input) Whole() bool { return in.whole != nil }

// ReadInput reads the directory of an input. Damage wraps ErrDamaged.
func ReadInput(id Digest, f io.ReaderAt, size int64) (*Input, error) {
	head := make([]byte, min(size, inputAhead))
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, ReadFailure("input "+id.String(), err)
	}
	in := &Input{ID: id, Size: size}
	if int64(len(head)) == size {
		in.whole = head
	}
	if len(head) < inputFixed || string(head[:len(inputHead)]) != inputHead {
		return nil, Damagef("input %s: no input", id)
	}
	n := int64(binary.LittleEndian.Uint32(head[len(inputHead):]))
	sum := binary.LittleEndian.Uint32(head[len(inputHead)+4:])
	if n > size-int64(inputFixed) {
		return nil, Damagef("input %s: directory of %d bytes in %d", id, n, size)
	}
	dir := head[inputFixed:]
	if int64(len(dir)) < n {
		dir = make([]byte, n)
		if _, err := f.ReadAt(dir, int64(inputFixed)); err != nil {
			return nil, ReadFailure("input "+id.String(), err)
		}
	}
	dir = dir[:n]
	if crc32.Checksum(dir, castagnoli) != sum {
		return nil, Damagef("input %s: checksum of the directory", id)
	}
	if err := in.parse(dir, int64(inputFixed)+n); err != nil {
		return nil, Damagef("input %s: %v", id, err)
	}
	return in, nil
}

// parse reads a directory; the parts begin at offset at.
func (in *Input) parse(dir []byte, at int64) error {
	r := decode.New("directory", dir, 0, false)
	for range Bounded(r, MaxSources) {
		s := InputSource{Kind: SourceKind(r.U8())}
		copy(s.Digest[:], r.Bytes(32))
		s.Chunks = int(Bounded(r, MaxBlocks))
		s.Strings = int(Bounded(r, MaxBlocks))
		n := s.Chunks + s.Strings + int(Bounded(r, MaxBlocks))
		s.RawSize = Bounded(r, maxRaw)
		if s.Kind != 0 {
			n++
		}
		if r.Err() == nil && n > min(maxParts, r.Left()/5) {
			r.Fail("%d parts, %d bytes left", n, r.Left())
		}
		if r.Err() != nil {
			return r.Err()
		}
		s.parts = make([]Part, n)
		for i := range s.parts {
			p := Part{offset: at, size: Bounded(r, uint64(in.Size))}
			copyU32(&p.sum, r)
			if at += int64(p.size); at > in.Size {
				r.Fail("parts of over %d bytes", in.Size)
			}
			s.parts[i] = p
		}
		if r.Err() != nil {
			return r.Err()
		}
		in.Sources = append(in.Sources, s)
	}
	if r.Err() == nil && (r.Left() > 0 || at != in.Size) {
		r.Fail("%d bytes too many, parts end at %d of %d", r.Left(), at, in.Size)
	}
	return r.Err()
}

func copyU32(v *uint32, r *decode.Reader) {
	if b := r.Bytes(4); len(b) == 4 {
		*v = binary.LittleEndian.Uint32(b)
	}
}

// Source returns the source with a kind and the digest of its table.
func (in *Input) Source(kind SourceKind, sum [32]byte) (*InputSource, error) {
	for i := range in.Sources {
		if s := &in.Sources[i]; s.Kind == kind && s.Digest == sum {
			return s, nil
		}
	}
	return nil, Damagef("input %s has no %s table %x", in.ID, kind, sum)
}

// Header returns the place of the table's header.
func (s *InputSource) Header() Part { return s.parts[0] }

// Block returns the place of a block; ok is false if there is none.
func (s *InputSource) Block(kind symtab.BlockKind, i int) (p Part, ok bool) {
	first, n := 1, s.Chunks
	if kind == symtab.Strings {
		first, n = 1+s.Chunks, s.Strings
	}
	if i < 0 || i >= n {
		return Part{}, false
	}
	return s.parts[first+i], true
}

// raw returns the parts of the captured input.
func (s *InputSource) raw() []Part {
	n := s.Chunks + s.Strings
	if s.Kind != 0 {
		n++
	}
	return s.parts[n:]
}

// Read returns a part, in the memory of buf or of the input.
func (in *Input) Read(f io.ReaderAt, p Part, buf *[]byte) ([]byte, error) {
	var b []byte
	if in.whole != nil {
		b = in.whole[p.offset : p.offset+int64(p.size) : p.offset+int64(p.size)]
	} else {
		if uint64(cap(*buf)) < p.size {
			*buf = make([]byte, p.size)
		}
		b = (*buf)[:p.size]
		if _, err := f.ReadAt(b, p.offset); err != nil {
			return nil, ReadFailure("input "+in.ID.String(), err)
		}
	}
	if crc32.Checksum(b, castagnoli) != p.sum {
		return nil, Damagef("input %s: checksum at byte %d", in.ID, p.offset)
	}
	return b, nil
}

// UnpackRaw puts the pieces of a captured input or blob together.
func (in *Input) UnpackRaw(f io.ReaderAt, s *InputSource) (raw []byte, err error) {
	var buf []byte
	for _, p := range s.raw() {
		frame, err := in.Read(f, p, &buf)
		if err != nil {
			return nil, err
		}
		piece, err := Decompress(frame, min(s.RawSize-uint64(len(raw)), RawPiece))
		if err != nil {
			return nil, Damagef("input %s: %v", in.ID, err)
		}
		raw = append(raw, piece...)
	}
	if uint64(len(raw)) != s.RawSize {
		return nil, Damagef("input %s: %d bytes of %d", in.ID, len(raw), s.RawSize)
	}
	return raw, nil
}

// ReadFailure returns the error of something that could not be read: damage, unless this machine
// failed to read it, which it may not the next time.
func ReadFailure(what string, err error) error {
	if files.OfMachine(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return Damagef("%s: %v", what, err)
}

// ParseInput reads the directory of an input that is in memory and keeps content. Content that is not
// that of the name wraps ErrDamaged.
func ParseInput(id Digest, content []byte) (*Input, error) {
	in, err := ReadInput(id, bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	if got := Digest(sha256.Sum256(content)); got != id {
		return nil, Damagef("input %s: it has the content of %s", id, got)
	}
	in.whole = content
	return in, nil
}

// Blob unpacks the blob of a source of kind 0. Damage wraps ErrDamaged.
func (in *Input) Blob(f io.ReaderAt, s *InputSource) ([]byte, error) {
	if s.RawSize > MaxBlob {
		return nil, fmt.Errorf("blob %x: %w", s.Digest, ErrTooLarge)
	}
	data, err := in.UnpackRaw(f, s)
	if err == nil && NewBlobID(data) != s.Digest {
		err = Damagef("input %s: it is not blob %x", in.ID, s.Digest)
	}
	return data, err
}

// table returns the table of a source of an input that is in memory. Its blocks are not decoded.
func (in *Input) table(info *SourceInfo) (*symtab.Encoded, error) {
	s, err := in.Source(info.Kind, info.Digest)
	if err != nil {
		return nil, err
	}
	e := &symtab.Encoded{Digest: info.Digest, Funcs: int(info.Funcs), Named: info.Named}
	for i := range 1 + s.Chunks + s.Strings {
		b, err := in.Read(nil, s.parts[i], nil)
		switch {
		case err != nil:
			return nil, err
		case i == 0:
			e.Header = b
		case i <= s.Chunks:
			e.Chunks = append(e.Chunks, b)
		default:
			e.Strings = append(e.Strings, b)
		}
	}
	return e, nil
}

// check reads the whole table and the captured input of a source of an input that is in memory.
func (in *Input) check(info *SourceInfo) error {
	e, err := in.table(info)
	if err != nil || info.Outdated() {
		return err
	}
	var t interface {
		NumBlocks(symtab.BlockKind) int
		Digest() ([32]byte, error)
		NumFuncs() int
	}
	switch info.Kind {
	case Unwind:
		t, err = unwindtab.Open(e.Header, e)
	case Calls:
		t, err = calltab.Open(e.Header, e)
	case Types:
		t, err = typetab.Open(e.Header, e)
	default:
		t, err = symtab.Open(e.Header, e)
	}
	if err != nil {
		return err
	}
	if t.NumBlocks(symtab.Chunk) != len(e.Chunks) || t.NumBlocks(symtab.Strings) != len(e.Strings) {
		return Damagef("%d chunks and %d string blocks, header says otherwise", len(e.Chunks), len(e.Strings))
	}
	sum, err := t.Digest()
	if err == nil && (sum != e.Digest || t.NumFuncs() != e.Funcs) {
		err = Damagef("table has digest %x and %d functions, want %d", sum, t.NumFuncs(), e.Funcs)
	}
	return err
}

// checkRaw reads the captured input of a source of an input that is in memory.
func (in *Input) checkRaw(info *SourceInfo) error {
	s, err := in.Source(info.Kind, info.Digest)
	if err != nil {
		return err
	}
	raw, err := in.UnpackRaw(nil, s)
	if err == nil && (uint64(len(raw)) != info.RawSize || sha256.Sum256(raw) != info.RawDigest) {
		err = Damagef("input %s: captured input is not the one that was kept", in.ID)
	}
	return err
}

// Inputs calls fn for the inputs that a manifest names; some of them more than once.
func (m *Manifest) Inputs(fn func(id Digest)) {
	for i := range m.Sources {
		for _, id := range []Digest{m.Sources[i].Input, m.Sources[i].RawInput} {
			if id != (Digest{}) {
				fn(id)
			}
		}
	}
}
