package perfmap

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// reader holds the lines that were read.
type reader struct {
	file    string
	m       Map
	entries []entry
	names   []string
	numbers map[string]uint32 // of names
	bytes   int               // of names
}

// Read reads a perf map. name is for messages. Lines of another form are left out and counted,
// and so is a last line without an end: it was cut off, as the rest of its name could be another
// function's. A file that goes beyond the limits is read up to there, with an error beside the
// Map; the same is true of one that cannot be read further.
func Read(name string, r io.Reader) (*Map, error) {
	x := reader{file: name, numbers: make(map[string]uint32)}
	err := x.read(bufio.NewReaderSize(r, maxLine))
	x.m.Symbols = layOut(x.entries, x.names)
	return &x.m, err
}

func (x *reader) read(in *bufio.Reader) error {
	for offset := int64(0); ; {
		line, err := in.ReadSlice('\n')
		at, long := offset, false
		offset += int64(len(line))
		empty := len(line) == 0
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of an endless line
			var more []byte
			long = true
			more, err = in.ReadSlice('\n')
			offset += int64(len(more))
		}
		if !empty {
			if full := x.line(line, at, long, err != nil); full != nil {
				return full
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: offset %#x: %w", x.file, offset, err)
		}
	}
}

// line enters a line; the error is of a file that is too large.
func (x *reader) line(b []byte, offset int64, long, cut bool) error {
	x.m.Lines++
	e, reason := parsed{}, ""
	switch {
	case long:
		reason = "line is longer than 64 KiB"
	case cut:
		reason = "the file breaks off in this line"
	default:
		e, reason = parseLine(bytes.TrimRight(b, "\r\n"))
	}
	if reason != "" {
		x.m.Bad++
		if x.m.FirstBad == nil {
			x.m.FirstBad = &decode.Error{Name: x.file, Offset: offset, Reason: reason}
		}
		return nil
	}
	n, ok := x.numbers[e.name]
	if !ok {
		n = uint32(len(x.names))
		x.bytes += len(e.name)
		x.names = append(x.names, e.name)
		x.numbers[e.name] = n
	}
	if len(x.entries) >= maxSymbols || x.bytes > maxNames {
		return &decode.Error{Name: x.file, Offset: offset, Reason: fmt.Sprintf(
			"more than %d functions or %d MiB of names", maxSymbols, maxNames>>20)}
	}
	x.entries = append(x.entries, entry{e.start, e.start + addr.Addr(e.size), n})
	return nil
}

// active is a heap of the lines that cover an address, the last line of the file first.
type active []int

func (h active) Len() int           { return len(h) }
func (h active) Less(i, j int) bool { return h[i] > h[j] }
func (h active) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *active) Push(v any)        { *h = append(*h, v.(int)) }
func (h *active) Pop() any {
	last := len(*h) - 1
	v := (*h)[last]
	*h = (*h)[:last]
	return v
}

// painter walks the borders of the lines in order of address.
type painter struct {
	entries []entry
	names   []string
	over    active
	count   map[uint32]int // lines of each name that cover the address
	out     []Symbol
}

// layOut returns disjoint ranges: the last line of those that cover an address has it.
func layOut(entries []entry, names []string) []Symbol {
	p := painter{entries: entries, names: names, count: make(map[uint32]int)}
	starts, ends := make([]int, len(entries)), make([]int, len(entries))
	for i := range entries {
		starts[i], ends[i] = i, i
	}
	slices.SortFunc(starts, func(a, b int) int {
		return cmp.Or(cmp.Compare(entries[a].start, entries[b].start), cmp.Compare(a, b))
	})
	slices.SortFunc(ends, func(a, b int) int {
		return cmp.Or(cmp.Compare(entries[a].end, entries[b].end), cmp.Compare(a, b))
	})
	var last addr.Addr
	for s, e := 0, 0; e < len(ends); {
		at := entries[ends[e]].end
		if s < len(starts) {
			at = min(at, entries[starts[s]].start)
		}
		p.paint(last, at)
		for ; e < len(ends) && entries[ends[e]].end == at; e++ {
			p.drop(entries[ends[e]].name)
		}
		for ; s < len(starts) && entries[starts[s]].start == at; s++ {
			heap.Push(&p.over, starts[s])
			p.count[entries[starts[s]].name]++
		}
		last = at
	}
	return slices.Clip(p.out)
}

func (p *painter) drop(name uint32) {
	if p.count[name]--; p.count[name] == 0 {
		delete(p.count, name)
	}
}

// paint gives [from, to) to the last of the lines that cover it.
func (p *painter) paint(from, to addr.Addr) {
	for len(p.over) > 0 && p.entries[p.over[0]].end <= from {
		heap.Pop(&p.over)
	}
	if len(p.over) == 0 || from >= to {
		return
	}
	e := &p.entries[p.over[0]]
	s := Symbol{addr.Range{Start: from, End: to}, e.start, p.names[e.name],
		len(p.count) > 1}
	if n := len(p.out); n > 0 {
		l := &p.out[n-1]
		if l.End == s.Start && l.Function == s.Function && l.Name == s.Name &&
			l.Reused == s.Reused {
			l.End = s.End
			return
		}
	}
	p.out = append(p.out, s)
}

// search returns the number of the range that an address is in.
func search(list []Symbol, at addr.Addr) (int, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].End > at })
	return i, i < len(list) && list[i].Start <= at
}
