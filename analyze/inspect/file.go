package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"symbolize/ingest/files"
	"symbolize/ingest/input"
	"symbolize/ingest/input/container"
	"symbolize/ingest/object/elf"
)

// Info describes a file: *Object, *Compiled or *Capture.
type Info interface {
	// WriteText writes tables for people.
	WriteText(w io.Writer) error
	// Damaged reports whether the file could be read in part only.
	Damaged() bool
}

// File describes the file of a path: an ELF file, plain or packed, a list of code that a process
// compiled at run time, else a capture, of which opts select the form of stack maps. The error of
// any other file is input.ErrNotCapture.
func File(ctx context.Context, path string, opts input.Options) (Info, error) {
	if path != input.StandardInput || opts.Stdin == nil {
		info, err := openFile(path)
		if err != nil && !errors.Is(err, files.ErrNotRegular) {
			return nil, err
		}
		if flag := opts.Stacks.Given(); info != nil && flag != "" {
			return nil, fmt.Errorf("%s: %s is for dumps of stack maps: it is not a capture", path, flag)
		}
		if info != nil {
			return info, nil
		}
	}
	opts.NoStacks = opts.Callers == nil
	c, err := input.Open(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	info, err := newCapture(ctx, path, c)
	if err = cmp.Or(err, c.CheckStackOptions()); err != nil {
		return nil, err
	}
	return info, nil
}

// openFile describes a file that is no capture. Without an error the description is nil if it may
// be one.
func openFile(path string) (Info, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o, err := readObject(path, f, fi.Size())
	if err != nil {
		return nil, err
	}
	if o != nil {
		return o, nil
	}
	c, err := readCompiled(path, f, fi)
	if c == nil || err != nil {
		return nil, err
	}
	return c, nil
}

// readObject reads an ELF file, or a packed one. It returns nil without an error if the file
// is none.
func readObject(path string, f *os.File, size int64) (*Object, error) {
	head := make([]byte, 16)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if container.TypeOfHead(head[:n]) == container.TypeELF {
		return describe(path, f, size, "")
	}
	if !elf.IsELF(files.UnpackHead(f, size)) {
		return nil, nil // a bundle, a gzipped pprof, or damaged: input.Open finds out
	}
	data, length, kind, err := files.Unpack(path, f, size)
	if err != nil {
		return nil, nil
	}
	return describe(path, data, length, kind)
}

func describe(path string, r io.ReaderAt, size int64, packed string) (*Object, error) {
	f, err := elf.Open(path, r, size)
	if err != nil {
		return nil, fmt.Errorf("not a readable ELF file: %w", err)
	}
	info := newObject(path, f, packed)
	info.DWARF = newDWARF(f, r, path)
	return info, nil
}
