package elf

import (
	"debug/elf"
	"fmt"
	"io"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// Bounds on single reads and on retained memory. Larger files are damaged, hostile, or not
// executable.
const (
	maxHead        = 4 << 10   // first read of a file: header, program headers, usually the notes
	maxSegments    = 1 << 12   // program headers; real files have under 100
	maxSections    = 1 << 18   // section headers; gcc -ffunction-sections makes over 2^16
	maxShstrtab    = 64 << 20  // section names
	maxNotes       = 64 << 10  // of one note segment or section; a kernel's have under 1 KiB
	maxNoteTables  = 64        // note segments and sections read
	maxStringTable = 768 << 20 // names of symbols; Chromium's have 500 MB
	maxSymbolTable = 1 << 30   // symbols, 44 million
	maxSection     = 1 << 30   // any other section
	maxLink        = 4 << 10   // .gnu_debuglink and .gnu_debugaltlink
)

// Sizes of the structures of the two classes.
const (
	ehdr32, ehdr64 = 52, 64
	phdr32, phdr64 = 32, 56
	shdr32, shdr64 = 40, 64
	sym32, sym64   = 16, 24
)

// File is a decoded ELF file of any class, byte order and machine. Its exported fields are set by
// Open. Contents of sections are read on demand from Open's reader, which must stay open. A File
// is for one goroutine.
type File struct {
	Name      string // as passed to Open; errors begin with it
	Machine   elf.Machine
	Class     elf.Class
	BigEndian bool
	Type      elf.Type
	Flags     uint32     // e_flags
	Entry     addr.Addr  // e_entry
	ID        buildid.ID // GNU note from segments or sections; zero if none
	Segments  []Segment  // PT_LOADs as in the program headers, in file order
	// Sections are in file order; the first is the null section. In a file without section headers
	// they are those that its program headers and its dynamic table imply.
	Sections []Section

	r     io.ReaderAt
	size  int64
	notes []extent // PT_NOTEs
	phoff uint64   // of the program headers
	phnum uint64
	table stringTable
	// implied: there are no section headers. dynamic and frames are PT_DYNAMIC and PT_GNU_EH_FRAME.
	implied         bool
	dynamic, frames extent
}

// Segment is one PT_LOAD: FileSize bytes of the file from Offset appear in memory at Addr, followed
// by zeros up to MemSize.
type Segment struct {
	Offset   addr.Offset
	Addr     addr.Addr
	FileSize uint64
	MemSize  uint64
	Flags    uint32 // PF_X, PF_W, PF_R
	Align    uint64
}

// extent is a range of file bytes with its alignment and the number of its program header.
type extent struct{ off, size, align, header uint64 }

// IsELF reports whether a file that begins with head is ELF, by its magic.
func IsELF(head []byte) bool {
	return len(head) >= len(elf.ELFMAG) && string(head[:len(elf.ELFMAG)]) == elf.ELFMAG
}

// Open decodes the headers of an ELF file of size bytes and finds its build ID. Name is for
// messages. The error is a *decode.Error, or wraps r's. Contents outside the file are an error on
// access only, not here.
func Open(name string, r io.ReaderAt, size int64) (*File, error) {
	return openFile(name, r, size, false)
}

// OpenCore opens a file as Open does, and keeps the segments of a core file, which are copies of
// memory: of the kernel's code in what perf record --kcore writes.
func OpenCore(name string, r io.ReaderAt, size int64) (*File, error) {
	return openFile(name, r, size, true)
}

func openFile(name string, r io.ReaderAt, size int64, core bool) (*File, error) {
	f := &File{Name: name, r: r, size: size}
	buf := blocks.Get().(*[]byte)
	defer blocks.Put(buf)
	head := (*buf)[:max(0, min(size, maxHead))]
	if err := f.readAt(head, 0); err != nil {
		return nil, err
	}
	h, err := f.header(head)
	if err != nil {
		return nil, err
	}
	if err := f.readSections(h, head); err != nil {
		return nil, err
	}
	// A core dump has thousands of segments, which describe its process.
	if core || f.Type != elf.ET_CORE {
		if err := f.readSegments(h, head); err != nil {
			return nil, err
		}
		f.implySections()
	}
	if err := f.readID(head); err != nil {
		return nil, err
	}
	return f, nil
}

// Size returns the number of bytes of the file, as passed to Open.
func (f *File) Size() int64 { return f.size }

// fail returns an error at an offset of the file.
func (f *File) fail(off uint64, format string, args ...any) error {
	return &decode.Error{Name: f.Name, Offset: int64(off), Reason: fmt.Sprintf(format, args...)}
}

// readAt fills b with the bytes at off.
func (f *File) readAt(b []byte, off uint64) error {
	if off > uint64(f.size) || uint64(len(b)) > uint64(f.size)-off {
		return f.fail(off, "%d bytes wanted, the file ends at %#x", len(b), f.size)
	}
	n, err := f.r.ReadAt(b, int64(off))
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return f.fail(off, "the file ends early: %d bytes wanted, %d read", len(b), n)
	}
	return fmt.Errorf("%s: offset %#x: %w", f.Name, off, err)
}

// bytes returns the n bytes at off, from head where it contains them.
func (f *File) bytes(head []byte, off, n uint64) ([]byte, error) {
	if off <= uint64(len(head)) && n <= uint64(len(head))-off {
		return head[off : off+n], nil
	}
	if off > uint64(f.size) || n > uint64(f.size)-off {
		return nil, f.fail(off, "%d bytes wanted, the file ends at %#x", n, f.size)
	}
	b := make([]byte, n)
	return b, f.readAt(b, off)
}

// header is the part of the ELF header that Open needs.
type header struct {
	phoff, shoff     uint64
	phentsize, phnum uint64
	shentsize, shnum uint64
	shstrndx         uint64
}

// header decodes the ELF header, gABI chapter 4.
func (f *File) header(head []byte) (header, error) {
	var h header
	if !IsELF(head) {
		return h, f.fail(0, "not an ELF file: no magic")
	}
	if len(head) < ehdr32 {
		return h, f.fail(uint64(len(head)), "the file ends in the ELF header")
	}
	f.Class = elf.Class(head[elf.EI_CLASS])
	want := uint64(ehdr64)
	switch f.Class {
	case elf.ELFCLASS32:
		want = ehdr32
	case elf.ELFCLASS64:
	default:
		return h, f.fail(elf.EI_CLASS, "unknown class %d", head[elf.EI_CLASS])
	}
	switch elf.Data(head[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
	case elf.ELFDATA2MSB:
		f.BigEndian = true
	default:
		return h, f.fail(elf.EI_DATA, "unknown byte order %d", head[elf.EI_DATA])
	}
	if v := elf.Version(head[elf.EI_VERSION]); v != elf.EV_CURRENT {
		return h, f.fail(elf.EI_VERSION, "unknown ELF version %d", v)
	}
	r := decode.New(f.Name, head, 0, f.BigEndian)
	r.Skip(elf.EI_NIDENT)
	f.Type = elf.Type(r.U16())
	f.Machine = elf.Machine(r.U16())
	r.U32() // e_version
	f.Entry = addr.Addr(f.word(r))
	h.phoff = f.word(r)
	h.shoff = f.word(r)
	f.Flags = r.U32()
	if n := uint64(r.U16()); r.Err() == nil && n < want {
		return h, f.fail(uint64(r.Offset()-2), "ELF header size %d is under %d", n, want)
	}
	h.phentsize, h.phnum = uint64(r.U16()), uint64(r.U16())
	h.shentsize, h.shnum = uint64(r.U16()), uint64(r.U16())
	h.shstrndx = uint64(r.U16())
	return h, r.Err()
}

// word reads a number of the class's size.
func (f *File) word(r *decode.Reader) uint64 {
	if f.Class == elf.ELFCLASS32 {
		return uint64(r.U32())
	}
	return r.U64()
}

// wordSize is the number of bytes that word reads.
func (f *File) wordSize() uint64 {
	if f.Class == elf.ELFCLASS32 {
		return 4
	}
	return 8
}

// readSegments decodes the program headers. It follows the sections, because the first of them
// holds a count over 65,534.
func (f *File) readSegments(h header, head []byte) error {
	if h.phoff == 0 || h.phnum == 0 {
		return nil
	}
	const pnXnum = 0xffff // PN_XNUM
	if h.phnum == pnXnum && len(f.Sections) > 0 {
		h.phnum = uint64(f.Sections[0].Info)
	}
	want := uint64(phdr64)
	if f.Class == elf.ELFCLASS32 {
		want = phdr32
	}
	if h.phentsize < want {
		return f.fail(h.phoff, "program header size %d is under %d", h.phentsize, want)
	}
	if h.phnum > maxSegments {
		return f.fail(h.phoff, "%d program headers, at most %d are read", h.phnum, maxSegments)
	}
	f.phoff, f.phnum = h.phoff, h.phnum
	b, err := f.bytes(head, h.phoff, h.phnum*h.phentsize)
	if err != nil {
		return fmt.Errorf("program headers: %w", err)
	}
	for i := range h.phnum {
		r := decode.New(f.Name, b[i*h.phentsize:], int64(h.phoff+i*h.phentsize), f.BigEndian)
		f.addSegment(r, i)
	}
	return nil
}

// addSegment decodes one program header, with its number, and keeps PT_LOAD, PT_NOTE and those that
// implySections uses.
func (f *File) addSegment(r *decode.Reader, number uint64) {
	var s Segment
	kind := elf.ProgType(r.U32())
	if f.Class == elf.ELFCLASS64 {
		s.Flags = r.U32()
	}
	s.Offset = addr.Offset(f.word(r))
	s.Addr = addr.Addr(f.word(r))
	f.word(r) // p_paddr
	s.FileSize = f.word(r)
	s.MemSize = f.word(r)
	if f.Class == elf.ELFCLASS32 {
		s.Flags = r.U32()
	}
	s.Align = f.word(r)
	switch kind {
	case elf.PT_LOAD:
		f.Segments = append(f.Segments, s)
	case elf.PT_NOTE:
		if len(f.notes) < maxNoteTables {
			f.notes = append(f.notes, extent{uint64(s.Offset), s.FileSize, s.Align, number})
		}
	case elf.PT_DYNAMIC:
		f.dynamic = extent{off: uint64(s.Offset), size: s.FileSize}
	case elf.PT_GNU_EH_FRAME:
		f.frames = extent{off: uint64(s.Offset), size: s.FileSize}
	}
}

// blockSize is the read size for walks through tables.
const blockSize = 64 << 10

// blocks are the buffers for that.
var blocks = sync.Pool{New: func() any { b := make([]byte, blockSize); return &b }}
