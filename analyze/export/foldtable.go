package export

import (
	"cmp"
	"slices"
)

// textTable numbers distinct texts.
type textTable struct {
	index map[string]uint32
	texts []string
}

func newTextTable() *textTable { return &textTable{index: make(map[string]uint32)} }

func (t *textTable) number(s string) uint32 {
	n, ok := t.index[s]
	if !ok {
		n = uint32(len(t.texts))
		t.texts = append(t.texts, s)
		t.index[s] = n
	}
	return n
}

// numberedTexts are the texts of a table by numbers in the order of lines, each under two
// numbers: one where ';' follows, its inner number, and one where a space does.
type numberedTexts struct {
	texts  []string
	last   []uint32 // by inner number: the other
	begins bool     // a text begins with another and a space
}

// numbered returns the texts in their order, and the inner number of each by its number in
// the table.
func (t *textTable) numbered() (out numberedTexts, inner []uint32) {
	order := make([]textEnd, 0, 2*len(t.texts))
	for i := range t.texts {
		order = append(order, textEnd{uint32(i), ';'}, textEnd{uint32(i), ' '})
	}
	slices.SortFunc(order, func(a, b textEnd) int {
		return compareEnded(t.texts[a.text], a.end, t.texts[b.text], b.end)
	})
	inner, ends := make([]uint32, len(t.texts)), make([]uint32, len(t.texts))
	out.texts, out.last = make([]string, len(order)), make([]uint32, len(order))
	for n, e := range order {
		out.texts[n] = t.texts[e.text]
		if e.end == ';' {
			inner[e.text] = uint32(n)
			continue
		}
		ends[e.text] = uint32(n)
		// The texts that begin with this one and a space follow it.
		if n+1 < len(order) && spaceAfter(t.texts[order[n+1].text], out.texts[n]) {
			out.begins = true
		}
	}
	for text, n := range inner {
		out.last[n] = ends[text]
	}
	return out, inner
}

// textEnd is a text and the byte that follows it in a line.
type textEnd struct {
	text uint32
	end  byte
}

// compareEnded compares a and then endA with b and then endB.
func compareEnded(a string, endA byte, b string, endB byte) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	switch {
	case len(a) > n:
		return cmp.Or(cmp.Compare(a[n], endB), 1)
	case len(b) > n:
		return cmp.Or(cmp.Compare(endA, b[n]), -1)
	}
	return cmp.Compare(endA, endB)
}

// spaceAfter reports whether s begins with prefix and a space.
func spaceAfter(s, prefix string) bool {
	return len(s) > len(prefix) && s[len(prefix)] == ' ' && s[:len(prefix)] == prefix
}
