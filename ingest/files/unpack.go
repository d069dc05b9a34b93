package files

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"

	"symbolize/ingest/decode"
)

// Bounds on unpacking. A module with its debug information has up to 100 MB.
const (
	maxUnpacked   = 1 << 30  // of a packed module
	maxDictionary = 64 << 20 // xz and zstd windows; xz -9 has 64 MiB
)

// maxRatio bounds the growth factor beyond unpackFloor: modules grow four to sixfold, debug
// sections fourteenfold, a bomb of xz seven thousandfold.
const (
	maxRatio    = 32
	unpackFloor = 16 << 20
)

// UnpackBound returns the bound for the unpacked size of packed bytes, at most limit.
func UnpackBound(packed, limit uint64) uint64 {
	if packed >= limit/maxRatio {
		return limit
	}
	return min(limit, max(packed*maxRatio, unpackFloor))
}

// Zlib is the packing of sections only.
const Zlib Packing = "zlib"

// errTooLong is returned before memory for the declared size is allocated.
var errTooLong = errors.New("limit reached: it unpacks to more than the bound")

// UnpackOptions bound the work of Unpack. The zero value keeps the default bounds, which depend
// on the size of the file.
type UnpackOptions struct {
	// Limit is the maximum unpacked size in bytes, at most 1 GiB; 0 is 1 GiB.
	Limit int64
	// Stop is called periodically; its error ends the work. It may be nil.
	Stop func() error
}

// Unpack returns the contents of a file that may be packed, as kernel modules are (.ko.xz,
// .ko.zst, .ko.gz), by its magic, not its name. An unpacked file is held in memory, at most 1 GiB
// and 32 times its packed size. Kind is "xz", "zstd", "gzip", or "" with data == r for a file
// that is not packed.
func Unpack(name string, r io.ReaderAt, size int64) (
	data io.ReaderAt, n int64, kind string, err error) {
	return UnpackWith(name, r, size, UnpackOptions{})
}

// UnpackWith is Unpack with options.
func UnpackWith(name string, r io.ReaderAt, size int64, o UnpackOptions) (
	data io.ReaderAt, n int64, kind string, err error) {
	limit := uint64(maxUnpacked)
	if o.Limit > 0 {
		limit = min(limit, uint64(o.Limit))
	}
	head := make([]byte, min(max(size, 0), MagicBytes))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, "", fmt.Errorf("%s: %w", name, err)
	}
	how := PackingOf(head)
	if how == "" {
		return r, size, "", nil
	}
	b := &blockList{stop: o.Stop}
	err = UnpackTo(b, how, io.NewSectionReader(r, 0, size), UnpackBound(uint64(size), limit))
	if err != nil {
		return nil, 0, string(how), &decode.Error{Name: name,
			Reason: fmt.Sprintf("%s data does not unpack: %v", how, err)}
	}
	return b, b.size, string(how), nil
}

// peekBytes is the number of bytes to unpack for identifying the content.
const peekBytes = 64

// UnpackHead returns the first bytes of a packed file's content, at most 64, without unpacking
// the rest; nil for a file that is not packed, or damaged there.
func UnpackHead(r io.ReaderAt, size int64) []byte {
	head := make([]byte, min(max(size, 0), MagicBytes))
	n, _ := r.ReadAt(head, 0)
	how := PackingOf(head[:n])
	if how == "" {
		return nil
	}
	var out bytes.Buffer
	err := UnpackTo(&out, how, io.NewSectionReader(r, 0, size), peekBytes-1)
	if err != nil && !errors.Is(err, errTooLong) {
		return nil
	}
	return out.Bytes()
}

// UnpackAll unpacks all of r, at most limit bytes.
func UnpackAll(how Packing, r io.Reader, limit uint64) ([]byte, error) {
	var out bytes.Buffer
	if err := UnpackTo(&out, how, r, limit); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// UnpackTo is UnpackAll into any destination. A panic of a third-party decoder is returned as an
// error of the input.
func UnpackTo(out io.ReaderFrom, how Packing, r io.Reader, limit uint64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s decoder failed: %v", how, p)
		}
	}()
	var in io.Reader
	switch how {
	case Zlib:
		in, err = ZlibReader(r)
	case Zstd:
		d := zstdDecoders.Get().(*zstd.Decoder)
		defer func() {
			if d.Reset(nil) == nil {
				zstdDecoders.Put(d)
			}
		}()
		in, err = d, d.Reset(r)
	default:
		in, err = Unpacker(how, r, 0)
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

// ZlibReader returns a reader of a zlib stream (RFC 1950); the error is one of its header.
func ZlibReader(r io.Reader) (io.ReadCloser, error) { return zlib.NewReader(r) }

// OpenUnpacked opens a file for reading from its start, unpacked by its magic if it is packed. A file
// that unpacks to more than UnpackBound of its size and 1 GiB has an error of Read.
func OpenUnpacked(path string) (io.ReadCloser, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	head := make([]byte, MagicBytes)
	n, err := f.ReadAt(head, 0)
	how := PackingOf(head[:n])
	if err != nil && err != io.EOF || how == "" {
		return f, nil // Read reports the error
	}
	in, err := Unpacker(how, bufio.NewReader(f), maxDictionary)
	if err != nil {
		return nil, errors.Join(&decode.Error{Name: path, Reason: fmt.Sprintf("%s: %v", how, err)}, f.Close())
	}
	return &unpackedFile{file: f, in: in, how: how,
		left: int64(UnpackBound(uint64(fi.Size()), maxUnpacked))}, nil
}

// unpackedFile is the content of a packed file.
type unpackedFile struct {
	file *os.File
	in   io.ReadCloser
	how  Packing
	left int64 // of the bound
}

// Read implements io.Reader. A panic of a third-party decoder is an error of the file.
func (u *unpackedFile) Read(b []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = 0, fmt.Errorf("%s decoder failed: %v", u.how, p)
		}
	}()
	n, err = u.in.Read(b)
	if u.left -= int64(n); u.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// Close implements io.Closer.
func (u *unpackedFile) Close() error { return errors.Join(u.in.Close(), u.file.Close()) }

// zstdDecoders are reused: one holds some hundred KiB.
var zstdDecoders = sync.Pool{New: func() any { return zstdDecoder(nil, maxDictionary) }}

// Unpacker returns a reader of the content that r holds packed as a file. Damage is an error of its
// Read. The window bounds the memory for zstd.
func Unpacker(how Packing, r io.Reader, window uint64) (io.ReadCloser, error) {
	switch how {
	case Gzip:
		return gzip.NewReader(r)
	case Bzip2:
		return io.NopCloser(bzip2.NewReader(r)), nil
	case XZ:
		x, err := xz.NewReader(r, maxDictionary)
		return io.NopCloser(x), err
	}
	return ZstdReader(r, window), nil
}
