package cfi

import (
	"encoding/binary"
	"fmt"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// builtRow is a row of a built section: where it begins, its info without the number and width of
// words, and the words.
type builtRow struct {
	off   uint32
	info  byte
	words []int32
}

// builtFunc is a function of a built section.
type builtFunc struct {
	start, size uint32
	info, kind  byte
	block       byte
	rows        []builtRow
}

// sframeAt is where built sections are loaded.
const sframeAt = 0x10000

// buildSFrame makes a section of a version.
func buildSFrame(version, flags, abi byte, fixedFP, fixedRA int8, funcs []builtFunc) []byte {
	le := binary.LittleEndian
	entry := map[byte]int{1: 17, 2: 20, 3: 16}[version]
	var index, rows []byte
	count := 0
	for i, f := range funcs {
		start := int64(f.start) - sframeAt
		if flags&flagRelative != 0 || version == 3 {
			start -= int64(sframeHeader + i*entry)
		}
		offset := uint32(len(rows))
		count += len(f.rows)
		if version == 3 {
			rows = append(le.AppendUint16(rows, uint16(len(f.rows))), f.info, f.kind, f.block)
			index = le.AppendUint32(le.AppendUint32(le.AppendUint64(index, uint64(start)), f.size), offset)
		} else {
			index = le.AppendUint32(le.AppendUint32(index, uint32(start)), f.size)
			index = append(le.AppendUint32(le.AppendUint32(index, offset), uint32(len(f.rows))), f.info)
			if version == 2 {
				index = append(index, f.block, 0, 0)
			}
		}
		for _, r := range f.rows {
			rows = append(rows, le.AppendUint32(nil, r.off)[:1<<(f.info&3)]...)
			size := 0
			for _, w := range r.words {
				for size < 2 && int32(w<<(32-8<<size))>>(32-8<<size) != w {
					size++
				}
			}
			rows = append(rows, r.info|byte(len(r.words))<<1|byte(size)<<5)
			for _, w := range r.words {
				rows = append(rows, le.AppendUint32(nil, uint32(w))[:1<<size]...)
			}
		}
	}
	b := append(le.AppendUint16(nil, sframeMagic), version, flags, abi, byte(fixedFP), byte(fixedRA), 0)
	for _, n := range []int{len(funcs), count, len(rows), 0, len(index)} {
		b = le.AppendUint32(b, uint32(n))
	}
	return append(append(b, index...), rows...)
}

// openSFrame reads the header of a section.
func openSFrame(data []byte) (*SFrame, error) {
	s := &SFrame{Data: data, Addr: sframeAt, Name: "built"}
	return s, s.header()
}

// listed returns the rules of a section as lines.
func listed(t testing.TB, s *SFrame, a *machine.Arch) []string {
	t.Helper()
	b := NewBuilder(a)
	if lost, err := s.Rules(b); lost > 0 || err != nil {
		t.Errorf("lost %d, %v", lost, err)
	}
	return lines(b)
}

// lines prints the rules of a builder, but for registers besides the frame pointer.
func lines(b *Builder) (out []string) {
	last := ""
	b.Rows(func(a addr.Addr, n uint32) {
		r := b.Rules[n]
		text := "none"
		switch r.Kind {
		case End:
			text = "end"
		case Frame:
			text = fmt.Sprintf("CFA %s RA %s FP %s", place(b, r.CFA), place(b, r.RA), place(b, r.Saved[0]))
			if r.Signal {
				text += " signal"
			}
		}
		if text != last {
			out = append(out, fmt.Sprintf("%x %s", a, text))
		}
		last = text
	})
	return out
}

func place(b *Builder, w Where) string {
	switch w.How {
	case AtCFA:
		return fmt.Sprintf("*(c%+d)", w.Off)
	case Register:
		return fmt.Sprintf("r%d%+d", w.Reg, w.Off)
	case Expr, AtExpr:
		return fmt.Sprintf("[% x]", b.Exprs[w.Off])
	}
	return fmt.Sprintf("how%d%+d", w.How, w.Off)
}
