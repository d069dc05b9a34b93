package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"symbolize/fixtures/must"
)

// The offsets of the parts of a bare file.
const (
	bareDynamic = 0x200
	bareSymbols = 0x300
	bareNames   = 0x400
	bareRelocs  = 0x480
	bareHash    = 0x500
	bareCode    = 0x800
	bareSize    = 0x1000
	bareBase    = 0x400000
	bareGOT     = 0x403000
)

// bare makes a program of x86-64 without section headers, loaded as one segment at bareBase: its
// stubs for puts, exit and malloc, in this order, have slots at bareGOT + 0x18, and 8 bytes more each;
// the address of exit is also at bareGOT + 0x80.
// The function "own" begins at its code.
func bare(code []byte) []byte {
	le := binary.LittleEndian
	out := make([]byte, bareSize)
	at := func(off int, words ...any) {
		var b bytes.Buffer
		for _, w := range words {
			if err := binary.Write(&b, le, w); err != nil {
				panic(err)
			}
		}
		copy(out[off:], b.Bytes())
	}
	at(0, elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_EXEC),
		Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: ehdr64, Ehsize: ehdr64, Phentsize: phdr64, Phnum: 2},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: bareBase,
			Filesz: bareSize, Memsz: bareSize, Align: 0x1000},
		elf.Prog64{Type: uint32(elf.PT_DYNAMIC), Off: bareDynamic, Vaddr: bareBase + bareDynamic, Filesz: 0x100})
	const names = "\x00puts\x00exit\x00malloc\x00own\x00"
	var table []elf.Dyn64
	for _, d := range []struct {
		tag   elf.DynTag
		value uint64
	}{
		{elf.DT_SYMTAB, bareBase + bareSymbols}, {elf.DT_STRTAB, bareBase + bareNames},
		{elf.DT_STRSZ, uint64(len(names))}, {elf.DT_JMPREL, bareBase + bareRelocs}, {elf.DT_PLTRELSZ, 4 * 24},
		{elf.DT_PLTREL, uint64(elf.DT_RELA)}, {elf.DT_GNU_HASH, bareBase + bareHash}, {elf.DT_PLTGOT, bareGOT},
		{elf.DT_NULL, 0},
	} {
		table = append(table, elf.Dyn64{Tag: int64(d.tag), Val: d.value})
	}
	at(bareDynamic, table)
	function := elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)
	at(bareSymbols, [5]elf.Sym64{{}, {Name: 1, Info: function}, {Name: 6, Info: function},
		{Name: 11, Info: function}, {Name: 18, Info: function, Shndx: 7, Value: bareBase + bareCode, Size: 8}})
	copy(out[bareNames:], names)
	var relocs []elf.Rela64
	for i := range uint64(3) {
		relocs = append(relocs, elf.Rela64{Off: bareGOT + 0x18 + 8*i,
			Info: elf.R_INFO(uint32(i+1), uint32(elf.R_X86_64_JMP_SLOT))})
	}
	relocs = append(relocs, elf.Rela64{Off: bareGOT + 0x80, Info: elf.R_INFO(2, uint32(elf.R_X86_64_GLOB_DAT))})
	at(bareRelocs, relocs)
	at(bareHash, [4]uint32{1, 4, 1, 6}, uint64(1<<63), uint32(4), uint32(0x1235)) // one bucket, one symbol
	copy(out[bareCode:], code)
	return out
}

// withPLT is code with stubs behind a first entry.
func withPLT(stubs int) []byte {
	const start = bareBase + bareCode
	code := join(0x100, make([]byte, 0x100))
	code = append(code, join(16, "\xff\x35", rel32(bareGOT+8, start+0x106), "\xff\x25", rel32(bareGOT+16, start+0x10c))...)
	for i := range stubs {
		at := uint64(start + len(code))
		code = append(code, join(16, "\xff\x25", rel32(bareGOT+0x18+8*uint64(i), at+6), "\x68")...)
	}
	return code
}

// TestNoHeaders: a file without section headers has the stubs and the dynamic symbols that its
// dynamic table describes.
func TestNoHeaders(t *testing.T) {
	// jump is a function that only jumps through a slot, as a tail call of -fno-plt does.
	jump := func(code []byte, at, slot uint64) []byte {
		start := bareBase + bareCode + at
		code = append(code, make([]byte, max(0, int(at)+16-len(code)))...)
		copy(code[at:], join(16, "\xff\x25", rel32(slot, start+6)))
		return code
	}
	for _, tt := range []struct {
		name string
		code []byte
		want []string
	}{
		{name: "three stubs", code: withPLT(3), want: []string{"puts@plt 0x400910+0x10", "exit@plt 0x400920+0x10",
			"malloc@plt 0x400930+0x10"}},
		{name: "one stub behind the first entry", code: withPLT(1), want: []string{"puts@plt 0x400910+0x10"}},
		{name: "a function that jumps", code: jump(nil, 0x200, bareGOT+0x20)},
		{name: "stubs and a function", code: jump(withPLT(2), 0x200, bareGOT+0x28),
			want: []string{"puts@plt 0x400910+0x10", "exit@plt 0x400920+0x10"}},
		{name: "stubs of 8 bytes", code: jump(jump(nil, 0x300, bareGOT+0x20), 0x308, bareGOT+0x28),
			want: []string{"exit@plt 0x400b00+0x8", "malloc@plt 0x400b08+0x10"}},
		{name: "functions that jump through slots for data", code: jump(jump(nil, 0x300, bareGOT+0x80), 0x310, bareGOT+0x80)},
		{name: "a stub with a slot for data", code: jump(withPLT(1), 0x120, bareGOT+0x80),
			want: []string{"puts@plt 0x400910+0x10", "exit@plt 0x400920+0x10"}},
		{name: "another slot", code: jump(withPLT(0), 0x110, bareGOT+0x100)},
	} {
		f := openBytes(t, bare(tt.code))
		compare(t, tt.name, stubsOf(t, f), tt.want)
		compare(t, tt.name, symbols(t, f, Dynsym), []string{"own 0x400800+0x8 end 0x400808"})
		if !f.HasCode() || f.IsDebugOnly() || f.IsKernelImage() {
			t.Errorf("%s: taken for something else than a runtime file", tt.name)
		}
	}
}

// TestNoHeadersCut opens every beginning of a file, and files with damaged dynamic tables.
func TestNoHeadersCut(t *testing.T) {
	whole := bare(withPLT(3))
	for n := range whole {
		walk(t, whole[:n])
	}
	for at := bareDynamic; at < bareHash+0x40; at++ {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := slices.Clone(whole)
			b[at] = v
			walk(t, b)
		}
	}
}

// headerless returns a file without its section headers, as sstrip leaves it.
func headerless(b []byte) []byte {
	b = slices.Clone(b)
	if elf.Class(b[elf.EI_CLASS]) == elf.ELFCLASS64 {
		clear(b[0x28:0x30]) // e_shoff
		clear(b[0x3c:0x40]) // e_shnum, e_shstrndx
	} else {
		clear(b[0x20:0x24])
		clear(b[0x30:0x34])
	}
	return b
}

// TestNoHeadersSame: files of compilers have the same stubs and dynamic symbols with and without
// section headers.
func TestNoHeadersSame(t *testing.T) {
	paths := hostFiles(t)
	for _, name := range []string{"fixed", "mixed", "spawn"} {
		paths = append(paths, "../../../fixtures/objects/bin/"+name)
	}
	for _, path := range paths {
		b := must.Read(t, path)
		with, without := openBytes(t, b), openBytes(t, headerless(b))
		if with.Machine == elf.EM_ARM || with.dynamic.size == 0 {
			continue
		}
		compare(t, path, stubsOf(t, without), stubsOf(t, with))
		var names [2][]string
		for i, f := range []*File{with, without} {
			err := f.Symbols(Dynsym, func(s Symbol) bool { names[i] = append(names[i], s.Name); return true })
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if !slices.Equal(names[0], names[1]) {
			t.Errorf("%s: %d and %d dynamic symbols", path, len(names[0]), len(names[1]))
		}
		x, y := with.Section(".eh_frame"), without.Section(".eh_frame")
		if x != nil && with.frames.size > 0 && (y == nil || x.Addr != y.Addr || x.Size < y.Size ||
			x.Size-y.Size > 64) { // ld.so has more behind its terminator
			t.Errorf("%s: .eh_frame %+v and %+v", path, x, y)
		}
	}
}
