package elf

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"

	"symbolize/ingest/decode"
	"symbolize/ingest/object/flate"
)

// Bounds on unpacking. A module with its debug information has up to 100 MB, the
// .gnu_debugdata of a browser 60 MB.
const (
	maxUnpacked   = 1 << 30   // of a packed module
	maxDebugData  = 256 << 20 // of .gnu_debugdata
	maxDictionary = 64 << 20  // xz and zstd windows; xz -9 has 64 MiB
)

// maxRatio is how many times its packed size something may unpack to, beyond unpackFloor:
// modules grow four to sixfold, debug sections fourteenfold, a bomb of xz seven thousandfold.
const (
	maxRatio    = 32
	unpackFloor = 16 << 20
)

// unpackBound is what a number of packed bytes may unpack to where limit is the most.
func unpackBound(packed, limit uint64) uint64 {
	if packed >= limit/maxRatio {
		return limit
	}
	return min(limit, max(packed*maxRatio, unpackFloor))
}

// packing is a compression format.
type packing string

const (
	packedZlib packing = "zlib"
	packedGzip packing = "gzip"
	packedXZ   packing = "xz"
	packedZstd packing = "zstd"
)

var packings = []struct {
	magic string
	how   packing
}{
	{"\xfd7zXZ\x00", packedXZ},
	{"\x28\xb5\x2f\xfd", packedZstd},
	{"\x1f\x8b", packedGzip},
}

// errTooLong is met before what it says is allocated.
var errTooLong = errors.New("limit reached: it unpacks to more than the bound")

// UnpackOptions bound the work of Unpack. The zero value leaves the bounds that go with the
// size of the file.
type UnpackOptions struct {
	// Limit is how many bytes of memory the unpacked file may take, at most 1 GiB; 0 for that.
	Limit int64
	// Stop is asked now and then; its error ends the work. nil is never asked.
	Stop func() error
}

// Unpack gives the contents of a file that may be packed, as kernel modules are
// (.ko.xz, .ko.zst, .ko.gz): by its magic, not its name. An unpacked file is held
// in memory, at most 1 GiB of it and 32 times its size. Kind is "xz", "zstd", "gzip", or "" with data
// == r for a file that is not packed.
func Unpack(name string, r io.ReaderAt, size int64) (
	data io.ReaderAt, n int64, kind string, err error) {
	return UnpackWith(name, r, size, UnpackOptions{})
}

// UnpackWith is Unpack within bounds.
func UnpackWith(name string, r io.ReaderAt, size int64, o UnpackOptions) (
	data io.ReaderAt, n int64, kind string, err error) {
	limit := uint64(maxUnpacked)
	if o.Limit > 0 {
		limit = min(limit, uint64(o.Limit))
	}
	head := make([]byte, min(max(size, 0), 6))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, "", fmt.Errorf("%s: %w", name, err)
	}
	for _, p := range packings {
		if !bytes.HasPrefix(head, []byte(p.magic)) {
			continue
		}
		b := &blockList{stop: o.Stop}
		err := unpackTo(b, p.how, io.NewSectionReader(r, 0, size),
			unpackBound(uint64(size), limit))
		if err != nil {
			return nil, 0, string(p.how), &decode.Error{Name: name,
				Reason: fmt.Sprintf("%s data does not unpack: %v", p.how, err)}
		}
		return b, b.size, string(p.how), nil
	}
	return r, size, "", nil
}

// peekBytes is how much of a packed file is unpacked to see what it is.
const peekBytes = 64

// PackedHead returns the first bytes of what is packed in a file, at most 64, of which the
// rest is not unpacked; nil for a file that is not packed, or damaged there.
func PackedHead(r io.ReaderAt, size int64) []byte {
	how, ok := packingOf(r, size)
	if !ok {
		return nil
	}
	var out bytes.Buffer
	err := unpackTo(&out, how, io.NewSectionReader(r, 0, size), peekBytes-1)
	if err != nil && !errors.Is(err, errTooLong) {
		return nil
	}
	return out.Bytes()
}

// packingOf tells by its magic how a file is packed.
func packingOf(r io.ReaderAt, size int64) (how packing, ok bool) {
	head := make([]byte, min(max(size, 0), 6))
	if n, _ := r.ReadAt(head, 0); n < len(head) {
		return "", false
	}
	for _, p := range packings {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return p.how, true
		}
	}
	return "", false
}

// unpackAll unpacks all of r, at most limit bytes.
func unpackAll(how packing, r io.Reader, limit uint64) ([]byte, error) {
	var out bytes.Buffer
	if err := unpackTo(&out, how, r, limit); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpackTo is unpackAll into any place. A panic of a decoder that is not ours is an
// error of the input.
func unpackTo(out io.ReaderFrom, how packing, r io.Reader, limit uint64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s decoder failed: %v", how, p)
		}
	}()
	var in io.Reader
	switch how {
	case packedZlib:
		in = flate.NewZlibReader(r)
	case packedGzip:
		in, err = gzip.NewReader(r)
	case packedXZ:
		in, err = xz.NewReader(r, maxDictionary)
	case packedZstd:
		d := zstdDecoders.Get().(*zstd.Decoder)
		defer func() {
			if d.Reset(nil) == nil {
				zstdDecoders.Put(d)
			}
		}()
		in, err = d, d.Reset(r)
	}
	if err != nil {
		return err
	}
	n, err := out.ReadFrom(io.LimitReader(in, int64(limit)+1))
	if err != nil {
		return err
	}
	if uint64(n) > limit {
		return fmt.Errorf("%w of %d bytes", errTooLong, limit)
	}
	return nil
}

// zstdDecoders are reused: one holds some hundred KiB.
var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxDictionary))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}}

// blockSize is how much is read at once where a table is walked through.
const blockSize = 64 << 10

// blocks are the buffers for that.
var blocks = sync.Pool{New: func() any { b := make([]byte, blockSize); return &b }}
