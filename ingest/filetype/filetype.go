// Package filetype identifies a file by its first bytes, never by its name. Each format's
// package recognises its own files; the order in which they are asked is here.
package filetype

import (
	"errors"
	"io"

	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/container"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/pprof"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/kallsyms"
	"symbolize/ingest/object/perfmap"
)

// Type is the type of a file.
type Type uint8

// The types. Stacks and packed files are found by Of only, as they take more of a file than
// its first HeadBytes.
const (
	Unknown  Type = iota
	PerfData      // of any version, byte order and mode; also packed, and a directory
	Bundle        // of `symbolize capture`
	Stacks        // any form of stackmap.Form, also packed
	Pprof         // not packed
	ELF           // not packed
	Kallsyms      // text in the form of /proc/kallsyms
	PerfMap       // text that may be a perf-PID.map
	JITDump       // jit-PID.dump
	Gzip
	XZ
	Zstd
)

// HeadBytes is the number of first bytes that Head can use.
const HeadBytes = 512

// Head returns the type of a file by its first HeadBytes bytes, or fewer of a shorter file.
func Head(head []byte) Type {
	switch files.PackingOf(head) {
	case files.Gzip:
		return Gzip
	case files.XZ:
		return XZ
	case files.Zstd:
		return Zstd
	}
	switch {
	case elf.IsELF(head):
		return ELF
	case perfdata.IsPerfData(head):
		return PerfData
	case bundle.IsBundle(head):
		return Bundle
	case jitdump.Detect(head):
		return JITDump
	case kallsyms.IsList(head):
		return Kallsyms
	case pprof.Detect(head):
		return Pprof
	case perfmap.Detect(head):
		return PerfMap
	}
	return Unknown
}

// Packed reports whether a file has to be unpacked.
func (t Type) Packed() bool { return t == Gzip || t == XZ || t == Zstd }

// Of returns the type of a file of size bytes. It reads at most 256 KiB. Name is for messages.
func Of(name string, r io.ReaderAt, size int64) (Type, error) {
	head := make([]byte, HeadBytes)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Unknown, err
	}
	t := Head(head[:n])
	switch {
	case t == ELF || t == PerfData || t == Bundle:
	case t == Zstd && bundle.Detect(r, size):
		t = Bundle
	case t.Packed() && container.IsPacked(r, size):
		t = PerfData
	case stackmap.Sniff(&stackmap.Input{Name: name, R: r, Size: size}) != stackmap.NoForm:
		t = Stacks
	}
	return t, nil
}

// OfPath returns the type of the file of a path, Unknown if it is neither a regular file nor a
// directory of perf's, or cannot be read: the error is that of whoever reads it.
func OfPath(path string) Type {
	if container.IsDir(path) {
		return PerfData
	}
	f, err := files.Open(path)
	if err != nil {
		return Unknown
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return Unknown
	}
	t, err := Of(path, f, fi.Size())
	if err != nil {
		return Unknown
	}
	return t
}
