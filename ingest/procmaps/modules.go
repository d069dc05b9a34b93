package procmaps

import (
	"strconv"
	"strings"

	"symbolize/ingest/addr"
)

// Module is a loaded kernel module.
type Module struct {
	Name string
	Addr addr.PC // where it was loaded; 0 for readers without the right to see it
	Size uint64  // bytes
}

// ParseModule reads a line of /proc/modules: name, size, references, users, state, address.
// ok is false for other lines, and for a name that is no name of a file below /sys/module.
func ParseModule(line string) (m Module, ok bool) {
	const fields = 6
	f := strings.Fields(line)
	if len(f) < fields || f[0] == "." || f[0] == ".." || strings.ContainsAny(f[0], "/\x00") {
		return Module{}, false
	}
	size, err1 := strconv.ParseUint(f[1], 10, 64)
	at, err2 := strconv.ParseUint(strings.TrimPrefix(f[5], "0x"), 16, 64)
	return Module{Name: f[0], Addr: addr.PC(at), Size: size}, err1 == nil && err2 == nil
}
