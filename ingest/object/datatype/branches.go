package datatype

import (
	stdelf "debug/elf"
	"encoding/binary"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
)

// A table of places in the code, of distances from the fields themselves.
type places struct {
	section string
	size    int // of an entry
	both    bool
}

// Tables of a kernel: struct jump_entry (include/linux/jump_label.h, 4.20 and later) has a place that is
// changed to a jump, and its target; struct exception_table_entry (of x86-64 arch/x86/include/asm/extable.h,
// of arm64 arch/arm64/include/asm/extable.h, 5.17 and later) an instruction that may fault, and where control
// continues then.
var placeTables = []places{{"__jump_table", 16, true}, {"__ex_table", 12, false}}

// branches reads where control goes besides what the code says. A kernel has the first table in its data,
// between two symbols.
func (c *code) branches(debug *elf.File) error {
	c.jumps = make(map[addr.Addr][]addr.Addr)
	for _, t := range placeTables {
		for i := range c.load {
			if s := &c.load[i]; s.header.Name == t.section {
				c.addPlaces(&t, s.Range)
			}
		}
	}
	if c.image != nil {
		return nil
	}
	var r addr.Range
	err := debug.Entries(elf.Symtab, func(e elf.Entry) bool {
		switch e.Name {
		case "__start___jump_table":
			r.Start = addr.Addr(e.Value)
		case "__stop___jump_table":
			r.End = addr.Addr(e.Value)
		}
		return r.Start == 0 || r.End == 0
	})
	if r.Start < r.End && r.Start != 0 {
		c.addPlaces(&placeTables[0], r)
	}
	return err
}

// addPlaces adds the entries of a table.
func (c *code) addPlaces(t *places, r addr.Range) {
	b := c.Bytes(r.Start, int(min(r.End-r.Start, maxSection)))
	for at := r.Start; len(b) >= t.size; b, at = b[t.size:], at+addr.Addr(t.size) {
		from := at + addr.Addr(int64(int32(binary.LittleEndian.Uint32(b))))
		to := at + 4 + addr.Addr(int64(int32(binary.LittleEndian.Uint32(b[4:]))))
		c.jumps[from] = append(c.jumps[from], to)
		if n := c.jumpLength(from); t.both && n > 0 {
			c.jumps[from] = append(c.jumps[from], from+n) // it is a jump in the file
		}
	}
}

// jumpLength returns the length of a jump, 0 of another instruction.
func (c *code) jumpLength(at addr.Addr) addr.Addr {
	b := c.Bytes(at, 4)
	switch {
	case len(b) < 4:
	case c.file.Machine == stdelf.EM_AARCH64:
		if b[3]>>2 == 5 {
			return 4
		}
	case b[0] == 0xe9:
		return 5
	case b[0] == 0xeb:
		return 2
	}
	return 0
}

// Jumps implements flow.Object.
func (c *code) Jumps(a addr.Addr) []addr.Addr { return c.jumps[a] }
