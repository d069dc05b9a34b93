// Package cpulist reads the lists of CPUs that /sys has (Documentation/ABI/stable/
// sysfs-devices-system-cpu of Linux).
package cpulist

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxCPUs bounds the CPUs that a list may name; the kernel's own bound is NR_CPUS, 8,192.
const maxCPUs = 1 << 16

// Online returns the numbers of the CPUs that are online.
func Online() ([]int, error) {
	const path = "/sys/devices/system/cpu/online"
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// Parse reads a list, "0-3,8\n".
func Parse(text string) (list []int, err error) {
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
