package inspect

import (
	debugelf "debug/elf"
	"fmt"
	"io"
	"strings"

	"symbolize/analyze/table"
	"symbolize/ingest/object/elf"
)

// Object describes an object file. Its JSON names are an interface.
type Object struct {
	File      string        `json:"file"`
	Kind      string        `json:"kind"`
	Packed    string        `json:"packed,omitempty"` // "xz", "zstd", "gzip"
	Size      int64         `json:"size"`             // unpacked
	Machine   string        `json:"machine"`
	Class     int           `json:"class"` // 32 or 64
	ByteOrder string        `json:"byte_order"`
	BuildID   string        `json:"build_id,omitempty"`
	DebugLink string        `json:"debuglink,omitempty"`
	AltLink   string        `json:"debugaltlink,omitempty"`
	Segments  []Segment     `json:"segments"`
	Symbols   []SymbolCount `json:"symbols"`
	DWARF     *DWARF        `json:"dwarf,omitempty"`
	BPF       *BPFObject    `json:"bpf,omitempty"` // of BPF objects
	Warnings  []string      `json:"warnings,omitempty"`
}

// Segment is a PT_LOAD segment.
type Segment struct {
	Offset     string `json:"offset"`
	Address    string `json:"address"`
	FileSize   uint64 `json:"file_size"`
	MemSize    uint64 `json:"memory_size"`
	Permission string `json:"permission"` // "r-x"
}

// SymbolCount counts one source of function symbols.
type SymbolCount struct {
	Source    string `json:"source"`
	Functions int    `json:"functions"`
	Bytes     uint64 `json:"bytes"` // the sum of their sizes; aliases count each
}

func newObject(path string, f *elf.File, packed string) *Object {
	info := &Object{
		File: path, Kind: objectKind(f), Packed: packed, Size: f.Size(),
		Machine: machineName(f.Machine), Class: 32 * int(f.Class),
		ByteOrder: byteOrder(f.BigEndian),
		Segments:  []Segment{}, Symbols: []SymbolCount{},
	}
	if !f.ID.IsZero() {
		info.BuildID = f.ID.String()
	}
	if name, crc, ok := f.DebugLink(); ok {
		info.DebugLink = fmt.Sprintf("%s, CRC %08x", name, crc)
	}
	if name, id, ok := f.AltLink(); ok {
		info.AltLink = fmt.Sprintf("%s, build ID %s", name, id)
	}
	for _, s := range f.Segments {
		info.Segments = append(info.Segments, Segment{
			Offset:     fmt.Sprintf("%#x", uint64(s.Offset)),
			Address:    fmt.Sprintf("%#x", uint64(s.Addr)),
			FileSize:   s.FileSize,
			MemSize:    s.MemSize,
			Permission: permissions(s.Flags),
		})
	}
	info.countSymbols(f)
	info.addBPF(f)
	return info
}

// countSymbols counts each source of function symbols that the file has. One that is damaged is a
// warning: the others still count.
func (info *Object) countSymbols(f *elf.File) {
	table := func(f *elf.File, t elf.Table) func(func(elf.Symbol) bool) error {
		return func(visit func(elf.Symbol) bool) error { return f.Symbols(t, visit) }
	}
	info.count("symtab", table(f, elf.Symtab))
	info.count("dynsym", table(f, elf.Dynsym))
	info.count("plt", f.PLT)
	inner, release, err := f.DebugData()
	if err != nil {
		info.Warnings = append(info.Warnings, err.Error())
	}
	if inner == nil {
		return
	}
	defer release()
	info.count("gnu_debugdata", table(inner, elf.Symtab))
}

func (info *Object) count(source string, symbols func(func(elf.Symbol) bool) error) {
	n := SymbolCount{Source: source}
	err := symbols(func(s elf.Symbol) bool {
		n.Functions++
		n.Bytes += s.Size
		return true
	})
	if err != nil {
		info.Warnings = append(info.Warnings, err.Error())
	}
	if n.Functions > 0 {
		info.Symbols = append(info.Symbols, n)
	}
}

// objectKind names the kind of an ELF file.
func objectKind(f *elf.File) string {
	switch {
	case f.IsKernelImage():
		return "kernel image"
	case f.IsModule():
		return "kernel module"
	case f.IsDebugOnly():
		return "separate debug file"
	}
	switch f.Type {
	case debugelf.ET_EXEC:
		return "executable at a fixed address"
	case debugelf.ET_DYN:
		return "shared library or position-independent executable"
	case debugelf.ET_REL:
		return "relocatable object"
	case debugelf.ET_CORE:
		return "core dump"
	}
	return fmt.Sprintf("ELF file of type %d", f.Type)
}

// machineName is "x86_64" for EM_X86_64.
func machineName(m debugelf.Machine) string {
	name, ok := strings.CutPrefix(m.String(), "EM_")
	if !ok {
		return fmt.Sprintf("machine %d", uint16(m))
	}
	return strings.ToLower(name)
}

// machineText names a machine of ELF (e_machine, EI_CLASS, EI_DATA).
func machineText(machine uint16, class uint8, bigEndian bool) string {
	return fmt.Sprintf("%s, %d bits, %s", machineName(debugelf.Machine(machine)), 32*int(class),
		byteOrder(bigEndian))
}

func byteOrder(big bool) string {
	if big {
		return "big-endian"
	}
	return "little-endian"
}

// permissions prints p_flags as ls prints permissions.
func permissions(flags uint32) string {
	out := []byte("---")
	for i, f := range []debugelf.ProgFlag{debugelf.PF_R, debugelf.PF_W, debugelf.PF_X} {
		if debugelf.ProgFlag(flags)&f != 0 {
			out[i] = "rwx"[i]
		}
	}
	return string(out)
}

// Damaged reports whether a part of the file could not be read.
func (info *Object) Damaged() bool { return len(info.Warnings) > 0 }

// WriteText implements Info.
func (info *Object) WriteText(w io.Writer) error {
	t := table.New().Wrapped()
	t.Row("file", table.Join(", ", info.File, table.Bytes(info.Size), info.Packed))
	t.Row("kind", info.Kind)
	t.Row("machine", fmt.Sprintf("%s, %d bits, %s", info.Machine, info.Class, info.ByteOrder))
	id := info.BuildID
	if id == "" {
		id = "none"
	}
	t.Row("build ID", id)
	t.Field("debuglink", info.DebugLink)
	t.Field("debugaltlink", info.AltLink)
	for _, s := range info.Segments {
		t.Row("segment", fmt.Sprintf("%s offset %s, address %s, %#x bytes in the file, "+
			"%#x in memory", s.Permission, s.Offset, s.Address, s.FileSize, s.MemSize))
	}
	for _, s := range info.Symbols {
		t.Row(s.Source, fmt.Sprintf("%d functions, %s", s.Functions, table.Bytes(s.Bytes)))
	}
	info.BPF.row(t)
	info.DWARF.rows(t)
	if len(info.Symbols) == 0 {
		t.Row("symbols", "none: it is stripped")
	}
	for _, text := range info.Warnings {
		t.Row("warning", text)
	}
	if err := t.Print(w); err != nil {
		return err
	}
	return info.BPF.write(w)
}
