package debuginfod

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"symbolize/buildid"
)

// Symbols is the kind of the files that GetSymbols makes.
const Symbols Kind = "symbols"

// maxSection bounds a section, bytes.
const maxSection = 1 << 30

// errNoFile: no file can be made of the sections.
var errNoFile = errors.New("sections of another form")

// GetSymbols is Get for only the symbol table of debug information: a file in the cache that has
// it, its strings and the build ID, made of the sections of the first server that offers these.
// They are parts of the file that the server has under the ID; that it is this one's the note among
// them proves. Where no server offers them, or they are of no form that a file can be made of (64
// bits, little-endian), the error wraps ErrNotFound.
func (c *Client) GetSymbols(ctx context.Context, id buildid.ID) (path string, fetched bool, err error) {
	return c.get(ctx, id, Symbols, func(ctx context.Context, server, path string) error {
		var parts [3][]byte
		for i, name := range []string{".note.gnu.build-id", ".symtab", ".strtab"} {
			url := fmt.Sprintf("%s/buildid/%s/section/%s", server, id.Hex(), name)
			err := c.download(ctx, url, func(body io.Reader) (again bool, err error) {
				parts[i], err = c.section(body)
				return err != nil && !errors.Is(err, ErrTooLarge), err
			})
			if err != nil {
				return err
			}
		}
		file, err := symbolFile(parts[0], parts[1], parts[2])
		if err != nil {
			return fmt.Errorf("%s/buildid/%s: %w: %w", server, id.Hex(), err, ErrNotFound)
		}
		_, err = c.save(path, id, bytes.NewReader(file))
		return err
	})
}

// section reads a section.
func (c *Client) section(body io.Reader) ([]byte, error) {
	limit, _ := c.limit()
	limit = min(limit, maxSection)
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("more than %d bytes: %w", limit, ErrTooLarge)
	}
	if err != nil {
		err = fmt.Errorf("after %d bytes: %w", len(b), err)
	}
	return b, err
}

// extent is the part of a section that its symbols cover.
type extent struct {
	low, high uint64 // of its symbols; low > high without one
	code      bool   // functions are in it
}

// symbolFile returns an ELF file with a note, a symbol table and its strings. Its other sections
// have no bytes, and are as large as their symbols show: a symbol without a size ends with the last
// one that has one, or earlier than in the whole file, never after it.
func symbolFile(note, symtab, strtab []byte) ([]byte, error) {
	const size = elf.Sym64Size
	if len(note) < 16 || note[0] != 4 || len(symtab)%size != 0 || len(symtab) < 2*size ||
		!bytes.Equal(symtab[:size], make([]byte, size)) {
		return nil, errNoFile
	}
	var sections []extent
	for at := size; at < len(symtab); at += size {
		var s elf.Sym64
		if _, err := binary.Decode(symtab[at:], binary.LittleEndian, &s); err != nil {
			return nil, err
		}
		n := int(s.Shndx)
		switch {
		case uint64(s.Name) >= uint64(len(strtab)) || s.Shndx == uint16(elf.SHN_XINDEX):
			return nil, errNoFile
		case s.Shndx == uint16(elf.SHN_UNDEF) || s.Shndx >= uint16(elf.SHN_LORESERVE):
			continue
		}
		for len(sections) <= n {
			sections = append(sections, extent{low: ^uint64(0)})
		}
		sections[n].add(&s)
	}
	if len(sections)+symbolSections >= int(elf.SHN_LORESERVE) { // another form of the header
		return nil, errNoFile
	}
	return writeSymbolFile(sections, note, symtab, strtab)
}

// symbolSections is how many sections writeSymbolFile adds.
const symbolSections = 4

// add extends a section to a symbol in it.
func (e *extent) add(s *elf.Sym64) {
	switch kind := elf.ST_TYPE(s.Info); kind {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC, elf.STT_NOTYPE, elf.STT_OBJECT, elf.STT_SECTION:
		e.low, e.high = min(e.low, s.Value), max(e.high, s.Value, s.Value+s.Size)
		e.code = e.code || kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC
	}
}

// writeSymbolFile writes the file: the header, the sections with bytes, the table of all.
func writeSymbolFile(sections []extent, note, symtab, strtab []byte) ([]byte, error) {
	names := []byte("\x00.symtab\x00.strtab\x00.shstrtab\x00.note.gnu.build-id\x00.text\x00.data\x00")
	nameOf := func(name string) uint32 { return uint32(bytes.Index(names, []byte("\x00"+name+"\x00")) + 1) }
	table := make([]elf.Section64, max(1, len(sections)))
	for i := range sections {
		if e := &sections[i]; i > 0 {
			table[i] = elf.Section64{Name: nameOf(".data"), Type: uint32(elf.SHT_NOBITS),
				Flags: uint64(elf.SHF_ALLOC), Addralign: 1}
			if e.code {
				table[i].Name, table[i].Flags = nameOf(".text"), uint64(elf.SHF_ALLOC|elf.SHF_EXECINSTR)
			}
			if e.low <= e.high {
				table[i].Addr, table[i].Size = e.low, e.high-e.low
			}
		}
	}
	first := uint32(len(table)) // of the sections with bytes
	body := make([]byte, binary.Size(elf.Header64{}))
	add := func(name string, kind elf.SectionType, b []byte, link uint32, entry uint64) {
		for len(body)%8 != 0 {
			body = append(body, 0)
		}
		table = append(table, elf.Section64{Name: nameOf(name), Type: uint32(kind), Off: uint64(len(body)),
			Size: uint64(len(b)), Link: link, Entsize: entry, Addralign: 8})
		body = append(body, b...)
	}
	add(".note.gnu.build-id", elf.SHT_NOTE, note, 0, 0)
	add(".symtab", elf.SHT_SYMTAB, symtab, first+2, elf.Sym64Size)
	add(".strtab", elf.SHT_STRTAB, strtab, 0, 0)
	add(".shstrtab", elf.SHT_STRTAB, names, 0, 0)
	for len(body)%8 != 0 {
		body = append(body, 0)
	}
	header := elf.Header64{Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64),
		byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}, Type: uint16(elf.ET_DYN), Version: uint32(elf.EV_CURRENT),
		Shoff: uint64(len(body)), Ehsize: uint16(binary.Size(elf.Header64{})),
		Shentsize: uint16(binary.Size(elf.Section64{})), Shnum: uint16(len(table)), Shstrndx: uint16(first + 3)}
	out, err := binary.Append(nil, binary.LittleEndian, &header)
	if err == nil {
		copy(body, out)
		body, err = binary.Append(body, binary.LittleEndian, table)
	}
	return body, err
}
