// Package machine is the table of processor architectures: for each the facts about it that are
// data, in one literal. Code that depends on a machine stays in the package that it belongs to, and
// is found by the machine's number in ELF files: recognizers of stubs (ingest/object/elf), known
// functions of C libraries (ingest/object/cfi), instructions (analyze/disasm, ingest/object/calls).
//
// A zero field means that the fact is not known, and that what needs it does not work for the
// machine. TestMachines in fixtures/house prints what each machine lacks; CONTRIBUTING.md has its
// result, and the order in which a new machine is added.
package machine

import (
	"debug/elf"
	"path"
	"slices"
	"strings"

	"symbolize/ingest/addr"
)

// MaxSaved is the number of registers in SignalFrame.Saved and Arch.Saved.
const MaxSaved = 6

// Arch describes a machine.
type Arch struct {
	ELF   elf.Machine
	Names []KernelName // of its kernels, the usual one first
	Go    string       // GOARCH, which other tools use, too; "" if Names has it or there is none
	OTel  string       // host.arch in OpenTelemetry's conventions; "" if it is the name

	// Registers, by their DWARF numbers.
	Word   int   // bytes of an address
	SP, FP uint8 // stack and frame pointer
	PC     uint8 // return address column
	// Registers are the names of registers as assemblers print them, "" for numbers without one; see
	// RegisterName.
	Registers []string
	// Saved are the registers of unwind rules, in their order there; the first is the frame
	// pointer. It is a part of the format of store/unwindtab.
	Saved []uint8
	// LinkRegister is set where calls leave the return address in register PC.
	LinkRegister bool
	// FrameRecord is the distance from the address in the frame pointer to the word with the
	// caller's frame pointer, often 0. The return address is in the next word, and the caller's
	// stack pointer is the address after that.
	FrameRecord int
	// ThreadHeader is how many bytes after the thread pointer thread-local storage of a program begins, if it
	// is not before it.
	ThreadHeader int64
	// CodeMask has the bits of a code pointer that are part of the address.
	CodeMask uint64
	Signals  []SignalFrame // the usual one first

	// Perf has the registers by the bits of perf's masks (perf_regs.h of the kernel), as numbers
	// of frames: DWARF's, NoRegister for registers that unwinding does not need, and PerfPC for
	// the program counter.
	Perf   []uint8
	PerfPC uint8
	// Task32 and Task64 are the machines of the programs that its kernels run, by their width.
	Task32, Task64 elf.Machine

	// Relocations: the fields of debug information by type, and the types in linked files.
	Fields  []Field
	Dynamic Dynamic

	// PageSize is the page size of its kernels; 0 if they can have several.
	PageSize uint64
	// SymbolFlags are the bits of a function symbol's value that are not part of the address.
	SymbolFlags uint64
	// Mapping has the letters of mapping symbols, which mark the start of code or data: "$x". Others
	// may follow, after a dot unless MappingSuffix is set: "$x.1", "$xrv64i2p1".
	Mapping       string
	MappingSuffix bool

	// KernelImage is where kernels are, before modules and BPF programs; empty if that depends on
	// the kernel.
	KernelImage addr.Range
	// KernelLinked is set if kernels run at the addresses that they are linked for.
	KernelLinked bool
	// System is where a system call's number and arguments are in the kernel.
	System System
}

// KernelName is a name of a machine as `uname -m` prints it.
type KernelName struct {
	Text      string // may be a pattern of path.Match
	Class     elf.Class
	BigEndian bool
	JIT       bool // kernels with this name compile BPF programs
}

// NoRegister is in Arch.Perf for registers that unwinding does not need.
const NoRegister = 0xff

// SignalFrame is where the kernel leaves registers of interrupted code, in bytes from the stack
// pointer that the return of a signal handler leaves.
type SignalFrame struct {
	PC, SP int
	Saved  [MaxSaved]int // as Arch.Saved
	Others []SavedRegister
}

// SavedRegister is the place of a register that functions need not keep. Interrupted code may have
// its return address there, as vfork has.
type SavedRegister struct {
	Reg uint8 // DWARF number
	At  int
}

// Field is the field that a relocation type of debug information or .eh_frame writes. The types
// are from the processor supplements of the ELF specification, and of less frequent machines from
// include/elf of binutils.
type Field struct {
	Size     uint8 // bytes
	Relative bool  // to the place itself
	None     bool  // nothing is written
	Op       Op
}

// Op is how a relocation changes its field.
type Op uint8

// The operations on a number of Size bytes, on its low 6 bits, and on a ULEB128 that keeps its
// length. RISC-V and LoongArch write differences of addresses with two operations, since their
// linkers remove code.
const (
	Store Op = iota
	Add
	Sub
	Store6
	Add6
	Sub6
	StoreULEB
	AddULEB
	SubULEB
)

// First returns the first operation of the pair that o is the second of, or Store if o is never
// the second.
func (o Op) First() Op {
	switch o {
	case Sub6:
		return Store6
	case SubULEB:
		return StoreULEB
	}
	return Store
}

// Dynamic has the types of the relocations in linked files that set pointers. Relative, which adds
// the load address to its addend, is 0 for machines with the addends of such relocations in place.
type Dynamic struct {
	JumpSlot, GlobDat, Absolute, Relative, IRelative uint32
	// ThreadOffset sets the distance of a thread-local variable from the thread pointer, ThreadDescriptor
	// what returns it.
	ThreadOffset, ThreadDescriptor uint32
}

// System is where struct pt_regs of the kernel has a system call's number and arguments at its
// exit, and the numbers of some calls.
type System struct {
	Number, First string // members
	NumberSize    int32  // bytes
	// Arguments are the members with the arguments of a function; if there is only one, it is an
	// array that begins with them.
	Arguments []string
	BPF       int32
	Mremap    [2]int32 // of 64-bit and of 32-bit programs
}

// All returns the machines. Callers must not change them.
func All() []*Arch { return archs }

// Of returns the machine of ELF files; nil for an unknown one.
func Of(m elf.Machine) *Arch {
	for _, a := range archs {
		if a.ELF == m {
			return a
		}
	}
	return nil
}

// Named returns the machine with a name of uname or Go; nil for an unknown one. name describes the
// kernels with it.
func Named(text string) (a *Arch, name KernelName) {
	if text == "" {
		return nil, KernelName{}
	}
	for _, a := range archs {
		for _, n := range a.Names {
			if n.Text == text {
				return a, n
			}
		}
		if a.Go == text {
			return a, a.Names[0]
		}
	}
	for _, a := range archs {
		for _, n := range a.Names {
			if ok, _ := path.Match(n.Text, text); ok {
				return a, n
			}
		}
	}
	return nil, KernelName{}
}

// Name returns the name of kernels for programs of a class and a byte order, or, if the table has
// none, the machine's name in ELF in small letters: "x86_64", "ppc64le", "avr".
func Name(m elf.Machine, class elf.Class, bigEndian bool) string {
	if a := Of(m); a != nil && len(a.Names) > 0 {
		for _, n := range a.Names {
			if n.Class == class && n.BigEndian == bigEndian {
				return n.Text
			}
		}
		return a.Names[0].Text
	}
	return strings.ToLower(strings.TrimPrefix(m.String(), "EM_"))
}

// Field returns the field that a relocation type of debug information writes; ok is false for
// unsupported types and machines. a may be nil.
func (a *Arch) Field(kind uint32) (f Field, ok bool) {
	if a == nil || uint64(kind) >= uint64(len(a.Fields)) {
		return Field{}, false
	}
	f = a.Fields[kind]
	return f, f.Size > 0 || f.None
}

// PerfBit returns the bit of a register of Perf in perf's masks, -1 if it has none.
func (a *Arch) PerfBit(reg uint8) int { return slices.Index(a.Perf, reg) }

// JITs returns the names of all machines with kernels that compile BPF programs.
func JITs() (names []string) {
	for _, a := range archs {
		for _, n := range a.Names {
			if n.JIT {
				names = append(names, n.Text)
			}
		}
	}
	return names
}
