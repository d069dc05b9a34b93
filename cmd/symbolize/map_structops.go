package main

import (
	"strings"

	"symbolize/ingest/object/btf"
)

// mapStructOps is BPF_MAP_TYPE_STRUCT_OPS (include/uapi/linux/bpf.h).
const mapStructOps = 26

// untypedOps says why a struct_ops map has no types by itself: those of its BTF may leave out
// members of the kernel's structure.
const untypedOps = "its types are those of the kernel, whose BTF --btf can name " +
	"(/sys/kernel/btf/vmlinux)"

const (
	// opsSection is what the sections are called in which objects define struct_ops maps.
	opsSection = ".struct_ops"
	// opsPrefix is what the kernel puts before the name of the structure to call the one that
	// it keeps: with a count of users and a state in front of it.
	opsPrefix = "bpf_struct_ops_"
)

// structOps finds the value of a struct_ops map in the kernel's BTF: by the structure that
// the map's own BTF says it is of, else by its size.
func (m *mapInput) structOps(kernel *btf.Types) (found btf.ID, ok bool) {
	if name := m.opsName(); name != "" {
		id, ok := kernel.ByName(btf.KindStruct, opsPrefix+name)
		return id, ok && m.fits(kernel, id, m.layout.ValueSize)
	}
	for id := btf.ID(1); id < btf.ID(kernel.Len()); id++ {
		if kernel.Kind(id) != btf.KindStruct || !strings.HasPrefix(kernel.Name(id), opsPrefix) ||
			!m.fits(kernel, id, m.layout.ValueSize) {
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
func (m *mapInput) opsName() string {
	if m.program == nil {
		return ""
	}
	for id := btf.ID(1); id < btf.ID(m.program.Len()); id++ {
		if m.program.Kind(id) != btf.KindDatasec ||
			!strings.Contains(m.program.Name(id), opsSection) {
			continue
		}
		for _, s := range m.program.Sections(id) {
			if btf.KernelMapName(m.program.Name(s.Type)) == m.header.Name {
				name := m.program.Name(m.program.Strip(m.program.Ref(s.Type)))
				name, _, _ = strings.Cut(name, "___") // a flavour of it
				return name
			}
		}
	}
	return ""
}
