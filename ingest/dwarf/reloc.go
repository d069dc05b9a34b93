package dwarf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"debug/elf"
)

// A Relocation is one entry of a SHT_RELA or SHT_REL section.
type Relocation struct {
	Offset    uint64
	Symbol    uint32
	Type      uint32
	Addend    int64
	HasAddend bool // SHT_RELA; else the addend stands in the section
}

// Relocator applies the relocations of the debug sections of a relocatable file
// (ET_REL: kernel modules, objects). It must not be used on any other file.
type Relocator struct {
	Machine   elf.Machine
	BigEndian bool

	// Symbol returns the value of a symbol, where sections lie by the layout that the
	// caller wants addresses in. False is a symbol that has none.
	Symbol func(index uint32) (uint64, bool)
}

// ErrRelocation marks relocations of a type that is not known here; all others have
// been applied.
var ErrRelocation = errors.New("unknown relocations")

// absolute returns the size of an absolute relocation, 0 if the type is another.
// None is a type that asks for nothing.
func absolute(m elf.Machine, typ uint32) (size int, none bool) {
	switch m {
	case elf.EM_X86_64:
		switch elf.R_X86_64(typ) {
		case elf.R_X86_64_NONE:
			return 0, true
		case elf.R_X86_64_64, elf.R_X86_64_DTPOFF64:
			return 8, false
		case elf.R_X86_64_32, elf.R_X86_64_32S, elf.R_X86_64_DTPOFF32:
			return 4, false
		}
	case elf.EM_AARCH64:
		switch elf.R_AARCH64(typ) {
		case elf.R_AARCH64_NONE, elf.R_AARCH64_NULL:
			return 0, true
		case elf.R_AARCH64_ABS64:
			return 8, false
		case elf.R_AARCH64_ABS32:
			return 4, false
		}
	case elf.EM_386:
		switch elf.R_386(typ) {
		case elf.R_386_NONE:
			return 0, true
		case elf.R_386_32:
			return 4, false
		}
	case elf.EM_ARM:
		switch elf.R_ARM(typ) {
		case elf.R_ARM_NONE:
			return 0, true
		case elf.R_ARM_ABS32:
			return 4, false
		}
	case elf.EM_PPC64:
		switch elf.R_PPC64(typ) {
		case elf.R_PPC64_NONE:
			return 0, true
		case elf.R_PPC64_ADDR64:
			return 8, false
		case elf.R_PPC64_ADDR32:
			return 4, false
		}
	case elf.EM_S390:
		switch elf.R_390(typ) {
		case elf.R_390_NONE:
			return 0, true
		case elf.R_390_64:
			return 8, false
		case elf.R_390_32:
			return 4, false
		}
	}
	return 0, false
}

// Apply changes the section b as one of its relocations asks. Those outside b, or to
// symbols without a value, leave 0, which reads as code that is not there.
func (rl *Relocator) Apply(b []byte, r Relocation) error {
	size, none := absolute(rl.Machine, r.Type)
	if none {
		return nil
	}
	if size == 0 {
		return fmt.Errorf("%w: type %d", ErrRelocation, r.Type)
	}
	if r.Offset > uint64(len(b)) || uint64(len(b))-r.Offset < uint64(size) {
		return fmt.Errorf("relocation at %#x lies outside the section", r.Offset)
	}
	at := b[r.Offset:]
	var order binary.ByteOrder = binary.LittleEndian
	if rl.BigEndian {
		order = binary.BigEndian
	}
	add := uint64(r.Addend)
	if !r.HasAddend {
		if size == 8 {
			add = order.Uint64(at)
		} else {
			add = uint64(order.Uint32(at))
		}
	}
	v, ok := rl.Symbol(r.Symbol)
	if !ok {
		v, add = 0, 0
	}
	if size == 8 {
		order.PutUint64(at, v+add)
	} else {
		order.PutUint32(at, uint32(v+add))
	}
	return nil
}

// ApplyAll applies the relocations in the raw contents of a SHT_RELA or SHT_REL
// section to the section b that they are for. It applies all that it can and returns
// the first error.
func (rl *Relocator) ApplyAll(b, relocs []byte, class64, rela bool) error {
	r := buf{b: relocs, big: rl.BigEndian}
	var first error
	for r.left() > 0 {
		rel := Relocation{HasAddend: rela}
		if class64 {
			rel.Offset = r.u64()
			info := r.u64()
			rel.Symbol, rel.Type = uint32(info>>32), uint32(info)
		} else {
			rel.Offset = uint64(r.u32())
			info := r.u32()
			rel.Symbol, rel.Type = info>>8, info&0xff
		}
		switch {
		case rela && class64:
			rel.Addend = int64(r.u64())
		case rela:
			rel.Addend = int64(int32(r.u32()))
		}
		if r.bad {
			return errors.New("relocation section does not end")
		}
		if err := rl.Apply(b, rel); err != nil && first == nil {
			first = err
		}
	}
	return first
}
