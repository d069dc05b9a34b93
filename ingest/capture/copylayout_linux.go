package capture

import (
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// layout finds the places of the kernel's fields, by its own BTF.
type layout struct {
	spec *btf.Spec
	err  error
}

// at returns the offset of a member, which may lie in members without a name.
func (l *layout) at(structure, member string) int32 {
	var s *btf.Struct
	if l.err == nil {
		l.err = l.spec.TypeByName(structure, &s)
	}
	if l.err != nil {
		return 0
	}
	off, ok := findMember(s.Members, member)
	if !ok {
		l.err = fmt.Errorf("struct %s has no member %s", structure, member)
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
