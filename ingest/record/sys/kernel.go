package sys

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// BTFLayout locates fields of the running kernel by its BTF, for BPF programs assembled by hand.
type BTFLayout struct {
	Err error // first error; later offsets are 0

	spec *btf.Spec
}

// NewLayout returns the layout of a kernel with these types.
func NewLayout(spec *btf.Spec) *BTFLayout { return &BTFLayout{spec: spec} }

// At returns the offset of a member in bytes, also of a member of an anonymous one.
func (l *BTFLayout) At(structure, member string) int32 {
	var s *btf.Struct
	if l.Err == nil {
		l.Err = l.spec.TypeByName(structure, &s)
	}
	if l.Err != nil {
		return 0
	}
	off, ok := findMember(s.Members, member)
	if !ok {
		l.Err = fmt.Errorf("struct %s has no member %s", structure, member)
	}
	return int32(off)
}

func findMember(members []btf.Member, name string) (uint32, bool) {
	for _, m := range members {
		if m.Name == name {
			return m.Offset.Bytes(), true
		}
		if m.Name != "" {
			continue
		}
		var inner []btf.Member
		switch t := btf.UnderlyingType(m.Type).(type) {
		case *btf.Struct:
			inner = t.Members
		case *btf.Union:
			inner = t.Members
		}
		if off, ok := findMember(inner, name); ok {
			return m.Offset.Bytes() + off, true
		}
	}
	return 0, false
}

// maxCPUs limits the CPUs in a list; the kernel's limit, NR_CPUS, is 8,192.
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

// ParseCPUs parses a list of CPUs, "0-3,8\n".
func ParseCPUs(text string) (list []int, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("not a list of CPUs: %q", text)
		}
		last, err := strconv.Atoi(to)
		if err != nil || first < 0 || last < first || last >= maxCPUs {
			return nil, fmt.Errorf("not a list of CPUs: %q", text)
		}
		for cpu := first; cpu <= last; cpu++ {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// TracingDirs are the directories where tracefs is mounted.
var TracingDirs = [...]string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}
