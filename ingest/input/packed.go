package input

import (
	"context"
	"errors"
	"fmt"
	"io"

	"symbolize/ingest/filetype"
	"symbolize/ingest/format/container"
	"symbolize/ingest/format/pprof"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/magic"
	"symbolize/ingest/regular"
)

// openPacked opens a packed file that is no recording of perf and no bundle: a pprof file, which is
// usually one, or stacks.
func openPacked(ctx context.Context, in *file, kind filetype.Type, opts *Options) (source, error) {
	first := make([]byte, filetype.HeadBytes)
	n := unpackedHead(in.r, in.size, first)
	if kind == filetype.Gzip && pprof.Detect(first[:n]) && !opts.Stacks.bare() {
		return openPprof(in, opts)
	}
	packed := *in
	damage, err := in.unpack(ctx, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	inner, err := filetype.Of(in.path, in.r, in.size)
	switch {
	case err != nil:
		return nil, err
	case inner == filetype.Stacks && damage != nil:
		return damagedStacks(ctx, in, opts, damage)
	case damage != nil:
		return nil, fmt.Errorf("%w: it is compressed, and damaged: %w", ErrNotCapture, damage)
	case inner == filetype.Stacks || inner == filetype.Bundle || inner == filetype.Pprof ||
		opts.Stacks.bare() && !inner.Packed():
		return openSource(ctx, in, opts)
	case kind == filetype.Gzip: // a profile whose first fields are unusual
		packed.closers = nil
		if src, err := openPprof(&packed, opts); err == nil {
			return src, nil
		}
	}
	return nil, fmt.Errorf("%s: %w: it is packed, and what is in it begins neither like a pprof profile "+
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

// unpackedHead fills head with the first bytes of a packed file's content, and returns how many
// there are.
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
func packingOf(r io.ReaderAt) magic.Packing {
	head := make([]byte, magic.Bytes)
	n, _ := r.ReadAt(head, 0)
	return magic.Of(head[:n])
}

// unpack makes the content of a packed file the one to be read, as far as it goes.
func (f *file) unpack(ctx context.Context, most int64) (damage, err error) {
	content, damage, err := container.Unpack(ctx, f.path, f.r, f.size, most)
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, content)
	f.r, f.size = content, content.Size()
	return damage, nil
}

// openStackFile opens a file that belongs to a stack map, packed or not. The caller closes it, also
// after an error.
func openStackFile(ctx context.Context, path string) (*stackmap.Input, closers, error) {
	r, err := regular.Open(path)
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
