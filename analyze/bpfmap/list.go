package bpfmap

import (
	"cmp"
	"fmt"
	"io"

	"symbolize/analyze/table"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/format/rawdump"
)

// ListedMap is a map of a bundle. Its JSON names are an interface.
type ListedMap struct {
	ID         uint32  `json:"id"` // 0 if the dump has none
	Name       string  `json:"name"`
	Type       string  `json:"type"`
	KeySize    uint32  `json:"key_size"`
	ValueSize  uint32  `json:"value_size"`
	CPUs       uint32  `json:"cpus"`              // values of each key; 0: not per CPU
	Entries    *uint64 `json:"entries,omitempty"` // of the last dump; nil if not counted
	Dumps      int     `json:"dumps"`
	FirstNanos uint64  `json:"first_ns,omitempty"` // CLOCK_MONOTONIC of the first dump
	LastNanos  uint64  `json:"last_ns,omitempty"`
	First      string  `json:"first,omitempty"` // the same by the host's wall clock
	Last       string  `json:"last,omitempty"`
}

// MapList lists the maps of a bundle.
type MapList struct {
	Maps []ListedMap `json:"maps"`
}

// Maps sums up the dumps of each map, in the bundle's order.
func (in *Dumps) Maps() *MapList {
	out := []ListedMap{}
	number := make(map[string]int) // by series
	for _, m := range in.List {
		i, ok := number[m.Series]
		if !ok {
			i = len(out)
			number[m.Series] = i
			out = append(out, ListedMap{FirstNanos: m.Header.Time, First: m.wallOrNone()})
		}
		x, h := &out[i], &m.Header
		x.ID, x.Name, x.Type = h.MapID, cmp.Or(h.Name, m.Series), mapdump.TypeName(h.Type)
		x.KeySize, x.ValueSize, x.CPUs = h.KeySize, h.ValueSize, h.CPUs
		x.Entries = nil
		if h.Entries != rawdump.UnknownEntries {
			x.Entries = &h.Entries
		}
		x.LastNanos, x.Last = h.Time, m.wallOrNone()
		x.Dumps++
	}
	return &MapList{Maps: out}
}

// wallOrNone is the wall-clock time of the dump; "" if that is not known.
func (m *Dump) wallOrNone() string {
	if m.Header.Time == 0 {
		return ""
	}
	return m.wall(m.Header.Time)
}

// WriteText writes a row for each map.
func (l *MapList) WriteText(w io.Writer) error {
	t := table.New(true, false, false, true, true, true, true).Names(2, 1)
	t.Row("ID", "NAME", "TYPE", "KEY", "VALUE", "ENTRIES", "DUMPS", "FIRST", "LAST")
	for i := range l.Maps {
		t.Row(l.Maps[i].cells()...)
	}
	return t.Print(w)
}

// cells are the columns of a map.
func (x *ListedMap) cells() []string {
	id, value, entries := "-", fmt.Sprint(x.ValueSize), "-"
	if x.ID != 0 {
		id = fmt.Sprint(x.ID)
	}
	if x.CPUs > 0 {
		value = fmt.Sprintf("%d×%d", x.CPUs, x.ValueSize)
	}
	if x.Entries != nil {
		entries = fmt.Sprint(*x.Entries)
	}
	return []string{id, x.Name, x.Type, fmt.Sprint(x.KeySize), value, entries, fmt.Sprint(x.Dumps),
		timeCell(x.First, x.FirstNanos), timeCell(x.Last, x.LastNanos)}
}

// timeCell is a time of day, or where only the monotonic clock is known seconds of that.
func timeCell(wall string, nanos uint64) string {
	switch {
	case nanos == 0:
		return "-"
	case wall == "":
		return fmt.Sprintf("%.3fs", float64(nanos)/1e9)
	}
	return wall
}
