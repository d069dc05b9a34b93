package container

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
)

// IsPacked reports whether a file of size bytes is a perf.data packed as a whole, by its first
// unpacked bytes.
func IsPacked(r io.ReaderAt, size int64) bool {
	head := make([]byte, files.MagicBytes)
	n, _ := r.ReadAt(head, 0)
	how := files.PackingOf(head[:n])
	if how == "" {
		return false
	}
	in, err := Unpacking(how, bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 4<<10))
	if err != nil {
		return false
	}
	defer in.Close()
	first := make([]byte, 16)
	n, _ = io.ReadFull(&safeReader{in}, first)
	return perfdata.IsPerfData(first[:n])
}

// Unpack returns the content of a file of size bytes that is packed as a whole, for the caller to
// close. Damage is of the packed data; the content before it is there. It may have most bytes, see
// files.MaxUnpacked.
func Unpack(ctx context.Context, name string, r io.ReaderAt, size, most int64) (
	content *files.Spool, damage, err error) {
	head := make([]byte, files.MagicBytes)
	n, _ := r.ReadAt(head, 0)
	content = files.NewSpool(0)
	content.Bound(files.MaxUnpacked(size, most))
	damage, err = unpackFile(ctx, content, name, files.PackingOf(head[:n]), io.NewSectionReader(r, 0, size))
	if err != nil {
		content.Close()
		return nil, nil, err
	}
	return content, damage, nil
}

// unpackFile writes the unpacked content of a file into a spool. An error is of the spool or
// the context; the data before damage is kept.
func unpackFile(ctx context.Context, out *files.Spool, name string, how files.Packing,
	packed io.Reader) (damage, err error) {
	in, damage := Unpacking(how, bufio.NewReaderSize(packed, readSize))
	if damage != nil {
		return fmt.Errorf("%s: %s: %w", name, how, damage), nil
	}
	defer in.Close()
	damage, err = files.CopyToSpool(ctx, out, &safeReader{in})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if damage == nil {
		return nil, nil
	}
	return fmt.Errorf("%s: %s: offset %#x unpacked: %w", name, how, out.Size(), damage), nil
}

// Unpacking returns a reader of the content that r holds packed. Damage is an error of its Read.
func Unpacking(how files.Packing, r io.Reader) (io.ReadCloser, error) {
	return files.Unpacker(how, r, maxWindow)
}

// safeReader turns a panic of a decoder into an error of its input.
type safeReader struct{ r io.Reader }

func (s *safeReader) Read(b []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoder failed: %v", p)
		}
	}()
	return s.r.Read(b)
}
