package bpfmap

import (
	"strings"

	"symbolize/ingest/object/btf"
)

// structOps is BPF_MAP_TYPE_STRUCT_OPS (include/uapi/linux/bpf.h).
const structOps = 26

// untypedOps is the reason why a struct_ops map has no types by itself: its BTF may leave out
// members of the kernel's structure.
const untypedOps = "it has types of the kernel: name its BTF with --btf " +
	"(/sys/kernel/btf/vmlinux)"

const (
	// opsSection is part of the names of the sections in which objects define struct_ops maps.
	opsSection = ".struct_ops"
	// opsPrefix and the name of a structure name the one that the kernel keeps, which has a
	// count of users and a state in front.
	opsPrefix = "bpf_struct_ops_"
)

// structOps finds the value of a struct_ops map in the kernel's BTF: by the structure that
// the map's own BTF defines it with, else by its size.
func (m *Dump) structOps(kernel *btf.Types) (found btf.ID, ok bool) {
	if name := m.opsName(); name != "" {
		id, ok := kernel.ByName(btf.KindStruct, opsPrefix+name)
		return id, ok && m.fits(kernel, id, m.Layout.ValueSize)
	}
	for id := btf.ID(1); id < btf.ID(kernel.Len()); id++ {
		if kernel.Kind(id) != btf.KindStruct || !strings.HasPrefix(kernel.Name(id), opsPrefix) ||
			!m.fits(kernel, id, m.Layout.ValueSize) {
			continue
		}
		if ok {
			return 0, false // it may be either
		}
		found, ok = id, true
	}
	return found, ok
}

// opsName returns the name of the structure that the map's own BTF defines it with; "" if
// that is not known.
func (m *Dump) opsName() string {
	if m.program == nil {
		return ""
	}
	for id := btf.ID(1); id < btf.ID(m.program.Len()); id++ {
		if m.program.Kind(id) != btf.KindDatasec ||
			!strings.Contains(m.program.Name(id), opsSection) {
			continue
		}
		for _, s := range m.program.Sections(id) {
			if btf.KernelMapName(m.program.Name(s.Type)) == m.Header.Name {
				name := m.program.Name(m.program.Strip(m.program.Ref(s.Type)))
				name, _, _ = strings.Cut(name, "___") // a flavour of it
				return name
			}
		}
	}
	return ""
}
