package perfdata

import "strings"

// DataSource says which part of the memory system served an access: PERF_SAMPLE_DATA_SRC, union perf_mem_data_src of
// include/uapi/linux/perf_event.h. Its bits are numbered from the low end in both byte orders.
type DataSource uint64

// Bits of a DataSource.
const (
	memLevelShift  = 5 // 14 bits: mem_lvl
	memLevelBits   = 14
	memNumberShift = 33 // 4 bits: mem_lvl_num
	memRemote      = 1 << 37
	memHit         = 1 << 1 // of mem_lvl
	memMiss        = 1 << 2

	// LevelBits are the bits that DataSource.Level reads.
	LevelBits = DataSource((1<<memLevelBits-1)<<memLevelShift | 15<<memNumberShift | memRemote)
)

// memNumbers are the names of PERF_MEM_LVLNUM_, memLevels of the bits of PERF_MEM_LVL_ from bit 3 on, as perf has
// them (tools/perf/util/mem-events.c).
var (
	memNumbers = [16]string{1: "L1", 2: "L2", 3: "L3", 4: "L4", 5: "L2 MHB", 6: "Memory-side Cache", 7: "L0",
		8: "Uncached", 9: "CXL", 10: "I/O", 11: "Any cache", 12: "LFB/MAB", 13: "RAM", 14: "PMEM"}
	memLevels = [memLevelBits - 3]string{"L1", "LFB/MAB", "L2", "L3", "Local RAM", "Remote RAM (1 hop)",
		"Remote RAM (2 hops)", "Remote Cache (1 hop)", "Remote Cache (2 hops)", "I/O", "Uncached"}
)

// Level returns the level that served the access, as `perf mem report --sort mem` prints it: "L1 hit", "RAM hit";
// "N/A" if it is not known. The number of the level counts, if there is one, else the bits of older kernels.
func (d DataSource) Level() string {
	bits := uint64(d) >> memLevelShift & (1<<memLevelBits - 1)
	var list []string
	if name := memNumbers[d>>memNumberShift&15]; name != "" {
		if d&memRemote != 0 {
			name = "Remote " + name
		}
		list = append(list, name)
	} else {
		for i, name := range memLevels {
			if bits>>(3+i)&1 != 0 {
				list = append(list, name)
			}
		}
	}
	if len(list) == 0 {
		return "N/A"
	}
	text := strings.Join(list, " or ")
	switch {
	case bits&memHit != 0:
		text += " hit"
	case bits&memMiss != 0:
		text += " miss"
	}
	return text
}
