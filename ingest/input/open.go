package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"symbolize/ingest/filetype"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/regular"
)

// ErrNotCapture is the error of Open for files of other kinds. It is wrapped together with
// a description of the file.
var ErrNotCapture = errors.New("not a capture")

// file is the opened file of a capture.
type file struct {
	path    string
	r       io.ReaderAt
	size    int64
	mtime   time.Time // zero if not known
	closers closers   // the file, and resources that were opened with it
}

// Open opens a capture and finds out by its first bytes what it is: perf.data in
// file mode, a capture bundle, or a pprof profile, gzipped or not. The samples are read by Profile
// and Replay; for a pprof file already here. Errors of files that are no capture
// wrap ErrNotCapture.
func Open(ctx context.Context, path string, opts Options) (*Capture, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := regular.Open(path)
	if errors.Is(err, regular.ErrNotRegular) {
		return nil, withHint(noCapture(path, err))
	}
	if err != nil {
		return nil, err
	}
	in := &file{path: path, r: f, closers: closers{f}}
	src, err := openSource(in, f, &opts)
	if err != nil {
		in.closers.Close()
		return nil, withHint(err)
	}
	return &Capture{file: in, source: src}, nil
}

// noCapture says of what is no regular file why it is no capture.
func noCapture(path string, err error) error {
	if _, err := os.Stat(path + "/data"); err == nil {
		return fmt.Errorf("%s: %w", path, perfdata.ErrDirectory)
	}
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return fmt.Errorf("%s: %w: it is a directory", path, ErrNotCapture)
	}
	return fmt.Errorf("%s: %w: %w, and a capture is read twice", path, ErrNotCapture,
		errors.Unwrap(err))
}

// openSource recognizes the kind of a file and opens it as that.
func openSource(in *file, f *os.File, opts *Options) (source, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	in.mtime, in.size = info.ModTime(), info.Size()
	kind, err := filetype.Of(in.path, f, in.size)
	if err != nil {
		return nil, err
	}
	bare := opts.Stacks.bare()
	switch {
	case kind == filetype.PerfData:
		return openPerf(in, opts)
	case kind == filetype.Bundle:
		return openBundle(in, opts)
	case kind == filetype.Stacks:
		form := stackmap.Sniff(&stackmap.Input{Name: in.path, R: in.r, Size: in.size})
		return openStacks(in, form, opts)
	case kind == filetype.Gzip, kind == filetype.Pprof && !bare:
		return openPprof(in, opts)
	case bare:
		return openStacks(in, stackmap.NoForm, opts)
	}
	return nil, fmt.Errorf("%s: %w: %s", in.path, ErrNotCapture, looksLike(kind, in.size))
}

// looksLike describes the file of an ErrNotCapture.
func looksLike(kind filetype.Type, size int64) string {
	switch {
	case size == 0:
		return "it is empty"
	case kind == filetype.ELF:
		return "it is an ELF file (index reads those)"
	case kind.Packed():
		return "it is compressed; unpack it first"
	}
	return "it begins neither like a perf.data file nor like a pprof profile"
}

// closers closes several resources as one.
type closers []io.Closer

// Close closes all, the last first.
func (list closers) Close() error {
	var errs []error
	for _, c := range slices.Backward(list) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
