package sideband

import (
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/format/bpf"
)

// KernelMap is the kernel's address space at one time of a capture, for the targets of
// pointers in captured code. It stays usable when the capture is closed, and is safe for
// concurrent use.
type KernelMap struct {
	spaces  *addrspace.Map
	version addrspace.Version
	objects []ingest.Object // by raw object
}

// KernelMap returns the kernel's address space at the last time at which all functions of a
// BPF program were mapped at their addresses; at the end if they never were.
func (sb *State) KernelMap(p *bpf.Program) *KernelMap {
	m := &KernelMap{spaces: sb.Spaces, objects: slices.Clone(sb.Objects.List)}
	x := NewIdentifier(sb, ObjectQuery{}, nil)
	for i := range m.objects { // no sample may lie in the kernel itself
		if o := &m.objects[i]; o.Kind == ingest.Kernel || o.Kind == ingest.Module {
			x.Identify(o)
		}
	}
	_, n := sb.Spaces.Versions()
	m.version = addrspace.Version(n - 1)
	for v := m.version; ; v-- {
		if m.has(v, p) {
			m.version = v
			break
		}
		if v == 0 {
			break
		}
	}
	return m
}

// has reports whether all functions of a program, under the kernel's or perf's names, are at
// their addresses in a version.
func (m *KernelMap) has(v addrspace.Version, p *bpf.Program) bool {
	for i := range p.Funcs {
		start := p.Funcs[i].Start
		at := m.spaces.InKernel(v, start)
		if at == nil || at.Start != start {
			return false
		}
		name := m.objects[at.Object].Symbol
		if name != p.Symbol(i) && name != p.PerfSymbol(i) {
			return false
		}
	}
	return true
}

// Find returns the object of an address, and the offset in it. The object's Kernel field is
// not set.
func (m *KernelMap) Find(pc addr.PC) (ingest.Object, addr.Offset, bool) {
	if m == nil {
		return ingest.Object{}, 0, false
	}
	at := m.spaces.InKernel(m.version, pc)
	if at == nil || m.objects[at.Object].Kind.Collapsed() {
		return ingest.Object{}, 0, false
	}
	return m.objects[at.Object], at.Offset(pc), true
}
