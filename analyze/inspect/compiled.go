package inspect

import (
	debugelf "debug/elf"
	"fmt"
	"io"
	"os"
	"time"

	"symbolize/analyze/table"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/input/container"
	"symbolize/ingest/object/symlist"
)

// Compiled describes a list of code that a process compiled at run time: a perf map or a jitdump
// file. Its JSON names are an interface.
type Compiled struct {
	File      string `json:"file"`
	Kind      string `json:"kind"` // "perf map" or "jitdump"
	Size      int64  `json:"size"`
	PID       int32  `json:"pid,omitempty"` // by a perf map's name, a jitdump file's header
	Written   string `json:"written"`       // RFC 3339: when the file was, last
	Machine   string `json:"machine,omitempty"`
	ByteOrder string `json:"byte_order,omitempty"`
	Functions int    `json:"functions"`
	Code      uint64 `json:"code_bytes"`
	// Reused are the places, or for jitdump the functions, at addresses that others had before.
	Reused   int      `json:"reused,omitempty"`
	Moved    int      `json:"moved,omitempty"` // times that functions were
	Lined    int      `json:"functions_with_lines,omitempty"`
	Low      string   `json:"lowest_address,omitempty"`
	High     string   `json:"end_address,omitempty"`
	Clock    string   `json:"clock,omitempty"` // of jitdump's times
	LeftOut  uint64   `json:"left_out"`        // lines or records
	Warnings []string `json:"warnings,omitempty"`

	damaged bool
}

// Damaged reports whether the file could be read in part only.
func (c *Compiled) Damaged() bool { return c.damaged }

// readCompiled reads a list of compiled code; nil for other files.
func readCompiled(path string, f *os.File, fi os.FileInfo) (*Compiled, error) {
	kind, err := container.TypeOf(path, f, fi.Size())
	if err != nil {
		return nil, err
	}
	pid, named := symlist.PerfMapPID(path)
	c := &Compiled{File: path, Size: fi.Size(), Written: fi.ModTime().UTC().Format(time.RFC3339)}
	switch {
	case kind == container.TypeJITDump:
		return c, c.readDump(f)
	case named && kind != container.TypeELF, kind == container.TypePerfMap:
		c.PID = pid
		c.readMap(f)
		return c, nil
	}
	return nil, nil
}

func (c *Compiled) warn(err error) {
	if err != nil {
		c.Warnings = append(c.Warnings, err.Error())
	}
}

// readMap reads a perf map.
func (c *Compiled) readMap(f *os.File) {
	c.Kind = "perf map"
	m, err := symlist.ReadPerfMap(c.File, io.NewSectionReader(f, 0, c.Size))
	c.damaged = err != nil
	c.warn(err)
	c.warn(m.FirstBad)
	c.LeftOut = m.Bad
	functions := make(map[symlist.PerfRange]bool)
	for i := range m.Symbols {
		s := m.Symbols[i]
		c.Code += uint64(s.End - s.Start)
		if s.Reused {
			c.Reused++
		}
		functions[symlist.PerfRange{Function: s.Function, Name: s.Name}] = true
	}
	c.Functions = len(functions)
	if n := len(m.Symbols); n > 0 {
		c.setRange(uint64(m.Symbols[0].Start), uint64(m.Symbols[n-1].End))
	}
}

// readDump reads a jitdump file.
func (c *Compiled) readDump(f *os.File) error {
	c.Kind = "jitdump"
	d, err := jitdump.Open(c.File, f, c.Size)
	if d == nil {
		return err
	}
	c.damaged = err != nil
	c.warn(err)
	c.warn(d.FirstBad)
	c.PID, c.LeftOut, c.Functions = d.PID, d.Bad, len(d.Loads)
	c.Machine, c.ByteOrder = machineName(debugelf.Machine(d.Machine)), byteOrder(d.BigEndian)
	c.Clock = "CLOCK_MONOTONIC"
	if d.ArchTime {
		c.Clock = "the processor's"
	}
	c.Moved, c.Reused = len(d.Placed)-len(d.Loads), d.Overlaps()
	low, high := ^uint64(0), uint64(0)
	var first error
	for i := range d.Loads {
		l := &d.Loads[i]
		c.Code += l.Size
		lines, err := d.Lines(l)
		if len(lines) > 0 {
			c.Lined++
		}
		if first == nil {
			first = err
		}
	}
	c.warn(first)
	for _, p := range d.Placed {
		low, high = min(low, uint64(p.Addr)), max(high, uint64(p.Addr)+d.Loads[p.Load].Size)
	}
	if len(d.Placed) > 0 {
		c.setRange(low, high)
	}
	return nil
}

func (c *Compiled) setRange(low, high uint64) {
	c.Low, c.High = fmt.Sprintf("%#x", low), fmt.Sprintf("%#x", high)
}

// WriteText writes a table.
func (c *Compiled) WriteText(w io.Writer) error {
	t := table.New()
	t.Field("file", c.File)
	t.Row("kind", "list of code compiled at run time: "+c.Kind)
	if c.PID != 0 {
		t.Row("process", fmt.Sprint(c.PID))
	}
	t.Field("machine", table.Join(", ", c.Machine, c.ByteOrder))
	t.Row("written", c.Written)
	t.Field("clock", c.Clock)
	text := fmt.Sprintf("%s, %s of code", table.Thousands(uint64(c.Functions)), table.Bytes(c.Code))
	if c.Kind == "jitdump" {
		text += fmt.Sprintf("; %d with lines; moved %d times", c.Lined, c.Moved)
	}
	t.Row("functions", text)
	if c.Low != "" {
		t.Row("addresses", c.Low+" to "+c.High)
	}
	if c.Reused > 0 {
		t.Row("reused", fmt.Sprintf("%d at addresses that others had before", c.Reused))
	}
	if c.LeftOut > 0 {
		t.Row("left out", fmt.Sprintf("%d lines or records", c.LeftOut))
	}
	for _, text := range c.Warnings {
		t.Field("warning", text)
	}
	return t.Print(w)
}
