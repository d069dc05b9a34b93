package dwarf

import (
	"cmp"
	"slices"

	"symbolize/ingest/addr"
)

// lineState is the state machine of section 6.2.2, as far as rows need it.
type lineState struct {
	address uint64
	opIndex uint64
	file    uint64
	line    uint64
	column  uint64
	// discriminator and body belong to the next row only.
	discriminator uint64
	body          bool
	statement     bool
}

// start is the state at the beginning of a sequence.
func (h *lineHeader) start() lineState { return lineState{file: 1, line: 1, statement: h.statement} }

// runLines runs the line number program of the header in w.lines and appends its
// sequences to the result; visit, if not nil, gets its rows instead.
func (w *walker) runLines(visit func(Line)) {
	h := &w.lines
	l := lineRun{w: w, h: h, st: h.start(), visit: visit}
	r := buf{b: w.d.sec.Line[:h.end], off: int(h.program), big: w.d.sec.BigEndian}
	constAdd := uint64(255-h.opcodeBase) / uint64(h.lineRange)
	for r.left() > 0 {
		at := r.off
		op := r.u8()
		if op >= h.opcodeBase {
			adjusted := op - h.opcodeBase
			l.advance(uint64(adjusted / h.lineRange))
			l.st.line += uint64(int64(h.lineBase) + int64(adjusted%h.lineRange))
			l.row()
			continue
		}
		switch op {
		case 0:
			l.extended(&r)
		case lnsCopy:
			l.row()
		case lnsAdvancePC:
			l.advance(r.uleb())
		case lnsAdvanceLine:
			l.st.line += uint64(r.sleb())
		case lnsSetFile:
			l.st.file = r.uleb()
		case lnsSetColumn:
			l.st.column = r.uleb()
		case lnsNegateStmt:
			l.st.statement = !l.st.statement
		case lnsSetPrologueEnd:
			l.st.body = true
		case lnsSetBasicBlock, lnsSetEpilogueBegin:
		case lnsConstAddPC:
			l.advance(constAdd)
		case lnsFixedAdvancePC:
			l.st.address += uint64(r.u16())
			l.st.opIndex = 0
		case lnsSetISA:
			r.skipLEB()
		default:
			for range h.lengths[op] {
				r.skipLEB()
			}
		}
		if r.bad {
			w.lose(".debug_line", uint64(at), "line number program does not end")
			break
		}
	}
	l.drop()
}

// lineRun collects the rows of one program.
type lineRun struct {
	w         *walker
	h         *lineHeader
	st        lineState
	open      bool // rows from first on are of an unfinished sequence
	dead      bool // which is one of dropped code
	unordered bool // their addresses do not ascend
	first     int
	visit     func(Line) // if not nil, gets all rows: none are collected
}

func (l *lineRun) advance(ops uint64) {
	if l.h.maxOps == 1 {
		l.st.address += ops * l.h.minInst
		return
	}
	n := l.st.opIndex + ops
	l.st.address += l.h.minInst * (n / l.h.maxOps)
	l.st.opIndex = n % l.h.maxOps
}

// row appends the present state. Of several rows with one address the last counts. Addresses
// decrease where functions are listed in another order than their code, as by Dart.
func (l *lineRun) row() {
	if l.visit != nil {
		l.report()
		return
	}
	res := l.w.res
	if !l.open {
		l.first = len(res.rows)
		l.open = true
		l.dead = !l.w.text.alive(l.st.address, l.st.address+1)
	}
	if l.dead {
		l.st.discriminator = 0
		return
	}
	row := Row{
		Addr:   addr.Addr(l.st.address),
		File:   l.w.fileNumber(l.st.file),
		Line:   uint32(l.st.line),
		Column: uint32(min(l.st.column, 1<<32-1)),

		Discriminator: uint32(l.st.discriminator),
	}
	l.st.discriminator = 0
	if n := len(res.rows); n > l.first {
		switch last := &res.rows[n-1]; {
		case row.Addr == last.Addr:
			*last = row
			return
		case row.Addr < last.Addr && !l.w.text.alive(l.st.address, l.st.address+1):
			l.finish()
			l.st.discriminator = uint64(row.Discriminator)
			l.row()
			return
		case row.Addr < last.Addr:
			l.unordered = true
		}
	}
	res.rows = append(res.rows, row)
}

// finish ends the sequence at the present address. A last row of no length is dropped; the length
// of a row after the end is not known yet.
func (l *lineRun) finish() {
	res := l.w.res
	if l.unordered && !l.dead {
		l.order()
	}
	l.open, l.unordered = false, false
	n, end := len(res.rows), addr.Addr(l.st.address)
	if n > l.first && res.rows[n-1].Addr == end {
		n--
		res.rows = res.rows[:n]
	}
	if l.dead || n == l.first {
		res.Dead++
		return
	}
	s := Sequence{Range: addr.Range{Start: res.rows[l.first].Addr, End: end}, lo: l.first, hi: n}
	if last := res.rows[n-1].Addr; last > end {
		s.End, s.endless = last, true
	}
	res.Sequences = append(res.Sequences, s)
}

// order sorts the rows of a sequence by address.
func (l *lineRun) order() {
	rows := l.w.res.rows[l.first:]
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Addr, b.Addr) })
	n := 0
	for i := range rows {
		if i+1 == len(rows) || rows[i+1].Addr != rows[i].Addr {
			rows[n] = rows[i]
			n++
		}
	}
	l.w.res.rows = l.w.res.rows[:l.first+n]
}

// drop forgets rows that no end of sequence followed.
func (l *lineRun) drop() {
	if l.open && !l.dead {
		l.w.res.rows = l.w.res.rows[:l.first]
		l.w.lose(".debug_line", l.h.program, "line number sequence does not end")
	}
}

func (l *lineRun) extended(r *buf) {
	n := r.uleb()
	if n == 0 || n > uint64(r.left()) {
		if n != 0 {
			r.fail()
		}
		return
	}
	end := r.off + int(n)
	switch r.u8() {
	case lneEndSequence:
		if l.open {
			l.finish()
		}
		l.st = l.h.start()
	case lneSetAddress:
		size := uint8(n - 1)
		if n == 5 || n == 9 || n == 3 {
			l.st.address = r.sized(size)
			l.st.opIndex = 0
		}
	case lneSetDiscriminator:
		l.st.discriminator = r.uleb()
	case lneDefineFile:
		l.w.defineFile(r)
	}
	if r.bad || r.off > end {
		r.fail()
		return
	}
	r.off = end
}
