package elf

import (
	"debug/elf"
	"fmt"
	"io"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/files"
)

// Section is one section header. Its contents are read by File.Data.
type Section struct {
	Name      string
	Type      elf.SectionType
	Flags     elf.SectionFlag
	Addr      addr.Addr
	Offset    addr.Offset
	Size      uint64 // in the file; in memory for SHT_NOBITS
	Link      uint32
	Info      uint32
	AddrAlign uint64
	EntSize   uint64
}

// IsCode reports whether the section is executable and part of the process, with
// contents in this file or not.
func (s *Section) IsCode() bool {
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	return s.Flags&code == code
}

// contains reports whether a virtual address is in the section.
func (s *Section) contains(a uint64) bool {
	return a >= uint64(s.Addr) && a-uint64(s.Addr) < s.Size
}

// readSections decodes the section headers and their names.
func (f *File) readSections(h header, head []byte) error {
	if h.shoff == 0 {
		return nil
	}
	want := uint64(shdr64)
	if f.Class == elf.ELFCLASS32 {
		want = shdr32
	}
	if h.shentsize < want {
		if h.shnum == 0 {
			return nil // stripped of its section headers, the offset was left
		}
		return f.fail(h.shoff, "section header size %d is under %d", h.shentsize, want)
	}
	b, err := f.bytes(head, h.shoff, h.shentsize)
	if err != nil {
		return fmt.Errorf("section headers: %w", err)
	}
	first, _ := f.section(b, h.shoff)
	if h.shnum == 0 { // over 65,279 sections
		h.shnum = first.Size
	}
	if h.shstrndx == uint64(elf.SHN_XINDEX) {
		h.shstrndx = uint64(first.Link)
	}
	if h.shnum > maxSections {
		return f.fail(h.shoff, "%d section headers, at most %d are read", h.shnum, maxSections)
	}
	if b, err = f.bytes(head, h.shoff, h.shnum*h.shentsize); err != nil {
		return fmt.Errorf("section headers: %w", err)
	}
	f.Sections = make([]Section, h.shnum)
	names := make([]uint32, h.shnum)
	for i := range h.shnum {
		f.Sections[i], names[i] = f.section(b[i*h.shentsize:], h.shoff+i*h.shentsize)
	}
	return f.nameSections(h.shstrndx, names)
}

// section decodes one section header and returns the offset of its name.
func (f *File) section(b []byte, off uint64) (s Section, name uint32) {
	r := decode.New(f.Name, b, int64(off), f.BigEndian)
	name = r.U32()
	s.Type = elf.SectionType(r.U32())
	s.Flags = elf.SectionFlag(f.word(r))
	s.Addr = addr.Addr(f.word(r))
	s.Offset = addr.Offset(f.word(r))
	s.Size = f.word(r)
	s.Link = r.U32()
	s.Info = r.U32()
	s.AddrAlign = f.word(r)
	s.EntSize = f.word(r)
	return s, name
}

// nameSections reads the section names. They share one string. A file without them keeps its
// nameless sections: types and flags are enough for most.
func (f *File) nameSections(index uint64, names []uint32) error {
	if index == 0 || index >= uint64(len(f.Sections)) {
		return nil
	}
	table, err := f.readString(&f.Sections[index], maxShstrtab)
	if err != nil {
		return fmt.Errorf("section names: %w", err)
	}
	for i, off := range names {
		f.Sections[i].Name = cString(table, uint64(off))
	}
	return nil
}

// maxName truncates names that lack a NUL in a damaged table; the longest of real C++ has some
// 20,000 bytes.
const maxName = 64 << 10

// cString returns the name at off of a string table: up to its NUL, the table's end, or maxName. It
// is "" for an offset outside the table.
func cString(table string, off uint64) string {
	if off >= uint64(len(table)) {
		return ""
	}
	s := table[off:min(off+maxName, uint64(len(table)))]
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return s
}

// Section returns the first section of that name, or nil.
func (f *File) Section(name string) *Section {
	for i := range f.Sections {
		if f.Sections[i].Name == name {
			return &f.Sections[i]
		}
	}
	return nil
}

// check returns an error unless the section's contents are in the file and are at most limit bytes.
func (f *File) check(s *Section, limit uint64) error {
	off := uint64(s.Offset)
	switch {
	case s.Type == elf.SHT_NOBITS:
		return f.fail(off, "section %s has no contents in this file", s.Name)
	case off > uint64(f.size) || s.Size > uint64(f.size)-off:
		return f.fail(off, "section %s of %d bytes is cut off, the file ends at %#x",
			s.Name, s.Size, f.size)
	case s.Size > limit:
		return f.fail(off, "section %s has %d bytes, at most %d are read", s.Name, s.Size, limit)
	}
	return nil
}

// Data returns the contents of a section, uncompressed, if they are no more than limit bytes (0:
// 1 GiB). The caller owns the slice.
func (f *File) Data(s *Section, limit int64) ([]byte, error) {
	most := uint64(maxSection)
	if limit > 0 {
		most = min(most, uint64(limit))
	}
	if err := f.check(s, most); err != nil {
		return nil, err
	}
	if s.Flags&elf.SHF_COMPRESSED != 0 {
		return f.inflate(s, most)
	}
	b := make([]byte, s.Size)
	return b, f.readAt(b, uint64(s.Offset))
}

// reader returns a reader over the stored bytes of a section.
func (f *File) reader(s *Section) io.Reader {
	return io.NewSectionReader(f.r, int64(s.Offset), int64(s.Size))
}

// readString reads a section into a string, without a second copy.
func (f *File) readString(s *Section, limit uint64) (string, error) {
	if err := f.check(s, limit); err != nil {
		return "", err
	}
	if s.Flags&elf.SHF_COMPRESSED != 0 {
		b, err := f.inflate(s, limit)
		return string(b), err
	}
	var out strings.Builder
	out.Grow(int(s.Size))
	buf := blocks.Get().(*[]byte)
	defer blocks.Put(buf)
	for off := uint64(0); off < s.Size; {
		b := (*buf)[:min(blockSize, s.Size-off)]
		if err := f.readAt(b, uint64(s.Offset)+off); err != nil {
			return "", err
		}
		out.Write(b)
		off += uint64(len(b))
	}
	return out.String(), nil
}

// inflate returns the contents of an SHF_COMPRESSED section, with the length in its Chdr.
func (f *File) inflate(s *Section, limit uint64) ([]byte, error) {
	head := make([]byte, min(s.Size, 24))
	if err := f.readAt(head, uint64(s.Offset)); err != nil {
		return nil, err
	}
	r := decode.New(f.Name, head, int64(s.Offset), f.BigEndian)
	kind := elf.CompressionType(r.U32())
	if f.Class == elf.ELFCLASS64 {
		r.U32() // ch_reserved
	}
	size := f.word(r)
	f.word(r) // ch_addralign
	if err := r.Err(); err != nil {
		return nil, err
	}
	if limit = files.UnpackBound(s.Size, limit); size > limit {
		return nil, f.fail(uint64(s.Offset), "section %s inflates to %d bytes, at most %d are read",
			s.Name, size, limit)
	}
	hdr := int64(s.Offset) + int64(len(head)-r.Left())
	in := io.NewSectionReader(f.r, hdr, int64(s.Offset)+int64(s.Size)-hdr)
	var how files.Packing
	switch kind {
	case elf.COMPRESS_ZLIB:
		how = files.Zlib
	case elf.COMPRESS_ZSTD:
		how = files.Zstd
	default:
		return nil, f.fail(uint64(s.Offset), "section %s: unknown compression %d", s.Name, kind)
	}
	b, err := files.UnpackAll(how, in, size)
	if err == nil && uint64(len(b)) != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, f.fail(uint64(s.Offset), "section %s does not inflate to %d bytes: %v",
			s.Name, size, err)
	}
	return b, nil
}
