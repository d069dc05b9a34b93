package btf

// stringTable is the strings of a Builder, each with a NUL after it. It is kept in pieces of one size, so that bytes
// are not copied when it grows: a large C++ program has many megabytes of names.
type stringTable struct {
	pieces [][]byte // all but the last have pieceSize bytes
	len    int
}

// pieceSize is the bytes of a piece of a stringTable. A string can extend over several.
const (
	pieceBits = 18
	pieceSize = 1 << pieceBits
)

// add appends a string and returns its offset.
func (t *stringTable) add(s string) uint32 {
	off := uint32(t.len)
	t.write(s)
	t.write("\x00")
	return off
}

func (t *stringTable) write(s string) {
	for s != "" {
		switch {
		case t.len == 0:
			t.pieces = [][]byte{nil} // it grows as append has it: most tables are small
		case t.len%pieceSize == 0:
			t.pieces = append(t.pieces, make([]byte, 0, pieceSize))
		}
		last := &t.pieces[len(t.pieces)-1]
		n := min(len(s), pieceSize-len(*last))
		*last = append(*last, s[:n]...)
		t.len += n
		s = s[n:]
	}
}

// is reports whether the string at an offset is s.
func (t *stringTable) is(off uint32, s string) bool {
	end := int(off) + len(s)
	if end >= t.len || t.pieces[end>>pieceBits][end%pieceSize] != 0 {
		return false
	}
	for at := int(off); s != ""; {
		piece := t.pieces[at>>pieceBits][at%pieceSize:]
		n := min(len(s), len(piece))
		if string(piece[:n]) != s[:n] {
			return false
		}
		s, at = s[n:], at+n
	}
	return true
}

// appendTo appends the bytes of the table.
func (t *stringTable) appendTo(dst []byte) []byte {
	for _, p := range t.pieces {
		dst = append(dst, p...)
	}
	return dst
}
