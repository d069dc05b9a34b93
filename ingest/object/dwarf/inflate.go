package dwarf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"symbolize/ingest/files"
)

// Compression types of Elf32_Chdr and Elf64_Chdr.
const (
	elfCompressZlib = 1
	elfCompressZstd = 2
)

// Sizes of compression headers: Elf32_Chdr, Elf64_Chdr, and "ZLIB" with a big-endian size as GNU
// tools wrote it into .zdebug_ sections.
const (
	chdr32Size = 12
	chdr64Size = 24
	zdebugSize = 12
)

// inflate unpacks a compressed section: into memory if it is small, else into a mapped file without
// a name. A section that ends early is returned with an error.
func (l *Loaded) inflate(r io.ReaderAt, s RawSection, gnu, grow bool) ([]byte, error) {
	in := io.NewSectionReader(r, int64(s.Offset), int64(min(s.Size, 1<<62)))
	kind, size, err := compressionHeader(in, gnu, &l.opts)
	if err != nil {
		return nil, err
	}
	if size > maxInflated || size > inflateFloor && size/maxInflateRatio > s.Size {
		return nil, fmt.Errorf("%d bytes claim to inflate to %d", s.Size, size)
	}
	plain, done, err := inflater(kind, in)
	if err != nil {
		return nil, err
	}
	if size < heapSection || l.opts.Patch != nil {
		defer done()
		return readAll(plain, size)
	}
	w, err := l.spool(size)
	if err != nil {
		done()
		return nil, err
	}
	if !grow {
		w.fill(plain, done)
		b, err := l.mapSpooled(w, w.grow.Wait(size))
		return b, errors.Join(err, w.grow.wait())
	}
	b, err := l.mapSpooled(w, size) // all zero at first
	if err != nil {
		done()
		return nil, err
	}
	l.growing, l.Sections.Growth = s, w.grow
	go w.fill(plain, done)
	return b, nil
}

// compressionHeader reads the header and leaves r after it.
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
	in := bufio.NewReaderSize(r, 256<<10)
	switch kind {
	case elfCompressZlib:
		z, err := files.ZlibReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("inflating: %w", err)
		}
		return z, func() { z.Close() }, nil
	case elfCompressZstd:
		z := files.ZstdReader(in, inflateFloor)
		return z, func() { z.Close() }, nil
	}
	return nil, nil, fmt.Errorf("unknown compression type %d", kind)
}

// spool makes a file without a name for a section of this size. It holds no blocks yet.
func (l *Loaded) spool(size uint64) (*sectionWriter, error) {
	f, err := os.CreateTemp(l.opts.TempDir, "symbolize-dwarf-*")
	if err != nil {
		return nil, &localError{err}
	}
	os.Remove(f.Name())
	l.keep(nil, f)
	w := &sectionWriter{f: f, size: size, grow: newGrowth()}
	if err := f.Truncate(int64(size)); err != nil {
		return nil, &localError{err}
	}
	return w, nil
}

// mapSpooled maps the first n bytes of a section.
func (l *Loaded) mapSpooled(w *sectionWriter, n uint64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b, m, err := mapFile(w.f, 0, n)
	if err != nil {
		return nil, &localError{fmt.Errorf("mapping: %w", err)}
	}
	l.keep(m, nil)
	return b, nil
}
