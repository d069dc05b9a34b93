package filter

import (
	"bytes"
	"path"

	"symbolize/ingest"
)

// breakpad reads "N  FILE + 0xOFF" of Breakpad's minidump_stackwalk and of its successors, a whole
// line with the plus at i. The offset counts from the start of the module in memory; frame 0 is exact,
// and the others are return addresses (PrintStack in processor/stackwalk_common.cc of Breakpad).
func (s *scanner) breakpad(i int) bool {
	offset, end, ok := s.prefixed(i + 2)
	line := bytes.TrimRight(s.text[:min(len(s.text), maxFrame)], "\r\n")
	if !ok || end != len(line) || i < 1 || line[i-1] != ' ' {
		return false
	}
	head := bytes.TrimLeft(line[:i-1], " ")
	at := i - 1 - len(head)
	number, from, ok := decimalAt(line, at)
	file := bytes.TrimLeft(line[min(from, i-1):i-1], " ")
	if !ok || i-1-from-len(file) < 2 || len(file) == 0 || bytes.IndexByte(file, '!') >= 0 {
		return false // of a function with a name
	}
	s.breakpadFrame(place{start: i - 1 - len(file), end: end, file: file, offset: offset}, number)
	return true
}

func (s *scanner) breakpadFrame(p place, number int) {
	p.form, p.keep, p.exact = formModule, true, number == 0
	part, listed := s.modules.parts[path.Base(string(p.file))]
	if p.part = part; listed && part == "" {
		p.why = ingest.Ambiguous
	}
	s.modules.used = true
	s.frame()
	s.add(p, p.end)
}

// breakpadFields reads the lines of minidump_stackwalk -m: "THREAD|N|FILE||||0xOFF" of a frame without
// a function, and "Module|FILE|VERSION|DEBUGFILE|DEBUGID|…".
func (s *scanner) breakpadFields() {
	line := bytes.TrimRight(s.text[:min(len(s.text), maxFrame)], "\r\n")
	f := bytes.SplitN(line, []byte("|"), 8)
	switch {
	case len(f) == 8 && string(f[0]) == "Module":
		if part := debugID(f[4]); part != "" {
			s.addPart(path.Base(string(f[1])), part)
		}
	case len(f) == 7 && len(f[2]) > 0 && len(f[3])+len(f[4])+len(f[5]) == 0:
		_, end, ok := decimalAt(f[0], 0)
		number, last, numbered := decimalAt(f[1], 0)
		offset, at, hex := s.prefixed(len(line) - len(f[6]))
		if ok && numbered && hex && end == len(f[0]) && last == len(f[1]) && at == len(line) {
			s.breakpadFrame(place{start: len(f[0]) + len(f[1]) + 2, end: at, file: f[2], offset: offset}, number)
		}
	}
}

// addPart adds a module of the process of the next frames.
func (s *scanner) addPart(name, part string) {
	if s.modules.used || s.modules.parts == nil {
		s.modules = modules{parts: make(map[string]string)}
	}
	known, ok := s.modules.parts[name]
	switch {
	case ok && known != part:
		s.modules.parts[name] = ""
	case ok || len(s.modules.parts) < maxMarkup:
		s.modules.parts[name] = part
	}
}

// debugID returns the first 32 digits of the build ID of which Breakpad made a module's identifier: a
// GUID of 16 bytes, of which the first numbers are little-endian, and an age; "" for others. A shorter
// build ID has zeros behind it.
func debugID(digits []byte) string {
	const guid = 16
	if n := hexLen(digits); n != len(digits) || n <= 2*guid || n > 2*guid+8 {
		return ""
	}
	var part [2 * guid]byte
	for i, from := range [guid]int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15} {
		copy(part[2*i:], bytes.ToLower(digits[2*from:2*from+2]))
	}
	return string(part[:])
}
