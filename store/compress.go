package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Captured inputs are compressed and stored in pieces, so that no value is large.
const (
	RawPiece = 1 << 20 // bytes of the input in one piece
	maxRaw   = 1 << 30 // bytes of one input; a large /proc/kallsyms has 20 MB
)

// minFrameSized is the content size from which our encoder writes it into the frame.
const minFrameSized = 256

// The coders are made when first needed: many runs need only one of them.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2),
			zstd.WithWindowSize(RawPiece), zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderCRC(false))
		if err != nil {
			panic(err) // fixed options: an error is a bug of ours
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxRowsRaw))
		if err != nil {
			panic(err)
		}
		return d
	})
)

// Compress appends one zstd frame of raw to b.
func Compress(b, raw []byte) []byte { return encoder().EncodeAll(raw, b) }

// Decompress unpacks one frame of exactly size bytes. The frame's own header is checked against
// size before anything is allocated.
func Decompress(frame []byte, size uint64) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, fmt.Errorf("zstd frame: %w", err)
	}
	if h.Skippable || h.HasFCS && h.FrameContentSize != size || !h.HasFCS && size >= minFrameSized {
		return nil, errors.New("zstd frame is of another size")
	}
	out, err := decoder().DecodeAll(frame, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("zstd frame: %w", err)
	}
	if uint64(len(out)) != size {
		return nil, errors.New("zstd frame is of another size")
	}
	return out, nil
}
