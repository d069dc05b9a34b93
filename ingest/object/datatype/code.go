package datatype

import (
	"cmp"
	stdelf "debug/elf"
	"encoding/binary"
	"slices"
	"sort"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/flow"
)

// code is the code and data of a file that runs.
type code struct {
	file    *elf.File
	image   *elf.ModuleImage // of a module
	kernel  bool
	load    []section // by address
	rows    []flow.CFA
	slots   map[addr.Addr]flow.Slot
	extents []addr.Range // of functions with rules
	effects map[addr.Addr]flow.Effect
	jumps   map[addr.Addr][]addr.Addr // of a kernel
	// Thread-local storage of a program: its distance from the thread pointer, and its size.
	tls, tlsSize int64
	relocs       machine.Dynamic
}

// section is a part of the memory with contents in the file.
type section struct {
	addr.Range
	header *elf.Section
	index  int
	bytes  []byte // nil until it is read
}

// maxSection bounds the contents of a section that are read.
const maxSection = 1 << 30

// readCode reads what is needed of the files: code may be the same as debug.
func readCode(f, debug *elf.File, base addr.Addr) (*code, error) {
	c := &code{file: f, kernel: f.IsKernelImage() || f.IsModule(),
		effects: make(map[addr.Addr]flow.Effect),
		slots:   make(map[addr.Addr]flow.Slot), relocs: machine.Of(f.Machine).Dynamic}
	if f.Type == stdelf.ET_REL {
		if err := c.place(base); err != nil {
			return nil, err
		}
		if err := c.branches(debug); err != nil {
			return nil, err
		}
		return c, c.moduleNames(debug, base)
	}
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Flags&stdelf.SHF_ALLOC != 0 && s.Type != stdelf.SHT_NOBITS && s.Size > 0 && s.Flags&stdelf.SHF_TLS == 0 {
			c.load = append(c.load, section{Range: addr.Range{Start: s.Addr, End: s.Addr + addr.Addr(s.Size)}, header: s})
		}
	}
	slices.SortStableFunc(c.load, func(a, b section) int { return cmp.Compare(a.Start, b.Start) })
	c.threads()
	if err := c.rules(debug); err != nil {
		return nil, err
	}
	if err := c.names(debug); err != nil {
		return nil, err
	}
	if c.kernel {
		if err := c.branches(debug); err != nil {
			return nil, err
		}
	}
	return c, c.relocations()
}

// Bytes implements flow.Object.
func (c *code) Bytes(a addr.Addr, n int) []byte {
	i := sort.Search(len(c.load), func(i int) bool { return c.load[i].Start > a }) - 1
	if i < 0 || a >= c.load[i].End || n <= 0 {
		return nil
	}
	s := &c.load[i]
	if s.bytes == nil {
		s.bytes = c.contents(s)
	}
	from := uint64(a - s.Start)
	if from >= uint64(len(s.bytes)) {
		return nil
	}
	return s.bytes[from:min(from+uint64(n), uint64(len(s.bytes)))]
}

// contents reads a section, of a module with its relocations applied; empty if it cannot be read.
func (c *code) contents(s *section) []byte {
	b, err := c.file.Data(s.header, maxSection)
	if err != nil {
		return []byte{}
	}
	if c.image != nil {
		_ = c.image.Apply(s.index, b) // of types that are not known: few bytes of the code
	}
	return b
}

// threads sets the place of thread-local storage (ELF Handling For Thread-Local Storage, 3).
func (c *code) threads() {
	start, end, align := ^uint64(0), uint64(0), uint64(1)
	for i := range c.file.Sections {
		if s := &c.file.Sections[i]; s.Flags&stdelf.SHF_TLS != 0 {
			start, end = min(start, uint64(s.Addr)), max(end, uint64(s.Addr)+s.Size)
			if s.AddrAlign <= 1<<16 {
				align = max(align, s.AddrAlign)
			}
		}
	}
	if end <= start {
		return
	}
	up := func(n uint64) int64 { return int64((n + align - 1) / align * align) }
	c.tls, c.tlsSize = -up(end-start), int64(end-start)
	if n := machine.Of(c.file.Machine).ThreadHeader; n > 0 {
		c.tls = up(uint64(n))
	}
}

// rules reads the rows of the canonical frame address.
func (c *code) rules(debug *elf.File) error {
	arch := cfi.ArchOf(c.file.Machine)
	if arch == nil {
		return nil
	}
	b := cfi.NewBuilder(arch)
	defer c.addRules(b)
	for _, source := range []struct {
		f    *elf.File
		find func(*elf.File) (*cfi.EHFrame, error)
	}{{c.file, cfi.FindEHFrame}, {debug, cfi.FindDebugFrame}} {
		s, err := source.find(source.f)
		if err != nil || s == nil {
			continue // functions without rules have fewer answers
		}
		_, _ = s.Rules(b)
		b.NextSource()
	}
	return nil
}

// addRules keeps the rules that were read.
func (c *code) addRules(b *cfi.Builder) {
	c.rows = b.CFAs()
	b.Ranges(func(r addr.Range) { c.extents = append(c.extents, r) })
}

// Extent implements flow.Object.
func (c *code) Extent(a addr.Addr) (addr.Range, bool) {
	i, ok := slices.BinarySearchFunc(c.extents, a, func(r addr.Range, a addr.Addr) int { return cmp.Compare(r.Start, a) })
	if !ok {
		return addr.Range{}, false
	}
	return c.extents[i], true
}

// CFA implements flow.Object.
func (c *code) CFA(r addr.Range) []flow.CFA {
	i := sort.Search(len(c.rows), func(i int) bool { return c.rows[i].At > r.Start })
	list := []flow.CFA{{At: r.Start, Reg: flow.NoRegister}}
	if i > 0 {
		list[0] = c.rows[i-1]
		list[0].At = r.Start
	}
	for ; i < len(c.rows) && c.rows[i].At < r.End; i++ {
		list = append(list, c.rows[i])
	}
	return list
}

// Kernel implements flow.Object.
func (c *code) Kernel() bool { return c.kernel }

// Call implements flow.Object.
func (c *code) Call(a addr.Addr) flow.Effect { return c.effects[a] }

// thunks are the registers of the kernel's indirect calls (arch/x86/lib/retpoline.S), by DWARF's numbers.
var thunks = []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
	"r14", "r15"}

// effectOf returns what a function of a name changes.
func effectOf(name string) flow.Effect {
	switch name {
	case "__fentry__", "mcount", "__cyg_profile_func_enter":
		return flow.Nothing
	case "abort", "exit", "_exit", "quick_exit", "__assert_fail", "__assert_perror_fail", "__stack_chk_fail",
		"__stack_chk_fail_local", "longjmp", "siglongjmp", "__longjmp_chk", "pthread_exit", "__cxa_throw",
		"__cxa_rethrow", "__cxa_bad_cast", "__cxa_throw_bad_array_new_length", "_Unwind_Resume", "__chk_fail",
		"__fortify_fail", "_ZSt9terminatev", "_ZSt17__throw_bad_allocv", "_ZSt20__throw_length_errorPKc",
		"_ZSt20__throw_out_of_rangePKc", "_ZSt24__throw_out_of_range_fmtPKcz", "_ZSt19__throw_logic_errorPKc",
		"_ZSt16__throw_bad_castv", "_ZSt25__throw_bad_function_callv", "_ZSt28__throw_bad_array_new_lengthv",
		"__clang_call_terminate", "panic", "do_exit", "make_task_dead", "__reiserfs_panic":
		return flow.Never
	}
	if r, ok := strings.CutPrefix(name, "__x86_indirect_thunk_"); ok {
		if i := slices.Index(thunks, r); i >= 0 {
			return flow.Through + flow.Effect(i)
		}
	}
	if strings.HasPrefix(name, "__get_user_") || strings.HasPrefix(name, "__put_user_") {
		return flow.Few
	}
	return flow.ByABI
}

// names notes the functions with effects of their own, and the stubs of the procedure linkage table.
func (c *code) names(debug *elf.File) error {
	note := func(s elf.Symbol) bool {
		name, _, _ := strings.Cut(s.Name, "@")
		if e := effectOf(name); e != flow.ByABI {
			c.effects[s.Addr] = e
		}
		return true
	}
	for _, f := range []*elf.File{debug, c.file} {
		for _, table := range []elf.Table{elf.Symtab, elf.Dynsym} {
			if err := f.Symbols(table, note); err != nil {
				return err
			}
		}
		if f == c.file {
			break
		}
	}
	if c.file.Type == stdelf.ET_REL {
		return nil
	}
	return c.file.PLT(note)
}

// Sizes of Elf64_Rela and Elf64_Sym.
const (
	relaSize = 24
	symSize  = 24
)

// relocations reads what the dynamic linker writes into slots.
func (c *code) relocations() error {
	var symbols []byte
	for i := range c.file.Sections {
		if s := &c.file.Sections[i]; s.Type == stdelf.SHT_DYNSYM {
			b, err := c.file.Data(s, maxSection)
			if err != nil {
				return err
			}
			symbols = b
		}
	}
	for i := range c.file.Sections {
		s := &c.file.Sections[i]
		if s.Type != stdelf.SHT_RELA || s.Flags&stdelf.SHF_ALLOC == 0 || c.file.Class != stdelf.ELFCLASS64 {
			continue
		}
		b, err := c.file.Data(s, maxSection)
		if err != nil {
			return err
		}
		for ; len(b) >= relaSize; b = b[relaSize:] {
			c.relocation(b, symbols)
		}
	}
	return nil
}

// relocation notes a relocation if it sets a slot.
func (c *code) relocation(b, symbols []byte) {
	at := addr.Addr(binary.LittleEndian.Uint64(b))
	info := binary.LittleEndian.Uint64(b[8:])
	addend := int64(binary.LittleEndian.Uint64(b[16:]))
	value, defined := int64(0), true
	if n := info >> 32; n > 0 {
		if (n+1)*symSize > uint64(len(symbols)) {
			return
		}
		e := symbols[n*symSize:]
		value = int64(binary.LittleEndian.Uint64(e[8:]))
		defined = binary.LittleEndian.Uint16(e[6:]) != 0
	}
	switch kind := uint32(info); kind {
	case 0:
	case c.relocs.Relative:
		c.slots[at] = flow.Slot{At: addend}
	case c.relocs.Absolute, c.relocs.GlobDat:
		if defined {
			c.slots[at] = flow.Slot{At: value + addend}
		}
	case c.relocs.ThreadOffset, c.relocs.ThreadDescriptor:
		if defined {
			c.slots[at] = flow.Slot{At: value + addend + c.tls, Local: true}
		}
	}
}

// Slot implements flow.Object. In a program at a fixed address the linker has filled the slots.
func (c *code) Slot(a addr.Addr) (flow.Slot, bool) {
	if s, ok := c.slots[a]; ok && c.inGOT(a) {
		return s, true
	}
	s := c.file.Section(".got")
	if s == nil || a < s.Addr || uint64(a-s.Addr) >= s.Size || c.file.Type != stdelf.ET_EXEC {
		return flow.Slot{}, false
	}
	b := c.Bytes(a, 8)
	if len(b) < 8 {
		return flow.Slot{}, false
	}
	v := int64(binary.LittleEndian.Uint64(b))
	return flow.Slot{At: v, Local: v >= c.tls && v < c.tls+c.tlsSize}, v != 0
}

// inGOT reports whether an address is in the global offset table: other pointers can change.
func (c *code) inGOT(a addr.Addr) bool {
	i := sort.Search(len(c.load), func(i int) bool { return c.load[i].Start > a }) - 1
	return i >= 0 && a < c.load[i].End && strings.HasPrefix(c.load[i].header.Name, ".got")
}
