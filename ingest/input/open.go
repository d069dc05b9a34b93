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
	"symbolize/ingest/format/container"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/regular"
	"symbolize/ingest/spool"
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
	born    time.Time // when the file was created; zero if not known
	closers closers   // the file, and resources that were opened with it
}

// Open opens a capture and recognizes its type by its first bytes: perf.data in any
// container, a capture bundle, a stack map, or a pprof profile, gzipped or not. The samples are
// read by Profile and Replay; for a pprof file already here. Errors of files that are no capture
// wrap ErrNotCapture.
func Open(ctx context.Context, path string, opts Options) (*Capture, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in := &file{path: path}
	src, err := in.open(ctx, &opts)
	if err != nil {
		in.closers.Close()
		return nil, withHint(err)
	}
	return &Capture{file: in, source: src}, nil
}

// open opens the file or directory of a path.
func (f *file) open(ctx context.Context, opts *Options) (source, error) {
	if f.path == StandardInput && opts.Stdin != nil {
		if err := f.readInput(ctx, opts.Stdin); err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return openSource(ctx, f, opts)
	}
	if container.IsDir(f.path) {
		return asSource(openPerfDir(ctx, f, opts))
	}
	r, err := regular.Open(f.path)
	if errors.Is(err, regular.ErrNotRegular) {
		return nil, noCapture(f.path, err)
	}
	if err != nil {
		return nil, err
	}
	f.closers = closers{r}
	if err := f.use(r); err != nil {
		return nil, err
	}
	return openSource(ctx, f, opts)
}

// use makes an opened file the one to be read.
func (f *file) use(r *os.File) error {
	info, err := r.Stat()
	if err != nil {
		return err
	}
	f.r, f.mtime, f.size = r, info.ModTime(), info.Size()
	f.born = regular.Born(r)
	return nil
}

// readInput makes standard input readable more than once: where it is a file, from its
// beginning, by itself, else as a copy.
func (f *file) readInput(ctx context.Context, r io.Reader) error {
	if in, ok := r.(*os.File); ok {
		info, err := in.Stat()
		if err == nil && info.Mode().IsRegular() {
			return f.use(in)
		}
	}
	s := spool.New(0)
	f.closers = append(f.closers, s)
	damage, err := spool.Copy(ctx, s, r)
	if err := errors.Join(damage, err); err != nil {
		return err
	}
	f.r, f.size = s, s.Size()
	return nil
}

// noCapture returns the reason why a path without a regular file is no capture.
func noCapture(path string, err error) error {
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return fmt.Errorf("%s: %w: it is a directory, and none of perf's", path, ErrNotCapture)
	}
	return fmt.Errorf("%s: %w: %w, and a capture is read twice", path, errPiped,
		errors.Unwrap(err))
}

// errPiped is the error of a path that leads to a pipe or device.
var errPiped = fmt.Errorf("%w", ErrNotCapture)

// openSource recognizes the kind of a file and opens it as that.
func openSource(ctx context.Context, in *file, opts *Options) (source, error) {
	kind, err := filetype.Of(in.path, in.r, in.size)
	if err != nil {
		return nil, err
	}
	bare := opts.Stacks.bare()
	switch {
	case kind == filetype.PerfData:
		return asSource(openPerf(ctx, in, opts))
	case kind == filetype.Bundle:
		return openBundle(in, opts)
	case kind == filetype.Stacks:
		form := stackmap.Sniff(&stackmap.Input{Name: in.path, R: in.r, Size: in.size})
		return openStacks(ctx, in, form, opts)
	case kind.Packed():
		return openPacked(ctx, in, kind, opts)
	case kind == filetype.Pprof && !bare:
		return openPprof(in, opts)
	case bare:
		return openStacks(ctx, in, stackmap.NoForm, opts)
	}
	if isPointer(in.r) {
		return nil, fmt.Errorf("%s: %w", in.path, errPointer)
	}
	return nil, fmt.Errorf("%s: %w: %s", in.path, ErrNotCapture, looksLike(kind, in.size))
}

// errPointer is the error of a file that Git LFS has elsewhere.
var errPointer = fmt.Errorf("%w: it is a pointer of Git LFS, not the file itself", ErrNotCapture)

// isPointer reports whether a file is a pointer of Git LFS.
func isPointer(r io.ReaderAt) bool {
	const first = "version https://git-lfs.github.com/spec/"
	var head [len(first)]byte
	n, _ := r.ReadAt(head[:], 0)
	return string(head[:n]) == first
}

// asSource returns a nil interface for a nil pointer.
func asSource(s *perfSource, err error) (source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// looksLike describes the file of an ErrNotCapture.
func looksLike(kind filetype.Type, size int64) string {
	switch {
	case size == 0:
		return "it is empty"
	case kind == filetype.ELF:
		return "it is an ELF file (index reads those)"
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
