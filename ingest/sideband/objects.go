package sideband

import (
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
)

// Numbers of the raw objects of every capture.
const (
	Unmapped = iota
	UnmappedKernel
	Guest
	Hypervisor
	NoStack
	HiddenKernel
	Vsyscall
	StackTruncated
	StackElsewhere
	StackBroken
	StackNotCopied
	CallersUncertain
	NumFixed
)

// Objects are the raw objects of a capture, which differ in their records; several can turn out to
// be the same. Locations of the second pass refer to them.
type Objects struct {
	List     []ingest.Object
	index    map[ObjectKey]uint32
	paths    map[string]uint32 // by recorded name, without an allocation for known names
	names    []string
	segments map[segmentKey]struct{}
	spans    []fileSpan // by object: when it was mapped
}

// ObjectKey identifies an object by fields of its records.
type ObjectKey struct {
	Kind   ingest.ObjectKind
	Path   uint32
	file   ingest.FileRef // Path left empty
	ID     buildid.ID
	length uint64
}

type segmentKey struct {
	object uint32
	ref    ingest.SegmentRef
}

// maxSegments bounds the segments of one object: thousands of pieces are not segments of a file.
const maxSegments = 256

// NewObjects returns a table without objects.
func NewObjects() *Objects {
	r := &Objects{
		index: make(map[ObjectKey]uint32), paths: make(map[string]uint32),
		segments: make(map[segmentKey]struct{}),
	}
	fixed := func(kind ingest.ObjectKind, path string, why ingest.Reason) {
		r.List = append(r.List,
			ingest.Object{Kind: kind, File: ingest.FileRef{Path: path}, Reason: why,
				Kernel: ingest.NoObject})
	}
	fixed(ingest.Unmapped, ingest.UnmappedPath, ingest.OutsideMapping)
	fixed(ingest.Unmapped, ingest.UnmappedKernelPath, ingest.OutsideMapping)
	fixed(ingest.Guest, ingest.GuestPath, ingest.GuestCode)
	fixed(ingest.Hypervisor, ingest.HypervisorPath, ingest.HypervisorCode)
	fixed(ingest.NoStack, ingest.NoStackPath, ingest.StackNotUnwound)
	fixed(ingest.Kernel, ingest.KernelMapName, ingest.KernelHidden)
	fixed(ingest.ELF, ingest.VsyscallPath, ingest.ReasonNone)
	for _, why := range []ingest.Reason{ingest.StackTruncated, ingest.OtherStack,
		ingest.ChainBroken, ingest.StackNotCopied, ingest.CallersUncertain} {
		fixed(ingest.NoStack, "["+why.String()+"]", why)
	}
	return r
}

// Path returns the number of a path.
func (r *Objects) Path(name []byte) uint32 {
	n, ok := r.paths[string(name)]
	if !ok {
		n = uint32(len(r.names))
		r.names = append(r.names, string(name))
		r.paths[r.names[n]] = n
	}
	return n
}

// Add returns the number of the object with a key; a new object has the fields of o.
func (r *Objects) Add(key ObjectKey, o ingest.Object) uint32 {
	n, ok := r.index[key]
	if !ok {
		n = uint32(len(r.List))
		o.Kind, o.Kernel, o.ID = key.Kind, ingest.NoObject, key.ID
		if !o.ID.IsZero() {
			o.IDSource = ingest.IDRecorded
		}
		r.List = append(r.List, o)
		r.index[key] = n
	}
	return n
}

// user returns the object of a process's mapping. is64 is the Host's.
func (r *Objects) user(m *perfdata.Mmap, is64 bool) uint32 {
	path := r.Path(m.Filename)
	kind := userKind(r.names[path], m)
	if kind == ingest.VDSO && is64 && m.Addr < 1<<32 {
		path = r.Path([]byte(ingest.VDSO32Path)) // 64-bit processes have another image
	}
	key := ObjectKey{Kind: kind, Path: path}
	switch kind {
	case ingest.Anonymous:
		key.Path = r.Path([]byte(anonymousPath(r.names[path])))
		return r.Add(key, ingest.Object{File: ingest.FileRef{Path: r.names[key.Path]},
			Reason: ingest.AnonymousMemory})
	case ingest.VDSO:
		key.ID = m.BuildID
		return r.Add(key, ingest.Object{File: ingest.FileRef{Path: r.names[path]}})
	}
	key.ID = m.BuildID
	key.file = ingest.FileRef{Major: m.Maj, Minor: m.Min, Inode: m.Ino, Generation: m.InoGen}
	file := key.file
	file.Path = strings.TrimSuffix(r.names[path], ingest.DeletedSuffix)
	file.Deleted = file.Path != r.names[path]
	return r.Add(key, ingest.Object{File: file})
}

// userKind returns the kind of a mapping of a process by its recorded name. A mapping with a build
// ID is a file, whatever its name (memfd:runc).
func userKind(name string, m *perfdata.Mmap) ingest.ObjectKind {
	const mapHugeTLB = 0x40000 // MAP_HUGETLB: text remapped into huge pages, or a JIT's
	switch {
	case strings.HasPrefix(name, "[vdso"):
		return ingest.VDSO
	case !m.BuildID.IsZero(), name == ingest.VsyscallPath:
		return ingest.ELF
	case ingest.IsAnonymousName(name), m.Flags&mapHugeTLB != 0 && m.Ino == 0,
		name[0] == '[', strings.HasPrefix(name, "anon_inode:"):
		return ingest.Anonymous
	}
	return ingest.ELF
}

// anonymousPath is the display name of memory without a file, without thread IDs.
func anonymousPath(name string) string {
	switch {
	case name == "":
		return ingest.AnonymousPath
	case strings.HasPrefix(name, "[stack"):
		return "[stack]"
	case strings.HasPrefix(name, "/SYSV"):
		return "/SYSV"
	}
	return strings.TrimSuffix(name, ingest.DeletedSuffix)
}

// segment records a mapped piece of an object.
func (r *Objects) segment(object uint32, pgoff, length uint64) {
	o := &r.List[object]
	if o.Kind != ingest.ELF && o.Kind != ingest.VDSO || len(o.Segments) >= maxSegments {
		return
	}
	s := segmentKey{object, ingest.SegmentRef{Offset: addr.Offset(pgoff), Len: length}}
	if _, ok := r.segments[s]; !ok {
		r.segments[s] = struct{}{}
		o.Segments = append(o.Segments, s.ref)
	}
}

// kernel returns the object of the kernel's own mapping. ref is the symbol at the end of its name.
func (r *Objects) kernel(ref string, id buildid.ID) uint32 {
	key := ObjectKey{Kind: ingest.Kernel, Path: r.Path([]byte(ref)), ID: id}
	return r.Add(key, ingest.Object{File: ingest.FileRef{Path: ingest.KernelMapName}, RefSymbol: ref})
}

// module returns the object of a kernel module, recorded as "[name]" or by the path of its file.
func (r *Objects) module(m *perfdata.Mmap) uint32 {
	name := moduleName(string(m.Filename))
	key := ObjectKey{Kind: ingest.Module, Path: r.Path([]byte(name)), ID: m.BuildID}
	return r.Add(key, ingest.Object{File: ingest.FileRef{Path: name}})
}

// moduleName is the display name of a module, "[xt_conntrack]".
func moduleName(file string) string { return "[" + ModuleName(file) + "]" }

// ModuleName returns the kernel's name of a module, "xt_conntrack", by this in brackets or by the path of its file. In
// file names '-' equals '_'.
func ModuleName(file string) string {
	base := ingest.BaseName(file)
	if inner, ok := ingest.Unbracket(base); ok {
		base = inner
	} else if i := strings.Index(base, ".ko"); i > 0 {
		base = base[:i]
	}
	return strings.ReplaceAll(base, "-", "_")
}

// ksymbol returns the object of code added to the kernel with a name.
func (r *Objects) ksymbol(k *perfdata.KSymbol, arch string) uint32 {
	key := ObjectKey{Kind: ingest.JIT, Path: r.Path(k.Name), length: uint64(k.Len)}
	name := r.names[key.Path]
	o := ingest.Object{File: ingest.FileRef{Path: name}, Symbol: name, Length: key.length}
	if name == "" {
		o.Reason = ingest.ImageNotCaptured
	}
	n := r.Add(key, o)
	if o := &r.List[n]; o.ID.IsZero() {
		o.ID, o.IDSource = bpf.SymbolIdentity(arch, o.Symbol, o.Length), ingest.IDDerived
	}
	return n
}

// program returns the object of function i of a program with recorded information; of one load of it
// if alone is set.
func (r *Objects) program(p *bpf.Program, i int, length uint64, arch string, alone bool) uint32 {
	symbol, load := p.Symbol(i), ""
	if alone {
		load = ingest.LoadText(p.ID)
	}
	key := ObjectKey{Kind: ingest.JIT, Path: r.Path([]byte(symbol + load)), length: length,
		ID: p.Identity(i, arch)}
	n := r.Add(key, ingest.Object{File: ingest.FileRef{Path: symbol}, Symbol: symbol, Length: length,
		RefSymbol: load, NoImage: true})
	r.List[n].IDSource = ingest.IDDerived
	if p.Funcs[i].Image != nil {
		r.List[n].NoImage, r.List[n].WhyNoImage = false, ""
	} else if o := &r.List[n]; o.NoImage && o.WhyNoImage == "" {
		o.WhyNoImage = p.Missing
	}
	return n
}

// Nameless returns the object for all addresses that have no name for a reason; path is its name
// in reports.
func (r *Objects) Nameless(kind ingest.ObjectKind, path string, why ingest.Reason) uint32 {
	key := ObjectKey{Kind: kind, Path: r.Path([]byte(path + "\x00" + why.String()))}
	return r.Add(key, ingest.Object{File: ingest.FileRef{Path: path}, Reason: why})
}

// NoTable returns the object for the last frame of stacks that end in an object without unwind
// table.
func (r *Objects) NoTable(object uint32) uint32 {
	return r.Nameless(ingest.NoStack, ingest.NoTablePath(r.List[object].File.Path), ingest.NoUnwindTable)
}

// NamedCode returns the object of a function known only by its name and its module or file.
func (r *Objects) NamedCode(name, part string, kernel bool) uint32 {
	key := ObjectKey{Kind: ingest.ELF, Path: r.Path([]byte(part + "\x00" + name))}
	path := part
	if kernel {
		key.Kind = ingest.JIT
		path = name
	}
	return r.Add(key, ingest.Object{File: ingest.FileRef{Path: path}, Symbol: name})
}
