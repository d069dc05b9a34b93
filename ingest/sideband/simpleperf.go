package sideband

import (
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"maps"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/symlist"
)

// jitSymbolFile is the bit that simpleperf sets in the protection of synthetic mappings: of a file
// with symbols over code compiled at run time (PROT_JIT_SYMFILE_MAP in thread_tree.h).
const jitSymbolFile = 0x4000

// maxPlaced bounds the mapped functions of symbol maps, over all mappings of their processes.
const maxPlaced = 1 << 20

// ListedID returns an ID for a file without build ID, by simpleperf's list of its functions.
func ListedID(f *perfdata.FileSymbols) buildid.ID {
	sum := sha1.New()
	text := func(s string) { sum.Write(append([]byte(s), 0)) }
	number := func(v ...uint64) {
		for _, v := range v {
			sum.Write(binary.LittleEndian.AppendUint64(nil, v))
		}
	}
	text(f.Path)
	number(uint64(f.Kind), f.Addr, f.Offset)
	for i := range f.Symbols {
		s := &f.Symbols[i]
		number(s.Addr, uint64(s.Size))
		text(s.Name)
	}
	return buildid.Make(buildid.Content, sum.Sum(nil))
}

// useListed processes simpleperf's lists of functions. It maps the functions of the kernel and its
// modules, for which simpleperf records no mappings, sets the IDs of files without one, and finds
// the files with code of a virtual machine.
func (sb *State) useListed() {
	files, _ := sb.Records.File.FileSymbols() // damage is reported when names are read
	if len(files) == 0 {
		return
	}
	sb.listed = make(map[string]buildid.ID)
	dex, perfMaps := make(map[string]bool), make(map[int32]*symbolMap)
	for i := range files {
		f := &files[i]
		switch f.Kind {
		case perfdata.FileKernel:
			sb.placeKernel(f)
		case perfdata.FileSymbolMap:
			sb.addSymbolMap(f, perfMaps)
			sb.listID(f)
		case perfdata.FileDEX:
			dex[f.Path] = true
			sb.listID(f)
		case perfdata.FileELF:
			sb.listID(f)
		}
	}
	sb.placeSymbolMaps(perfMaps)
	sb.exact = make([]bool, len(sb.Objects.List))
	for i := range sb.Objects.List {
		o := &sb.Objects.List[i]
		sb.exact[i] = o.Kind == ingest.ELF && dex[o.File.Path]
	}
}

// listID adds the ID of a file; a path with two IDs has none.
func (sb *State) listID(f *perfdata.FileSymbols) {
	id := ListedID(f)
	if known, ok := sb.listed[f.Path]; ok && !known.Matches(id) {
		id = buildid.ID{}
	}
	sb.listed[f.Path] = id
}

// placeKernel maps the listed functions of the kernel. simpleperf reads them from /proc/kallsyms,
// and records no reference symbol for finding others.
func (sb *State) placeKernel(f *perfdata.FileSymbols) {
	for i := range f.Symbols {
		s := &f.Symbols[i]
		if s.Size == 0 || s.Name == "" || s.Addr < sb.kernelStart() {
			continue
		}
		name, _ := ingest.Unbracket(ingest.KernelMapName)
		sb.changes.insert(0, change{kind: changeKernelMapping, layer: addrspace.Base, a: s.Addr,
			b:   endOf(s.Addr, uint64(s.Size)),
			ref: sb.Objects.listedCode(&symlist.KernelSymbol{Name: s.Name, Module: name})})
	}
}

// kernelStart is the lowest possible address of the kernel.
func (sb *State) kernelStart() uint64 {
	if runsWhereLinked(sb.Host.Arch) {
		return 1 << 30
	}
	return 1 << 63
}

// symbolMap is a copy of a process's perf map.
type symbolMap struct {
	symbols []perfdata.FileSymbol // by address
	object  uint32
}

// addSymbolMap adds the functions of a copy of a perf map to perfMaps, by process.
func (sb *State) addSymbolMap(f *perfdata.FileSymbols, perfMaps map[int32]*symbolMap) {
	pid, ok := symlist.PerfMapPID(f.Path)
	if !ok || perfMaps[pid] != nil {
		return
	}
	perfMaps[pid] = &symbolMap{object: sb.Objects.user(&perfdata.Mmap{Filename: []byte(f.Path)}, true),
		symbols: slices.SortedFunc(slices.Values(f.Symbols), func(a, b perfdata.FileSymbol) int {
			return cmp.Compare(a.Addr, b.Addr)
		})}
}

// placeSymbolMaps maps the functions of perf maps: over the memory of each program of a process,
// and over later anonymous mappings.
func (sb *State) placeSymbolMaps(perfMaps map[int32]*symbolMap) {
	left := maxPlaced
	place := func(pid int32, t, from, to uint64) {
		m := perfMaps[pid]
		i, _ := slices.BinarySearchFunc(m.symbols, from, func(s perfdata.FileSymbol, at uint64) int {
			return cmp.Compare(s.Addr, at)
		})
		for ; i < len(m.symbols) && m.symbols[i].Addr < to && left > 0; i, left = i+1, left-1 {
			s := &m.symbols[i]
			sb.changes.insert(t, change{kind: changeMapping, pid: pid, a: s.Addr,
				b: endOf(s.Addr, uint64(s.Size)), c: s.Addr, ref: m.object})
		}
	}
	recorded := sb.changes.list[:len(sb.changes.list):len(sb.changes.list)]
	for _, pid := range slices.Sorted(maps.Keys(perfMaps)) {
		place(pid, 0, 0, 1<<63)
	}
	for i := range recorded {
		e := &recorded[i]
		switch {
		case perfMaps[e.pid] == nil:
		case e.kind == changeName && e.flag: // exec removes all mappings
			place(e.pid, e.time, 0, 1<<63)
		case e.kind == changeMapping && sb.Objects.List[e.ref].Kind == ingest.Anonymous:
			place(e.pid, e.time, e.a, e.b)
		}
	}
}

// ExactAddresses reports whether all addresses in an object are exact: Android's interpreter
// records the current position in a method, not a return address.
func (sb *State) ExactAddresses(object uint32) bool {
	return int(object) < len(sb.exact) && sb.exact[object]
}
