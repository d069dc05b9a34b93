package sampler

import (
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Registers with one use through the whole program.
const (
	regContext = asm.R6 // of the event
	regScratch = asm.R7 // the CPU's scratch memory
	// R8 and R9 hold values of a piece of the program across calls.
)

// The stack of the program, offsets from its top.
const (
	stackIndex = -4 // u32 key of arrays
	stackWord  = -8 // u32
	stackValue = -24
)

// assembler collects the instructions of a program. Labels are made by the pieces, so
// that a piece can be in it twice.
type assembler struct {
	ins    asm.Instructions
	labels int
	next   string // symbol of the instruction that follows
	maps   *kernelMaps
	fd     func(*ebpf.Map) int

	// nil: known stacks and the programs of a process are not recognized.
	process *processLayout
	ns      *namespace // nil: processes have the numbers of the initial namespace
	steady  Range
}

func (a *assembler) add(ins ...asm.Instruction) {
	for _, in := range ins {
		if a.next != "" {
			in = in.WithSymbol(a.next)
			a.next = ""
		}
		a.ins = append(a.ins, in)
	}
}

// label makes a name that is not yet used.
func (a *assembler) label(name string) string {
	a.labels++
	return name + "_" + strconv.Itoa(a.labels)
}

// here gives the instruction that follows a name. Two names fall together by way of a
// jump to the next instruction.
func (a *assembler) here(label string) {
	if a.next != "" {
		a.add(asm.Mov.Reg(asm.R0, asm.R0))
	}
	a.next = label
}

// mapPointer puts the address of a map into a register.
func (a *assembler) mapPointer(to asm.Register, m *ebpf.Map) asm.Instruction {
	return asm.LoadMapPtr(to, a.fd(m))
}

// pointer puts base+off into a register.
func pointer(to, base asm.Register, off int32) []asm.Instruction {
	return []asm.Instruction{asm.Mov.Reg(to, base), asm.Add.Imm(to, off)}
}

// lookup looks up the key at base+off: R0 is the address of its value, or 0.
func (a *assembler) lookup(m *ebpf.Map, base asm.Register, off int32) {
	a.add(pointer(asm.R2, base, off)...)
	a.add(a.mapPointer(asm.R1, m), asm.FnMapLookupElem.Call())
}

// element looks up the element of an array.
func (a *assembler) element(m *ebpf.Map, i int64) {
	a.add(asm.StoreImm(asm.R10, stackIndex, i, asm.Word))
	a.lookup(m, asm.R10, stackIndex)
}

// bump adds 1 to a counter.
func (a *assembler) bump(stat int64) {
	none := a.label("no_counter")
	a.element(a.maps.stats, stat)
	a.add(asm.JEq.Imm(asm.R0, 0, none), asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0))
	a.here(none)
}

func (a *assembler) exit() { a.add(asm.Mov.Imm(asm.R0, 0), asm.Return()) }
