package sideband

import (
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/format/perfdata"
)

// kernelMapping makes e the kernel's own map or a module's.
func (sb *State) kernelMapping(rec *perfdata.Record, e *change) bool {
	m := &sb.Records.mmap
	name := string(m.Filename)
	e.kind, e.layer = changeKernelMapping, addrspace.Base
	ref, isKernel := strings.CutPrefix(name, ingest.KernelMapName)
	switch {
	case strings.HasPrefix(name, "[guest."):
		return false
	case isKernel, ingest.IsVmlinux(name), name == "[kernel]":
		return sb.kernelImage(rec, e, ref, isKernel)
	}
	e.ref, e.c = sb.Objects.module(m), 0
	return true
}

// kernelImage places the kernel. The record's pgoff is the run-time address of the reference symbol
// that its name ends with, 0 if it was hidden (kptr_restrict): then no address of the kernel can be
// located.
func (sb *State) kernelImage(rec *perfdata.Record, e *change, ref string, named bool) bool {
	m := &sb.Records.mmap
	if ref == "" || !named {
		ref = "_text"
	}
	if id := m.BuildID; !id.IsZero() {
		hidden := &sb.Objects.List[HiddenKernel]
		hidden.ID, hidden.IDSource = id, ingest.IDRecorded
	}
	if m.PgOff == 0 {
		if m.Addr != 0 || !runsWhereLinked(sb.Host.Arch) {
			return false
		}
		ref = ingest.LinkedAddresses
	}
	if m.Addr == 0 && m.PgOff>>63 != 0 { // perf before 3.x
		e.a = m.PgOff &^ (1<<12 - 1)
		e.b = endOf(e.a, m.Len)
		if m.Len > e.a { // a length counted from 0
			e.b = m.Len
		}
	}
	sb.Kernel.Mapped = true
	sb.Kernel.symbol, sb.Kernel.address = ref, m.PgOff
	e.ref = sb.Objects.kernel(ref, m.BuildID)
	e.c = e.a - m.PgOff // so that offsets count from the reference symbol
	around := *e
	around.layer, around.b = addrspace.Around, max(e.b, kernelReach(sb.Host.Arch, e.a))
	sb.add(rec, around)
	return true
}

// runsWhereLinked reports whether the kernel of a machine is never relocated: that of 32-bit
// ARM. Recorders there map it as all addresses from 0 where they do not know its symbols
// (simpleperf, and perf under kptr_restrict), and perf takes the addresses as they are.
func runsWhereLinked(arch string) bool {
	return arch == "arm" || strings.HasPrefix(arch, "armv") && arch != "armv8l"
}

// kernelReach returns the end of the kernel's image. The recorded map ends with .text, but
// .init.text, with the outer frames of the idle task of the first CPU, is behind the data.
func kernelReach(arch string, start uint64) uint64 {
	const (
		x86Modules = 0xffffffffc0000000 // MODULES_VADDR, behind KERNEL_IMAGE_SIZE
		reach      = 128 << 20
	)
	if arch == "x86_64" && start < x86Modules {
		return x86Modules
	}
	return endOf(start, reach)
}
