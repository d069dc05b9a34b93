package cfi

import (
	"debug/elf"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	ingestelf "symbolize/ingest/object/elf"
)

// maxExceptTable bounds the bytes of one section of exception tables.
const maxExceptTable = 64 << 20

// LandingPads returns the addresses at which code continues after an exception, ascending: those in the
// exception tables of .gcc_except_table that entries of .eh_frame refer to (LSDA, read as by GCC's
// __gxx_personality_v0 and LLVM's EHStreamer):
//
//	u8 encoding of the base of landing pads, the base (default: the start of the entry's code)
//	u8 encoding of types, uleb offset of types if there are any
//	u8 encoding of call sites, uleb length of all
//	call site: start and length, from the start of the entry's code; landing pad, from the base, 0 for
//	none; uleb action
//
// Damaged tables have no landing pads from the damage on. Tables that are referred to again and again, which
// only damaged files have, are read up to twice their size in all.
func LandingPads(f *ingestelf.File) ([]addr.Addr, error) {
	s, err := FindEHFrame(f)
	if s == nil {
		return nil, err
	}
	var tables []exceptTable
	budget := 0
	for i := range f.Sections {
		x := &f.Sections[i]
		if !strings.HasPrefix(x.Name, ".gcc_except_table") || x.Type == elf.SHT_NOBITS {
			continue
		}
		b, err := f.Data(x, maxExceptTable)
		if err != nil {
			return nil, err
		}
		tables = append(tables, exceptTable{b, x.Addr})
		budget += 2 * len(b)
	}
	if len(tables) == 0 {
		return nil, nil
	}
	var pads []addr.Addr
	w := walker{s: s, wordSize: 4}
	if s.Class64 {
		w.wordSize = 8
	}
	_, err = w.walk(func(e entry, r CodeRange) (string, bool) {
		at, ok := w.lsda(e)
		for _, t := range tables {
			if ok && at >= t.addr && uint64(at-t.addr) < uint64(len(t.data)) {
				n := 0
				pads, n = t.read(pads, at, r.Range, w.wordSize, s.BigEndian)
				budget -= n
			}
		}
		return "", budget > 0
	})
	slices.Sort(pads)
	return slices.Compact(pads), err
}

// lsda returns the address of the exception table of the entry that was read last.
func (w *walker) lsda(e entry) (addr.Addr, bool) {
	if !w.cie.sized || w.cie.lsda == omitted {
		return 0, false
	}
	c := w.cursor(e)
	w.pointer(&c, w.cie.encoding)
	w.pointer(&c, w.cie.encoding&formatMask)
	if c.leb(false) == 0 {
		return 0, false
	}
	at := w.pointer(&c, w.cie.lsda)
	return addr.Addr(at), !c.bad
}

// exceptTable is a section of exception tables.
type exceptTable struct {
	data []byte
	addr addr.Addr
}

// read appends the landing pads of the table at an address, for code of a range, and returns its size.
func (t *exceptTable) read(pads []addr.Addr, at addr.Addr, code addr.Range, wordSize int, bigEndian bool) (
	list []addr.Addr, size int) {
	w := walker{s: &EHFrame{Data: t.data, Addr: t.addr, BigEndian: bigEndian}, wordSize: wordSize}
	c := cursor{b: t.data, at: int(at - t.addr), big: bigEndian}
	base := uint64(code.Start)
	if encoding := c.byte(); encoding != omitted {
		base = w.pointer(&c, encoding)
	}
	if c.byte() != omitted {
		c.leb(false)
	}
	encoding, sites := c.byte(), c.leb(false)
	if c.bad || sites > uint64(len(c.b)-c.at) {
		return pads, min(c.at, len(c.b)) - int(at-t.addr)
	}
	c.b = c.b[:c.at+int(sites)]
	size = len(c.b) - int(at-t.addr)
	for c.at < len(c.b) {
		w.value(&c, encoding&formatMask)
		w.value(&c, encoding&formatMask)
		pad := w.value(&c, encoding&formatMask)
		c.leb(false)
		if c.bad {
			break
		}
		if pad != 0 {
			pads = append(pads, addr.Addr(base+pad))
		}
	}
	return pads, size
}
