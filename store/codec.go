package store

import (
	"encoding/binary"
	"math"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
)

// manifestVersion is the first byte of an encoded manifest. New fields get new tags; the version
// changes when old readers would go wrong by skipping them.
const manifestVersion = 1

// Tags of an encoded manifest: { tag | length | payload }, all LEB128. The order is fixed; unknown
// tags are skipped.
const (
	tagID          = 1  // space u8, bytes
	tagHead        = 2  // kind, machine, class, big endian, type
	tagLayout      = 3  // segments and sections of the runtime file
	tagOtherLayout = 4  // the same, of another one; repeated
	tagRefSym      = 5  // address, name; repeated
	tagVDSO        = 6  // as tagID; repeated
	tagSource      = 7  // see appendSource; repeated
	tagVariant     = 8  // see appendVariant; repeated
	tagMore        = 9  // nothing: there were more variants
	tagProbable    = 10 // as tagID; repeated
)

// Bounds of an encoded manifest, by kind, and so of a decoder's allocations.
const (
	MaxManifest = 8 << 20 // bytes
	maxSegments = 1 << 12 // PT_LOADs: e_phnum is 16 bits, real files have under 100
	maxSections = 1 << 14 // placed sections: modules with a section per function have thousands
)

// EncodeManifest returns the stored form. Equal manifests have equal bytes.
func EncodeManifest(m *Manifest) []byte {
	b := []byte{manifestVersion}
	b = appendTag(b, tagID, appendID(nil, m.ID))
	b = appendTag(b, tagHead, encodeHead(m))
	if e := encodeLayout(m.Layout, m.Sections); e != nil {
		b = appendTag(b, tagLayout, e)
	}
	for _, e := range m.OtherLayouts {
		b = appendTag(b, tagOtherLayout, e)
	}
	for _, r := range m.RefSyms {
		b = appendTag(b, tagRefSym, append(binary.AppendUvarint(nil, uint64(r.Addr)), r.Name...))
	}
	for _, id := range m.VDSO {
		b = appendTag(b, tagVDSO, appendID(nil, id))
	}
	for i := range m.Sources {
		b = appendTag(b, tagSource, appendSource(nil, &m.Sources[i]))
	}
	for i := range m.Variants {
		b = appendTag(b, tagVariant, appendVariant(nil, &m.Variants[i]))
	}
	if m.MoreVariants {
		b = appendTag(b, tagMore, nil)
	}
	for _, id := range m.Probable {
		b = appendTag(b, tagProbable, appendID(nil, id))
	}
	return b
}

// appendTag appends one field of a manifest: tag, length, payload.
func appendTag(b []byte, tag uint64, payload []byte) []byte {
	b = binary.AppendUvarint(b, tag)
	b = binary.AppendUvarint(b, uint64(len(payload)))
	return append(b, payload...)
}

// appendID appends a build ID: its space and its bytes.
func appendID(b []byte, id buildid.ID) []byte {
	return append(append(b, byte(id.Space())), id.Bytes()...)
}

func encodeHead(m *Manifest) []byte {
	b := binary.AppendUvarint(nil, uint64(m.Kind))
	b = binary.AppendUvarint(b, uint64(m.Machine))
	b = append(b, m.Class, flag(m.BigEndian))
	return binary.AppendUvarint(b, uint64(m.Type))
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// encodeLayout returns nil for no layout. The number of entries comes first, so that layouts can be
// compared without being decoded.
func encodeLayout(segs []elf.Segment, secs []elf.PlacedSection) []byte {
	if len(segs)+len(secs) == 0 {
		return nil
	}
	b := binary.AppendUvarint(nil, uint64(len(segs)))
	b = binary.AppendUvarint(b, uint64(len(secs)))
	for _, s := range segs {
		for _, v := range [...]uint64{uint64(s.Offset), uint64(s.Addr), s.FileSize, s.MemSize,
			uint64(s.Flags), s.Align} {
			b = binary.AppendUvarint(b, v)
		}
	}
	for _, s := range secs {
		b = appendSection(b, s)
	}
	return b
}

// layoutEntries returns the number of segments and sections of an encoded layout.
func layoutEntries(b []byte) uint64 {
	r := decode.New("layout", b, 0, false)
	return min(r.Uvarint(), maxSegments) + min(r.Uvarint(), maxSections)
}

func decodeLayout(b []byte) ([]elf.Segment, []elf.PlacedSection, error) {
	r := decode.New("layout", b, 0, false)
	nsegs := count(r, "segments", maxSegments, 6)
	nsecs := count(r, "sections", maxSections, 1)
	if r.Err() == nil && nsegs+nsecs == 0 {
		r.Fail("no segments and no sections")
	}
	var segs []elf.Segment
	for range nsegs {
		segs = append(segs, elf.Segment{
			Offset: addr.Offset(r.Uvarint()), Addr: addr.Addr(r.Uvarint()),
			FileSize: r.Uvarint(), MemSize: r.Uvarint(),
			Flags: uint32(Bounded(r, math.MaxUint32)), Align: r.Uvarint(),
		})
	}
	var secs []elf.PlacedSection
	for range nsecs {
		secs = append(secs, readSection(r))
	}
	if r.Err() == nil && r.Left() > 0 {
		r.Fail("%d bytes too many", r.Left())
	}
	if r.Err() != nil {
		return nil, nil, r.Err()
	}
	return segs, secs, nil
}

// count reads a number of items of at least size bytes each.
func count(r *decode.Reader, what string, limit, size uint64) int {
	n := r.Uvarint()
	if n > limit || n*size > uint64(r.Left()) {
		r.Fail("%d %s: at most %d, %d bytes left", n, what, limit, r.Left())
		return 0
	}
	return int(n)
}

// Bounded reads a number that must not be above limit.
func Bounded(r *decode.Reader, limit uint64) uint64 {
	v := r.Uvarint()
	if v > limit {
		r.Fail("number %d is above %d", v, limit)
		return 0
	}
	return v
}

// appendSource encodes a source. Readers skip the bytes after the fields they know.
func appendSource(b []byte, s *SourceInfo) []byte {
	b = append(append(b, byte(s.Kind)), s.Digest[:]...)
	for _, v := range [...]uint64{uint64(s.Producer), uint64(s.TableVersion), uint64(s.Funcs),
		s.Named, uint64(s.Size), uint64(s.Chunks), uint64(s.Strings), uint64(len(s.Path))} {
		b = binary.AppendUvarint(b, v)
	}
	b = append(b, s.Path...)
	b = binary.AppendUvarint(b, s.RawSize)
	if s.RawSize > 0 {
		b = binary.AppendUvarint(b, uint64(s.RawPieces))
		b = binary.AppendUvarint(b, s.RawStored)
		b = append(b, s.RawDigest[:]...)
	}
	return b
}

func readSource(r *decode.Reader) (s SourceInfo) {
	s.Kind = SourceKind(r.U8())
	if r.Err() == nil && (s.Kind == 0 || s.Kind >= endOfKinds) {
		r.Fail("unknown %s of source", s.Kind)
	}
	copy(s.Digest[:], r.Bytes(32))
	s.Producer = uint32(Bounded(r, math.MaxUint32))
	s.TableVersion = uint32(Bounded(r, math.MaxUint32))
	s.Funcs = uint32(Bounded(r, math.MaxUint32))
	s.Named = r.Uvarint()
	s.Size = int64(Bounded(r, math.MaxInt64))
	s.Chunks = uint32(Bounded(r, MaxBlocks))
	s.Strings = uint32(Bounded(r, MaxBlocks))
	s.Path = string(r.Bytes(Bounded(r, MaxPath)))
	if s.RawSize = Bounded(r, maxRaw); s.RawSize > 0 {
		s.RawPieces = uint32(Bounded(r, maxRaw/RawPiece+1))
		s.RawStored = Bounded(r, 2*maxRaw)
		copy(s.RawDigest[:], r.Bytes(32))
	}
	return s
}

// DecodeManifest is the inverse of encodeManifest, for any input. Errors are
// *decode.Error.
func DecodeManifest(name string, b []byte) (*Manifest, error) {
	r := decode.New(name, b, 0, false)
	if len(b) > MaxManifest {
		r.Fail("manifest of %d bytes, at most %d", len(b), MaxManifest)
	}
	if v := r.U8(); r.Err() == nil && v != manifestVersion {
		r.Fail("manifest version %d, this program knows %d", v, manifestVersion)
	}
	m := new(Manifest)
	for r.Err() == nil && r.Left() > 0 {
		tag, at := r.Uvarint(), r.Offset()
		payload := r.Bytes(r.Uvarint())
		if r.Err() != nil {
			break
		}
		if err := m.readField(tag, decode.New(name, payload, at, false), payload); err != nil {
			return nil, err
		}
	}
	if r.Err() == nil && m.ID.IsZero() {
		r.Fail("manifest without a build ID")
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	return m, nil
}

// readField decodes one tagged field into m.
func (m *Manifest) readField(tag uint64, r *decode.Reader, payload []byte) error {
	switch tag {
	case tagID:
		m.ID = readID(r)
	case tagHead:
		m.Kind = ingest.ObjectKind(Bounded(r, math.MaxUint8))
		m.Machine = uint16(Bounded(r, math.MaxUint16))
		m.Class, m.BigEndian = r.U8(), r.U8() != 0
		m.Type = uint16(Bounded(r, math.MaxUint16))
	case tagLayout:
		segs, secs, err := decodeLayout(payload)
		if err != nil {
			return err
		}
		m.Layout, m.Sections = segs, secs
	case tagOtherLayout:
		if _, _, err := decodeLayout(payload); err != nil {
			return err
		}
		if len(m.OtherLayouts) == maxOtherLayouts {
			r.Fail("more than %d other layouts", maxOtherLayouts)
			break
		}
		m.OtherLayouts = append(m.OtherLayouts, append([]byte(nil), payload...))
	case tagRefSym:
		if len(m.RefSyms) == maxRefSyms {
			r.Fail("more than %d reference symbols", maxRefSyms)
			break
		}
		a := addr.Addr(r.Uvarint())
		m.RefSyms = append(m.RefSyms, RefSymbol{string(r.Bytes(uint64(r.Left()))), a})
	case tagVDSO:
		if len(m.VDSO) == maxVDSOs {
			r.Fail("more than %d vdso images", maxVDSOs)
			break
		}
		m.VDSO = append(m.VDSO, readID(r))
	case tagSource:
		if len(m.Sources) == MaxSources {
			r.Fail("more than %d sources", MaxSources)
			break
		}
		m.Sources = append(m.Sources, readSource(r))
	default:
		m.readJIT(tag, r)
	}
	return r.Err()
}

// readJIT is readField for the fields of JITed functions.
func (m *Manifest) readJIT(tag uint64, r *decode.Reader) {
	switch tag {
	case tagVariant:
		if len(m.Variants) == MaxVariants {
			r.Fail("more than %d variants", MaxVariants)
			return
		}
		m.Variants = append(m.Variants, readVariant(r))
	case tagMore:
		m.MoreVariants = true
	case tagProbable:
		if len(m.Probable) == maxProbable {
			r.Fail("more than %d probable objects", maxProbable)
			return
		}
		m.Probable = append(m.Probable, readID(r))
	}
}

func readID(r *decode.Reader) buildid.ID {
	space := buildid.Space(r.U8())
	id := buildid.Make(space, r.Bytes(uint64(r.Left())))
	if r.Err() == nil && (id.IsZero() || !space.Valid()) {
		r.Fail("no build ID")
	}
	return id
}

func appendSection(b []byte, s elf.PlacedSection) []byte {
	b = appendString(b, s.Name)
	b = binary.AppendUvarint(b, uint64(s.Index))
	b = binary.AppendUvarint(b, uint64(s.Addr))
	return binary.AppendUvarint(b, s.Size)
}

func readSection(r *decode.Reader) elf.PlacedSection {
	return elf.PlacedSection{
		Name:  readString(r),
		Index: int(Bounded(r, math.MaxInt32)),
		Addr:  addr.Addr(r.Uvarint()),
		Size:  r.Uvarint(),
	}
}

// AppendStored encodes a manifest with where its sources are:
//
//	size LEB128 | EncodeManifest |
//	number of inputs LEB128 | their digests | of each source: number of its input from 1, 0 for none;
//	the same of its captured input
func AppendStored(b []byte, m *Manifest) []byte {
	text := EncodeManifest(m)
	b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	var inputs []Digest
	number := func(id Digest) uint64 {
		if id == (Digest{}) {
			return 0
		}
		for i := range inputs {
			if inputs[i] == id {
				return uint64(i) + 1
			}
		}
		inputs = append(inputs, id)
		return uint64(len(inputs))
	}
	var refs []byte
	for i := range m.Sources {
		refs = binary.AppendUvarint(refs, number(m.Sources[i].Input))
		refs = binary.AppendUvarint(refs, number(m.Sources[i].RawInput))
	}
	b = binary.AppendUvarint(b, uint64(len(inputs)))
	for i := range inputs {
		b = append(b, inputs[i][:]...)
	}
	return append(b, refs...)
}

// DecodeStored is the inverse of AppendStored, for any input. Errors wrap ErrDamaged.
func DecodeStored(name string, b []byte) (*Manifest, error) {
	r := decode.New(name, b, 0, false)
	text := r.Bytes(Bounded(r, MaxManifest))
	if r.Err() != nil {
		return nil, Damagef("%v", r.Err())
	}
	m, err := DecodeManifest(name, text)
	if err != nil {
		return nil, Damagef("%v", err)
	}
	n := Bounded(r, 2*MaxSources)
	list := r.Bytes(n * digestSize)
	input := func() (id Digest) {
		if at := Bounded(r, n); at > 0 && r.Err() == nil {
			copy(id[:], list[(at-1)*digestSize:])
		}
		return id
	}
	for i := range m.Sources {
		m.Sources[i].Input, m.Sources[i].RawInput = input(), input()
	}
	if r.Err() == nil && r.Left() > 0 {
		r.Fail("%d bytes too many", r.Left())
	}
	if r.Err() != nil {
		return nil, Damagef("%v", r.Err())
	}
	return m, nil
}

const digestSize = uint64(len(Digest{}))

// Captured inputs are compressed and stored in pieces, so that no value is large.
const (
	RawPiece = 1 << 20 // bytes of the input in one piece
	maxRaw   = 1 << 30 // bytes of one input; a large /proc/kallsyms has 20 MB
)

// Compression of the values and archives of a store.
var (
	frames = files.ZstdOptions{Level: files.ZstdDefault, Window: RawPiece, Lean: true, NoSum: true,
		Workers: 2}.Frames()
	archiveZstd = files.ZstdOptions{Level: files.ZstdDefault, Window: 4 << 20}
)

// maxArchiveWindow is the largest window in bytes of an archive that is read.
const maxArchiveWindow = 64 << 20

// Compress appends one zstd frame of raw to b.
func Compress(b, raw []byte) []byte { return frames.Pack(b, raw) }

// Decompress unpacks one frame of exactly size bytes. The frame's own header is checked against
// size before anything is allocated.
func Decompress(frame []byte, size uint64) ([]byte, error) {
	return frames.UnpackSized(nil, frame, int(size))
}
