// Package perfmap reads /tmp/perf-PID.map, in which a process lists the code that it has
// compiled at run time, so that profilers can name it.
//
// A line is
//
//	7f1b5c0a1000 3c0 LazyCompile:*fib /srv/app.js:1
//
// start and size in hexadecimal, with or without 0x, and the name, which reaches to the end of the
// line and may have spaces (tools/perf/Documentation/jit-interface.txt of Linux; read by
// dso__load_perf_map in tools/perf/util/symbol.c). The file only grows. It has no times:
// memory of code that was dropped is used again, and a later line then replaces the earlier one
// at the addresses that both have. Those places are Symbol.Reused, since a sample from before is
// given the name of the later function.
package perfmap

import (
	"fmt"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/format/procmaps"
)

// Limits of hostile files.
const (
	maxLine    = 64 << 10
	maxSymbols = 8 << 20   // functions; large runtimes have 200,000
	maxNames   = 512 << 20 // bytes of all names together
)

// Symbol is a range of addresses, half-open, of one function.
type Symbol struct {
	addr.Range
	Function addr.Addr // where the function begins, of which the range may be a part
	Name     string
	// Reused is set where earlier lines give the range another name.
	Reused bool
}

// Map is a perf map. Symbols are disjoint and ascending.
type Map struct {
	Symbols []Symbol
	Lines   uint64 // in all
	Bad     uint64 // of another form, left out
	// FirstBad is the error of the first of those, a *decode.Error; nil if there are none.
	FirstBad error
}

// Find returns the range that an address is in, nil if there is none.
func (m *Map) Find(at addr.Addr) *Symbol {
	i, found := search(m.Symbols, at)
	if !found {
		return nil
	}
	return &m.Symbols[i]
}

// FileName is the name of the map of a process: "perf-77.map".
func FileName(pid int32) string { return fmt.Sprintf("perf-%d.map", pid) }

// PIDOf returns the process that a path's name is of; ok is false for other names.
func PIDOf(file string) (pid int32, ok bool) {
	return procmaps.PIDOf(file, "perf-", ".map")
}

// Detect reports whether a file that begins with head is a perf map: whether its first line has
// the form of one.
func Detect(head []byte) bool {
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
