package flow

import "symbolize/ingest/addr"

// tableWindow is how many instructions before an indirect jump its table's address can be.
const tableWindow = 24

// x86Table returns the targets of an indirect jump through a table of x86-64: words of eight bytes with
// addresses, "jmp *T(,%rax,8)", or of four with distances from the table,
// "lea T(%rip),%ra; movslq (%ra,%rb,4),%r; add %ra,%r; jmp *%r".
func x86Table(g *graph, i int) []addr.Addr {
	x := &g.insns[i]
	scaled := func(m *memory) bool { return m.base == noReg && m.index != noReg && m.scale == 8 }
	addresses := func(at int64) []addr.Addr {
		return g.words(jumpTable{at: addr.Addr(at), size: 8, n: maxTable})
	}
	if x.form == memForm {
		if scaled(&x.mem) {
			return addresses(x.mem.disp)
		}
		return nil
	}
	for j := i - 1; j >= 0 && j > i-tableWindow; j-- {
		y := &g.insns[j]
		switch {
		case y.op == opAddr && y.mem.absolute:
			at := addr.Addr(y.mem.disp)
			if list := g.words(jumpTable{at: at, base: at, size: 4, n: maxTable, signed: true}); len(list) > 0 {
				return list
			}
		case y.op == opMove && y.form == memForm && scaled(&y.mem) && y.dst == x.src:
			return addresses(y.mem.disp)
		}
	}
	return nil
}
