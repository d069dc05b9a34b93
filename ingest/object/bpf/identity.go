package bpf

import (
	"crypto/sha1"
	"encoding/binary"

	"symbolize/buildid"
)

// linesMark is in the tag's position of the digest of a function with lines, so that the two kinds
// never collide.
const linesMark = "lines"

// Identity identifies function i independently of its address and code bytes: it is the SHA-1 over
// machine (of uname -m), name, length and the table of offset to line, column and file. Without
// lines it is SymbolIdentity of the function's Symbol.
func (p *Program) Identity(i int, machine string) buildid.ID {
	f := &p.Funcs[i]
	if len(f.Lines) == 0 {
		return identity(machine, f.Name, p.symbolTag(i).String(), uint64(f.Length), nil)
	}
	return identity(machine, f.Name, linesMark, uint64(f.Length), f.Lines)
}

// SymbolIdentity is the identity of a function with only its kernel symbol and its length known:
// the SHA-1 over machine, name, tag and length. Symbols other than "bpf_prog_TAG_NAME" have no tag.
func SymbolIdentity(machine, symbol string, length uint64) buildid.ID {
	if t, name, ok := SplitSymbol(symbol); ok {
		return identity(machine, name, t.String(), length, nil)
	}
	return identity(machine, symbol, "", length, nil)
}

// identity hashes strings preceded by their lengths, and numbers in LEB128 but for length, which
// has 8 bytes. Records that repeat the line before them are redundant and left out.
func identity(machine, name, mark string, length uint64, lines []Line) buildid.ID {
	b := make([]byte, 0, 64+len(machine)+len(name)+8*len(lines))
	for _, s := range [...]string{machine, name, mark} {
		b = appendString(b, s)
	}
	b = binary.LittleEndian.AppendUint64(b, length)
	var last *Line
	for i := range lines {
		l := &lines[i]
		if last != nil && last.Line == l.Line && last.Column == l.Column && last.File == l.File {
			continue
		}
		b = binary.AppendUvarint(b, uint64(l.Offset))
		b = binary.AppendUvarint(b, uint64(l.Line))
		b = binary.AppendUvarint(b, uint64(l.Column))
		b = appendString(b, l.File)
		last = l
	}
	sum := sha1.Sum(b)
	return buildid.Make(buildid.JIT, sum[:])
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
