package sideband

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/symlist"
)

// mapping makes e the kernel's own map or a module's.
func (k *Kernel) mapping(rec *perfdata.Record, m *perfdata.Mmap, e *change) bool {
	name := string(m.Filename)
	e.kind, e.layer = changeKernelMapping, addrspace.Base
	ref, isKernel := strings.CutPrefix(name, ingest.KernelMapName)
	switch {
	case strings.HasPrefix(name, "[guest."):
		return false
	case isKernel, ingest.IsVmlinux(name), name == "[kernel]":
		return k.image(rec, m, e, ref, isKernel)
	}
	e.ref, e.c = k.objects.module(m), 0
	return true
}

// image places the kernel. The record's pgoff is the run-time address of the reference symbol
// at the end of its name, 0 if it was hidden (kptr_restrict): then no kernel address can be
// located.
func (k *Kernel) image(rec *perfdata.Record, m *perfdata.Mmap, e *change, ref string,
	named bool) bool {
	if ref == "" || !named {
		ref = "_text"
	}
	if id := m.BuildID; !id.IsZero() {
		hidden := &k.objects.List[HiddenKernel]
		hidden.ID, hidden.IDSource = id, ingest.IDRecorded
	}
	if m.PgOff == 0 {
		if m.Addr != 0 || !runsWhereLinked(k.host.Arch) {
			return false
		}
		ref = ingest.LinkedAddresses
	}
	if m.Addr == 0 && m.PgOff>>63 != 0 { // perf before 3.x
		e.a = m.PgOff &^ (1<<12 - 1)
		e.b = endOf(e.a, m.Len)
		if m.Len > e.a { // the length is an end
			e.b = m.Len
		}
	}
	k.Mapped = true
	k.symbol, k.address, k.end = ref, m.PgOff, e.b
	e.ref = k.objects.kernel(ref, m.BuildID)
	e.c = e.a - m.PgOff // so that offsets count from the reference symbol
	around := *e
	around.layer, around.b = addrspace.Around, max(e.b, kernelReach(k.host.Arch, e.a))
	k.changes.add(rec, around)
	return true
}

// runsWhereLinked reports whether the kernel of a machine is never relocated, as on 32-bit ARM. If
// recorders there do not know its symbols (simpleperf, and perf under kptr_restrict) they map it at
// all addresses from 0, and perf uses the addresses unchanged.
func runsWhereLinked(arch string) bool {
	a, _ := machine.Named(arch)
	return a != nil && a.KernelLinked
}

// kernelReach returns the end of the kernel's image. The recorded map ends with .text, but
// .init.text, with the outer frames of the idle task of the first CPU, follows the data.
func kernelReach(arch string, start uint64) uint64 {
	const reach = 128 << 20
	if a, _ := machine.Named(arch); a != nil && start < uint64(a.KernelImage.End) {
		return uint64(a.KernelImage.End)
	}
	return endOf(start, reach)
}

// kallsymsFunctions are functions of modules and BPF programs known only by a kallsyms text.
type kallsymsFunctions struct {
	symbols []symlist.KernelSymbol // sorted by address
	numbers []uint32               // raw object + 1
}

// bpfModule is the module of BPF programs in a kallsyms text.
const bpfModule = "bpf"

// maxListed bounds the size of a function in bytes: a kallsyms text has no ends of functions.
const maxListed = 64 << 10

// maxNotes bounds the notes next to a kallsyms text, in bytes.
const maxNotes = 64 << 10

// AddKallsyms adds the kernel's address space by a kallsyms text: the kernel by the address of
// _text, and modules and BPF programs by function. id is the kernel's build ID; if it is zero, the
// notes next to the text have it.
func (k *Kernel) AddKallsyms(path string, id buildid.ID) error {
	f, err := files.OpenUnpacked(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha1.New()
	var text, stext, end uint64
	r := io.TeeReader(f, sum)
	_, err = symlist.ScanKallsyms(path, r, true, func(s symlist.KernelSymbol) bool {
		switch {
		case s.Module != "":
			if s.IsCode() {
				k.functions.symbols = append(k.functions.symbols, s)
			}
		case s.Name == "_text":
			text = s.Addr
		case s.Name == "_stext":
			stext = s.Addr
		case s.Name == "_end":
			end = s.Addr
		}
		return true
	})
	if err != nil {
		return err
	}
	symlist.SortKernelSymbols(k.functions.symbols)
	k.functions.numbers = make([]uint32, len(k.functions.symbols))
	if id.IsZero() {
		id = kernelIDBeside(path)
	}
	if id.IsZero() {
		id = buildid.Make(buildid.Content, sum.Sum(nil))
	}
	ref, at := "_text", text
	if text == 0 {
		ref, at = "_stext", stext
	}
	if at == 0 {
		return fmt.Errorf("%s: neither _text nor _stext is in it", path)
	}
	k.Mapped, k.symbol, k.address = true, ref, at
	k.changes.insert(0, change{kind: changeKernelMapping, layer: addrspace.Around, a: at,
		b: max(end, kernelReach(k.host.Arch, at)), ref: k.objects.kernel(ref, id)})
	return nil
}

// kernelIDBeside returns the build ID of the kernel of a kallsyms text: by a copy of
// /sys/kernel/notes in the same directory or, for /proc/kallsyms, by the running kernel's notes.
func kernelIDBeside(path string) buildid.ID {
	notes := filepath.Join(filepath.Dir(path), "notes")
	if path == "/proc/kallsyms" {
		notes = "/sys/kernel/notes"
	}
	f, err := files.Open(notes)
	if err != nil {
		return buildid.ID{}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxNotes))
	if err != nil {
		return buildid.ID{}
	}
	id, _ := buildid.KernelNotes(b)
	return id
}

// InKallsyms finds the function of a module or BPF program at an address, and the offset in it. As
// in KernelCode, return addresses (ret) are exact if no call can precede them: at the first
// instruction of a program, of a module, or of a function after padding.
func (k *Kernel) InKallsyms(pc uint64, ret bool) (object uint32, offset uint64, ok bool) {
	c, at := &k.functions, addr.Site(pc, ret)
	if i, found := c.find(pc); found &&
		(i == 0 || c.symbols[i].Module == bpfModule ||
			c.symbols[i-1].Module != c.symbols[i].Module ||
			strings.HasPrefix(c.symbols[i-1].Name, symlist.KernelPadding)) {
		at = pc
	}
	i, found := c.find(at)
	if !found {
		i--
	}
	if i < 0 || at-c.symbols[i].Addr >= maxListed {
		return 0, 0, false
	}
	s := &c.symbols[i]
	if c.numbers[i] == 0 {
		c.numbers[i] = 1 + k.objects.listedCode(s)
	}
	return c.numbers[i] - 1, at - s.Addr, true
}

// find returns the index of the function that begins at an address, or its insertion point.
func (c *kallsymsFunctions) find(at uint64) (i int, found bool) {
	return slices.BinarySearchFunc(c.symbols, at, func(s symlist.KernelSymbol, at uint64) int {
		return cmp.Compare(s.Addr, at)
	})
}

// listedCode returns the object of a function in a kallsyms text.
func (r *Objects) listedCode(s *symlist.KernelSymbol) uint32 {
	if s.Module == bpfModule {
		return r.Add(ObjectKey{Kind: ingest.JIT, Path: r.Path([]byte(s.Name))},
			ingest.Object{File: ingest.FileRef{Path: s.Name}, Symbol: s.Name,
				NoImage: bpf.IsSymbol([]byte(s.Name))})
	}
	return r.Add(ObjectKey{Kind: ingest.Module, Path: r.Path([]byte(s.Module + "\x00" + s.Name))},
		ingest.Object{File: ingest.FileRef{Path: "[" + s.Module + "]"}, Symbol: s.Name})
}

// maxLoads bounds the named mappings of one module.
const maxLoads = 64

// nameModules names the functions of modules without a build ID by copies of /proc/kallsyms of the
// same boot, in which the kernel's reference symbol has the same address. A function is mapped from
// the time of its module's mapping. ids has the build IDs.
func (k *Kernel) nameModules(paths []string, ids *Identifier) {
	loads := make(map[string][]change) // by display name
	for _, e := range k.changes.list {
		if e.kind != changeKernelMapping || e.layer != addrspace.Base {
			continue
		}
		if o := &k.objects.List[e.ref]; o.Kind == ingest.Module && o.ID.IsZero() &&
			ids.module[o.File.Path].IsZero() && len(loads[o.File.Path]) < maxLoads {
			loads[o.File.Path] = append(loads[o.File.Path], e)
		}
	}
	if len(loads) == 0 || k.address == 0 {
		return
	}
	for _, path := range paths {
		if symbols := k.listedFunctions(path, loads, ids.kernel); symbols != nil {
			k.addListed(symbols, loads)
		}
	}
}

// listedFunctions reads the symbols of modules from a kallsyms text, by address; nil if the text is
// of another boot or unreadable, which is reported when the kernel's symbols are read.
func (k *Kernel) listedFunctions(path string, loads map[string][]change, id buildid.ID) []symlist.KernelSymbol {
	f, err := files.OpenUnpacked(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var symbols []symlist.KernelSymbol
	sameBoot := false
	list := KernelList{path: path}
	_ = symlist.ReadKallsyms(path, f, func(s symlist.KernelSymbol) bool {
		list.add(&s)
		switch {
		case s.Module == "":
			sameBoot = sameBoot || s.Name == k.symbol && s.Addr == k.address
		case loads["["+s.Module+"]"] != nil:
			symbols = append(symbols, s)
		}
		return true
	})
	if !sameBoot || k.CheckKallsyms(&list, id) != nil {
		return nil
	}
	symlist.SortKernelSymbols(symbols)
	return symbols
}

// addListed maps functions over their modules. A function begins after its padding: an interrupt
// can come at its first byte, but no call returns to it.
func (k *Kernel) addListed(symbols []symlist.KernelSymbol, loads map[string][]change) {
	for i := range symbols {
		s := &symbols[i]
		if !s.IsCode() || strings.HasPrefix(s.Name, symlist.KernelPadding) ||
			i > 0 && symbols[i-1].Addr == s.Addr {
			continue
		}
		end := s.Addr + maxListed
		for j := i + 1; j < len(symbols); j++ {
			if symbols[j].Addr > s.Addr {
				end = min(end, symbols[j].Addr)
				break
			}
		}
		for _, e := range loads["["+s.Module+"]"] {
			if s.Addr < e.a || s.Addr >= e.b {
				continue // discarded initialization code, or a load at another address
			}
			e.a, e.b, e.c, e.ref = s.Addr, min(end, e.b), 0, k.objects.listedCode(s)
			k.changes.insert(e.time, e)
		}
	}
}

// interrupted reports whether a kernel address that looks like a return address is the start of a
// listed function without a call before it: after padding, or after another module's function.
func (r *Objects) interrupted(here, before *addrspace.Mapping, pc addr.PC) bool {
	if here.Start != pc {
		return false
	}
	o, b := &r.List[here.Object], &r.List[before.Object]
	return o.Kind == ingest.JIT || o.Kind == ingest.Module && o.Symbol != "" && b.Symbol == ""
}

// KernelMap is the kernel's address space at one time of a capture, for the targets of pointers in
// captured code. It stays usable after the capture is closed, and is safe for concurrent use.
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
	for i := range m.objects { // the kernel may have no samples
		if o := &m.objects[i]; o.Kind == ingest.Kernel || o.Kind == ingest.Module {
			x.Identify(o)
		}
	}
	_, n := sb.Spaces.Versions()
	m.version = addrspace.Version(n - 1)
	for v := n - 1; v >= 0; v-- {
		if m.has(addrspace.Version(v), p) {
			m.version = addrspace.Version(v)
			break
		}
	}
	return m
}

// has reports whether all functions of a program, with the kernel's or perf's names, are at their
// addresses in a version.
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
