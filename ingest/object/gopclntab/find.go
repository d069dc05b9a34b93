package gopclntab

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	ingestelf "symbolize/ingest/object/elf"
)

// Limits for Find.
const (
	maxTable  = 1 << 30   // bytes of the table; a large program has 60 MB
	maxScan   = 2 << 30   // bytes searched for the table, or for moduledata
	maxTried  = 64        // candidates for a header, or for moduledata
	scanBlock = 256 << 10 // bytes read at once
)

// sectionNames are the names of the table's own section; the second in position-
// independent programs. External linkers may merge it into another section.
var sectionNames = []string{".gopclntab", ".data.rel.ro.gopclntab"}

// Find locates and decodes the table of an ELF file. It is nil where there is none, and where its
// contents are not in this file, as in a separate debug file. Files without a sign of Go in their
// sections are not searched.
func Find(f *ingestelf.File) (*Table, error) {
	for _, name := range sectionNames {
		s := f.Section(name)
		if s == nil || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		if s.Type == elf.SHT_NOBITS || f.Type == elf.ET_REL {
			return nil, nil
		}
		b, err := f.Data(s, maxTable)
		if err != nil {
			return nil, fmt.Errorf(".gopclntab: %w", err)
		}
		return open(f, region{s.Addr, s.Offset, s.Size}, b)
	}
	if !looksLikeGo(f) {
		return nil, nil
	}
	return search(f)
}

// Bytes returns the number of bytes of memory for the table of a file, 0 if there is no
// section of its name.
func Bytes(f *ingestelf.File) int64 {
	for _, name := range sectionNames {
		if s := f.Section(name); s != nil && s.Type != elf.SHT_NOBITS {
			return int64(min(s.Size, uint64(f.Size())))
		}
	}
	return 0
}

// looksLikeGo reports whether a file may be a Go program although no section has the
// name of the table: because it has other sections of Go's linker, or none at all.
func looksLikeGo(f *ingestelf.File) bool {
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return false
	}
	if len(f.Sections) == 0 {
		return true
	}
	for _, name := range []string{".go.buildinfo", ".note.go.buildid", ".go.module"} {
		if s := f.Section(name); s != nil && s.Type != elf.SHT_NOBITS {
			return true
		}
	}
	return false
}

// region is a stretch of memory that is in the file.
type region struct {
	addr addr.Addr
	off  addr.Offset
	size uint64
}

// regions returns the constants of a file, or its variables; in a file without sections all
// segments, because linkers have put constants next to the code.
func regions(f *ingestelf.File, writable bool) []region {
	var all []region
	for i := range f.Sections {
		s := &f.Sections[i]
		const kind = elf.SHF_ALLOC | elf.SHF_EXECINSTR
		if s.Type != elf.SHT_PROGBITS || s.Flags&kind != elf.SHF_ALLOC {
			continue
		}
		// Relocated constants are writable, up to the program's start.
		if !writable || s.Flags&elf.SHF_WRITE != 0 {
			all = append(all, region{s.Addr, s.Offset, s.Size})
		}
	}
	if len(f.Sections) > 0 {
		return all
	}
	for _, s := range f.Segments {
		if !writable || elf.ProgFlag(s.Flags)&elf.PF_W != 0 {
			all = append(all, region{s.Addr, s.Offset, s.FileSize})
		}
	}
	return all
}

// scan visits the positions in some regions, at addresses that are multiples of step,
// where look accepts the bytes from there on. look gets at least need bytes of each, and
// the visit ends when it returns true.
func scan(f *ingestelf.File, in []region, step, need int, look func(b []byte) bool,
	visit func(at region) bool) error {
	left := uint64(maxScan)
	buf := make([]byte, scanBlock)
	for _, r := range in {
		pad := uint64(-int64(r.addr) & int64(step-1))
		if uint64(r.off) > uint64(f.Size()) || pad > r.size {
			continue
		}
		size := min(r.size, uint64(f.Size())-uint64(r.off))
		for at := pad; at < size && size-at >= uint64(need) && left > 0; {
			b := buf[:min(scanBlock, size-at, left)]
			left -= uint64(len(b))
			if err := f.ReadBytes(r.off+addr.Offset(at), b); err != nil {
				return err
			}
			i := 0
			for ; len(b)-i >= need; i += step {
				if !look(b[i:]) {
					continue
				}
				d := at + uint64(i)
				if visit(region{r.addr + addr.Addr(d), r.off + addr.Offset(d), size - d}) {
					return nil
				}
			}
			if i == 0 {
				break
			}
			at += uint64(i)
		}
	}
	return nil
}

// search finds the table by its magic number.
func search(f *ingestelf.File) (t *Table, err error) {
	tried := 0
	scanErr := scan(f, regions(f, false), 4, 16, matchHeader, func(at region) bool {
		if tried++; tried > maxTried {
			return true
		}
		b := make([]byte, min(at.size, maxTable))
		if err = f.ReadBytes(at.off, b); err != nil {
			return true
		}
		found, why := open(f, at, b)
		if why == nil && found.plausible(f) {
			t = found
		}
		return t != nil
	})
	if err == nil {
		err = scanErr
	}
	if err != nil {
		return nil, fmt.Errorf(".gopclntab: %w", err)
	}
	return t, nil
}

// plausible reports whether a table that was found by its magic number has functions,
// in memory that the file contains.
func (t *Table) plausible(f *ingestelf.File) bool {
	if t.numFuncs == 0 {
		return false
	}
	for _, i := range []int{0, t.numFuncs / 2, t.numFuncs - 1} {
		r, reason := t.record(i)
		if reason != "" || !t.isName(r.name) {
			return false
		}
		if _, _, ok := f.Mapped(addr.Addr(r.entry)); !ok {
			return false
		}
	}
	return true
}

// open decodes the table at an address with the bytes b.
func open(f *ingestelf.File, at region, b []byte) (*Table, error) {
	in := Input{Name: f.Name, Offset: int64(at.off), Data: b, Addr: at.addr}
	in.Memory = func(a addr.Addr, limit uint64) []byte {
		off, n, ok := f.Mapped(a)
		if !ok {
			return nil
		}
		b := make([]byte, min(n, limit))
		if f.ReadBytes(off, b) != nil {
			return nil
		}
		return b
	}
	v, big, ok := magic(b)
	switch {
	case !ok: // New returns the error
	case v < go118:
		// Entries are pointers, which the loader fills in if the program can be anywhere.
		if err := patch(f, at.addr, b, big, int(b[7])); err != nil {
			return nil, err
		}
	default:
		if err := module(f, &in, v, big); err != nil {
			return nil, err
		}
	}
	t, err := New(in)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// patch applies the relocations that the loader would apply to the memory b at an
// address.
func patch(f *ingestelf.File, at addr.Addr, b []byte, big bool, ptr int) error {
	if f.Type != elf.ET_DYN {
		return nil
	}
	return f.Relative(func(place, value addr.Addr) bool {
		if off := uint64(place - at); off < uint64(len(b)) && uint64(len(b))-off >= uint64(ptr) {
			putWord(b[off:], big, ptr, uint64(value))
		}
		return true
	})
}

func putWord(b []byte, big bool, ptr int, v uint64) {
	order := decode.OrderOf(big)
	if ptr == 4 {
		order.PutUint32(b, uint32(v))
	} else {
		order.PutUint64(b, v)
	}
}

func getWord(b []byte, big bool, ptr int) uint64 {
	order := decode.OrderOf(big)
	if ptr == 4 {
		return uint64(order.Uint32(b))
	}
	return order.Uint64(b)
}

// Fields of runtime.moduledata, in words from its start: pcHeader, six slices and findfunctab,
// minpc, maxpc come before text; the eight bounds of data follow, since Go 1.20 the two of coverage
// counters, then end, gcdata, gcbss, types, etypes, rodata and gofunc.
const (
	moduleText      = 22
	moduleGofunc118 = 38
	moduleGofunc120 = 40
	moduleWords     = 48
)

// module completes an Input of Go 1.18 or later with the addresses of the text and of the
// symbol go:func.*. Both are in runtime.moduledata, else in symbols; the start of the text is also
// in the header before Go 1.26, where the loader had to fill it in.
func module(f *ingestelf.File, in *Input, v layoutVersion, big bool) error {
	ptr := int(in.Data[7])
	if len(in.Data) < 8+8*ptr {
		return nil // New returns the error
	}
	words, err := findModule(f, in, big, ptr)
	if err != nil {
		return err
	}
	if words != nil {
		in.Text = addr.Addr(words[moduleText])
		first := moduleGofunc120
		if v == go118 {
			first = moduleGofunc118
		}
		in.FuncData = append(in.FuncData, addr.Addr(words[first]))
		// A future release may move it.
		for _, w := range words[moduleGofunc118-2:] {
			if w != 0 && !slices.Contains(in.FuncData, addr.Addr(w)) {
				in.FuncData = append(in.FuncData, addr.Addr(w))
			}
		}
		return nil
	}
	values, err := f.Values("runtime.text", "go:func.*", "go.func.*")
	if err != nil {
		values = nil // damaged symbols do not matter if the header has the start
	}
	for _, name := range []string{"go:func.*", "go.func.*"} {
		if a, ok := values[name]; ok {
			in.FuncData = append(in.FuncData, a)
		}
	}
	in.Text = addr.Addr(getWord(in.Data[8+2*ptr:], big, ptr))
	if a, ok := values["runtime.text"]; ok {
		in.Text = a
	} else if s := f.Section(".text"); s != nil && in.Text == 0 {
		in.Text = s.Addr
	}
	return nil
}

// findModule finds the moduledata of a table and returns its first words, nil if there
// is none.
func findModule(f *ingestelf.File, in *Input, big bool, ptr int) (words []uint64, err error) {
	names := uint64(in.Addr) + getWord(in.Data[8+3*ptr:], big, ptr)
	head := make([]byte, 2*ptr)
	putWord(head, big, ptr, uint64(in.Addr))
	putWord(head[ptr:], big, ptr, names)
	var places []addr.Addr
	look := func(b []byte) bool { return bytes.HasPrefix(b, head) }
	err = scan(f, regions(f, true), ptr, 2*ptr, look, func(at region) bool {
		places = append(places, at.addr)
		return len(places) >= maxTried
	})
	if err != nil {
		return nil, err
	}
	if len(places) == 0 { // the loader fills it in
		err := f.Relative(func(place, value addr.Addr) bool {
			if value == in.Addr {
				places = append(places, place)
			}
			return len(places) < maxTried
		})
		if err != nil {
			return nil, err
		}
		slices.Sort(places)
	}
	for _, p := range places {
		b := in.Memory(p, uint64(moduleWords*ptr))
		if len(b) < (moduleGofunc120+1)*ptr {
			continue
		}
		if err := patch(f, p, b, big, ptr); err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(b, head) {
			continue
		}
		for ; len(b) >= ptr; b = b[ptr:] {
			words = append(words, getWord(b, big, ptr))
		}
		return words, nil
	}
	return nil, nil
}
