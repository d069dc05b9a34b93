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

// ObjectOf returns the object of a mapping, and the base to subtract from its
// addresses (modulo 2^64) to get Offsets.
func ObjectOf(m Mapping) (o ingest.Object, base uint64) {
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
		if size > 0 {
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
