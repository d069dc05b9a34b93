package dwarf

import "bytes"

// cstringAt returns the NUL-terminated string at off of a string section.
func cstringAt(sec []byte, off uint64) ([]byte, bool) {
	if off >= uint64(len(sec)) {
		return nil, false
	}
	rest := sec[off:]
	if len(rest) > maxString {
		rest = rest[:maxString]
	}
	n := bytes.IndexByte(rest, 0)
	if n < 0 {
		return nil, false
	}
	return rest[:n:n], true
}
