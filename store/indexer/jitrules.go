package indexer

import (
	"cmp"
	"debug/elf"
	"fmt"

	"symbolize/ingest/addr"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/ehframe"
	"symbolize/store/symtab"
	"symbolize/store/unwindtab"
)

// jitRules makes the unwind table of a jitdump file: by offsets in it, as its symbol table. nil if
// no function has rules. Functions with invalid rules, or rules for other code, are counted.
func jitRules(d *jitdump.File) *symtab.Encoded {
	arch := jitArch(d)
	if arch == nil || d.BigEndian {
		return nil
	}
	b := cfi.NewBuilder(arch)
	for i := range d.Loads {
		if err := loadRules(b, d, &d.Loads[i]); err != nil {
			d.BadRules, d.FirstBadRules = d.BadRules+1, cmp.Or(d.FirstBadRules, err)
		}
	}
	if b.Funcs() == 0 {
		return nil
	}
	return unwindtab.Encode(b)
}

// jitArch returns the machine of a file. CPython 3.13 leaves the header's field 0: the first rules
// have it then.
func jitArch(d *jitdump.File) *cfi.Arch {
	if d.Machine != uint16(elf.EM_NONE) {
		return cfi.ArchOf(elf.Machine(d.Machine))
	}
	for i := range d.Loads {
		if data, at, err := d.Frames(&d.Loads[i]); err == nil && data != nil {
			if a := (&ehframe.Section{Name: d.Name, Data: data, Offset: at}).Arch(); a != nil {
				return a
			}
		}
	}
	return nil
}

// loadRules adds the rules of a function.
func loadRules(b *cfi.Builder, d *jitdump.File, l *jitdump.Load) error {
	data, at, err := d.Frames(l)
	if err != nil || data == nil {
		return err
	}
	code := addr.Range{Start: addr.Addr(l.Code), End: addr.Addr(l.Code) + addr.Addr(l.Size)}
	s := &ehframe.Section{Name: d.Name, Data: data, Offset: at, Class64: b.Arch.Word == 8,
		Addr: code.Start + addr.Addr(l.Size+7)&^7}
	outside := false
	_, err = s.Frames(func(f ehframe.Frame) bool {
		outside = f.Start < code.Start || f.End > code.End
		return !outside
	})
	if outside {
		return fmt.Errorf("%s: offset %#x: unwinding information of other code than its function's", d.Name, at)
	}
	if err != nil {
		return err
	}
	_, err = s.Rules(b)
	return err
}
