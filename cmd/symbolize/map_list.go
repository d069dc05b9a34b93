package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/mapdump"
)

// listedMap is a map of a bundle, as listed.
type listedMap struct {
	ID         uint32  `json:"id"` // 0 if the dump does not tell
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

// several reports whether there are dumps of several maps of a bundle.
func (in *mapInputs) several() bool {
	return slices.ContainsFunc(in.list, func(m *mapInput) bool {
		return m.host != nil && m.series != in.list[0].series
	})
}

// listed sums up the dumps of each map, in the bundle's order.
func (in *mapInputs) listed() []listedMap {
	out := []listedMap{}
	number := make(map[string]int) // by series
	for _, m := range in.list {
		i, ok := number[m.series]
		if !ok {
			i = len(out)
			number[m.series] = i
			out = append(out, listedMap{FirstNanos: m.header.Time, First: m.wallOrNone()})
		}
		x, h := &out[i], &m.header
		x.ID, x.Name, x.Type = h.MapID, cmp.Or(h.Name, m.series), mapdump.TypeName(h.Type)
		x.KeySize, x.ValueSize, x.CPUs = h.KeySize, h.ValueSize, h.CPUs
		x.Entries = nil
		if h.Entries != bundle.UnknownEntries {
			x.Entries = &h.Entries
		}
		x.LastNanos, x.Last = h.Time, m.wallOrNone()
		x.Dumps++
	}
	return out
}

// wallOrNone is the wall-clock time of the dump; "" if that is not known.
func (m *mapInput) wallOrNone() string {
	if m.header.Time == 0 {
		return ""
	}
	return m.wall(m.header.Time)
}

// runMapList lists the maps of a bundle.
func runMapList(a *app, o *mapOptions, in *mapInputs) error {
	found := in.listed()
	return a.writeOutput(o.output, false, func(w io.Writer) error {
		if o.format == formatJSON {
			return ingest.WriteJSON(w, map[string][]listedMap{"maps": found})
		}
		t := table.New(true, false, false, true, true, true, true)
		t.Row("ID", "NAME", "TYPE", "KEY", "VALUE", "ENTRIES", "DUMPS", "FIRST", "LAST")
		for _, x := range found {
			t.Row(x.cells()...)
		}
		return t.Print(w)
	})
}

// cells are the columns of a map.
func (x *listedMap) cells() []string {
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
