package symtab

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"symbolize/ingest/decode"
)

// zstdLevel trades size for time; the package comment has figures of the levels.
const zstdLevel = zstd.SpeedFastest

// zstdWindow bounds an encoder's window: blocks are 64 KiB.
const zstdWindow = 128 << 10

// Packed is a block's entry in a directory: its size, and how it is stored.
type Packed struct {
	raw    uint32 // bytes when unpacked
	stored uint32 // bytes as stored
	zstd   bool
	at     uint64 // in the header's inline bytes, if it is there
}

// Append appends the entry in encoded form: raw size | stored.
func (e Packed) Append(b []byte) []byte {
	v := uint64(e.stored) << 1
	if e.zstd {
		v |= 1
	}
	b = binary.AppendUvarint(b, uint64(e.raw))
	return binary.AppendUvarint(b, v)
}

// Read decodes an entry, and refuses blocks over MaxBlock.
func (e *Packed) Read(r *decode.Reader) {
	raw, v := r.Uvarint(), r.Uvarint()
	stored, packed := v>>1, v&1 != 0
	switch {
	case raw == 0 || raw > MaxBlock:
		r.Fail("block of %d bytes, the limit is %d", raw, MaxBlock)
	case stored == 0 || stored > raw || (stored == raw) == packed:
		r.Fail("block of %d bytes stored in %d", raw, stored)
	}
	if r.Err() == nil {
		*e = Packed{raw: uint32(raw), stored: uint32(stored), zstd: packed}
	}
}

// Coders are made once: each holds tables of some hundred KiB for every goroutine that uses it at
// the same time.
var (
	zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
		enc, err := zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true),
			zstd.WithSingleSegment(true)) // a frame then always has its content size
		if err != nil {
			panic(err) // the options are constants
		}
		return enc
	})
	zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
		dec, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(0))
		if err != nil {
			panic(err)
		}
		return dec
	})
)

// Pack returns raw in its stored form, in memory of its own.
func Pack(raw []byte) ([]byte, Packed) {
	out := zstdEncoder().EncodeAll(raw, make([]byte, 0, len(raw)/2+64))
	e := Packed{raw: uint32(len(raw)), stored: uint32(len(out)), zstd: true}
	if len(out) >= len(raw) {
		out, e.stored, e.zstd = append(out[:0], raw...), e.raw, false
	}
	if cap(out)-len(out) > len(out)/4 {
		out = append(make([]byte, 0, len(out)), out...)
	}
	return out, e
}

// Raw returns the bytes of the block when unpacked.
func (e Packed) Raw() int { return int(e.raw) }

// Stored returns the bytes of the block as stored.
func (e Packed) Stored() int { return int(e.stored) }

// Unpack returns the raw bytes of a block, in dst's memory or aliasing stored.
func (e Packed) Unpack(dst, stored []byte) ([]byte, error) {
	if len(stored) != int(e.stored) {
		return nil, formatError("block of %d bytes, the directory says %d", len(stored), e.stored)
	}
	if !e.zstd {
		return stored, nil
	}
	var frame zstd.Header
	if err := frame.Decode(stored); err != nil {
		return nil, formatError("zstd frame: %v", err)
	}
	if !frame.HasFCS || frame.FrameContentSize != uint64(e.raw) {
		return nil, formatError("zstd frame of %d bytes, the directory says %d",
			frame.FrameContentSize, e.raw)
	}
	if cap(dst) < int(e.raw) {
		dst = make([]byte, 0, e.raw+e.raw/8) // the next one is about as large
	}
	out, err := zstdDecoder().DecodeAll(stored, dst[:0:e.raw])
	if err != nil {
		return nil, formatError("zstd frame: %v", err)
	}
	if len(out) != int(e.raw) {
		return nil, formatError("zstd frame gave %d bytes, the directory says %d", len(out), e.raw)
	}
	return out, nil
}

func versionError(version, flags byte) error {
	return fmt.Errorf("%w: version %d, flags %#x; this program knows version %d",
		ErrVersion, version, flags, Version)
}
