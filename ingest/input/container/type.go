package container

import (
	"errors"
	"io"

	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input/otlp"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/symlist"
)

// Type is the type of a file.
type Type uint8

// The types. TypeStacks and packed files are found by TypeOf only, as they need more of a file than
// its first HeadBytes.
const (
	TypeUnknown  Type = iota
	TypePerfData      // of any version, byte order and mode; also packed, and a directory
	TypeBundle        // of `symbolize capture`
	TypeStacks        // any form of stackmap.Form, also packed
	TypePprof         // not packed
	TypeOTLP          // profiles of OpenTelemetry, not packed
	TypeELF           // not packed
	TypeKallsyms      // text in the form of /proc/kallsyms
	TypePerfMap       // text that may be a perf-PID.map
	TypeJITDump       // jit-PID.dump
	TypeGzip
	TypeXZ
	TypeZstd
)

// HeadBytes is the number of first bytes that TypeOfHead can use.
const HeadBytes = 512

// TypeOfHead returns the type of a file by its first HeadBytes bytes, or fewer of a shorter file.
func TypeOfHead(head []byte) Type {
	switch files.PackingOf(head) {
	case files.Gzip:
		return TypeGzip
	case files.XZ:
		return TypeXZ
	case files.Zstd:
		return TypeZstd
	}
	switch {
	case elf.IsELF(head):
		return TypeELF
	case perfdata.IsPerfData(head):
		return TypePerfData
	case bundle.IsBundle(head):
		return TypeBundle
	case jitdump.Detect(head):
		return TypeJITDump
	case symlist.IsKallsyms(head):
		return TypeKallsyms
	case otlp.Detect(head):
		return TypeOTLP
	case pprof.Detect(head):
		return TypePprof
	case symlist.IsPerfMap(head):
		return TypePerfMap
	}
	return TypeUnknown
}

// Packed reports whether a file has to be unpacked.
func (t Type) Packed() bool { return t == TypeGzip || t == TypeXZ || t == TypeZstd }

// TypeOf returns the type of a file of size bytes. It reads at most 256 KiB. Name is for messages.
func TypeOf(name string, r io.ReaderAt, size int64) (Type, error) {
	head := make([]byte, HeadBytes)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return TypeUnknown, err
	}
	t := TypeOfHead(head[:n])
	switch {
	case t == TypeELF || t == TypePerfData || t == TypeBundle || t == TypeOTLP:
	case t == TypeZstd && bundle.Detect(r, size):
		t = TypeBundle
	case t.Packed() && IsPacked(r, size):
		t = TypePerfData
	case stackmap.Sniff(&stackmap.Input{Name: name, R: r, Size: size}) != stackmap.NoForm:
		t = TypeStacks
	}
	return t, nil
}

// TypeOfPath returns the type of the file of a path, TypeUnknown if it is neither a regular file
// nor a directory of perf's, or cannot be read: its reader reports the error.
func TypeOfPath(path string) Type {
	if IsDir(path) {
		return TypePerfData
	}
	f, err := files.Open(path)
	if err != nil {
		return TypeUnknown
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return TypeUnknown
	}
	t, err := TypeOf(path, f, fi.Size())
	if err != nil {
		return TypeUnknown
	}
	return t
}
