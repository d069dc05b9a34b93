package pgo

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"strings"
)

// GCOVVersion is the version of the files of FormatGCOV.
const GCOVVersion = 2

// Words of the file.
const (
	gcovMagic     = 0x67636461 // "gcda"
	gcovNames     = 0xaa000000
	gcovFunctions = 0xac000000
	gcovModules   = 0xae000000
	indirectCalls = 7 // HIST_TYPE_INDIR_CALL_TOPN, which gcc skips
)

// writeGCOV writes a profile for gcc's -fauto-profile, version 2, which gcc 12 to 15 read (auto-profile.cc
// of gcc):
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
// all little-endian. gcc 12 to 14 ignore discriminators and keep the last of equal offsets: of these the
// one with most counts is written last. gcc refuses files of create_gcov 0.19, which gives lengths of
// names in words.
func (s *sites) writeGCOV(w io.Writer) error {
	list := s.heaviest()
	if len(list) == 0 {
		return ErrNoCounts
	}
	g := gcovFile{names: make(map[string]uint32)}
	for _, f := range list {
		g.note(f)
	}
	names := slices.Sorted(maps.Keys(g.names))
	for i, n := range names {
		g.names[n] = uint32(i)
	}
	var text, code []byte
	text = le32(text, uint32(len(names)))
	for _, n := range names {
		text = append(le32(text, uint32(len(n)+1)), n...)
		text = append(text, 0)
	}
	code = le32(code, uint32(len(list)))
	for _, f := range list {
		code = g.function(le64(code, f.head), f)
	}
	out := bufio.NewWriter(w)
	head := le32(nil, gcovMagic, GCOVVersion, 0)
	out.Write(section(head, gcovNames, text))
	out.Write(section(nil, gcovFunctions, code))
	out.Write(section(nil, gcovModules, le32(nil, 0)))
	return out.Flush()
}

// gcovFile numbers the names of a file.
type gcovFile struct{ names map[string]uint32 }

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
