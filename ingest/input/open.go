package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input/container"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
)

// ErrNotCapture is the error of Open for files of other kinds, wrapped with a description of the
// file.
var ErrNotCapture = errors.New("not a capture")

// file is the opened file of a capture.
type file struct {
	path    string
	r       io.ReaderAt
	reads   *files.Reads // of r
	size    int64
	times   sideband.FileTimes
	closers closers // the file, and resources that were opened with it
}

// Open opens a capture and recognizes its type by its first bytes: perf.data in any container, a
// capture bundle, a stack map, a pprof profile, gzipped or not, or profiles
// of OpenTelemetry. Profile and Replay read the
// samples; Open itself reads the samples of a pprof file. Errors of files that are not captures
// wrap ErrNotCapture.
func Open(ctx context.Context, path string, opts Options) (*Capture, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in := &file{path: path, reads: &files.Reads{}}
	src, err := in.open(ctx, &opts)
	if err != nil {
		in.closers.Close()
		return nil, withHint(err)
	}
	return &Capture{file: in, source: src, stacks: opts.Stacks, callers: opts.Callers}, nil
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
		p, err := container.OpenDir(ctx, f.path, opts.MaxUnpacked, f.reads)
		if err != nil {
			return nil, err
		}
		f.size = p.Size
		if r, err := files.Open(filepath.Join(f.path, container.DataFile)); err == nil {
			f.times = timesOf(r)
			r.Close()
		}
		return f.perf(p, opts), nil
	}
	r, err := files.Open(f.path)
	if errors.Is(err, files.ErrNotRegular) {
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

// use sets the opened file to read.
func (f *file) use(r *os.File) error {
	info, err := r.Stat()
	if err != nil {
		return err
	}
	f.r, f.size, f.times = f.reads.Of(r), info.Size(), timesOf(r)
	return nil
}

// timesOf returns the times of an opened file.
func timesOf(r *os.File) (t sideband.FileTimes) {
	if info, err := r.Stat(); err == nil {
		t.Modified = info.ModTime().UnixNano()
	}
	if born := files.Born(r); !born.IsZero() {
		t.Born = born.UnixNano()
	}
	return t
}

// readInput makes standard input readable more than once: a file is read from its beginning, other
// input is copied.
func (f *file) readInput(ctx context.Context, r io.Reader) error {
	if in, ok := r.(*os.File); ok {
		info, err := in.Stat()
		if err == nil && info.Mode().IsRegular() {
			return f.use(in)
		}
	}
	s := files.NewSpool(0)
	f.closers = append(f.closers, s)
	damage, err := files.CopyToSpool(ctx, s, r)
	if err := errors.Join(damage, err); err != nil {
		return err
	}
	f.r, f.size = s, s.Size()
	return nil
}

// noCapture returns the reason why a path without a regular file is not a capture.
func noCapture(path string, err error) error {
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return fmt.Errorf("%s: %w: it is a directory, but not a perf.data directory", path,
			ErrNotCapture)
	}
	return fmt.Errorf("%s: %w: %w, and a capture is read twice", path, errPiped, errors.Unwrap(err))
}

// errPiped is the error of a path that leads to a pipe or device.
var errPiped = fmt.Errorf("%w", ErrNotCapture)

// openSource recognizes the kind of a file and opens it.
func openSource(ctx context.Context, in *file, opts *Options) (source, error) {
	kind, err := container.TypeOf(in.path, in.r, in.size)
	if err != nil {
		return nil, err
	}
	bare := opts.Stacks.bare()
	switch {
	case kind == container.TypePerfData:
		p, err := container.Open(ctx, in.path, in.r, in.size, opts.MaxUnpacked)
		if err != nil {
			return nil, err
		}
		return in.perf(p, opts), nil
	case kind == container.TypeBundle:
		return openBundle(in, opts)
	case kind == container.TypeStacks:
		form := stackmap.Sniff(&stackmap.Input{Name: in.path, R: in.r, Size: in.size})
		return openStacks(ctx, in, form, opts)
	case kind.Packed():
		return openPacked(ctx, in, kind, opts)
	case kind == container.TypePprof && !bare:
		return openPprof(in, opts)
	case kind == container.TypeOTLP && !bare:
		return &otlpSource{in, opts}, opts.refuseFields(in.path)
	case bare:
		return openStacks(ctx, in, stackmap.NoForm, opts)
	}
	if isPointer(in.r) {
		return nil, fmt.Errorf("%s: %w", in.path, errPointer)
	}
	return nil, fmt.Errorf("%s: %w: %s", in.path, ErrNotCapture, looksLike(kind, in.size))
}

// errPointer is the error of a file with its content in Git LFS.
var errPointer = fmt.Errorf("%w: it is a pointer of Git LFS, not the file itself", ErrNotCapture)

// isPointer reports whether a file is a pointer of Git LFS.
func isPointer(r io.ReaderAt) bool {
	const first = "version https://git-lfs.github.com/spec/"
	var head [len(first)]byte
	n, _ := r.ReadAt(head[:], 0)
	return string(head[:n]) == first
}

// looksLike describes the file of an ErrNotCapture.
func looksLike(kind container.Type, size int64) string {
	switch {
	case size == 0:
		return "it is empty"
	case kind == container.TypeELF:
		return "it is an ELF file (index reads those)"
	}
	return "it begins neither like a perf.data file nor like a pprof or OpenTelemetry profile"
}

// closers closes several resources.
type closers []io.Closer

// Close closes all in reverse order.
func (list closers) Close() error {
	var errs []error
	for _, c := range slices.Backward(list) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// openPacked opens a packed file that is neither a recording of perf nor a bundle: a pprof file,
// which is usually packed, or stacks.
func openPacked(ctx context.Context, in *file, kind container.Type, opts *Options) (source, error) {
	first := make([]byte, container.HeadBytes)
	n := unpackedHead(in.r, in.size, first)
	if kind == container.TypeGzip && pprof.Detect(first[:n]) && !opts.Stacks.bare() {
		return openPprof(in, opts)
	}
	packed := *in
	damage, err := in.unpack(ctx, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	inner, err := container.TypeOf(in.path, in.r, in.size)
	switch {
	case err != nil:
		return nil, err
	case inner == container.TypeStacks && damage != nil:
		return damagedStacks(ctx, in, opts, damage)
	case damage != nil:
		return nil, fmt.Errorf("%w: it is compressed, and damaged: %w", ErrNotCapture, damage)
	case inner == container.TypeStacks || inner == container.TypeBundle || inner == container.TypePprof ||
		inner == container.TypeOTLP || opts.Stacks.bare() && !inner.Packed():
		return openSource(ctx, in, opts)
	case kind == container.TypeGzip: // a profile with unusual first fields
		packed.closers = nil
		if src, err := openPprof(&packed, opts); err == nil {
			return src, nil
		}
	}
	return nil, fmt.Errorf("%s: %w: it is packed, and its content begins neither like a pprof profile "+
		"nor like stacks of BPF programs", in.path, ErrNotCapture)
}

// damagedStacks opens the stacks before the damage of a packed file.
func damagedStacks(ctx context.Context, in *file, opts *Options, damage error) (source, error) {
	src, err := openSource(ctx, in, opts)
	if s, ok := src.(*stackSource); ok {
		s.damage = errors.Join(damage, s.damage)
		return s, nil
	}
	return nil, errors.Join(damage, err)
}

// unpackedHead fills head with the first bytes of a packed file's content, and returns their
// number.
func unpackedHead(r io.ReaderAt, size int64, head []byte) int {
	in, err := container.Unpacking(packingOf(r), io.NewSectionReader(r, 0, size))
	if err != nil {
		return 0
	}
	defer in.Close()
	n, _ := io.ReadFull(in, head)
	return n
}

// packingOf returns how a file is packed; "" if it is not.
func packingOf(r io.ReaderAt) files.Packing {
	head := make([]byte, files.MagicBytes)
	n, _ := r.ReadAt(head, 0)
	return files.PackingOf(head[:n])
}

// unpack replaces a packed file by its content up to damage.
func (f *file) unpack(ctx context.Context, limit int64) (damage, err error) {
	content, damage, err := container.Unpack(ctx, f.path, f.r, f.size, limit)
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, content)
	f.r, f.size = content, content.Size()
	return damage, nil
}

// openStackFile opens a file that belongs to a stack map, packed or not. The caller must close it,
// also after an error.
func openStackFile(ctx context.Context, path string) (*stackmap.Input, closers, error) {
	r, err := files.Open(path)
	if err != nil {
		return nil, nil, err
	}
	f := &file{path: path, closers: closers{r}}
	if err := f.use(r); err != nil {
		return nil, f.closers, err
	}
	if packingOf(r) != "" {
		if damage, err := f.unpack(ctx, 0); damage != nil || err != nil {
			return nil, f.closers, errors.Join(damage, err)
		}
	}
	return &stackmap.Input{Name: path, R: f.r, Size: f.size}, f.closers, nil
}

// maxPprofFile bounds a pprof file, which is read whole, in bytes.
const maxPprofFile = 1 << 30

// pprofSource is a pprof file; its recorder folded the samples.
type pprofSource struct{ profile *ingest.Profile }

// openPprof reads a pprof file, gzipped or not.
func openPprof(f *file, opts *Options) (*pprofSource, error) {
	if err := opts.refuseRecords(f.path); err != nil {
		return nil, err
	}
	if f.size > maxPprofFile {
		return nil, fmt.Errorf("%s: pprof file of %d MiB, over the limit of %d MiB",
			f.path, f.size>>20, maxPprofFile>>20)
	}
	data, err := io.ReadAll(io.NewSectionReader(f.r, 0, f.size))
	if err != nil {
		return nil, err
	}
	p, err := pprof.Read(f.path, data, pprof.ReadOptions{
		Event: opts.Event, Comms: opts.Comms, PIDs: opts.PIDs, TIDs: opts.TIDs,
		CPUs: opts.CPUs, Keep: opts.Keep, Identify: opts.identifyFile, MaxUnpacked: opts.MaxUnpacked,
	})
	if err != nil {
		return nil, err
	}
	return &pprofSource{p}, nil
}

func (s *pprofSource) kind() string                                  { return "pprof" }
func (s *pprofSource) fold(context.Context) (*ingest.Profile, error) { return s.profile, nil }

// keyHint is the hint for stackmap.ErrKey.
const keyHint = "name the program's object file with --btf FILE, or say where the fields lie: " +
	"--key user_stack_id:0,kernel_stack_id:4,pid:8,comm:16, in bytes"

// hints are the hints for captures that are recognized but cannot be read, by sentinel. An error
// that wraps several sentinels has the hint of the first.
var hints = [...]struct {
	sentinel error
	hint     string
}{
	{perfdata.ErrCutHeader, "copy or record it again: nothing of it can be read"},
	{files.ErrTooLarge, "if it is one, `--max-unpacked SIZE` of resolve and of reports allows more"},
	{files.ErrFull, "set TMPDIR to a directory with more space"},
	{bundle.ErrNewer, "read it with the newer symbolize that wrote it"},
	{errPiped, "captures are read more than once: give it as standard input, `… - < PATH`"},
	{errPointer, "`git lfs pull` brings the file"},
	{ErrNotCapture, "a capture is what `perf record -g` or a pprof profiler writes; " +
		"`symbolize info FILE` identifies a file"},
	{stackmap.ErrKey, keyHint},
	{stackmap.ErrTypes, "say where the fields lie: " +
		"--key user_stack_id:0,kernel_stack_id:4,pid:8,comm:16"},
}

// withHint adds the hint for an error, if there is one.
func withHint(err error) error {
	for i := range hints {
		if errors.Is(err, hints[i].sentinel) {
			return texts.WithHint(err, "%s", hints[i].hint)
		}
	}
	return err
}
