package cfi

import (
	"fmt"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// Budget of Rules: the bytes of instructions that all entries together may run, as floor +
// factor × size of the section. Real sections run each byte once, and common entries a
// few times more.
const (
	ehBudgetFloor  = 1 << 20
	ehBudgetFactor = 16
)

// Rules adds the rows of all entries to b, as functions of its present source. lost and err are as
// in Frames; an entry with unknown instructions from some point on keeps the rows before it.
func (s *EHFrame) Rules(b *Builder) (lost int, err error) {
	w := walker{s: s, wordSize: 4, rules: b, left: ehBudgetFloor + ehBudgetFactor*len(s.Data)}
	if s.Class64 {
		w.wordSize = 8
	}
	for i := range w.slot {
		w.slot[i] = noSlot
	}
	for i, reg := range b.Arch.Saved {
		w.slot[reg] = int8(i)
	}
	return w.walk(func(e entry, f CodeRange) (reason string, more bool) {
		if !b.Func(f.Range) {
			return "", true // empty, or longer than any function
		}
		reason = w.run(e, f)
		if w.left < 0 {
			return "common entries are used more often than real ones are", false
		}
		return reason, true
	})
}

// Arch returns the architecture with the number of the return address in the rules of the
// first entry have; nil if there is none.
func (s *EHFrame) Arch() (arch *machine.Arch) {
	w := walker{s: s, wordSize: 8}
	_, _ = w.walk(func(entry, CodeRange) (string, bool) {
		arch = ArchByReturn(w.cie.ra)
		return "", false
	})
	return arch
}

// Slots of registers besides their index in Rule.Saved.
const (
	noSlot = -1
	raSlot = -2
)

// run adds the rows of an entry that was read up to w.body.
func (w *walker) run(e entry, f CodeRange) (reason string) {
	c := &w.cie
	if !c.ran {
		c.ran = true
		w.stack = w.stack[:0]
		m := interpreter{w: w, c: cursor{b: w.s.Data[:c.end], at: c.program, big: w.s.BigEndian}}
		m.rule = Rule{Kind: Frame, Signal: c.signal}
		c.initReason = m.program(f.Start, false)
		c.initial = m.rule
	}
	if c.initReason != "" {
		return c.initReason
	}
	w.stack = w.stack[:0]
	m := interpreter{w: w, c: cursor{b: w.s.Data[:e.end], at: w.body, big: w.s.BigEndian}}
	m.rule = c.initial
	return m.program(f.Start, true)
}

// interpreter runs call frame instructions.
type interpreter struct {
	w    *walker
	c    cursor
	at   addr.Addr
	rule Rule
	// off is the offset that was set while an expression computes the CFA: GCC's unwinder keeps
	// the expression, and uses the offset when a register is set.
	off uint64
}

// maxRemembered bounds the depth of DW_CFA_remember_state; compilers nest one deep.
const maxRemembered = 64

// Call frame instructions, DW_CFA_…: DWARF 5, 7.24, GCC's extensions (dwarf2.def), and extensions
// of arm64's ABI.
const (
	cfaAdvance = 0x40 // these three have an operand in their low six bits
	cfaOffset  = 0x80
	cfaRestore = 0xc0

	cfaNop            = 0x00
	cfaSetLoc         = 0x01
	cfaAdvance1       = 0x02
	cfaAdvance2       = 0x03
	cfaAdvance4       = 0x04
	cfaOffsetExt      = 0x05
	cfaRestoreExt     = 0x06
	cfaUndefined      = 0x07
	cfaSame           = 0x08
	cfaRegister       = 0x09
	cfaRemember       = 0x0a
	cfaRestoreState   = 0x0b
	cfaDefCFA         = 0x0c
	cfaDefCFARegister = 0x0d
	cfaDefCFAOffset   = 0x0e
	cfaDefCFAExpr     = 0x0f
	cfaExpr           = 0x10
	cfaOffsetSF       = 0x11
	cfaDefCFASF       = 0x12
	cfaDefCFAOffSF    = 0x13
	cfaValOffset      = 0x14
	cfaValOffsetSF    = 0x15
	cfaValExpr        = 0x16
	cfaAdvance8       = 0x1d // MIPS
	cfaNegateRAPC     = 0x2c // arm64: return addresses are signed
	cfaNegateRA       = 0x2d // arm64; SPARC's window save
	cfaArgsSize       = 0x2e
	cfaNegOffsetExt   = 0x2f
)

// program runs instructions to the end of the cursor. With rows each address that gets rules
// of its own becomes a row.
func (m *interpreter) program(start addr.Addr, rows bool) (reason string) {
	m.w.left -= len(m.c.b) - m.c.at
	m.at = start
	for m.c.at < len(m.c.b) && !m.c.bad && reason == "" {
		op := m.c.byte()
		if delta, ok := m.advance(op); ok {
			if rows {
				m.row()
			}
			m.at = addr.Addr(delta)
			continue
		}
		reason = m.step(op)
	}
	if reason == "" && m.c.bad {
		reason = "instructions end too early"
	}
	if rows && reason != "" {
		m.rule = Rule{} // the rule from here on is not known
	}
	if rows {
		m.row()
	}
	return reason
}

// row adds the present rule.
func (m *interpreter) row() {
	r := &m.rule
	if r.RA.How == Undefined {
		r = &Rule{Kind: End}
	}
	m.w.rules.Row(m.at, r)
}

// advance returns where an instruction moves to; false if it is another one.
func (m *interpreter) advance(op uint8) (to uint64, ok bool) {
	var delta uint64
	switch {
	case op&0xc0 == cfaAdvance:
		delta = uint64(op & 0x3f)
	case op == cfaAdvance1:
		delta = uint64(m.c.byte())
	case op == cfaAdvance2:
		delta = m.c.fixed(2)
	case op == cfaAdvance4:
		delta = m.c.fixed(4)
	case op == cfaAdvance8:
		delta = m.c.fixed(8)
	case op == cfaSetLoc:
		return m.w.pointer(&m.c, m.w.cie.encoding), true
	default:
		return 0, false
	}
	return uint64(m.at) + delta*m.w.cie.codeAlign, true
}

// step runs an instruction that does not move.
func (m *interpreter) step(op uint8) (reason string) {
	c := &m.c
	switch op & 0xc0 {
	case cfaOffset:
		return m.saved(uint64(op&0x3f), AtCFA, c.leb(false)*m.w.cie.dataAlign)
	case cfaRestore:
		return m.restore(uint64(op & 0x3f))
	}
	switch op {
	case cfaNop, cfaNegateRA, cfaNegateRAPC:
	case cfaArgsSize:
		c.skipLEB()
	case cfaRemember:
		if len(m.w.stack) >= maxRemembered {
			return "too many remembered states"
		}
		m.w.stack = append(m.w.stack, m.rule)
	case cfaRestoreState:
		n := len(m.w.stack)
		if n == 0 {
			return "restores a state that was not remembered"
		}
		m.rule, m.w.stack = m.w.stack[n-1], m.w.stack[:n-1]
	case cfaDefCFA, cfaDefCFARegister, cfaDefCFAOffset, cfaDefCFASF, cfaDefCFAOffSF, cfaDefCFAExpr:
		return m.cfa(op)
	default:
		return m.register(op)
	}
	return ""
}

// cfa runs an instruction that defines the CFA.
func (m *interpreter) cfa(op uint8) (reason string) {
	c, align := &m.c, m.w.cie.dataAlign
	reg, off := uint64(m.rule.CFA.Reg), uint64(int64(m.rule.CFA.Off))
	if m.rule.CFA.How == Expr {
		off = m.off
	}
	switch op {
	case cfaDefCFA:
		reg, off = c.leb(false), c.leb(false)
	case cfaDefCFASF:
		reg, off = c.leb(false), c.leb(true)*align
	case cfaDefCFARegister:
		reg = c.leb(false)
	case cfaDefCFAOffset:
		off = c.leb(false)
	case cfaDefCFAOffSF:
		off = c.leb(true) * align
	case cfaDefCFAExpr:
		n, reason := m.expression()
		if reason == "" {
			m.rule.CFA = Where{How: Expr, Off: n}
		}
		return reason
	}
	if m.rule.CFA.How == Expr && (op == cfaDefCFAOffset || op == cfaDefCFAOffSF) {
		m.off = off
		return ""
	}
	if reg > 0xff || int64(off) != int64(int32(off)) {
		return fmt.Sprintf("CFA of register %d and offset %d", reg, int64(off))
	}
	m.rule.CFA = Where{How: Register, Reg: uint8(reg), Off: int32(off)}
	return ""
}

// register runs an instruction that locates a register.
func (m *interpreter) register(op uint8) (reason string) {
	c, align := &m.c, m.w.cie.dataAlign
	reg := c.leb(false)
	switch op {
	case cfaOffsetExt:
		return m.saved(reg, AtCFA, c.leb(false)*align)
	case cfaNegOffsetExt:
		return m.saved(reg, AtCFA, -c.leb(false)*align)
	case cfaOffsetSF:
		return m.saved(reg, AtCFA, c.leb(true)*align)
	case cfaValOffset:
		return m.saved(reg, CFAPlus, c.leb(false)*align)
	case cfaValOffsetSF:
		return m.saved(reg, CFAPlus, c.leb(true)*align)
	case cfaRestoreExt:
		return m.restore(reg)
	case cfaUndefined:
		return m.saved(reg, Undefined, 0)
	case cfaSame:
		return m.saved(reg, Same, 0)
	case cfaRegister:
		from := c.leb(false)
		if from > 0xff {
			return fmt.Sprintf("register %d is in register %d", reg, from)
		}
		if w := m.slot(reg); w != nil {
			*w = Where{How: Register, Reg: uint8(from)}
		}
		return ""
	case cfaExpr, cfaValExpr:
		n, reason := m.expression()
		how := AtExpr
		if op == cfaValExpr {
			how = Expr
		}
		if w := m.slot(reg); w != nil && reason == "" {
			*w = Where{How: how, Off: n}
		}
		return reason
	}
	return fmt.Sprintf("unknown instruction %#x", op)
}

// expression reads an expression and returns its number.
func (m *interpreter) expression() (n int32, reason string) {
	size := m.c.leb(false)
	if m.c.bad || size > uint64(len(m.c.b)-m.c.at) {
		return 0, "instructions end too early"
	}
	code := m.c.b[m.c.at : m.c.at+int(size)]
	m.c.at += int(size)
	n, ok := m.w.rules.Expr(code)
	if !ok {
		return 0, "expression is too long, or there are too many"
	}
	return n, ""
}

// slot returns the place of a register in the rule; nil if unwinding does not need it.
func (m *interpreter) slot(reg uint64) *Where {
	if reg == m.w.cie.ra {
		return &m.rule.RA
	}
	if reg < uint64(len(m.w.slot)) && m.w.slot[reg] != noSlot {
		return &m.rule.Saved[m.w.slot[reg]]
	}
	return nil
}

func (m *interpreter) saved(reg uint64, how How, off uint64) (reason string) {
	if int64(off) != int64(int32(off)) {
		return fmt.Sprintf("register %d at offset %d", reg, int64(off))
	}
	if w := m.slot(reg); w != nil {
		*w = Where{How: how, Off: int32(off)}
	}
	return ""
}

// restore gives a register the rule of the common entry.
func (m *interpreter) restore(reg uint64) string {
	if w := m.slot(reg); w != nil {
		from := interpreter{w: m.w, rule: m.w.cie.initial}
		*w = *from.slot(reg)
	}
	return ""
}
