package named

import (
	"path"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/object/symlist"
)

// Mapping is a mapping as profiles of other programs have it.
type Mapping struct {
	Start, Limit uint64 // addresses
	Offset       uint64 // in the file, of Start
	File         string
	ID           buildid.ID // zero if unknown
}

// Mapped is a mapping with its object, which a Builder has.
type Mapped struct {
	object, linked     uint32 // linked is the number + 1 of the object of addresses outside
	start, limit, base uint64
	elf                bool
}

// Map adds the object of a mapping. Addresses in a file that is mapped at 0 are those of its ELF
// file, as pprof reads them.
func (b *Builder) Map(m Mapping) *Mapped {
	o, base := objectOf(m)
	if b.Identify != nil && o.ID.IsZero() && o.Kind == ingest.ELF && path.IsAbs(o.File.Path) && !o.File.Deleted {
		o.ID, o.IDSource = b.Identify(&o)
	}
	return &Mapped{object: b.Object(o), start: m.Start, limit: m.Limit, base: base,
		elf: o.Kind == ingest.ELF && o.RefSymbol == ""}
}

// MapNone adds an object for addresses without a mapping.
func (b *Builder) MapNone() *Mapped {
	return &Mapped{object: b.Object(ingest.Object{Kind: ingest.Unmapped, Kernel: ingest.NoObject,
		Reason: ingest.OutsideMapping})}
}

// Locate returns the object and the Offset of an address. Recorders that convert addresses to those
// of the ELF file may leave the mapping as it was at run time: addresses outside of it are of
// another object, which has ingest.LinkedAddresses.
func (b *Builder) Locate(m *Mapped, address uint64) (object uint32, off addr.Offset) {
	if !m.elf || address >= m.start && (m.limit <= m.start || address < m.limit) {
		return m.object, addr.Offset(address - m.base)
	}
	if m.linked == 0 {
		o := b.objects[m.object]
		o.RefSymbol, o.Segments = ingest.LinkedAddresses, nil
		m.linked = b.Object(o) + 1
	}
	return m.linked - 1, addr.Offset(address)
}

// objectOf returns the object of a mapping, and the base to subtract from its addresses (modulo
// 2^64) to get Offsets.
func objectOf(m Mapping) (o ingest.Object, base uint64) {
	base = m.Start - m.Offset
	if !m.ID.IsZero() {
		o.ID, o.IDSource = m.ID, ingest.IDRecorded
	}
	size := m.Limit - m.Start
	if m.Limit < m.Start {
		size = 0
	}
	file := m.File
	o.Kind, o.Kernel = kindOf(m), ingest.NoObject
	switch o.Kind {
	case ingest.Kernel:
		base = kernelBase(m)
		if ref, ok := strings.CutPrefix(file, ingest.KernelMapName); ok {
			file, o.RefSymbol = ingest.KernelMapName, ref
		}
	case ingest.JIT:
		file, _ = ingest.Unbracket(file)
		o.Symbol, o.Length = file, size
		base = m.Start
	case ingest.PerfMap:
		o.PID, _ = symlist.PerfMapPID(file)
	case ingest.JITDump:
		o.PID, _ = jitdump.PIDOf(file)
		base = m.Start
	case ingest.ELF, ingest.VDSO, ingest.Module:
		switch {
		case m.Start == 0 && o.Kind == ingest.ELF:
			o.RefSymbol, base = ingest.LinkedAddresses, 0
		case size > 0:
			o.Segments = []ingest.SegmentRef{{Offset: addr.Offset(m.Offset), Len: size}}
		}
	}
	o.File.Path = strings.TrimSuffix(file, ingest.DeletedSuffix)
	o.File.Deleted = o.File.Path != file
	return o, base
}

// kindOf derives the kind of object from the names that perf, other profilers
// and our own files use.
func kindOf(m Mapping) ingest.ObjectKind {
	id := m.ID
	file, base := m.File, path.Base(m.File)
	inner, bracketed := ingest.Unbracket(file)
	_, isPerfMap := symlist.PerfMapPID(file)
	_, isDump := jitdump.PIDOf(file)
	switch {
	case strings.HasPrefix(file, ingest.KernelMapName), ingest.IsVmlinux(base) && m.Start>>63 != 0:
		return ingest.Kernel
	case file == "[vdso]", strings.HasPrefix(base, "linux-vdso"):
		return ingest.VDSO
	case isPerfMap && (id.IsZero() || id.Space() == buildid.JIT):
		return ingest.PerfMap
	case isDump && id.Space() == buildid.JIT:
		return ingest.JITDump
	case id.Space() == buildid.JIT, strings.HasPrefix(inner, "bpf_"):
		return ingest.JIT
	case strings.HasPrefix(file, "[guest"):
		return ingest.Guest
	case file == ingest.HypervisorPath:
		return ingest.Hypervisor
	case file == ingest.UnmappedPath, file == ingest.UnmappedKernelPath,
		file == ingest.AmbiguousPath, file == ingest.AmbiguousJITPath, file == ingest.AmbiguousKernelPath:
		return ingest.Unmapped
	case file == ingest.NoStackPath, ingest.IsStackEnd(file):
		return ingest.NoStack
	case ingest.IsAnonymousName(file) && id.IsZero():
		return ingest.Anonymous
	case bracketed && file != ingest.VsyscallPath, strings.Contains(base, ".ko"):
		return ingest.Module
	}
	return ingest.ELF
}

// kernelBase is the run-time address of the reference symbol: in perf_data_converter the
// file_offset, which is perf's pgoff, in others the start of the mapping.
func kernelBase(m Mapping) uint64 {
	if m.Offset >= m.Start && m.Offset < m.Limit && m.Offset != 0 {
		return m.Offset
	}
	return m.Start
}
