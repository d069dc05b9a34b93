package calltree

import (
	"fmt"

	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
)

// NodeID is the number of a node of one Folder.
type NodeID uint32

// inlinedBit marks frames of inlined calls in the stacks of nodes.
const inlinedBit NodeID = 1 << 31

// Node is a function, file, line, object or label: the unit by which frames are added up.
type Node struct {
	// Name is readable and printable: "std::sort", "[libc.so.6]" for unresolved frames,
	// "/src/a.c", "comm bash".
	Name       string
	SystemName string        // of functions and lines, as in the symbol table; "" otherwise
	Object     string        // printable path of the object, "" of labels
	BuildID    string        // of the object, "" if not known
	Domain     ingest.Domain // of the object
	File       string        // of functions, files and lines; "" if not known
	Line       int32         // of lines; of functions their first one; 0 if not known
	By         By
	StartLine  int32 // first line of the function; 0 if not known
	Unresolved bool  // frames of an object that have no name
}

// nodeKey identifies the nodes that are not simply numbered by function or object.
type nodeKey struct {
	by       By
	function NodeID
	number   int64 // a line, an offset, a PID, the string of a comm
	text     string
}

// Options select the samples that are added up, and the nodes by which.
type Options struct {
	Event     int  // which of Profile.Events
	Count     bool // samples instead of weight
	By        []By // nil is by function; see ParseBy
	Filter    Filter
	Demangler *demangle.Demangler // nil shows simple names
	Latency   bool                // weights are those of ingest.Profile.Latency
	// Squares also adds up the squares of the samples' values, for Stacks.Squares.
	Squares bool
}

// Folder numbers the nodes of a profile and folds its samples by them. Its nodes are the same
// for all events.
type Folder struct {
	Profile *ingest.Profile

	nodes    []Node
	opts     Options
	by       By   // of frames
	frameful bool // frames are nodes; false if opts.By has labels only
	roots    []By // attributes of samples, outermost first
	function []NodeID
	index    map[nodeKey]NodeID
	jit      map[ingest.ObjectID]string // see nameJIT
	filtered *filtered
	tags     []*tagMatcher
	// location l has the nodes at[ends[l-1]:ends[l]], outermost first
	ends []uint32
	at   []NodeID
	list []NodeID // scratch
}

// New numbers the nodes of a profile.
func New(p *ingest.Profile, opts Options) *Folder {
	if opts.Demangler == nil {
		opts.Demangler = demangle.New(demangle.Simple)
	}
	opts.Demangler.Warm(p)
	if opts.Latency {
		p = p.Latency()
	}
	f := &Folder{Profile: p, opts: opts, index: make(map[nodeKey]NodeID)}
	f.frameful = len(opts.By) == 0
	for _, b := range opts.By {
		if b.OfSample() {
			f.roots = append(f.roots, b)
			continue
		}
		f.by, f.frameful = b, true
	}
	f.nameJIT()
	f.filterLocations()
	f.filterTags()
	f.numberFunctions()
	f.ends = make([]uint32, len(p.Locations))
	for l := range p.Locations {
		f.numberLocation(ingest.LocationID(l))
		f.ends[l] = uint32(len(f.at))
	}
	return f
}

// frames returns the frames of a location, innermost first; none if unresolved.
func (f *Folder) frames(l ingest.LocationID) []ingest.Frame {
	if f.Profile.Names == nil {
		return nil
	}
	return f.Profile.Names.At(l)
}

// unresolvedText is the text of a location without frames in the files and reports that show
// each alone, which filters match: "[libc.so.6+0x27220]".
func (f *Folder) unresolvedText(l ingest.LocationID) string {
	loc := &f.Profile.Locations[l]
	return string(ingest.AppendUnresolved(nil, &f.Profile.Objects[loc.Object], loc.Offset))
}

// noNode is no node yet.
const noNode = ^NodeID(0)

// numberFunctions gives functions the number of their row: functions are sorted by object and
// name, so that those which differ only in file and line are neighbours, and one node. The name
// of a BPF function has its tag: loads of it that are several objects, since the kernel
// hardened their code, are one node.
func (f *Folder) numberFunctions() {
	if f.Profile.Names == nil {
		return
	}
	funcs := f.Profile.Names.Functions
	f.function = make([]NodeID, len(funcs))
	programs := make(map[string]ingest.FuncID)
	first := ingest.FuncID(0)
	for i := range funcs {
		if i > 0 && (funcs[i].Object != funcs[first].Object ||
			funcs[i].SystemName != funcs[first].SystemName) {
			first = ingest.FuncID(i)
		}
		f.function[i] = NodeID(first)
		if !isProgram(f.Profile, &funcs[i]) {
			continue
		}
		if of, ok := programs[funcs[i].SystemName]; ok {
			f.function[i] = NodeID(of)
			continue
		}
		programs[funcs[i].SystemName] = first
	}
}

// isProgram reports whether a function is one of a BPF program.
func isProgram(p *ingest.Profile, f *ingest.Function) bool {
	_, _, ok := bpf.SplitSymbol(f.SystemName)
	return ok && p.Objects[f.Object].Kind == ingest.JIT
}

// numberLocation appends the nodes of a location, outermost first.
func (f *Folder) numberLocation(l ingest.LocationID) {
	frames := f.frames(l)
	var kept []bool
	if f.filtered != nil {
		kept = f.filtered.kept[l]
	}
	if len(frames) == 0 {
		if kept == nil {
			f.append(f.unresolved(l))
		}
		return
	}
	for i := len(frames) - 1; i >= 0; i-- {
		if kept != nil && !kept[i] {
			continue
		}
		n := f.frameNode(&frames[i])
		if frames[i].Inlined {
			n |= inlinedBit
		}
		f.append(n)
	}
}

func (f *Folder) append(n NodeID) {
	if f.frameful {
		f.at = append(f.at, n)
	}
}

// node returns the number of the node of a key, which build makes if it is new.
func (f *Folder) node(k nodeKey, build func() Node) NodeID {
	n, ok := f.index[k]
	if !ok {
		n = NodeID(len(f.nodes))
		f.index[k] = n
		node := build()
		node.By = k.by
		f.nodes = append(f.nodes, node)
	}
	return n
}

// frameNode returns the node of a named frame.
func (f *Folder) frameNode(fr *ingest.Frame) NodeID {
	fn := &f.Profile.Names.Functions[fr.Func]
	row := f.function[fr.Func]
	switch f.by {
	case File:
		if fn.File == "" {
			return f.objectNode(fn.Object, Object)
		}
		k := nodeKey{by: File, number: int64(fn.Object), text: fn.File} // as in pprof
		return f.node(k, func() Node {
			return f.of(fn.Object, Node{Name: texts.Printable(fn.File), File: fn.File})
		})
	case Line:
		return f.node(nodeKey{by: Line, function: row, number: int64(fr.Line), text: fn.File},
			func() Node { return f.lineNode(fn, fr.Line) })
	case Object, BuildID:
		return f.objectNode(fn.Object, f.by)
	}
	return f.node(nodeKey{by: Function, function: row}, func() Node {
		fn := &f.Profile.Names.Functions[row]
		return f.of(fn.Object, Node{Name: f.opts.Demangler.Name(fn.SystemName),
			SystemName: fn.SystemName, File: fn.File, Line: fn.StartLine,
			StartLine: fn.StartLine})
	})
}

// of adds the facts of its object to a node.
func (f *Folder) of(id ingest.ObjectID, n Node) Node {
	o := &f.Profile.Objects[id]
	n.Object, n.BuildID, n.Domain = texts.Printable(f.objectName(id)), o.ID.String(), o.Domain()
	return n
}

func (f *Folder) lineNode(fn *ingest.Function, line int32) Node {
	n := f.of(fn.Object, Node{Name: f.opts.Demangler.Name(fn.SystemName), SystemName: fn.SystemName,
		File: fn.File, Line: line, StartLine: fn.StartLine})
	switch {
	case n.File != "" && line > 0:
		n.Name += fmt.Sprintf(" %s:%d", texts.Printable(n.File), line)
	case n.File != "":
		n.Name += " " + texts.Printable(n.File)
	}
	return n
}

// objectNode returns the node of an object by its path or build ID.
func (f *Folder) objectNode(id ingest.ObjectID, by By) NodeID {
	o := &f.Profile.Objects[id]
	k := nodeKey{by: by, text: f.objectName(id)}
	if by == BuildID && !o.ID.IsZero() {
		k.text = o.ID.String()
	}
	return f.node(k, func() Node {
		name := k.text
		if name == "" {
			name = "[" + ingest.ShortName(o) + "]"
		}
		return f.of(id, Node{Name: texts.Printable(name)})
	})
}

// unresolved returns the node of a location without frames.
func (f *Folder) unresolved(l ingest.LocationID) NodeID {
	loc := &f.Profile.Locations[l]
	switch f.by {
	case Object, BuildID:
		return f.objectNode(loc.Object, f.by)
	case Line:
		text := f.unresolvedText(l)
		k := nodeKey{by: Line, function: noNode, number: int64(loc.Object), text: text}
		return f.node(k, func() Node {
			return f.of(loc.Object, Node{Name: text, Unresolved: true})
		})
	}
	k := nodeKey{by: f.by, function: noNode, number: int64(loc.Object)}
	return f.node(k, func() Node {
		name := "[" + ingest.ShortName(&f.Profile.Objects[loc.Object]) + "]"
		return f.of(loc.Object, Node{Name: name, Unresolved: true})
	})
}
