package ingest

import "strings"

// MainProgram returns the path of the executable with most leaf samples, by object: of the files
// that are not named like a shared library; "" if there is none.
func MainProgram(objects []Object, leaves []uint64) string {
	best := -1
	for i := range objects {
		o := &objects[i]
		base := BaseName(o.File.Path)
		if o.Kind != ELF || leaves[i] == 0 || strings.HasSuffix(base, ".so") ||
			strings.Contains(base, ".so.") || o.File.Path == VsyscallPath {
			continue
		}
		if best < 0 || leaves[i] > leaves[best] {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return objects[best].File.Path
}
