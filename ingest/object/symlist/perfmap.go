package symlist

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/procmaps"
)

// Limits of hostile perf maps.
const (
	maxSymbols = 8 << 20   // functions; large runtimes have 200,000
	maxNames   = 512 << 20 // bytes of all names together
)

// PerfRange is a range of addresses, half-open, of one function.
type PerfRange struct {
	addr.Range
	Function addr.Addr // where the function begins, of which the range may be a part
	Name     string
	// Reused is set where earlier lines give the range another name.
	Reused bool
}

// PerfMap is a perf map. Symbols are disjoint and ascending.
type PerfMap struct {
	Symbols []PerfRange
	Lines   uint64 // in all
	Bad     uint64 // of another form, left out
	// FirstBad is the error of the first of those, a *decode.Error; nil if there are none.
	FirstBad error
}

// Find returns the range that an address is in, nil if there is none.
func (m *PerfMap) Find(at addr.Addr) *PerfRange {
	i := sort.Search(len(m.Symbols), func(i int) bool { return m.Symbols[i].End > at })
	if i == len(m.Symbols) || m.Symbols[i].Start > at {
		return nil
	}
	return &m.Symbols[i]
}

// PerfMapName is the name of the map of a process: "perf-77.map".
func PerfMapName(pid int32) string { return fmt.Sprintf("perf-%d.map", pid) }

// PerfMapPID returns the process that a path's name is of; ok is false for other names.
func PerfMapPID(file string) (pid int32, ok bool) {
	return procmaps.PIDOf(file, "perf-", ".map")
}

// IsPerfMap reports whether a file that begins with head is a perf map: whether its first line has
// the form of one.
func IsPerfMap(head []byte) bool {
	line := head
	for i, c := range head {
		if c == '\n' {
			line = head[:i]
			break
		}
		if c < ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	_, reason := parseLine(line)
	return reason == ""
}

// entry is a line.
type entry struct {
	start, end addr.Addr
	name       uint32
}

// parseLine decodes a line without its end; reason is "" if it has the form of one.
func parseLine(b []byte) (e parsed, reason string) {
	start, rest, ok := hex(b)
	if !ok {
		return e, "no start address in hexadecimal"
	}
	size, rest, ok := hex(rest)
	if !ok {
		return e, "no size in hexadecimal after the start address"
	}
	name := strings.TrimSpace(string(rest))
	switch {
	case name == "":
		return e, "no name"
	case start+max(size, 1) < start:
		return e, "the function is larger than the address space"
	}
	return parsed{addr.Addr(start), max(size, 1), name}, ""
}

// parsed is a decoded line. One of size 0 has its first byte, as perf has it.
type parsed struct {
	start addr.Addr
	size  uint64
	name  string
}

// hex reads a number of 1 to 16 digits, and the white space after it, which must be there.
func hex(b []byte) (v uint64, rest []byte, ok bool) {
	if len(b) > 2 && b[0] == '0' && b[1]|0x20 == 'x' {
		b = b[2:]
	}
	v, n := decode.Hex(b)
	if n == 0 || n > 16 || n == len(b) || b[n] != ' ' && b[n] != '\t' {
		return 0, nil, false
	}
	return v, b[n+1:], true
}

// perfReader holds the lines of a perf map.
type perfReader struct {
	file    string
	m       PerfMap
	entries []entry
	names   []string
	numbers map[string]uint32 // of names
	bytes   int               // of names
}

// ReadPerfMap reads a perf map. name is for messages. Lines of another form are left out and
// counted, as is a last line without an end. A file that goes beyond the limits, or cannot be read
// further, is read up to there, with an error beside the PerfMap.
func ReadPerfMap(name string, r io.Reader) (*PerfMap, error) {
	x := perfReader{file: name, numbers: make(map[string]uint32)}
	err := eachLine(name, "file", r, x.line)
	x.m.Symbols = layOut(x.entries, x.names)
	return &x.m, err
}

// line adds a line, unless there is a reason not to use it. The error is one of a file that is too
// large.
func (x *perfReader) line(b []byte, offset int64, reason string) error {
	x.m.Lines++
	e := parsed{}
	if reason == "" {
		e, reason = parseLine(b)
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
	out     []PerfRange
}

// layOut returns disjoint ranges: of several lines at an address the last one has it.
func layOut(entries []entry, names []string) []PerfRange {
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
	s := PerfRange{addr.Range{Start: from, End: to}, e.start, p.names[e.name],
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
