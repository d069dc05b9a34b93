package kallsyms

import "bytes"

// IsList reports whether a file begins like "ffffffff81000000 T _text\n".
func IsList(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 3 || len(f[0]) < 8 || len(f[0]) > 16 || len(f[1]) != 1 {
		return false
	}
	for _, c := range f[0] {
		if bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) < 0 {
			return false
		}
	}
	return true
}
