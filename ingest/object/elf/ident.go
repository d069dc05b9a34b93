package elf

import (
	"bytes"
	"debug/elf"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/files"
)

// readID finds the GNU build ID. Segments come first, as for the kernel when it records one;
// sections serve programs of Go's linker, which leaves the note out of PT_NOTE, modules, and debug
// files, which have program headers that point nowhere.
func (f *File) readID(head []byte) error {
	if f.Type == elf.ET_CORE {
		return nil // notes of a core dump describe its process
	}
	if f.IsDebugOnly() {
		if err := f.idFromSections(head); err != nil || !f.ID.IsZero() {
			return err
		}
		return f.idFromSegments(head)
	}
	if err := f.idFromSegments(head); err != nil || !f.ID.IsZero() {
		return err
	}
	return f.idFromSections(head)
}

func (f *File) idFromSegments(head []byte) error {
	for _, n := range f.notes {
		if err := f.idFromNotes(head, n); err != nil || !f.ID.IsZero() {
			return err
		}
	}
	return nil
}

func (f *File) idFromSections(head []byte) error {
	seen := 0
	for i := range f.Sections {
		s := &f.Sections[i]
		// annobin's notes can be megabytes, and hold no build ID.
		if s.Type != elf.SHT_NOTE || strings.HasPrefix(s.Name, ".gnu.build.attributes") {
			continue
		}
		if seen++; seen > maxNoteTables {
			break
		}
		n := extent{off: uint64(s.Offset), size: s.Size, align: s.AddrAlign}
		if err := f.idFromNotes(head, n); err != nil || !f.ID.IsZero() {
			return err
		}
	}
	return nil
}

// idFromNotes searches one table of notes. A table outside the file is skipped: that is usual in
// debug files.
func (f *File) idFromNotes(head []byte, n extent) error {
	if n.off > uint64(f.size) {
		return nil
	}
	size := min(n.size, uint64(f.size)-n.off, maxNotes)
	b, err := f.bytes(head, n.off, size)
	if err != nil {
		return err
	}
	f.ID, _ = buildid.FromNotes(b, f.BigEndian, int(min(n.align, 8)))
	return nil
}

// GoBuildID returns the build ID that Go's linker writes, "" if the file has none.
func (f *File) GoBuildID() string {
	tables := f.notes
	if s := f.Section(".note.go.buildid"); s != nil {
		tables = []extent{{off: uint64(s.Offset), size: s.Size}}
	}
	for _, n := range tables {
		if n.off > uint64(f.size) {
			continue
		}
		b, err := f.bytes(nil, n.off, min(n.size, uint64(f.size)-n.off, maxNotes))
		if id := buildid.GoNote(b, f.BigEndian); err == nil && id != "" {
			return id
		}
	}
	return ""
}

// HasCode reports whether the file holds code: it is a runtime file with a valid layout. A file
// without section headers has code where a segment is executable.
func (f *File) HasCode() bool {
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.IsCode() && s.Type != elf.SHT_NOBITS && s.Size > 0 {
			return true
		}
	}
	if len(f.Sections) > 1 {
		return false
	}
	for _, s := range f.Segments {
		if elf.ProgFlag(s.Flags)&elf.PF_X != 0 && s.FileSize > 0 {
			return true
		}
	}
	return false
}

// IsDebugOnly reports whether the file is a separate debug file: the sections of code, or in a
// library without code those of read-only data, are there without contents (SHT_NOBITS). The file
// offsets in its program headers are not valid.
func (f *File) IsDebugOnly() bool {
	if f.HasCode() {
		return false
	}
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_NOBITS || s.Size == 0 || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		// Only .bss and its like are NOBITS in a runtime file, and those are writable; so is the
		// PLT of old 32-bit PowerPC.
		if s.IsCode() || s.Flags&elf.SHF_WRITE == 0 {
			return true
		}
	}
	return false
}

// IsModule reports whether the file is a Linux kernel module, or the debug file of one.
func (f *File) IsModule() bool {
	return f.Type == elf.ET_REL &&
		(f.Section(".gnu.linkonce.this_module") != nil || f.Section(".modinfo") != nil)
}

// IsKernelImage reports whether the file is a Linux kernel (vmlinux), or the debug file of one:
// linked, with the init code and the tables that include/asm-generic/vmlinux.lds.h puts into every
// kernel and nothing else has.
func (f *File) IsKernelImage() bool {
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN || f.Section(".interp") != nil {
		return false
	}
	tables := 0
	for _, name := range []string{
		"__ksymtab", "__ksymtab_gpl", "__ksymtab_strings", "__param", "__ex_table",
		".data..percpu", ".data..ro_after_init", ".altinstructions",
	} {
		if f.Section(name) != nil {
			tables++
		}
	}
	return tables >= 2 && f.Section(".init.text") != nil ||
		tables >= 1 && f.Section("__ksymtab_strings") != nil
}

// RefSymbol is a reference symbol of a kernel: captures record addresses relative to it.
type RefSymbol struct {
	Name string
	Addr addr.Addr // st_value
}

// RefSymbols returns the addresses of `_text`, `_stext` and `_etext`, in this order, if they
// the kernel's symbol table has.
func (f *File) RefSymbols() ([]RefSymbol, error) {
	names := []string{"_text", "_stext", "_etext"}
	found := make([]bool, len(names))
	refs := make([]RefSymbol, len(names))
	err := f.rawSymbols(Symtab, func(_ int, s *rawSymbol) bool {
		if s.shndx == uint32(elf.SHN_UNDEF) {
			return true
		}
		name := f.table.name(s.name)
		for i := range names {
			if name == names[i] && !found[i] {
				found[i], refs[i] = true, RefSymbol{names[i], addr.Addr(s.value)}
			}
		}
		return true
	})
	kept := refs[:0]
	for i, r := range refs {
		if found[i] {
			kept = append(kept, r)
		}
	}
	return kept, err
}

// TextSymbol returns the address of _text among the reference symbols of a kernel, from which its tables
// count; false without it.
func TextSymbol(refs []RefSymbol) (addr.Addr, bool) {
	i := slices.IndexFunc(refs, func(r RefSymbol) bool { return r.Name == "_text" })
	if i < 0 {
		return 0, false
	}
	return refs[i].Addr, true
}

// DebugLink returns the content of .gnu_debuglink: the base name of the debug file and the CRC-32
// of its content.
func (f *File) DebugLink() (name string, crc uint32, ok bool) {
	s := f.Section(".gnu_debuglink")
	if s == nil {
		return "", 0, false
	}
	b, err := f.Data(s, maxLink)
	if err != nil {
		return "", 0, false
	}
	name, _, ok = cut(b)
	at := (uint64(len(name)) + 1 + 3) &^ 3 // the CRC is aligned to 4
	if !ok || name == "" || at > uint64(len(b)) {
		return "", 0, false
	}
	r := decode.New(f.Name, b[at:], 0, f.BigEndian)
	crc = r.U32()
	return name, crc, r.Err() == nil
}

// AltLink returns the content of .gnu_debugaltlink: the path of the file that dwz moved shared
// DWARF to, and its build ID.
func (f *File) AltLink() (name string, id buildid.ID, ok bool) {
	s := f.Section(".gnu_debugaltlink")
	if s == nil {
		return "", buildid.ID{}, false
	}
	b, err := f.Data(s, maxLink)
	if err != nil {
		return "", buildid.ID{}, false
	}
	name, rest, ok := cut(b)
	id = buildid.New(rest)
	if !ok || name == "" || id.IsZero() {
		return "", buildid.ID{}, false
	}
	return name, id, true
}

// cut splits b at its first NUL.
func cut(b []byte) (name string, rest []byte, ok bool) {
	before, after, ok := bytes.Cut(b, []byte{0})
	return string(before), after, ok
}

// CRC32 returns the checksum that a .gnu_debuglink to this file holds: the CRC-32
// (IEEE) of the whole file, read in a stream.
func (f *File) CRC32() (uint32, error) { return crc32Of(f.r, f.size) }

// crc32Of is File.CRC32 for a file that is not open as ELF.
func crc32Of(r io.ReaderAt, size int64) (uint32, error) {
	h := crc32.NewIEEE()
	buf := blocks.Get().(*[]byte)
	defer blocks.Put(buf)
	n, err := io.CopyBuffer(h, io.NewSectionReader(r, 0, size), *buf)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return h.Sum32(), err
}

// ContentID returns the ID of a file that has no build ID: its content's SHA-1.
func (f *File) ContentID() (buildid.ID, error) {
	return buildid.FromContent(io.NewSectionReader(f.r, 0, f.size))
}

// maxDebugData bounds an unpacked .gnu_debugdata; a browser's has 60 MB.
const maxDebugData = 256 << 20

// DebugData unpacks .gnu_debugdata (xz), the ELF file of symbols that MiniDebugInfo puts into
// stripped files; it holds only symbols that .dynsym lacks. It is nil where there is none. The
// file is held in memory, at most 256 MiB, until release (never nil) is called; strings from it
// stay valid.
func (f *File) DebugData() (inner *File, release func(), err error) {
	release = func() {}
	s := f.Section(".gnu_debugdata")
	if s == nil || s.Type == elf.SHT_NOBITS {
		return nil, release, nil
	}
	if err := f.check(s, maxDebugData); err != nil {
		return nil, release, err
	}
	buf := buffers.Get().(*bytes.Buffer)
	free := func() {
		if buf.Cap() <= maxReused {
			buf.Reset()
			buffers.Put(buf)
		}
	}
	limit := files.UnpackBound(s.Size, maxDebugData)
	if err := files.UnpackTo(buf, files.XZ, f.reader(s), limit); err != nil {
		free()
		return nil, release, f.fail(uint64(s.Offset), ".gnu_debugdata does not unpack: %v", err)
	}
	inner, err = Open(f.Name+"(.gnu_debugdata)", bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	if err != nil {
		free()
		return nil, release, err
	}
	return inner, sync.OnceFunc(free), nil
}

// buffers hold unpacked debug data, for the next file.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxReused keeps a single large file from staying in memory.
const maxReused = 16 << 20
