package pgo

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// The versions of FormatGCOV.
const (
	GCOV2 = 2 // of gcc 12 to 15
	GCOV3 = 3 // of gcc 16
)

// Words of the file.
const (
	gcovMagic     = 0x67636461 // "gcda"
	gcovSummary   = 0xa8000000
	gcovNames     = 0xaa000000
	gcovFunctions = 0xac000000
	gcovModules   = 0xae000000
	indirectCalls = 7 // HIST_TYPE_INDIR_CALL_TOPN, which gcc skips
)

// writeGCOV writes a profile for gcc's -fauto-profile (auto-profile.cc of gcc):
//
//	u32 magic, u32 version, u32 0
//	u32 names tag, u32 length of the section in words, u32 number, of each name: u32 length with its NUL,
//	bytes
//	u32 functions tag, u32 length, u32 number, functions: u64 entries, then the function
//	function: u32 name, u32 lines, u32 inlined calls
//	line: u32 offset<<16|discriminator, u32 targets, u64 count, targets: u32 kind, u64 name, u64 count
//	inlined call: u32 offset<<16|discriminator, function
//	u32 modules tag, u32 length, u32 0
//
// all little-endian. Version 3 has a summary before the names (u32 tag; u64 sum of all lines, most of a line,
// most entries, number of lines, number of functions, number of parts; of each part u32 millionths of the sum,
// u64 least count of the lines that are needed for it, u64 how many), a table of file names before the number of
// names (u32 number, names), u32 file of each name, and u64 time of the first sample after the entries. The
// files are to tell static functions of one name apart, which have one name here and no file; times are 0.
//
// gcc 12 to 14 ignore discriminators and keep the last of equal offsets: of these the
// one with most counts is written last. gcc refuses files of create_gcov 0.19, which gives lengths of
// names in words.
func (s *sites) writeGCOV(w io.Writer, version uint32) error {
	list := s.heaviest()
	if len(list) == 0 {
		return ErrNoCounts
	}
	g := gcovFile{names: map[string]uint32{"": 0}, since3: version >= GCOV3} // gcc 16 refuses functions with name 0
	for _, f := range list {
		g.note(f)
	}
	names := slices.Sorted(maps.Keys(g.names))
	for i, n := range names {
		g.names[n] = uint32(i)
	}
	head := le32(nil, gcovMagic, version, 0)
	var text, code []byte
	if g.since3 {
		head = append(head, summary(list)...)
		text = le32(text, 0)
	}
	text = le32(text, uint32(len(names)))
	for _, n := range names {
		text = append(le32(text, uint32(len(n)+1)), n...)
		text = append(text, 0)
		if g.since3 {
			text = le32(text, noFile)
		}
	}
	code = le32(code, uint32(len(list)))
	for _, f := range list {
		code = le64(code, f.head)
		if g.since3 {
			code = le64(code, 0)
		}
		code = g.function(code, f)
	}
	out := bufio.NewWriter(w)
	out.Write(section(head, gcovNames, text))
	out.Write(section(nil, gcovFunctions, code))
	out.Write(section(nil, gcovModules, le32(nil, 0)))
	return out.Flush()
}

// noFile is the file of a name that has none.
const noFile = 1<<32 - 1

// gcovFile numbers the names of a file.
type gcovFile struct {
	names  map[string]uint32
	since3 bool // version 3 or later
}

// cutoffs are the parts of a summary, of which gcc expects 16.
var cutoffs = [16]uint32{10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
	950_000, 990_000, 999_000, 999_900, 999_990, 999_999}

// summary is the section of version 3 by which gcc chooses the lines that are hot: those with the highest
// counts that make up a part of the sum.
func summary(list []*function) []byte {
	var counts []uint64
	entries := uint64(0)
	for _, f := range list {
		entries = max(entries, f.head)
		counts = f.appendCounts(counts)
	}
	slices.SortFunc(counts, func(x, y uint64) int { return cmp.Compare(y, x) })
	sum := uint64(0)
	for _, n := range counts {
		sum += min(n, maxTotal-sum)
	}
	b := le64(le32(nil, gcovSummary), sum, counts[0], entries, uint64(len(counts)), uint64(len(list)), uint64(len(cutoffs)))
	seen, i := uint64(0), 0
	for _, part := range cutoffs {
		high, low := bits.Mul64(sum, uint64(part))
		want, _ := bits.Div64(high, low, 1_000_000)
		for ; i < len(counts) && (seen < want || i == 0); i++ {
			seen += min(counts[i], maxTotal-seen)
		}
		b = le64(le32(b, part), counts[i-1], uint64(i))
	}
	return b
}

// appendCounts appends the counts of the lines of a function and of the inlined calls in it.
func (f *function) appendCounts(list []uint64) []uint64 {
	for _, b := range f.body {
		list = append(list, b.count)
	}
	for _, m := range f.calls {
		for _, in := range m {
			list = in.appendCounts(list)
		}
	}
	return list
}

// note adds the names of a function.
func (g *gcovFile) note(f *function) {
	g.names[f.name] = 0
	for _, b := range f.body {
		for n := range b.targets {
			g.names[n] = 0
		}
	}
	for _, m := range f.calls {
		for _, in := range m {
			g.note(in)
		}
	}
}

// function appends a function.
func (g *gcovFile) function(b []byte, f *function) []byte {
	type inlined struct {
		at line
		f  *function
	}
	var calls []inlined
	for at, m := range f.calls {
		for _, in := range m {
			calls = append(calls, inlined{at, in})
		}
	}
	slices.SortFunc(calls, func(x, y inlined) int {
		return cmp.Or(cmp.Compare(x.at.offset, y.at.offset), cmp.Compare(x.f.total, y.f.total),
			compareLines(x.at, y.at), strings.Compare(x.f.name, y.f.name))
	})
	b = le32(b, g.names[f.name], uint32(len(f.body)), uint32(len(calls)))
	for _, at := range sorted(f.body, func(x, y line) int {
		return cmp.Or(cmp.Compare(x.offset, y.offset), cmp.Compare(f.body[x].count, f.body[y].count), compareLines(x, y))
	}) {
		n := f.body[at]
		b = le64(le32(b, at.gcov(), uint32(len(n.targets))), n.count)
		for _, name := range sorted(n.targets, strings.Compare) {
			b = le64(le32(b, indirectCalls), uint64(g.names[name]), n.targets[name])
		}
	}
	for _, c := range calls {
		b = g.function(le32(b, c.at.gcov()), c.f)
	}
	return b
}

// gcov is a line as gcc writes it.
func (l line) gcov() uint32 { return l.offset<<16 | l.discriminator&(1<<16-1) }

// section appends a section of words; gcc reads no lengths.
func section(b []byte, tag uint32, content []byte) []byte {
	return append(le32(b, tag, uint32(len(content)+3)/4), content...)
}

func le32(b []byte, words ...uint32) []byte {
	for _, v := range words {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func le64(b []byte, words ...uint64) []byte {
	for _, v := range words {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}
