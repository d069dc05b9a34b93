package cfi

import (
	"encoding/binary"
	"fmt"

	"symbolize/ingest/addr"
	ingestelf "symbolize/ingest/object/elf"
)

// Limits on hostile sections: its size, and the rows that are made of it, as floor + factor ×
// size. Real sections have a row for 3 bytes at most.
const (
	maxSFrame          = 1 << 30
	sframeBudgetFloor  = 1 << 16
	sframeBudgetFactor = 4
)

const (
	sframeMagic  = 0xdee2
	sframeHeader = 28

	abiARM64 = 2
	abiAMD64 = 3

	flagRelative = 4 // starts of functions are relative to their entries

	infoBlock  = 1 << 4
	infoSignal = 1 << 7
	kindFlex   = 1
)

// SFrame is a .sframe section.
type SFrame struct {
	Data   []byte
	Addr   addr.Addr // where it is loaded
	Name   string    // of the file, for errors
	Offset int64     // of Data in the file

	version        byte
	relative       bool
	fixedFP        int8
	fixedRA        int8
	funcs, rows    []byte // the two tables
	funcsAt        int    // offset of funcs in Data
	flags, abi     byte
	entry, numbers int // bytes of a function, and how many there are
}

// FindSFrame returns the section of a linked file; nil if there is none, and for other machines
// than x86-64 and arm64.
func FindSFrame(f *ingestelf.File) (*SFrame, error) {
	if f.BigEndian {
		return nil, nil
	}
	sec, b, err := contents(f, ".sframe", maxSFrame)
	if sec == nil {
		return nil, err
	}
	s := &SFrame{Data: b, Addr: sec.Addr, Name: f.Name, Offset: int64(sec.Offset)}
	if err := s.header(); err != nil {
		return nil, err
	}
	if s.abi != abiAMD64 && s.abi != abiARM64 {
		return nil, nil
	}
	return s, nil
}

func (s *SFrame) fail(at int, reason string) error {
	return fmt.Errorf("%s: .sframe at %#x: %s", s.Name, s.Offset+int64(at), reason)
}

// header reads the header, and finds the two tables.
func (s *SFrame) header() error {
	le, b := binary.LittleEndian, s.Data
	if len(b) < sframeHeader || le.Uint16(b) != sframeMagic {
		return s.fail(0, "no header")
	}
	s.version, s.flags, s.abi = b[2], b[3], b[4]
	s.fixedFP, s.fixedRA = int8(b[5]), int8(b[6])
	switch s.version {
	case 1:
		s.entry = 17
	case 2:
		s.entry = 20
	case 3:
		s.entry = 16
	default:
		return s.fail(2, fmt.Sprintf("version %d is not known", s.version))
	}
	s.relative = s.flags&flagRelative != 0 || s.version == 3
	end := sframeHeader + int(b[7])
	if end > len(b) {
		return s.fail(7, "the auxiliary header overruns the section")
	}
	body := uint64(len(b) - end)
	n, funcs, rows := uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[20:])), uint64(le.Uint32(b[24:]))
	if funcs > body || n > (body-funcs)/uint64(s.entry) {
		return s.fail(8, "the functions overrun the section")
	}
	if size := uint64(le.Uint32(b[16:])); rows > body || size > body-rows {
		return s.fail(16, "the rows overrun the section")
	} else {
		s.rows = b[end+int(rows) : end+int(rows+size)]
	}
	s.numbers, s.funcsAt = int(n), end+int(funcs)
	s.funcs = b[s.funcsAt : s.funcsAt+s.numbers*s.entry]
	return nil
}

// function is a function's entry.
type function struct {
	addr.Range
	rows  []byte // from the first on
	count int
	info  byte
	flex  bool
	block uint32 // size of a repeated one, 0 if it is unknown
}

// Rules adds the rows of all functions to b, as functions of its present source. lost counts the
// functions that have none because of damage, and err is the first of that. It is for x86-64 if b
// is, and for arm64.
func (s *SFrame) Rules(b *Builder) (lost int, err error) {
	if b.Arch.LinkRegister != (s.abi == abiARM64) || b.Arch.Word != 8 {
		return s.numbers, s.fail(4, "it is for another machine than the file")
	}
	left := sframeBudgetFloor + sframeBudgetFactor*len(s.Data)
	for i := range s.numbers {
		f, why := s.function(i)
		if why == "" && b.Func(f.Range) {
			why = s.add(b, &f, &left)
		}
		if why != "" {
			if lost++; err == nil {
				err = s.fail(s.funcsAt+i*s.entry, why)
			}
		}
		if left < 0 {
			return lost + s.numbers - i - 1, err
		}
	}
	return lost, err
}

// function reads entry i; why is the reason of damage.
func (s *SFrame) function(i int) (f function, why string) {
	le, b := binary.LittleEndian, s.funcs[i*s.entry:]
	base := s.Addr
	if s.relative {
		base += addr.Addr(s.funcsAt + i*s.entry)
	}
	var rows uint32
	if s.version == 3 {
		f.Start = base + addr.Addr(le.Uint64(b))
		f.End = f.Start + addr.Addr(le.Uint32(b[8:]))
		rows = le.Uint32(b[12:])
	} else {
		f.Start = base + addr.Addr(int64(int32(le.Uint32(b))))
		f.End = f.Start + addr.Addr(le.Uint32(b[4:]))
		rows = le.Uint32(b[8:])
		f.count, f.info = int(le.Uint32(b[12:])), b[16]
		if s.version == 2 {
			f.block = uint32(b[17])
		}
	}
	if uint64(rows) > uint64(len(s.rows)) {
		return f, "its rows are outside the section"
	}
	f.rows = s.rows[rows:]
	if s.version == 3 {
		if len(f.rows) < 5 {
			return f, "it ends before its rows"
		}
		f.count, f.info, f.block = int(le.Uint16(f.rows)), f.rows[2], uint32(f.rows[4])
		switch f.rows[3] & 0x1f {
		case 0:
		case kindFlex:
			f.flex = true
		default:
			return f, "its kind is not known"
		}
		f.rows = f.rows[5:]
	}
	if f.info&0xf > 2 {
		return f, "the width of its rows is not known"
	}
	return f, ""
}

// offRule is a rule and where it begins in its function, or block.
type offRule struct {
	off  uint32
	rule Rule
}

// add adds the rows of a function.
func (s *SFrame) add(b *Builder, f *function, left *int) (why string) {
	var list []offRule // of a block
	r := rowReader{s: s, f: f, b: b}
	for range f.count {
		if *left--; *left < 0 {
			return "there are more rows than bytes"
		}
		row, why := r.next()
		if why != "" {
			return why
		}
		if f.info&infoBlock != 0 {
			list = append(list, row)
		} else {
			b.Row(f.Start+addr.Addr(row.off), &row.rule)
		}
	}
	if f.info&infoBlock == 0 || f.block == 0 {
		return ""
	}
	for at := f.Start; at < f.End && len(list) > 0; at += addr.Addr(f.block) {
		if *left -= len(list); *left < 0 {
			return "there are more rows than bytes"
		}
		for i := range list {
			if list[i].off < f.block {
				b.Row(at+addr.Addr(list[i].off), &list[i].rule)
			}
		}
	}
	return ""
}
