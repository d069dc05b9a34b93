package bpfobj

import (
	"cmp"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/elf"
)

// Limits of an object. The kernel accepts a million instructions in a program.
const (
	maxCode      = 64 << 20 // bytes of all sections with code
	maxFunctions = 1 << 16
	maxProgram   = 1 << 20 // instructions of a program with its subprograms
	maxLinked    = 1 << 24 // instructions of all programs with their subprograms
	maxErrors    = 20
)

const insnSize = bpf.InsnSize

// Object is a BPF object file.
type Object struct {
	Functions []Function // by section, then by offset
	BigEndian bool
}

// Function is a program or a subprogram.
type Function struct {
	Name    string
	Section string
	Program bool // a loader loads it; other functions are appended to their callers
	Length  uint32
	// Count is the number of instructions of a program as loaded, including its subprograms;
	// 0 if it cannot be loaded.
	Count uint32
	// Tags are the possible tags of a program, sorted; none for a subprogram.
	Tags []bpf.Tag
	// OwnTags are the possible tags of a single function in a program with subprograms,
	// sorted. A match is a proof; without one, the kernel may have rewritten the code.
	OwnTags []bpf.Tag
	// SHA1 are the ones among Tags and OwnTags that kernels before 6.18 compute; later kernels use
	// SHA-256.
	SHA1 []bpf.Tag
	// Uncertain names the facts besides this file that the tags depend on, "" for nothing.
	Uncertain string
	// Rewritten names the rewrites of a function by the kernel before it computes the
	// function's tag, so that there are no OwnTags; "" for none that the file shows.
	Rewritten string
	// Lines are by offset in the function, in bytes of BPF code.
	Lines []bpf.Line
	// Records are all line records, also the compiler's own, of line 0.
	Records []bpf.Line
	// Code has the instructions, with references as a loader marks them. It aliases the reader's copy
	// of the section.
	Code []byte
	// Symbols names what relocated instructions refer to, by their numbers in the function.
	Symbols map[int]string
	// Line and File are the start of the function; 0 and "" if unknown.
	Line uint32
	File string
}

// The dependencies of a tag besides the file.
const (
	uncertainCORE   = "CO-RE relocations"
	uncertainKfunc  = "calls of kernel functions"
	uncertainSymbol = "addresses of kernel symbols"
)

// Is reports whether a file is a BPF object.
func Is(f *elf.File) bool { return f.Machine == stdelf.EM_BPF && f.Type == stdelf.ET_REL }

// Read decodes a BPF object. With an error it returns the valid part.
func Read(f *elf.File) (*Object, error) {
	if !Is(f) {
		return nil, fmt.Errorf("%s: no BPF object: machine %v, type %v", f.Name, f.Machine, f.Type)
	}
	r := &linker{f: f, sections: make(map[int]*sectionData)}
	r.readCode()
	r.readSymbols()
	r.readTypes()
	r.readRelocations()
	r.takeExts()
	o := &Object{BigEndian: f.BigEndian}
	r.link()
	for _, fn := range r.functions {
		o.Functions = append(o.Functions, fn.Function)
	}
	return o, errors.Join(r.errs...)
}

// linker is the state of one Read.
type linker struct {
	f         *elf.File
	sections  map[int]*sectionData // with code, by index
	symbols   []elf.Entry          // by number; the first is null
	functions []*function
	types     *btf.Types      // nil if there are none
	ext       *btf.Ext        // likewise
	kconfig   map[string]bool // variables without an address: they are in a map
	linked    int             // instructions so far, see maxLinked
	calls     bool            // some function calls another one
	errs      []error
}

// sectionData is a section with code.
type sectionData struct {
	index     int
	name      string
	code      []byte
	functions []*function    // by start
	relocs    map[uint32]rel // by offset
	lines     []bpf.Line     // by Offset in the section
	core      []uint32       // offsets of instructions with CO-RE relocations, sorted
}

// function is a Function while its file is read.
type function struct {
	Function
	section    *sectionData
	start, end uint32 // in the section
	refs       []ref  // functions that it calls or refers to
}

// ref is an instruction that refers to a function.
type ref struct {
	insn   uint32 // in the function that has it
	target *function
}

// fail notes damage.
func (r *linker) fail(format string, args ...any) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, fmt.Errorf("%s: %s", r.f.Name, fmt.Sprintf(format, args...)))
	}
}

// readCode reads the sections with code.
func (r *linker) readCode() {
	total := uint64(0)
	for i := range r.f.Sections {
		s := &r.f.Sections[i]
		if s.Type != stdelf.SHT_PROGBITS || s.Flags&stdelf.SHF_EXECINSTR == 0 || s.Size == 0 {
			continue
		}
		if total += s.Size; total > maxCode || total < s.Size {
			r.fail("section %s: more than %d bytes of code", s.Name, maxCode)
			return
		}
		code, err := r.f.Data(s, maxCode)
		if err != nil {
			r.fail("section %s: %v", s.Name, err)
			continue
		}
		r.sections[i] = &sectionData{index: i, name: s.Name, code: code,
			relocs: make(map[uint32]rel)}
	}
}

// readSymbols reads the symbols, and the functions among them.
func (r *linker) readSymbols() {
	r.symbols = append(r.symbols, elf.Entry{})
	err := r.f.Entries(elf.Symtab, func(e elf.Entry) bool {
		r.symbols = append(r.symbols, e)
		s := r.sections[e.Section]
		if e.Type != stdelf.STT_FUNC || s == nil {
			return true
		}
		if len(r.functions) == maxFunctions {
			r.fail("more than %d functions", maxFunctions)
			return false
		}
		size := uint64(len(s.code))
		if e.Value > size || e.Size > size-e.Value || e.Value%insnSize != 0 ||
			e.Size%insnSize != 0 || e.Size == 0 {
			r.fail("function %s: %d bytes at %#x of section %s, which has %d", e.Name, e.Size,
				e.Value, s.name, size)
			return true
		}
		fn := &function{section: s, start: uint32(e.Value), end: uint32(e.Value + e.Size)}
		fn.Name, fn.Section, fn.Length = e.Name, s.name, uint32(e.Size)
		r.functions = append(r.functions, fn)
		s.functions = append(s.functions, fn)
		return true
	})
	if err != nil {
		r.fail("symbols: %v", err)
	}
	order := func(a, b *function) int {
		return cmp.Or(cmp.Compare(a.section.index, b.section.index), cmp.Compare(a.start, b.start),
			cmp.Compare(a.end, b.end), strings.Compare(a.Name, b.Name))
	}
	slices.SortFunc(r.functions, order)
	for _, s := range r.sections {
		slices.SortFunc(s.functions, order)
	}
}

// at returns the function that holds an offset of a section, nil if there is none.
func (s *sectionData) at(offset uint64) *function {
	i, _ := slices.BinarySearchFunc(s.functions, offset, func(fn *function, offset uint64) int {
		if uint64(fn.start) <= offset {
			return -1
		}
		return 1
	})
	if i == 0 || offset >= uint64(s.functions[i-1].end) {
		return nil
	}
	return s.functions[i-1]
}
