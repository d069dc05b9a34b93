package dwarf

import (
	"bufio"
	"io"
	"slices"
)

// infoHeader is the number of bytes up to and including a unit's type: a 64-bit length, the
// version, the type.
const infoHeader = 4 + 8 + 2 + 1

// withoutTypes leaves out sections of .debug_info that begin with a type unit, where
// there are several. In files that were not linked (.o, .dwo) compilers put each type
// unit of DWARF 5 into a section of its own, for linkers to keep one of each, and the
// code into another one of the same name.
func withoutTypes(r io.ReaderAt, secs []RawSection, o *LoadOptions) []RawSection {
	isInfo := func(s RawSection) bool {
		name, _, ok := sectionName(s.Name, o.Split)
		return ok && name == "info"
	}
	first := slices.IndexFunc(secs, isInfo)
	if first < 0 || !slices.ContainsFunc(secs[first+1:], isInfo) {
		return secs
	}
	return slices.DeleteFunc(slices.Clone(secs), func(s RawSection) bool {
		return isInfo(s) && beginsWithType(r, s, o)
	})
}

// beginsWithType reports whether the first unit of a section is a type unit.
func beginsWithType(r io.ReaderAt, s RawSection, o *LoadOptions) bool {
	in := io.Reader(io.NewSectionReader(r, int64(s.Offset), int64(min(s.Size, 1<<62))))
	_, gnu, _ := sectionName(s.Name, o.Split)
	if s.Compressed || gnu {
		in = bufio.NewReader(in)
		kind, _, err := compressionHeader(in, gnu, o)
		if err != nil {
			return false
		}
		plain, done, err := inflater(kind, in)
		if err != nil {
			return false
		}
		defer done()
		in = plain
	}
	var head [infoHeader]byte
	n, _ := io.ReadFull(in, head[:]) // a short one reads as bad
	h := buf{b: head[:n], big: o.BigEndian}
	h.length()
	version, kind := h.u16(), h.u8()
	return !h.bad && version == 5 && (kind == utType || kind == utSplitType)
}
