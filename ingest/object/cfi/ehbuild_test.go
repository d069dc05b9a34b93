package cfi

import (
	"encoding/binary"
	"strings"
)

// Addresses of built sections.
const (
	tableAddr = 0x500000
	gotAddr   = 0x600000
	textBase  = 0x400000
)

// frames encodes a .eh_frame section.
type frames struct {
	b       []byte
	class64 bool
	big     bool
	long    bool   // 64-bit lengths
	cie     int    // where the last one is
	debug   bool   // a .debug_frame section
	initial []byte // instructions of common entries
}

func (f *frames) order() binary.AppendByteOrder {
	if f.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (f *frames) word() int {
	if f.class64 {
		return 8
	}
	return 4
}

func (f *frames) put(b []byte, n int, v uint64) []byte {
	o := f.order()
	switch n {
	case 2:
		return o.AppendUint16(b, uint16(v))
	case 4:
		return o.AppendUint32(b, uint32(v))
	}
	return o.AppendUint64(b, v)
}

// entry appends an entry: its ID and a body, which depend on their offsets in the section.
func (f *frames) entry(id func(idAt int) uint32, body func(at int) []byte) {
	head := 4
	if f.long {
		head = 12
	}
	at := len(f.b) + head
	d := body(at + 4)
	for (len(d)+4)%f.word() != 0 {
		d = append(d, 0) // DW_CFA_nop
	}
	width := 4
	if f.long && f.debug {
		width = 8
	}
	if f.long {
		f.b = f.put(f.put(f.b, 4, 0xffffffff), 8, uint64(len(d)+width))
	} else {
		f.b = f.put(f.b, 4, uint64(len(d)+width))
	}
	v := uint64(id(at))
	if v == 1<<32-1 {
		v = ^uint64(0)
	}
	f.b = append(f.put(f.b, width, v), d...)
}

// common appends a CIE with an augmentation string and its data.
func (f *frames) common(version byte, augmentation string, data ...byte) {
	f.cie = len(f.b)
	f.entry(func(int) uint32 {
		if f.debug {
			return 1<<32 - 1
		}
		return 0
	}, func(int) []byte {
		d := append([]byte{version}, augmentation+"\x00"...)
		if augmentation == "eh" {
			d = f.put(d, f.word(), 0x1234)
		}
		if version == 4 {
			d = append(d, byte(f.word()), 0)
		}
		d = append(d, 1, 0x78) // alignments of code and data
		if version == 1 {
			d = append(d, 16)
		} else {
			d = append(d, 0x90, 0x00)
		}
		if strings.HasPrefix(augmentation, "z") {
			d = append(d, byte(len(data)))
		}
		return append(append(d, data...), f.initial...)
	})
}

// function appends an FDE of the last CIE, with pointers in this encoding.
func (f *frames) function(encoding byte, start, size uint64, code ...byte) {
	f.entry(func(idAt int) uint32 {
		if f.debug {
			return uint32(f.cie)
		}
		return uint32(idAt - f.cie)
	}, func(at int) []byte {
		var d []byte
		v := start
		switch encoding & baseMask {
		case basePC:
			v -= uint64(tableAddr + at)
		case baseText:
			v -= textBase
		case baseData:
			v -= gotAddr
		case baseAligned:
			for (tableAddr+at+len(d))%f.word() != 0 {
				d = append(d, 0)
			}
			return f.put(f.put(d, f.word(), v), f.word(), size)
		}
		d = f.value(d, encoding&formatMask, v)
		d = f.value(d, encoding&formatMask, size)
		if !f.debug {
			d = append(d, 0) // length of augmentation data
		}
		return append(d, code...)
	})
}

func (f *frames) value(d []byte, format byte, v uint64) []byte {
	switch format {
	case formatPtr, formatSPtr:
		return f.put(d, f.word(), v)
	case formatU2, formatS2:
		return f.put(d, 2, v)
	case formatU4, formatS4:
		return f.put(d, 4, v)
	case formatU8, formatS8:
		return f.put(d, 8, v)
	case formatULEB:
		return binary.AppendUvarint(d, v)
	}
	for s := int64(v); ; s >>= 7 { // SLEB128
		x := byte(s & 0x7f)
		if s>>6 == 0 || s>>6 == -1 {
			return append(d, x)
		}
		d = append(d, x|0x80)
	}
}

func (f *frames) section() *EHFrame {
	return &EHFrame{
		Name: "test", Data: f.b, Offset: 0x100, Addr: tableAddr, Class64: f.class64,
		BigEndian: f.big, TextBase: textBase, GOT: gotAddr, Debug: f.debug,
	}
}

// everything has one of each.
func everything(class64, big bool) *frames {
	f := &frames{class64: class64, big: big}
	const enc = basePC | formatS4
	f.common(1, "zPLR", 0x9b, 1, 2, 3, 4, 0x1b, enc)
	f.function(enc, 0x401000, 5)
	f.common(4, "zR", formatSLEB|baseData)
	f.function(formatSLEB|baseData, 0x402000, 6)
	f.long = true
	f.common(3, "eh")
	f.function(formatPtr, 0x403000, 7)
	f.b = append(f.b, 0, 0, 0, 0)
	return f
}

var forms = []struct{ class64, big bool }{
	{class64: true}, {class64: true, big: true}, {big: false}, {big: true},
}
