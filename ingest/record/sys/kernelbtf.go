package sys

import (
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// BTFLayout locates fields of the running kernel by its BTF, for BPF programs assembled by hand.
type BTFLayout struct {
	Err error // the first that happened: of offsets after it all are 0

	spec *btf.Spec
}

// NewLayout returns the layout of a kernel with these types.
func NewLayout(spec *btf.Spec) *BTFLayout { return &BTFLayout{spec: spec} }

// At returns the offset of a member, in bytes, which may lie in members without a name.
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
