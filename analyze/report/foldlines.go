package report

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"strconv"
	"sync"
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
				if key := t.key(&t.entries[at[i]]); first == nil || bytes.Compare(key, first) < 0 {
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
		if !f.beginsOther(a.key, b.key) && !f.beginsOther(b.key, a.key) {
			return bytes.Compare(a.key, b.key)
		}
		return bytes.Compare(f.appendLine(nil, &a), f.appendLine(nil, &b))
	}
	if (f.texts.begins || f.first.begins) && !slices.IsSortedFunc(lines, exact) {
		slices.SortFunc(lines, exact)
	}
	return f.print(w, lines)
}

// pieceLines is how many lines are one piece of text, some 100 KB.
const pieceLines = 256

// print formats lines on all cores, a piece on each, while those before are written.
func (f *folder) print(w io.Writer, lines []foldLine) error {
	workers := runtime.GOMAXPROCS(0)
	ready, next := make([][]byte, workers), make([][]byte, workers)
	for len(lines) > 0 {
		var wg sync.WaitGroup
		for k := range next {
			piece := lines[:min(pieceLines, len(lines))]
			lines = lines[len(piece):]
			wg.Go(func() {
				b := next[k][:0]
				for i := range piece {
					b = f.appendLine(b, &piece[i])
				}
				next[k] = b
			})
		}
		err := writeAll(w, ready)
		wg.Wait()
		if err != nil {
			return err
		}
		ready, next = next, ready
	}
	return writeAll(w, ready)
}

func writeAll(w io.Writer, pieces [][]byte) error {
	for _, b := range pieces {
		if len(b) == 0 {
			continue
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// end puts the number of a text at the end of the line into the end of a key.
func (f *folder) end(key []byte) {
	last := len(key) - 4
	n := binary.BigEndian.Uint32(key[last:])
	binary.BigEndian.PutUint32(key[last:], f.at(last).last[n])
}

// beginsOther reports whether the whole text of line a is the beginning of b's and a space
// follows there too, so that the order depends on the value.
func (f *folder) beginsOther(a, b []byte) bool {
	last := len(a) - 4
	if len(a) > len(b) || !bytes.Equal(a[:last], b[:last]) {
		return false
	}
	t := f.at(last)
	x, y := binary.BigEndian.Uint32(a[last:]), binary.BigEndian.Uint32(b[last:])
	return spaceAfter(t.texts[y], t.texts[x])
}

// at returns the texts of the numbers at byte i of a key: comms, then frames.
func (f *folder) at(i int) *numberedTexts {
	if i == 0 {
		return &f.first
	}
	return &f.texts
}

// appendLine appends a line to b.
func (f *folder) appendLine(b []byte, line *foldLine) []byte {
	for i := 0; i < len(line.key); i += 4 {
		if i > 0 {
			b = append(b, ';')
		}
		b = append(b, f.at(i).texts[binary.BigEndian.Uint32(line.key[i:])]...)
	}
	b = strconv.AppendUint(append(b, ' '), line.value, 10)
	return append(b, '\n')
}

// spaceAfter reports whether s begins with prefix and a space.
func spaceAfter(s, prefix string) bool {
	return len(s) > len(prefix) && s[len(prefix)] == ' ' && s[:len(prefix)] == prefix
}
