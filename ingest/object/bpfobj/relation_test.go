package bpfobj

import (
	"bytes"
	"crypto/sha1"
	stdelf "debug/elf"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/object/elf"
)

// referrer is an object with a program that loads the address of a symbol in a section.
func referrer(section string) []byte {
	code := slices.Concat(insn(opLoadImm64, 1, 0, 0), insn(0, 0, 0, 0), exit())
	f := &elfbuild.File{Machine: stdelf.EM_BPF, Type: stdelf.ET_REL}
	f.Sections = []elfbuild.Section{
		{Name: "xdp", Data: code, Align: 8, Flags: stdelf.SHF_ALLOC | stdelf.SHF_EXECINSTR},
		{Name: section, Data: make([]byte, 32), Align: 8,
			Flags: stdelf.SHF_ALLOC | stdelf.SHF_WRITE},
	}
	f.Symbols = []elfbuild.Symbol{
		{Name: "main", Section: "xdp", Size: uint64(len(code)), Type: stdelf.STT_FUNC,
			Bind: stdelf.STB_GLOBAL},
		{Name: "data", Section: section, Size: 32, Type: stdelf.STT_OBJECT,
			Bind: stdelf.STB_GLOBAL},
	}
	f.Sections = append(f.Sections, elfbuild.Section{Name: ".relxdp", Type: stdelf.SHT_REL,
		Link: ".symtab", Info: 1, EntSize: 16,
		Data: f.Rela(false, elfbuild.Reloc{Symbol: 2, Type: reloc6464})})
	return f.Bytes()
}

// TestMapSections: symbols in the sections of maps, of old objects too, are maps, those in
// any other variables; the kernel distinguishes them in the source register.
func TestMapSections(t *testing.T) {
	for section, src := range map[string]byte{
		".maps": srcMapFD, "maps": srcMapFD, "maps/events": srcMapFD,
		".bss": srcMapValue, ".rodata": srcMapValue, "mapsx": srcMapValue, ".maps.x": srcMapValue,
	} {
		o, err := readBytes(t, referrer(section))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha1.Sum(slices.Concat(insn(opLoadImm64, 1, src, 0), insn(0, 0, 0, 0), exit()))
		if f := o.named(t, "main"); !hasTag(f, hex.EncodeToString(sum[:8])) || f.Uncertain != "" {
			t.Errorf("%s: %+v, want the tag of source %d", section, f, src)
		}
	}
}

// TestUncertainCallee: the dependencies of a subprogram's tag apply to its callers, too.
func TestUncertainCallee(t *testing.T) {
	o, err := readBytes(t, object(false,
		section{name: "xdp", code: calls(1), funcs: []symbol{{name: "main", start: 0, end: 16}},
			relocs: []elfbuild.Reloc{{Symbol: 2, Type: reloc6432}}},
		section{name: textSection, funcs: []symbol{{name: "sub", start: 0, end: 16}},
			code: slices.Concat(insn(opCall, 0, srcKfunc, 7), exit())}))
	if err != nil {
		t.Fatal(err)
	}
	if f := o.named(t, "main"); f.Uncertain != uncertainKfunc || len(f.Tags) == 0 {
		t.Errorf("%+v", f)
	}
}

// TestCallBetween: an address where a function ends and none begins belongs to none.
func TestCallBetween(t *testing.T) {
	text := slices.Concat(exit(), exit(), exit(), exit())
	for target, want := range map[uint32]string{ // in instructions, less one
		0xffffffff: "", 2: "", 0: "instruction 0 refers to no function of section .text",
		1: "instruction 0 refers to no function", 3: "instruction 0 refers to no function",
	} {
		o, err := readBytes(t, object(false,
			section{name: "xdp", code: slices.Concat(insn(opCall, 0, srcCall, target), exit()),
				funcs:  []symbol{{name: "main", start: 0, end: 16}},
				relocs: []elfbuild.Reloc{{Symbol: 2, Type: reloc6432}}},
			section{name: textSection, code: text, funcs: []symbol{{name: "a", start: 0, end: 8}, {name: "b",
				start: 24, end: 32}}}))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) ||
			len(o.Functions) != 3 {
			t.Errorf("call of instruction %d: %v, want %q", target+1, err, want)
		}
	}
}

// TestIs: neither a program of another machine nor a linked file is a BPF object.
func TestIs(t *testing.T) {
	for _, f := range []*elfbuild.File{
		{Machine: stdelf.EM_X86_64, Type: stdelf.ET_REL},
		{Machine: stdelf.EM_BPF, Type: stdelf.ET_EXEC}, {Machine: stdelf.EM_BPF, Type: stdelf.ET_REL},
	} {
		f.Sections = []elfbuild.Section{{Name: "xdp", Data: exit(),
			Flags: stdelf.SHF_ALLOC | stdelf.SHF_EXECINSTR}}
		b := f.Bytes()
		x, err := elf.Open("test", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Read(x)
		if want := f.Machine == stdelf.EM_BPF && f.Type == stdelf.ET_REL; Is(x) != want ||
			(err == nil) != want {
			t.Errorf("%v %v: %v, %v", f.Machine, f.Type, Is(x), err)
		}
	}
}
