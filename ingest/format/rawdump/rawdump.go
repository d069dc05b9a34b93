package rawdump

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"symbolize/ingest/decode"
)

// ErrNotDump: data do not begin like a raw dump.
var ErrNotDump = errors.New("not a raw dump of a BPF map")

// ErrPair: a key or value has another size than the header's.
var ErrPair = errors.New("size of key or value is not the dump's")

const (
	magic         = "BPFDUMP\n"
	plainVersion  = 1  // of Plain dumps
	packedVersion = 2  // has the field packing
	fixedSize     = 88 // bytes of the header without name and lost counts
	entriesAt     = 64
	cpuAlign      = 8 // of each CPU's value

	maxHeader = 1 << 20 // bytes
	// maxPair bounds the key and the values of one pair, in bytes: an array of one
	// element (.bss) may be large, and a per-CPU value comes once for each CPU.
	maxPair = 1 << 30
	maxCPUs = 1 << 16 // eight times the kernel's largest NR_CPUS
)

// UnknownEntries as Header.Entries: pairs follow up to the end.
const UnknownEntries = math.MaxUint64

// Header describes the map of a raw dump (struct bpf_map_info), and when and how it was read.
type Header struct {
	MapID      uint32
	Type       uint32 // enum bpf_map_type
	Flags      uint32 // BPF_F_*
	KeySize    uint32 // bytes
	ValueSize  uint32 // bytes, of one CPU
	Depth      uint32 // frames a value holds, of maps of stacks
	MaxEntries uint32
	CPUs       uint32 // values per key; 0: the map is not per CPU
	BTFID      uint32 // with KeyType and ValueType: how to read keys and values; 0 if not known
	KeyType    uint32
	ValueType  uint32
	BigEndian  bool              // byte order of keys and values
	Entries    uint64            // pairs; UnknownEntries: up to the end
	Time       uint64            // ns of CLOCK_MONOTONIC
	Name       string            // of the map
	Lost       map[string]uint64 // pairs that could not be read or stored, by cause
	Packing    Packing
}

// Stride is the size of the value part of a pair, in bytes: with CPUs, one value for
// each, rounded up to a multiple of 8.
func (h *Header) Stride() uint64 {
	if h.CPUs == 0 {
		return uint64(h.ValueSize)
	}
	return uint64(h.CPUs) * h.cpuStride()
}

func (h *Header) cpuStride() uint64 {
	return (uint64(h.ValueSize) + cpuAlign - 1) &^ (cpuAlign - 1)
}

// CPUValue returns CPU i's part of a value, without padding; i counts from 0 up to
// CPUs. A map that is not per CPU has one, number 0.
func (h *Header) CPUValue(value []byte, i int) []byte {
	at := uint64(i) * h.cpuStride()
	return value[at : at+uint64(h.ValueSize)]
}

// Sizes of a frame in dumps of stacks, bytes: struct bpf_stack_build_id, and an address.
const (
	BuildIDFrame = 32
	AddressFrame = 8
)

// FlagBuildID as a bit of Header.Flags (BPF_F_STACK_BUILD_ID): frames of stacks have build IDs.
const FlagBuildID = 1 << 5

// FrameSize returns the size of a frame in the values of a dump of stacks.
func (h *Header) FrameSize() int {
	if h.Flags&FlagBuildID != 0 {
		return BuildIDFrame
	}
	return AddressFrame
}

// Append appends a whole dump of pairs with keys and values of the header's sizes. The header's
// Entries are the number of pairs.
func Append(dst []byte, h Header, pairs [][2][]byte) ([]byte, error) {
	h.Entries = uint64(len(pairs))
	out := bytes.NewBuffer(dst)
	d, err := NewWriter(out, &h)
	if err != nil {
		return dst, err
	}
	for _, p := range pairs {
		if err := d.Add(p[0], p[1]); err != nil {
			return dst, err
		}
	}
	err = d.Close()
	return out.Bytes(), err
}

func appendHeader(dst []byte, h *Header) []byte {
	o, start := binary.LittleEndian, len(dst)
	order, version := uint32(1), uint32(plainVersion)
	if h.BigEndian {
		order = 2
	}
	if h.Packing != Plain {
		version = packedVersion
	}
	dst = append(dst, magic...)
	for _, v := range []uint32{version, 0, h.MapID, h.Type, h.Flags, h.KeySize, h.ValueSize,
		h.Depth, h.MaxEntries, h.CPUs, h.BTFID, h.KeyType, h.ValueType, order} {
		dst = o.AppendUint32(dst, v)
	}
	dst = o.AppendUint64(o.AppendUint64(dst, h.Entries), h.Time)
	dst = o.AppendUint32(o.AppendUint32(dst, uint32(len(h.Name))), uint32(len(h.Lost)))
	pad := func() {
		for (len(dst)-start)%cpuAlign != 0 {
			dst = append(dst, 0)
		}
	}
	dst = append(dst, h.Name...)
	pad()
	for _, cause := range slices.Sorted(maps.Keys(h.Lost)) {
		dst = o.AppendUint64(dst, h.Lost[cause])
		dst = append(o.AppendUint32(dst, uint32(len(cause))), cause...)
		pad()
	}
	if version == packedVersion {
		dst = o.AppendUint64(dst, uint64(h.Packing))
	}
	o.PutUint32(dst[start+12:], uint32(len(dst)-start))
	return dst
}

// Writer writes a raw dump pair by pair. It is for one goroutine.
type Writer struct {
	w     *bufio.Writer
	h     Header
	pairs uint64

	// Pending until the block is full: pairs of Columns, or keys, lengths and values.
	block, lengths, values []byte
}

// NewWriter writes the header of a dump. Where the number of pairs is not known before, Entries is
// UnknownEntries.
func NewWriter(w io.Writer, h *Header) (*Writer, error) {
	if err := h.Packing.check(uint64(h.KeySize) + h.Stride()); err != nil {
		return nil, err
	}
	d := &Writer{w: bufio.NewWriterSize(w, 1<<16), h: *h}
	_, err := d.w.Write(appendHeader(nil, h))
	return d, err
}

// Add writes a pair, of the sizes in the header; value holds all CPUs.
func (d *Writer) Add(key, value []byte) error {
	if uint64(len(key)) != uint64(d.h.KeySize) || uint64(len(value)) != d.h.Stride() {
		return fmt.Errorf("%w: %d and %d bytes", ErrPair, len(key), len(value))
	}
	d.pairs++
	return d.addPair(key, value)
}

// Close completes the dump. It is an error if there were not as many pairs as in the
// header.
func (d *Writer) Close() error {
	if err := cmp.Or(d.flushBlock(), d.w.Flush()); err != nil {
		return err
	}
	if d.h.Entries != UnknownEntries && d.h.Entries != d.pairs {
		return fmt.Errorf("dump of map %d: %d pairs written, its header says %d", d.h.MapID,
			d.pairs, d.h.Entries)
	}
	return nil
}

// WriteEntries writes the number of pairs added so far into the header of the dump, which
// begins at offset 0 of f. It is for dumps with UnknownEntries in the header.
func (d *Writer) WriteEntries(f io.WriterAt) error {
	_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, d.pairs), entriesAt)
	return err
}

// Pairs returns the number of pairs added so far.
func (d *Writer) Pairs() uint64 { return d.pairs }

// Reader reads a raw dump. It is for one goroutine.
type Reader struct {
	Header Header

	name string
	r    io.ReaderAt
	size int64
	at   int64 // of the next pair
	left uint64
	buf  []byte // holds file bytes [base, base+len)
	base int64
	pair int // bytes of one

	trimmed *trimmedBlock // of Trimmed dumps
	packed  []byte        // of Columns: the block; buf has its pairs
	err     error
}

// Is reports whether a file with these first bytes, 8 are enough, is a raw dump.
func Is(head []byte) bool {
	return len(head) >= len(magic) && string(head[:len(magic)]) == magic
}

// Open reads the header of a dump of size bytes. name is for messages only.
func Open(name string, r io.ReaderAt, size int64) (*Reader, error) {
	head := make([]byte, min(max(size, 0), fixedSize))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !Is(head) {
		return nil, fmt.Errorf("%s: %w", name, ErrNotDump)
	}
	x := decode.New(name, head, 0, false)
	x.Skip(uint64(len(magic)))
	version, length := x.U32(), x.U32()
	switch {
	case x.Err() == nil && version != plainVersion && version != packedVersion:
		x.Fail("version %d of raw dumps, %d and %d are read", version, plainVersion, packedVersion)
	case x.Err() == nil && (length < fixedSize || length > maxHeader || int64(length) > size):
		x.Fail("header says its size is %d, of a file of %d", length, size)
	}
	if x.Err() != nil {
		return nil, x.Err()
	}
	head = make([]byte, length)
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &Reader{name: name, r: r, size: size, at: int64(length)}
	if err := d.parse(head, version); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Reader) parse(head []byte, version uint32) error {
	x, h := decode.New(d.name, head, 0, false), &d.Header
	x.Skip(uint64(len(magic)) + 8)
	for _, p := range []*uint32{&h.MapID, &h.Type, &h.Flags, &h.KeySize, &h.ValueSize, &h.Depth,
		&h.MaxEntries, &h.CPUs, &h.BTFID, &h.KeyType, &h.ValueType} {
		*p = x.U32()
	}
	order := x.U32()
	h.BigEndian = order == 2
	if order != 1 && order != 2 {
		x.Fail("byte order %d", order)
	}
	h.Entries, h.Time = x.U64(), x.U64()
	name, lost := x.U32(), x.U32()
	h.Name = string(x.Bytes(uint64(name)))
	pad := func() { x.Skip(uint64(-x.Offset() & (cpuAlign - 1))) }
	pad()
	for range lost {
		count := x.U64()
		cause := x.Bytes(uint64(x.U32()))
		pad()
		if x.Err() != nil {
			return x.Err()
		}
		if h.Lost == nil {
			h.Lost = make(map[string]uint64)
		}
		h.Lost[string(cause)] += count
	}
	if version == packedVersion {
		h.Packing = Packing(x.U32())
		x.Skip(4)
	}
	if x.Err() != nil {
		return x.Err()
	}
	return d.measure()
}

// measure checks the size of pairs, and how many there are.
func (d *Reader) measure() error {
	h := &d.Header
	fail := func(format string, args ...any) error {
		return &decode.Error{Name: d.name, Offset: entriesAt,
			Reason: fmt.Sprintf(format, args...)}
	}
	if h.CPUs > maxCPUs {
		return fail("%d CPUs are more than the %d that are read", h.CPUs, maxCPUs)
	}
	value := h.Stride() // less than 2^65/8: 32 bits times 33 bits
	if uint64(h.KeySize) > maxPair || value > maxPair-uint64(h.KeySize) {
		return fail("a pair of %d and %d bytes is more than the %d that are read", h.KeySize, value,
			maxPair)
	}
	d.pair = int(uint64(h.KeySize) + value)
	if err := h.Packing.check(uint64(d.pair)); err != nil {
		return fail("%v", err)
	}
	body := uint64(d.size - d.at)
	switch {
	case d.pair == 0 && h.Entries != 0 && (h.Entries != UnknownEntries || body > 0):
		return fail("keys and values without a size")
	case d.pair == 0:
		return nil
	case h.Packing == Trimmed:
		d.left = h.Entries
		return nil
	}
	d.left = body / uint64(d.pair)
	switch {
	case h.Entries != UnknownEntries && h.Entries > d.left:
		d.err = &decode.Error{Name: d.name, Offset: d.size, Reason: fmt.Sprintf(
			"the dump is cut off: %d of its %d pairs are there", d.left, h.Entries)}
	case h.Entries != UnknownEntries:
		d.left = h.Entries
	case body%uint64(d.pair) != 0:
		d.err = &decode.Error{Name: d.name, Offset: d.size,
			Reason: "the dump is cut off in the middle of a pair"}
	}
	if h.Packing == Columns && d.err != nil { // of a block that is cut off nothing is whole
		d.left -= d.left % maxBlock
	}
	return nil
}

// dumpBlock is how much of a dump is read at a time, in bytes.
const dumpBlock = 256 << 10

// Next returns the next pair; value holds all CPUs. Both are valid until the next call. ok is false
// at the end and at damage; Err is nil at the end.
func (d *Reader) Next() (key, value []byte, ok bool) {
	if d.left == 0 {
		return nil, nil, false
	}
	if d.Header.Packing == Trimmed {
		return d.nextTrimmed()
	}
	off := d.at - d.base
	if off < 0 || off+int64(d.pair) > int64(len(d.buf)) {
		if !d.fill() {
			return nil, nil, false
		}
		off = 0
	}
	p := d.buf[off : off+int64(d.pair)]
	d.at += int64(d.pair)
	d.left--
	k := d.Header.KeySize
	return p[:k:k], p[k:], true
}

// fill reads whole pairs from the present one on.
func (d *Reader) fill() bool {
	if d.Header.Packing == Columns {
		return d.fillColumns()
	}
	n := min(d.left, max(1, uint64(dumpBlock/d.pair))) * uint64(d.pair)
	if uint64(cap(d.buf)) < n {
		d.buf = make([]byte, n) // no more than the rest of the file
	}
	d.buf, d.base = d.buf[:n], d.at
	return d.readAt(d.buf)
}

// readAt reads at the present pair.
func (d *Reader) readAt(b []byte) bool {
	got, err := d.r.ReadAt(b, d.at)
	if got < len(b) {
		d.err = &decode.Error{Name: d.name, Offset: d.at + int64(got), Reason: err.Error()}
		d.left = 0
	}
	return got == len(b)
}

// Name returns the name that Open was given, for messages.
func (d *Reader) Name() string { return d.name }

// Release frees the buffers of a reader that is not read any further.
func (d *Reader) Release() { d.trimmed = nil }

// Err returns the damage: pairs are missing at the end, or could not be read. It may be set before
// the whole pairs are read.
func (d *Reader) Err() error { return d.err }
