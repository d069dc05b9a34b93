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

// InnerPID returns the number that a process has in its own namespace, by its
// /proc/PID/status (proc_pid_status(5)); the number outside where that does not have it.
func InnerPID(status string, outside int32) int32 {
	_, rest, ok := strings.Cut(status, "\nNSpid:")
	if !ok {
		return outside
	}
	line, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return outside
	}
	n, err := strconv.ParseInt(fields[len(fields)-1], 10, 32)
	if err != nil || n <= 0 {
		return outside
	}
	return int32(n)
}
