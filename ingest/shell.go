package ingest

import "strings"

// ShellWord makes a path one word of the shell. Paths come from captures: a hint that
// is pasted must not run their text.
func ShellWord(path string) string {
	path = Printable(path)
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("/._-+,:@%=", c) >= 0 {
			continue
		}
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
