package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"symbolize/ingest/input"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/regular"
)

const infoLong = `info says what a file holds. Of a capture: what recorded it, events, counts of
records, time span, the objects in its stacks with their build IDs, and every function of
every BPF program: what was captured of it, or why its image is missing. Of an object file,
plain or packed: kind, machine, build ID, segments, and the sources of symbols with their
counts.

Exit status: 0 done; 1 failed; 2 usage; 3 the file is damaged, what could be read is printed;
130 interrupted.`

func newInfoCommand(a *app) *cobra.Command {
	var format string
	var stacks stackFlags
	cmd := &cobra.Command{
		Use:     "info FILE",
		Short:   "Say what a capture or an object file holds",
		Long:    infoLong,
		GroupID: groupLook,
		Example: "  symbolize info perf.data\n  symbolize info --format json /usr/bin/perf",
		Args:    cobra.ExactArgs(1),
		RunE: a.runE(func(ctx context.Context, args []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			if err := stacks.parse(nil); err != nil {
				return err
			}
			info, err := a.readInfo(ctx, args[0], &stacks.parsed)
			if err != nil {
				return err
			}
			return a.writeOutput("", false, func(w io.Writer) error {
				if format == formatJSON {
					return writeJSON(w, info)
				}
				return info.writeText(w)
			})
		}),
	}
	addFormatFlag(cmd, &format, formatText, formatJSON)
	stacks.addFlags(cmd.Flags())
	return cmd
}

// infoWriter is what info has found out; as JSON it is an interface.
type infoWriter interface{ writeText(io.Writer) error }

// readInfo finds out what a file is: an object by its magic, else a capture.
func (a *app) readInfo(ctx context.Context, path string, stacks *input.StackOptions) (infoWriter,
	error) {
	info, size, err := a.objectInfo(path)
	if info != nil || err != nil && !errors.Is(err, regular.ErrNotRegular) {
		return info, err
	}
	c, err := input.Open(ctx, path, input.Options{Stacks: *stacks})
	if errors.Is(err, input.ErrNotCapture) {
		return nil, withHint(err, "info knows perf.data files, pprof profiles, stack maps and ELF files")
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	of, err := readCaptureInfo(ctx, path, size, c)
	if err != nil {
		return nil, err
	}
	a.partial = of.partial
	return of, nil
}

// objectInfo describes an ELF file, plain or packed. Info is nil without an error if the
// file is none; size is that of the file.
func (a *app) objectInfo(path string) (info infoWriter, size int64, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	info, err = a.readObject(path, f, fi.Size())
	return info, fi.Size(), err
}

// readObject reads an ELF file, or a packed one. It returns nil without an error
// if the file is none.
func (a *app) readObject(path string, f *os.File, size int64) (infoWriter, error) {
	head := make([]byte, 16)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if elf.IsELF(head[:n]) {
		return a.describeObject(path, f, size, "")
	}
	if !elf.IsELF(elf.PackedHead(f, size)) {
		return nil, nil // a bundle, a gzipped pprof, or damaged: the next reader says so
	}
	data, length, kind, err := elf.Unpack(path, f, size)
	if err != nil {
		return nil, nil
	}
	return a.describeObject(path, data, length, kind)
}

func (a *app) describeObject(path string, r io.ReaderAt, size int64, packed string) (
	infoWriter, error) {
	f, err := elf.Open(path, r, size)
	if err != nil {
		return nil, fmt.Errorf("not a readable ELF file: %w", err)
	}
	info := newObjectInfo(path, f, packed)
	a.partial = len(info.Warnings) > 0
	return info, nil
}
