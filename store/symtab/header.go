package symtab

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"symbolize/ingest/decode"
)

const magic = "SYMTAB"

// Tags of a header and of a chunk.
const (
	tagSummary = 1
	tagChunks  = 2
	tagStrings = 3
	tagInline  = 4
	tagExtra   = 5
	tagFiles   = 6
	tagSums    = 7
	tagShown   = 8

	tagRanges = 1
	tagDebug  = 2
)

// header is a table's header, and values derived from it.
type header struct {
	first               uint64 // first address
	end                 uint64 // after the last range
	ranges, funcs, strs uint64
	chunks              []chunkEntry
	strings             []stringEntry
	inline              *Encoded // the blocks, if they are in the header

	// With debug information; string blocks of the three kinds are numbered through.
	debug                   bool
	scopes, segments, lined uint64
	extraStrs, files        uint64
	extra, fileBlocks       []stringEntry // numbers of extra strings follow the names' numbers

	shownBy string        // Demangler.ID of the demangled names, "" without
	shown   []stringEntry // a block for each of strings and extra
}

// names returns the number of names.
func (h *header) names() uint64 { return h.strs + h.extraStrs }

// text returns string block i.
func (h *header) text(i int) *stringEntry {
	if i < len(h.strings) {
		return &h.strings[i]
	}
	if i -= len(h.strings); i < len(h.fileBlocks) {
		return &h.fileBlocks[i]
	}
	return &h.shown[i-len(h.fileBlocks)]
}

// texts returns the number of string blocks.
func (h *header) texts() int { return h.firstShown() + len(h.shown) }

// firstShown returns the number of the first string block with demangled names.
func (h *header) firstShown() int { return len(h.strings) + len(h.fileBlocks) }

func uvarintLen(n int) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], uint64(n))
}

// AppendTagged appends one tagged block.
func AppendTagged(b []byte, tag uint64, payload []byte) []byte {
	b = binary.AppendUvarint(b, tag)
	b = binary.AppendUvarint(b, uint64(len(payload)))
	return append(b, payload...)
}

// version returns the format that the header is written in.
func (h *header) version() byte {
	if h.shownBy != "" {
		return Version
	}
	return plainVersion
}

// append appends the header in encoded form, without inline blocks.
func (h *header) append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, h.version(), 0)
	var p []byte
	for _, v := range []uint64{h.first, h.ranges, h.funcs, h.strs} {
		p = binary.AppendUvarint(p, v)
	}
	b = AppendTagged(b, tagSummary, p)
	p = p[:0]
	for _, c := range h.chunks {
		for _, v := range []uint64{c.gap, c.span, c.ranges, c.funcs, c.strs} {
			p = binary.AppendUvarint(p, v)
		}
		p = c.block.Append(p)
	}
	b = AppendTagged(b, tagChunks, p)
	b = AppendTagged(b, tagStrings, appendStringDir(p[:0], h.strings))
	if h.debug {
		b = h.appendDebug(b)
	}
	if h.shownBy == "" {
		return b
	}
	p = binary.AppendUvarint(p[:0], uint64(len(h.shownBy)))
	p = append(p, h.shownBy...)
	return AppendTagged(b, tagShown, appendStringDir(p, h.shown))
}

// appendDebug appends the additional parts of tables with debug information.
func (h *header) appendDebug(b []byte) []byte {
	var p []byte
	b = AppendTagged(b, tagExtra, appendStringDir(p[:0], h.extra))
	b = AppendTagged(b, tagFiles, appendStringDir(p[:0], h.fileBlocks))
	p = p[:0]
	for _, v := range []uint64{h.scopes, h.segments, h.lined} {
		p = binary.AppendUvarint(p, v)
	}
	return AppendTagged(b, tagSums, p)
}

func appendStringDir(b []byte, dir []stringEntry) []byte {
	for _, s := range dir {
		b = binary.AppendUvarint(b, s.strs)
		b = s.block.Append(b)
	}
	return b
}

// appendInline appends all blocks to a header.
func appendInline(b []byte, chunks, strings [][]byte) []byte {
	b = binary.AppendUvarint(b, tagInline)
	b = binary.AppendUvarint(b, uint64(bytesOf(chunks)+bytesOf(strings)))
	for _, block := range slices.Concat(chunks, strings) {
		b = append(b, block...)
	}
	return b
}

// Payloads checks the magic and the version of a header and returns the payloads of its tags up to
// last, by tag.
func Payloads(b []byte, magic string, newest byte, last uint64) ([][]byte, error) {
	if len(b) < len(magic)+2 || string(b[:len(magic)]) != magic {
		return nil, formatError("no header: bad magic")
	}
	version, flags := b[len(magic)], b[len(magic)+1]
	if version == 0 {
		return nil, formatError("version 0")
	}
	if version > newest || flags != 0 {
		return nil, fmt.Errorf("%w: version %d, flags %#x; this program knows version %d",
			ErrVersion, version, flags, newest)
	}
	return tagged(decode.New("header", b[len(magic)+2:], int64(len(magic)+2), false), last)
}

// tagged reads tagged blocks and returns the payloads of the tags up to last, by tag: nil for
// missing tags. A tag that comes twice is an error.
func tagged(r *decode.Reader, last uint64) ([][]byte, error) {
	payload := make([][]byte, last+1)
	for r.Left() > 0 {
		tag, n := r.Uvarint(), r.Uvarint()
		p := r.Bytes(n)
		if r.Err() != nil {
			break
		}
		if tag > last {
			continue
		}
		if payload[tag] != nil {
			r.Fail("tag %d comes twice", tag)
			break
		}
		payload[tag] = p
	}
	return payload, readError(r)
}

// parseHeader decodes a header and checks everything that does not need the blocks. Its allocations
// are bounded by a small multiple of len(b).
func parseHeader(b []byte) (*header, error) {
	payload, err := Payloads(b, magic, Version, tagShown)
	if err != nil {
		return nil, err
	}
	h := &header{}
	r := decode.New("header summary", payload[tagSummary], 0, false)
	h.first, h.ranges, h.funcs, h.strs = r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	if err := readError(r); err != nil {
		return nil, err
	}
	if h.ranges > MaxTable || h.funcs > h.ranges || h.strs > h.funcs {
		return nil, formatError("%d ranges, %d functions, %d strings", h.ranges, h.funcs, h.strs)
	}
	if err := h.parseChunks(payload[tagChunks]); err != nil {
		return nil, err
	}
	total := uint64(0)
	if h.strings, total, err = parseStrings(payload[tagStrings], 0); err != nil {
		return nil, err
	}
	if total != h.strs {
		return nil, formatError("%d strings, the summary has %d", total, h.strs)
	}
	if err := h.parseDebug(payload); err != nil {
		return nil, err
	}
	if err := h.parseShown(payload[tagShown]); err != nil {
		return nil, err
	}
	return h, h.placeInline(payload[tagInline])
}

// parseChunks decodes the directory of chunks and sums its counts.
func (h *header) parseChunks(b []byte) error {
	r := decode.New("chunk directory", b, 0, false)
	h.end = h.first
	var ranges, funcs, strs uint64
	for r.Left() > 0 && r.Err() == nil {
		c := chunkEntry{
			gap: r.Uvarint(), span: r.Uvarint(),
			ranges: r.Uvarint(), funcs: r.Uvarint(), strs: r.Uvarint(),
			firstFunc: funcs, firstStr: strs,
		}
		c.block.Read(r)
		switch {
		case c.gap > math.MaxUint64-h.end || c.span > math.MaxUint64-h.end-c.gap:
			r.Fail("chunk ends past the last address")
		case c.ranges == 0 || c.span < c.ranges || c.ranges > uint64(c.block.raw):
			r.Fail("%d ranges in %d bytes for %d addresses", c.ranges, c.block.raw, c.span)
		case c.funcs > c.ranges || c.strs > c.funcs:
			r.Fail("%d functions, %d strings in %d ranges", c.funcs, c.strs, c.ranges)
		case len(h.chunks) == 0 && c.gap != 0:
			r.Fail("gap before the first chunk")
		}
		c.start = h.end + c.gap
		h.end = c.start + c.span
		ranges, funcs, strs = ranges+c.ranges, funcs+c.funcs, strs+c.strs
		h.chunks = append(h.chunks, c)
	}
	if r.Err() == nil && (ranges != h.ranges || funcs != h.funcs || strs != h.strs) {
		r.Fail("sums differ from the summary")
	}
	return readError(r)
}

// parseStrings decodes a directory of string blocks. Its strings are numbered from
// first; total is their number.
func parseStrings(b []byte, first uint64) (dir []stringEntry, total uint64, err error) {
	r := decode.New("string directory", b, 0, false)
	for r.Left() > 0 && r.Err() == nil {
		s := stringEntry{strs: r.Uvarint(), first: first + total}
		s.block.Read(r)
		if s.strs == 0 || s.strs > uint64(s.block.raw) {
			r.Fail("%d strings in %d bytes", s.strs, s.block.raw)
		}
		if total += s.strs; total > MaxTable {
			r.Fail("%d strings, the limit is %d", total, MaxTable)
		}
		dir = append(dir, s)
	}
	return dir, total, readError(r)
}

// parseDebug decodes the additional parts of tables with debug information: all of it or
// nothing.
func (h *header) parseDebug(payload [][]byte) (err error) {
	h.debug = payload[tagSums] != nil
	if (payload[tagExtra] != nil) != h.debug || (payload[tagFiles] != nil) != h.debug {
		return formatError("header has a part of the debug information only")
	}
	if !h.debug {
		return nil
	}
	if h.extra, h.extraStrs, err = parseStrings(payload[tagExtra], h.strs); err != nil {
		return err
	}
	if h.fileBlocks, h.files, err = parseStrings(payload[tagFiles], 0); err != nil {
		return err
	}
	// Names are looked up in both lists as one.
	h.strings = append(h.strings, h.extra...)
	r := decode.New("debug summary", payload[tagSums], 0, false)
	h.scopes, h.segments, h.lined = r.Uvarint(), r.Uvarint(), r.Uvarint()
	return readError(r)
}

// placeInline finds the blocks inside the header, if they are there.
func (h *header) placeInline(b []byte) (err error) {
	if b == nil {
		return nil
	}
	var chunks, texts []Packed
	for i := range h.chunks {
		chunks = append(chunks, h.chunks[i].block)
	}
	for i := range h.texts() {
		texts = append(texts, h.text(i).block)
	}
	h.inline, err = InlineBlocks(b, chunks, texts)
	return err
}
