package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"strings"
)

// foldLine is one line of the output.
type foldLine struct {
	key   []byte
	value uint64
}

// merge puts the sorted parts together.
func (f *folder) merge(parts []*foldTable) []foldLine {
	n := 0
	for _, t := range parts {
		n = max(n, len(t.entries))
	}
	lines := make([]foldLine, 0, n)
	at := make([]int, len(parts)) // the used length of each part
	for {
		var first []byte
		for i, t := range parts {
			if at[i] < len(t.entries) {
				if key := t.key(&t.entries[at[i]]); first == nil || f.compare(key, first) < 0 {
					first = key
				}
			}
		}
		if first == nil {
			return lines
		}
		line := foldLine{key: first}
		for i, t := range parts {
			if at[i] < len(t.entries) && bytes.Equal(t.key(&t.entries[at[i]]), first) {
				line.value += t.entries[at[i]].value
				at[i]++
			}
		}
		lines = append(lines, line)
	}
}

// write prints the lines in bytewise order.
func (f *folder) write(w io.Writer, parts []*foldTable) error {
	lines := f.merge(parts)
	exact := func(a, b foldLine) int {
		if !f.beginsOther(a.key, b.key) {
			return f.compare(a.key, b.key)
		}
		return bytes.Compare(f.appendLine(nil, &a), f.appendLine(nil, &b))
	}
	if !slices.IsSortedFunc(lines, exact) {
		slices.SortFunc(lines, exact)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	for i := range lines {
		line = f.appendLine(line[:0], &lines[i])
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// difference returns the first bytes in which two keys differ, and the texts
// there; both are whole numbers.
func (f *folder) difference(a, b []byte) (at int, x, y uint32) {
	n := min(len(a), len(b))
	for i := 0; i < n; i += 4 {
		x, y = binary.BigEndian.Uint32(a[i:]), binary.BigEndian.Uint32(b[i:])
		if x != y {
			return i, x, y
		}
	}
	return n, 0, 0
}

// compare orders keys as the texts of their lines. Numbers compare as texts
// followed by ';' do; the last text of a line is followed by a space instead, and
// no character sorts before that.
func (f *folder) compare(a, b []byte) int {
	i, x, y := f.difference(a, b)
	switch {
	case i == min(len(a), len(b)):
		return cmp.Compare(len(a), len(b))
	case i+4 == len(a) && strings.HasPrefix(f.text(i, y), f.text(i, x)):
		return -1
	case i+4 == len(b) && strings.HasPrefix(f.text(i, x), f.text(i, y)):
		return 1
	}
	return cmp.Compare(x, y)
}

// beginsOther reports whether the whole text of one line is the beginning of the
// other's and a space follows there too, so that the order depends on the value.
func (f *folder) beginsOther(a, b []byte) bool {
	i, x, y := f.difference(a, b)
	if i == min(len(a), len(b)) {
		return false
	}
	tx, ty := f.text(i, x), f.text(i, y)
	return i+4 == len(a) && spaceAfter(ty, tx) || i+4 == len(b) && spaceAfter(tx, ty)
}

// text is that of number n at byte i of a key: a comm, then frames.
func (f *folder) text(i int, n uint32) string {
	if i == 0 {
		return f.first[n]
	}
	return f.texts[n]
}

// appendLine appends a line to b.
func (f *folder) appendLine(b []byte, line *foldLine) []byte {
	for i := 0; i < len(line.key); i += 4 {
		if i > 0 {
			b = append(b, ';')
		}
		b = append(b, f.text(i, binary.BigEndian.Uint32(line.key[i:]))...)
	}
	b = strconv.AppendUint(append(b, ' '), line.value, 10)
	return append(b, '\n')
}

// spaceAfter reports whether s begins with prefix and a space.
func spaceAfter(s, prefix string) bool {
	return len(s) > len(prefix) && s[len(prefix)] == ' ' && s[:len(prefix)] == prefix
}
