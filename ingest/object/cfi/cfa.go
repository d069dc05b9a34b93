package cfi

import "symbolize/ingest/addr"

// NoRegister is the number of no register.
const NoRegister = uint8(0xff)

// CFA is a row of the unwind rules: from At on the canonical frame address is register Reg, by DWARF's number, + Off;
// Reg is NoRegister without such a rule.
type CFA struct {
	At  addr.Addr
	Reg uint8
	Off int64
}

// CFAs returns the rows of all sources, by address.
func (b *Builder) CFAs() (list []CFA) {
	b.Rows(func(start addr.Addr, n uint32) {
		row := CFA{At: start, Reg: NoRegister}
		if r := &b.Rules[n]; r.Kind == Frame && r.CFA.How == Register {
			row.Reg, row.Off = r.CFA.Reg, int64(r.CFA.Off)
		}
		list = append(list, row)
	})
	return list
}
