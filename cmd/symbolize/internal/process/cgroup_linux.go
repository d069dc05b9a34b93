package process

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tightMemory is the memory of a control group, in bytes, below which the kernel may well
// kill a run that indexes. Big programs need more, but most runs do not.
const tightMemory = 128 << 20

// cgroupMemory returns how many bytes of memory the control groups of this process allow,
// those above them included; math.MaxInt64 without a limit. proc and sys are where these file
// systems are mounted.
func cgroupMemory(proc, sys string) int64 {
	limit := int64(math.MaxInt64)
	text, err := os.ReadFile(filepath.Join(proc, "self", "cgroup"))
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy ID : controllers : path; without controllers it is version 2.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		root, file := filepath.Join(sys, "fs", "cgroup"), "memory.max"
		switch fields[1] {
		case "":
		case "memory":
			root, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := filepath.Clean("/" + fields[2]); ; dir = filepath.Dir(dir) {
			if b, err := os.ReadFile(filepath.Join(root, dir, file)); err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
					limit = min(limit, n) // "max" is no number
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}
