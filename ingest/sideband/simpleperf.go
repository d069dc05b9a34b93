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

// functionLists are simpleperf's lists of the functions of files.
type functionLists struct {
	host    *Host
	objects *Objects
	changes *timeline
	ids     map[string]buildid.ID // by path, of files with a list
	exact   []bool                // by object, see ExactAddresses
}

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

// use processes simpleperf's lists of functions. It maps the functions of the kernel and its
// modules, for which simpleperf records no mappings, sets the IDs of files without one, and finds
// the files with code of a virtual machine.
func (l *functionLists) use(recording *perfdata.File) {
	files, _ := recording.FileSymbols() // damage is reported when names are read
	if len(files) == 0 {
		return
	}
	l.ids = make(map[string]buildid.ID)
	dex, perfMaps := make(map[string]bool), make(map[int32]*symbolMap)
	for i := range files {
		f := &files[i]
		switch f.Kind {
		case perfdata.FileKernel:
			l.placeKernel(f)
		case perfdata.FileSymbolMap:
			l.addSymbolMap(f, perfMaps)
			l.addID(f)
		case perfdata.FileDEX:
			dex[f.Path] = true
			l.addID(f)
		case perfdata.FileELF:
			l.addID(f)
		}
	}
	l.placeSymbolMaps(perfMaps)
	l.exact = make([]bool, len(l.objects.List))
	for i := range l.objects.List {
		o := &l.objects.List[i]
		l.exact[i] = o.Kind == ingest.ELF && dex[o.File.Path]
	}
}

// addID adds the ID of a file; a path with two IDs gets the zero ID.
func (l *functionLists) addID(f *perfdata.FileSymbols) {
	id := ListedID(f)
	if known, ok := l.ids[f.Path]; ok && !known.Matches(id) {
		id = buildid.ID{}
	}
	l.ids[f.Path] = id
}

// placeKernel maps the listed functions of the kernel. simpleperf reads them from /proc/kallsyms,
// and records no reference symbol for finding others.
func (l *functionLists) placeKernel(f *perfdata.FileSymbols) {
	for i := range f.Symbols {
		s := &f.Symbols[i]
		if s.Size == 0 || s.Name == "" || s.Addr < l.kernelStart() {
			continue
		}
		name, _ := ingest.Unbracket(ingest.KernelMapName)
		l.changes.insert(0, change{kind: changeKernelMapping, layer: addrspace.Base, a: s.Addr,
			b:   endOf(s.Addr, uint64(s.Size)),
			ref: l.objects.listedCode(&symlist.KernelSymbol{Name: s.Name, Module: name})})
	}
}

// kernelStart is the lowest possible address of the kernel.
func (l *functionLists) kernelStart() uint64 {
	if runsWhereLinked(l.host.Arch) {
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
func (l *functionLists) addSymbolMap(f *perfdata.FileSymbols, perfMaps map[int32]*symbolMap) {
	pid, ok := symlist.PerfMapPID(f.Path)
	if !ok || perfMaps[pid] != nil {
		return
	}
	perfMaps[pid] = &symbolMap{object: l.objects.user(&perfdata.Mmap{Filename: []byte(f.Path)}, true),
		symbols: slices.SortedFunc(slices.Values(f.Symbols), func(a, b perfdata.FileSymbol) int {
			return cmp.Compare(a.Addr, b.Addr)
		})}
}

// placeSymbolMaps maps the functions of perf maps: over the memory of each program of a process,
// and over later anonymous mappings.
func (l *functionLists) placeSymbolMaps(perfMaps map[int32]*symbolMap) {
	left := maxPlaced
	place := func(pid int32, t, from, to uint64) {
		m := perfMaps[pid]
		i, _ := slices.BinarySearchFunc(m.symbols, from, func(s perfdata.FileSymbol, at uint64) int {
			return cmp.Compare(s.Addr, at)
		})
		for ; i < len(m.symbols) && m.symbols[i].Addr < to && left > 0; i, left = i+1, left-1 {
			s := &m.symbols[i]
			l.changes.insert(t, change{kind: changeMapping, pid: pid, a: s.Addr,
				b: endOf(s.Addr, uint64(s.Size)), c: s.Addr, ref: m.object})
		}
	}
	recorded := l.changes.list[:len(l.changes.list):len(l.changes.list)]
	for _, pid := range slices.Sorted(maps.Keys(perfMaps)) {
		place(pid, 0, 0, 1<<63)
	}
	for i := range recorded {
		e := &recorded[i]
		switch {
		case perfMaps[e.pid] == nil:
		case e.kind == changeName && e.flag: // exec removes all mappings
			place(e.pid, e.time, 0, 1<<63)
		case e.kind == changeMapping && l.objects.List[e.ref].Kind == ingest.Anonymous:
			place(e.pid, e.time, e.a, e.b)
		}
	}
}

// ExactAddresses reports whether all addresses in an object are exact: Android's interpreter
// records the current position in a method, not a return address.
func (sb *State) ExactAddresses(object uint32) bool {
	return int(object) < len(sb.lists.exact) && sb.lists.exact[object]
}
