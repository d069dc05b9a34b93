package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Levels of zstd.
const (
	ZstdFastest = zstd.SpeedFastest
	ZstdDefault = zstd.SpeedDefault
	ZstdBetter  = zstd.SpeedBetterCompression
	ZstdBest    = zstd.SpeedBestCompression
)

// ZstdOptions describe how a format of ours is compressed. The same fields give the same bytes.
type ZstdOptions struct {
	Level  zstd.EncoderLevel
	Window int  // bytes, a power of two; 0 is the level's
	Lean   bool // an encoder has little memory beside the window, and is slower with a large one
	NoSum  bool // frames have no checksum
	Sized  bool // every frame has its content size, also one of less than minFrameSized
	// Workers is how many frames are packed, and how many unpacked, at a time; 0 is one on each core.
	Workers int
	// Limit is the maximum size in bytes of a frame's content in Frames.Unpack.
	Limit uint64
}

// ZstdWriter packs a stream. Close ends the frame, after Reset it begins another.
type ZstdWriter = zstd.Encoder

func (z ZstdOptions) encoder(w io.Writer, workers int) *zstd.Encoder {
	options := []zstd.EOption{zstd.WithEncoderLevel(z.Level), zstd.WithEncoderConcurrency(workers),
		zstd.WithLowerEncoderMem(z.Lean), zstd.WithEncoderCRC(!z.NoSum)}
	if z.Window > 0 {
		options = append(options, zstd.WithWindowSize(z.Window))
	}
	if z.Sized {
		options = append(options, zstd.WithSingleSegment(true))
	}
	return working(zstd.NewWriter(w, options...))
}

// Writer returns a writer of a stream, with one goroutine: its output does not depend on
// scheduling.
func (z ZstdOptions) Writer(w io.Writer) *ZstdWriter { return z.encoder(w, 1) }

// ZstdReader returns a reader of a stream. It allocates at most a window of this size in bytes, and
// refuses a frame with a larger one.
func ZstdReader(r io.Reader, window uint64) io.ReadCloser {
	return zstdDecoder(r, window).IOReadCloser()
}

func zstdDecoder(r io.Reader, window uint64) *zstd.Decoder {
	return working(zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window)))
}

// working returns a coder. Its options are constants of this program: an error is a bug in them.
func working[T any](coder T, err error) T {
	if err != nil {
		panic(err)
	}
	return coder
}

// ZstdFrames packs and unpacks values in memory, a frame for each.
type ZstdFrames struct {
	encoder        func() *zstd.Encoder
	decoder, sized func() *zstd.Decoder
}

// Frames returns the coders of values. Each is made when it is first needed, and holds tables of
// some hundred KiB for every worker.
func (z ZstdOptions) Frames() *ZstdFrames {
	workers := z.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	decoder := func(limit zstd.DOption) func() *zstd.Decoder {
		return sync.OnceValue(func() *zstd.Decoder {
			return working(zstd.NewReader(nil, zstd.WithDecoderConcurrency(workers), limit))
		})
	}
	return &ZstdFrames{
		encoder: sync.OnceValue(func() *zstd.Encoder { return z.encoder(nil, workers) }),
		decoder: decoder(zstd.WithDecoderMaxMemory(z.Limit)),
		sized:   decoder(zstd.WithDecodeAllCapLimit(true)),
	}
}

// Pack appends a frame with the content raw to b.
func (z *ZstdFrames) Pack(b, raw []byte) []byte { return z.encoder().EncodeAll(raw, b) }

// Unpack returns the content of frames, at most Limit bytes.
func (z *ZstdFrames) Unpack(packed []byte) ([]byte, error) { return z.decoder().DecodeAll(packed, nil) }

// UnpackBounded returns the content of frames, at most limit bytes, in dst's memory if it is large
// enough. The error wraps ErrTooLarge if they have more.
func (z *ZstdFrames) UnpackBounded(dst, packed []byte, limit int64) ([]byte, error) {
	var h zstd.Header
	if h.Decode(packed) == nil && h.HasFCS && h.FrameContentSize <= uint64(max(limit, 0)) {
		if out, err := z.UnpackSized(dst, packed, int(h.FrameContentSize)); err == nil {
			return out, nil
		}
	}
	d := zstdDecoders.Get().(*zstd.Decoder)
	defer func() {
		if d.Reset(nil) == nil {
			zstdDecoders.Put(d)
		}
	}()
	if err := d.Reset(bytes.NewReader(packed)); err != nil {
		return nil, fmt.Errorf("zstd frame: %w", err)
	}
	for out := dst[:0]; ; {
		if len(out) == cap(out) {
			out = slices.Grow(out, max(minGrowth, len(out)))
		}
		n, err := d.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case int64(len(out)) > limit:
			return nil, fmt.Errorf("%w: %d KiB", ErrTooLarge, max(limit, 0)>>10)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("zstd frame: %w", err)
		}
	}
}

// minGrowth is how many bytes the memory of unpacked frames grows by at least.
const minGrowth = 64 << 10

// minFrameSized is the content size from which our encoders write it into each frame.
const minFrameSized = 256

var errFrameSize = errors.New("zstd frame has another size")

// UnpackSized returns the content of one frame of exactly size bytes, in dst's memory if it is large
// enough. The frame's header is checked before anything is allocated.
func (z *ZstdFrames) UnpackSized(dst, frame []byte, size int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, fmt.Errorf("zstd frame: %w", err)
	}
	if h.Skippable || h.HasFCS && h.FrameContentSize != uint64(size) ||
		!h.HasFCS && size >= minFrameSized {
		return nil, errFrameSize
	}
	out, err := z.sized().DecodeAll(frame, slices.Grow(dst[:0], size)[:0:size])
	if err != nil {
		return nil, fmt.Errorf("zstd frame: %w", err)
	}
	if len(out) != size {
		return nil, errFrameSize
	}
	return out, nil
}
