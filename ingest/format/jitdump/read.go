package jitdump

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"

	"symbolize/buildid"
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// File is an opened jitdump file. It may be used by several goroutines.
type File struct {
	Name      string
	Machine   uint16 // ELF e_machine
	BigEndian bool
	PID       int32
	Start     uint64 // when the file was begun, by its clock
	// ArchTime is set if the times are of the machine's counter and not of CLOCK_MONOTONIC.
	ArchTime bool

	Loads  []Load      // functions, in the order of the file
	Placed []Placement // their places, in the order of the file
	Bad    uint64      // records that were left out for their content
	// FirstBad is the error of the first of those, a *decode.Error; nil if there are none.
	FirstBad error
	// BadLines is how many functions have lines that make no sense, as their readers found.
	BadLines      uint64
	FirstBadLines error
	// BadRules is how many functions have unwinding information that makes no sense, likewise.
	BadRules      uint64
	FirstBadRules error

	r      io.ReaderAt
	size   int64
	length uint64 // of the header
	first  uint64 // end of the first LOAD record, 0 if there is none
	shift  uint64 // of the addresses in DEBUG_INFO
}

// Load is a compiled function.
type Load struct {
	Name   string
	Code   addr.Offset // of its first byte in the file
	Size   uint64      // bytes
	Addr   addr.PC     // where it was first
	Index  uint64      // the runtime's number of it
	debug  int64       // offset of its DEBUG_INFO record, 0 if there is none
	length uint32      // of that record
	rules  int64       // offset of its UNWINDING_INFO record, 0 if there is none
	ruled  uint32      // length of that record
}

// Placement is a function that begins to be at an address: it was compiled, or moved there.
type Placement struct {
	Time uint64 // by the file's clock
	Addr addr.PC
	Load int // number of the function
}

// Open reads the index of a jitdump file of size bytes. If the file is damaged or cut off,
// the File has all records before that, beside the error; it is nil if there is no header.
func Open(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{Name: name, r: r, size: size}
	if err := f.header(); err != nil {
		return nil, err
	}
	x := indexer{f: f, byIndex: make(map[uint64]int)}
	err := x.records()
	f.shift = x.shift()
	return f, err
}

func (f *File) fail(offset int64, format string, args ...any) error {
	return &decode.Error{Name: f.Name, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// read reads exactly n bytes at an offset.
func (f *File) read(offset int64, n int) ([]byte, error) {
	if offset < 0 || int64(n) > f.size-offset {
		return nil, f.fail(offset, "%d bytes wanted, %d left", n, max(f.size-offset, 0))
	}
	b := make([]byte, n)
	if got, err := f.r.ReadAt(b, offset); got < n {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("%s: offset %#x: %w", f.Name, offset, err)
	}
	return b, nil
}

func (f *File) header() error {
	b, err := f.read(0, int(min(f.size, headerSize)))
	if err != nil {
		return err
	}
	if !Detect(b) {
		return f.fail(0, "no jitdump file")
	}
	f.BigEndian = b[0] == magic>>24
	r := decode.New(f.Name, b, 0, f.BigEndian)
	r.Skip(4)
	if v := r.U32(); r.Err() == nil && v != version {
		return f.fail(4, "version %d, want %d", v, version)
	}
	f.length = uint64(r.U32())
	machine := r.U32()
	r.Skip(4)
	f.PID, f.Machine = int32(r.U32()), uint16(machine)
	f.Start = r.U64()
	f.ArchTime = r.U64()&flagArchTimestamp != 0
	if r.Err() == nil && (f.length < headerSize || f.length > uint64(f.size)) {
		return f.fail(8, "header of %d bytes", f.length)
	}
	return r.Err()
}

// Identity identifies the file, however much was added to it since: the SHA-1 of its header and
// first function, which has process, time and place of its beginning. It is zero for a file
// without functions.
func (f *File) Identity() (buildid.ID, error) {
	if f.first == 0 {
		return buildid.ID{}, nil
	}
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(f.r, 0, int64(f.first))); err != nil {
		return buildid.ID{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	return buildid.Make(buildid.JIT, h.Sum(nil)), nil
}

// Code returns the bytes of a function.
func (f *File) Code(l *Load) ([]byte, error) { return f.read(int64(l.Code), int(l.Size)) }

// Frames returns the .eh_frame section of a function's unwinding information and where it is in the
// file; nil if it has none. Its relative addresses are those of a section at the next multiple of 8
// bytes after the code.
func (f *File) Frames(l *Load) (section []byte, offset int64, err error) {
	if l.rules == 0 {
		return nil, 0, nil
	}
	if l.ruled < unwindSize || l.ruled > maxRecord {
		return nil, 0, f.fail(l.rules, "UNWINDING_INFO record of %d bytes", l.ruled)
	}
	b, err := f.read(l.rules, int(l.ruled))
	if err != nil {
		return nil, 0, err
	}
	r := decode.New(f.Name, b, l.rules, f.BigEndian)
	r.Skip(recordSize)
	size, header := r.U64(), r.U64()
	r.Skip(8) // mapped
	if size > uint64(r.Left()) || header > size {
		return nil, 0, f.fail(l.rules, "UNWINDING_INFO record of %d bytes, with a header of %d, in %d", size,
			header, l.ruled)
	}
	return r.Bytes(size - header), l.rules + unwindSize, r.Err()
}

// indexer reads all records once.
type indexer struct {
	f       *File
	byIndex map[uint64]int // the last LOAD of each index
	debug   Load           // the DEBUG_INFO record that the next LOAD may have
	at      addr.PC        // of that record
	rules   int64          // the UNWINDING_INFO record of the next LOAD, 0 for none
	ruled   uint32         // its length

	// Facts of DEBUG_INFO addresses by which V8 is recognised.
	checked, within, beyond uint64
}

func (x *indexer) records() error {
	f := x.f
	for at := int64(f.length); at < f.size; {
		b, err := f.read(at, int(min(f.size-at, moveSize)))
		if err != nil {
			return err
		}
		r := decode.New(f.Name, b, at, f.BigEndian)
		kind, size := r.U32(), r.U32()
		time := r.U64()
		switch {
		case r.Err() != nil:
			return r.Err()
		case size < recordSize:
			return f.fail(at, "record of %d bytes", size)
		case int64(size) > f.size-at:
			return f.fail(at, "record of %d bytes, %d left", size, f.size-at)
		}
		if len(f.Placed) >= maxLoads {
			return f.fail(at, "more than %d functions", maxLoads)
		}
		var bad error
		switch kind {
		case typeLoad:
			bad = x.load(r, at, size, time)
		case typeMove:
			bad = x.move(r, at, size, time)
		case typeDebugInfo:
			if bad = r.Err(); size >= debugSize && len(b) >= debugSize {
				x.debug.debug, x.debug.length, x.at = at, size, addr.PC(r.U64())
			}
		case typeUnwindingInfo:
			x.rules, x.ruled = at, size
		case typeClose:
			return nil
		}
		if bad != nil {
			if f.Bad++; f.FirstBad == nil {
				f.FirstBad = bad
			}
		}
		at += int64(size)
	}
	return nil
}

// load enters a LOAD record. r is after its header.
func (x *indexer) load(r *decode.Reader, at int64, size uint32, time uint64) error {
	f := x.f
	debug, of := x.debug, x.at
	rules, ruled := x.rules, x.ruled
	x.debug, x.rules = Load{}, 0
	if size < loadSize || size > maxRecord {
		return f.fail(at, "LOAD record of %d bytes", size)
	}
	r.Skip(8 + 8) // pid, tid, vma
	l := Load{Addr: addr.PC(r.U64()), Size: r.U64(), Index: r.U64(), rules: rules, ruled: ruled}
	if r.Err() != nil {
		return r.Err()
	}
	name, err := f.read(at+loadSize, int(min(size-loadSize, maxName)))
	if err != nil {
		return err
	}
	end := bytes.IndexByte(name, 0)
	rest := uint64(size) - loadSize - uint64(end) - 1
	switch {
	case end < 0:
		return f.fail(at+loadSize, "name without an end")
	case l.Size > rest:
		return f.fail(at, "code of %d bytes, %d left in the LOAD record", l.Size, rest)
	case l.Size == 0 || uint64(l.Addr)+l.Size < uint64(l.Addr):
		return f.fail(at, "code of %d bytes at %#x", l.Size, uint64(l.Addr))
	}
	l.Name = string(name[:end])
	l.Code = addr.Offset(uint64(at) + loadSize + uint64(end) + 1)
	if debug.length > 0 && of == l.Addr {
		l.debug, l.length = debug.debug, debug.length
		x.check(&l)
	}
	if f.first == 0 {
		f.first = uint64(at) + uint64(size)
	}
	x.byIndex[l.Index] = len(f.Loads)
	f.Placed = append(f.Placed, Placement{time, l.Addr, len(f.Loads)})
	f.Loads = append(f.Loads, l)
	return nil
}

// move enters a MOVE record.
func (x *indexer) move(r *decode.Reader, at int64, size uint32, time uint64) error {
	r.Skip(8 + 8 + 8) // pid, tid, vma, old address
	to := r.U64()
	r.Skip(8) // the size is in the LOAD record
	index := r.U64()
	if r.Err() != nil || size < moveSize {
		return x.f.fail(at, "MOVE record of %d bytes", size)
	}
	n, ok := x.byIndex[index]
	if !ok || to+x.f.Loads[n].Size < to {
		return x.f.fail(at, "MOVE of function %d, which was not loaded", index)
	}
	x.f.Placed = append(x.f.Placed, Placement{time, addr.PC(to), n})
	return nil
}
