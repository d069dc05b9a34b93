// Package container identifies files by their first bytes, never by their names (TypeOf), and
// opens a perf.data in whatever it comes: a file or stream, with records
// that are compressed (perf record -z), in a directory of several files (--threads, --kcore),
// and packed as a whole by gzip, zstd or xz. All give one perfdata.File whose records can be
// read any number of times, in parallel and at any offset.
//
// Plain files and streams are read where they are. Records that are compressed are unpacked
// once, when the File is opened, into a spool: a zstd stream runs through all COMPRESSED
// records of a file and can be read from its beginning only. The records of a directory
// follow one another, each file's cut off at its last whole record.
package container

import (
	"context"
	"errors"
	"io"
	"slices"

	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
)

// Perf is an opened perf.data. The File can be used until Close.
type Perf struct {
	File *perfdata.File
	// Size is the number of bytes of all files as they are on disk.
	Size int64

	most    int64 // bytes that it may unpack to, see files.MaxUnpacked
	closers []io.Closer
	reads   *files.Reads // of the files of a directory
}

// Close releases files and spools.
func (p *Perf) Close() error {
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Open opens a perf.data of size bytes in r, which must stay open and be safe for concurrent
// ReadAt. Name is for messages. Damage after the header becomes a warning of the File. Unpacked,
// the file may have most bytes, see files.MaxUnpacked.
func Open(ctx context.Context, name string, r io.ReaderAt, size, most int64) (*Perf, error) {
	p := &Perf{Size: size, most: most}
	if err := p.open(ctx, name, r, size); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Perf) open(ctx context.Context, name string, r io.ReaderAt, size int64) error {
	head := make([]byte, files.MagicBytes)
	n, _ := r.ReadAt(head, 0)
	var damage error
	if how := files.PackingOf(head[:n]); how != "" {
		s := files.NewSpool(0)
		s.Bound(files.MaxUnpacked(size, p.most))
		p.closers = append(p.closers, s)
		var err error
		if damage, err = unpackFile(ctx, s, name, how, io.NewSectionReader(r, 0, size)); err != nil {
			return err
		}
		r, size = s, s.Size()
	}
	f, err := perfdata.Open(name, r, size)
	if err != nil {
		return errors.Join(damage, err)
	}
	if err := p.place(ctx, f, []segment{{name: name, r: r, data: f.Data}}); err != nil {
		return err
	}
	if damage != nil {
		p.File.Warn(damage)
	}
	return nil
}

// place makes the File of the tables of f and the records of segments.
func (p *Perf) place(ctx context.Context, f *perfdata.File, segments []segment) error {
	p.File = f
	packed := false
	for i := range segments {
		packed = packed || compressed(segments[i].file(f))
	}
	if packed {
		return p.unpack(ctx, f, segments)
	}
	if len(segments) > 1 {
		return p.join(ctx, f, segments)
	}
	return nil
}

// segment is a part of the records: a range of a file.
type segment struct {
	name string
	r    io.ReaderAt
	data perfdata.Section
}

// file returns the segment as a File with the tables of f.
func (s *segment) file(f *perfdata.File) *perfdata.File {
	return f.WithRecords(s.r, s.data, func(offset int64) (string, int64) {
		return s.name, offset
	})
}

// compressed reports whether records are. Recorders that were killed leave no feature
// for it; their first sample decides, as all samples are compressed or none.
func compressed(f *perfdata.File) bool {
	for r := f.AllRecords(); r.Next(); {
		switch t := r.Record().Type; {
		case t.Compressed():
			return true
		case t == perfdata.TypeSample && !f.Features.Compressed:
			return false
		}
	}
	return false
}
