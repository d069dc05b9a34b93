package sys

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxCPUs bounds the CPUs in a list; the bound of the kernel is NR_CPUS, 8,192.
const maxCPUs = 1 << 16

// OnlineCPUs returns the numbers of the CPUs that are online.
func OnlineCPUs() ([]int, error) {
	const path = "/sys/devices/system/cpu/online"
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := ParseCPUs(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// ParseCPUs reads a list, "0-3,8\n".
func ParseCPUs(text string) (list []int, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("list of CPUs %q", text)
		}
		last, err := strconv.Atoi(to)
		if err != nil || first < 0 || last < first || last >= maxCPUs {
			return nil, fmt.Errorf("list of CPUs %q", text)
		}
		for cpu := first; cpu <= last; cpu++ {
			list = append(list, cpu)
		}
	}
	return list, nil
}
