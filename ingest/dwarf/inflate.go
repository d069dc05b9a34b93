package dwarf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Compression types of Elf32_Chdr and Elf64_Chdr.
const (
	elfCompressZlib = 1
	elfCompressZstd = 2
)

// Sizes of compression headers: Elf32_Chdr, Elf64_Chdr, and "ZLIB" with a
// big-endian size as GNU tools wrote it into .zdebug_ sections.
const (
	chdr32Size = 12
	chdr64Size = 24
	zdebugSize = 12
)

// inflate unpacks a compressed section: into memory if it is small, else into a
// mapped file without a name. A section that ends early is returned with an error.
func (l *Loaded) inflate(r io.ReaderAt, s RawSection, gnu bool, o *LoadOptions) ([]byte, error) {
	in := io.NewSectionReader(r, int64(s.Offset), int64(min(s.Size, 1<<62)))
	kind, size, err := compressionHeader(in, gnu, o)
	if err != nil {
		return nil, err
	}
	if size > maxInflated || size > inflateFloor && size/maxInflateRatio > s.Size {
		return nil, fmt.Errorf("%d bytes claim to inflate to %d", s.Size, size)
	}
	plain, done, err := inflater(kind, bufio.NewReaderSize(in, 256<<10))
	if err != nil {
		return nil, err
	}
	defer done()
	if size < heapSection || o.Patch != nil {
		return readAll(plain, size)
	}
	return l.spool(plain, size, o.TempDir)
}

// compressionHeader reads the header and leaves r behind it.
func compressionHeader(r io.Reader, gnu bool, o *LoadOptions) (kind uint32, size uint64, _ error) {
	var h [chdr64Size]byte
	n := chdr32Size
	switch {
	case gnu:
		n = zdebugSize
	case o.Class64:
		n = chdr64Size
	}
	if _, err := io.ReadFull(r, h[:n]); err != nil {
		return 0, 0, errors.New("compression header does not end")
	}
	if gnu {
		if string(h[:4]) != "ZLIB" {
			return 0, 0, errors.New("compression header is not \"ZLIB\"")
		}
		return elfCompressZlib, binary.BigEndian.Uint64(h[4:]), nil
	}
	b := buf{b: h[:n], big: o.BigEndian}
	kind = b.u32()
	if o.Class64 {
		b.u32()
		return kind, b.u64(), nil
	}
	return kind, uint64(b.u32()), nil
}

func inflater(kind uint32, r io.Reader) (plain io.Reader, done func(), err error) {
	switch kind {
	case elfCompressZlib:
		z, err := zlib.NewReader(r)
		if err != nil {
			return nil, nil, fmt.Errorf("inflating: %w", err)
		}
		return z, func() { z.Close() }, nil
	case elfCompressZstd:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(inflateFloor))
		if err != nil {
			return nil, nil, fmt.Errorf("inflating: %w", err)
		}
		return z, z.Close, nil
	}
	return nil, nil, fmt.Errorf("unknown compression type %d", kind)
}

// spool writes size bytes of r to a file that is removed at once, and maps it.
func (l *Loaded) spool(r io.Reader, size uint64, dir string) ([]byte, error) {
	f, err := os.CreateTemp(dir, "symbolize-dwarf-*")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	n, err := io.CopyBuffer(onlyWriter{f}, onlyReader{io.LimitReader(r, int64(size))},
		make([]byte, heapSection))
	switch {
	case err != nil:
		err = fmt.Errorf("inflating: %w", err)
	case uint64(n) < size:
		err = fmt.Errorf("inflates to %d bytes, not %d", n, size)
	}
	if n == 0 {
		f.Close()
		return nil, err
	}
	b, m, mapErr := mapFile(f, 0, uint64(n))
	if mapErr != nil {
		f.Close()
		return nil, fmt.Errorf("mapping: %w", mapErr)
	}
	l.keep(m, f)
	return b, err
}

// onlyReader and onlyWriter hide the methods by which io.Copy would take its own way
// with buffers of its own size.
type onlyReader struct{ io.Reader }

type onlyWriter struct{ io.Writer }
