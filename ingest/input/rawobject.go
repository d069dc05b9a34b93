package input

import (
	"fmt"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
)

// Numbers of the raw objects that every capture has. They stand for no record.
const (
	rawUnmapped = iota
	rawUnmappedKernel
	rawGuest
	rawHypervisor
	rawNoStack
	rawHiddenKernel
	rawVsyscall
	numFixedRaw
)

// rawObjects are the objects as the records of a capture tell them apart, before
// it is known which are the same. Locations of the second pass refer to them.
type rawObjects struct {
	list     []ingest.Object
	index    map[rawKey]uint32
	paths    map[string]uint32 // recorded name → number, so that a known one costs no allocation
	names    []string
	segments map[rawSegment]struct{}
	perfMap  func(pid int32) bool
	spans    []fileSpan // by object: when it was mapped
}

type rawKey struct {
	kind   ingest.ObjectKind
	path   uint32
	file   ingest.FileRef // Path left empty
	id     buildid.ID
	pid    int32
	length uint64
}

type rawSegment struct {
	object uint32
	ref    ingest.SegmentRef
}

// maxSegments bounds the observed pieces that are kept of one object: one that
// is mapped piece by piece, thousands of them, has no segments to speak of.
const maxSegments = 256

func newRawObjects(perfMap func(pid int32) bool) *rawObjects {
	r := &rawObjects{
		index: make(map[rawKey]uint32), paths: make(map[string]uint32),
		segments: make(map[rawSegment]struct{}), perfMap: perfMap,
	}
	fixed := func(kind ingest.ObjectKind, path string, why ingest.Reason) {
		r.list = append(r.list,
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
	return r
}

func (r *rawObjects) path(name []byte) uint32 {
	n, ok := r.paths[string(name)]
	if !ok {
		n = uint32(len(r.names))
		r.names = append(r.names, string(name))
		r.paths[r.names[n]] = n
	}
	return n
}

// add returns the number of the object that key tells, which make describes if
// it is new.
func (r *rawObjects) add(key rawKey, describe func() ingest.Object) uint32 {
	n, ok := r.index[key]
	if !ok {
		n = uint32(len(r.list))
		o := describe()
		o.Kind, o.Kernel, o.ID = key.kind, ingest.NoObject, key.id
		if !o.ID.IsZero() {
			o.IDSource = ingest.IDRecorded
		}
		r.list = append(r.list, o)
		r.index[key] = n
	}
	return n
}

// user returns the object of a process's mapping.
func (r *rawObjects) user(m *perfdata.Mmap) uint32 {
	path := r.path(m.Filename)
	kind := userKind(r.names[path], m)
	key := rawKey{kind: kind, path: path}
	switch kind {
	case ingest.Anonymous:
		if r.perfMap != nil && r.perfMap(m.PID) {
			key = rawKey{kind: ingest.PerfMap, pid: m.PID}
			return r.add(key, func() ingest.Object {
				return ingest.Object{PID: m.PID,
					File: ingest.FileRef{Path: perfMapPath(m.PID)}}
			})
		}
		key.path = r.path([]byte(anonymousPath(r.names[path])))
		return r.add(key, func() ingest.Object {
			return ingest.Object{File: ingest.FileRef{Path: r.names[key.path]},
				Reason: ingest.AnonymousMemory}
		})
	case ingest.VDSO:
		key.id = m.BuildID
		return r.add(key, func() ingest.Object { return ingest.Object{File: ingest.FileRef{Path: r.names[path]}} })
	}
	key.id = m.BuildID
	key.file = ingest.FileRef{Major: m.Maj, Minor: m.Min, Inode: m.Ino, Generation: m.InoGen}
	return r.add(key, func() ingest.Object {
		file := key.file
		file.Path = strings.TrimSuffix(r.names[path], ingest.DeletedSuffix)
		file.Deleted = file.Path != r.names[path]
		return ingest.Object{File: file}
	})
}

// userKind tells what a mapping of a process is by its recorded name. What has a
// build ID of its own is a file, whatever it is called (memfd:runc).
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

// anonymousPath is the display name of memory without a file; numbers in it that
// tell threads apart are left out.
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

// segment remembers a piece of an object that was mapped.
func (r *rawObjects) segment(object uint32, pgoff, length uint64) {
	o := &r.list[object]
	if o.Kind != ingest.ELF && o.Kind != ingest.VDSO || len(o.Segments) >= maxSegments {
		return
	}
	s := rawSegment{object, ingest.SegmentRef{Offset: addr.Offset(pgoff), Len: length}}
	if _, ok := r.segments[s]; !ok {
		r.segments[s] = struct{}{}
		o.Segments = append(o.Segments, s.ref)
	}
}

// kernel returns the object of the kernel's own map. ref is the symbol that the
// map's name ends with.
func (r *rawObjects) kernel(ref string, id buildid.ID) uint32 {
	key := rawKey{kind: ingest.Kernel, path: r.path([]byte(ref)), id: id}
	return r.add(key, func() ingest.Object {
		return ingest.Object{File: ingest.FileRef{Path: ingest.KernelMapName}, RefSymbol: ref}
	})
}

// module returns the object of a kernel module, recorded as "[name]" or by the
// path of its file.
func (r *rawObjects) module(m *perfdata.Mmap) uint32 {
	name := moduleName(string(m.Filename))
	key := rawKey{kind: ingest.Module, path: r.path([]byte(name)), id: m.BuildID}
	return r.add(key, func() ingest.Object { return ingest.Object{File: ingest.FileRef{Path: name}} })
}

// moduleName is the display name of a module, "[xt_conntrack]". In file names '-'
// and '_' are one.
func moduleName(file string) string {
	base := file[strings.LastIndexByte(file, '/')+1:]
	if inner, ok := ingest.Unbracket(base); ok {
		base = inner
	} else if i := strings.Index(base, ".ko"); i > 0 {
		base = base[:i]
	}
	return "[" + strings.ReplaceAll(base, "-", "_") + "]"
}

// ksymbol returns the object of code that appeared in the kernel under a name.
func (r *rawObjects) ksymbol(k *perfdata.KSymbol, arch string) uint32 {
	key := rawKey{kind: ingest.JIT, path: r.path(k.Name), length: uint64(k.Len)}
	n := r.add(key, func() ingest.Object {
		name := r.names[key.path]
		o := ingest.Object{File: ingest.FileRef{Path: name}, Symbol: name, Length: key.length}
		if name == "" {
			o.Reason = ingest.ImageNotCaptured
		}
		return o
	})
	if o := &r.list[n]; o.ID.IsZero() {
		o.ID, o.IDSource = JITID(arch, o.Symbol, o.Length), ingest.IDDerived
	}
	return n
}

// program returns the object of function i of a program whose information was
// recorded.
func (r *rawObjects) program(p *bpf.Program, i int, length uint64, arch string) uint32 {
	symbol := p.Symbol(i)
	key := rawKey{kind: ingest.JIT, path: r.path([]byte(symbol)), length: length,
		id: p.Identity(i, arch)}
	n := r.add(key, func() ingest.Object {
		return ingest.Object{File: ingest.FileRef{Path: symbol}, Symbol: symbol, Length: length,
			NoImage: true}
	})
	r.list[n].IDSource = ingest.IDDerived
	if p.Funcs[i].Image != nil {
		r.list[n].NoImage, r.list[n].WhyNoImage = false, ""
	} else if o := &r.list[n]; o.NoImage && o.WhyNoImage == "" {
		o.WhyNoImage = p.Missing
	}
	return n
}

// perfMapPath is where a run-time compiler leaves the names of its code.
func perfMapPath(pid int32) string { return fmt.Sprintf("/tmp/perf-%d.map", pid) }
