package procmaps

import (
	"path"
	"strconv"
	"strings"
)

// PIDOf returns the process that a file's name has between prefix and suffix, as "77" of
// "/tmp/perf-77.map"; ok is false for other names.
func PIDOf(file, prefix, suffix string) (pid int32, ok bool) {
	text, found := strings.CutPrefix(path.Base(file), prefix)
	text, ended := strings.CutSuffix(text, suffix)
	if !found || !ended {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}
