package pprofui

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"symbolize/analyze/annotate"
	"symbolize/analyze/disasm"
	"symbolize/analyze/report"
	"symbolize/ingest"
)

// Code is the instructions and source of listings.
type Code struct {
	// Profile has the functions with their bounds, by symbol tables, and the objects of the shown
	// profile.
	Profile *ingest.Profile
	Source  annotate.CodeSource
}

// objects answers pprof's questions about files of code. It implements driver.ObjTool. pprof's
// "object files" have the addresses of the profile, so that each question is for one object.
type objects struct {
	load     func() (*Code, error)
	demangle *report.Demangler
	segments []segment // by start

	mu    sync.Mutex
	code  *Code
	err   error
	hot   map[string][]function // by object's key, sorted by start
	texts map[textKey][]driver.Inst
}

// segment is a mapping of the profile.
type segment struct {
	file         string
	start, limit uint64
	delta        uint64 // address = offset in the object + delta
	object       string // key of the object
	buildID      string
}

// function is a function with samples, at its address in the profile.
type function struct {
	hot    *annotate.HotFunction
	object *ingest.Object
	name   string
	start  uint64
}

type textKey struct {
	start uint64
	intel bool
}

// newObjects lays the mappings of a profile over the objects that they were written from:
// Locations of the file are the locations of the profile, in their order.
func newObjects(p *ingest.Profile, prof *profile.Profile, load func() (*Code, error),
	demangle *report.Demangler) *objects {
	t := &objects{load: load, demangle: demangle, texts: make(map[textKey][]driver.Inst)}
	seen := make(map[uint64]bool)
	for i, l := range prof.Location {
		if i >= len(p.Locations) || l.Mapping == nil || seen[l.Mapping.ID] {
			continue
		}
		seen[l.Mapping.ID] = true
		o := &p.Objects[p.Locations[i].Object]
		if o.Kind.Collapsed() {
			continue
		}
		m := l.Mapping
		t.segments = append(t.segments, segment{file: m.File, start: m.Start, limit: m.Limit,
			delta: l.Address - uint64(p.Locations[i].Offset), object: objectKey(o),
			buildID: m.BuildID})
	}
	slices.SortFunc(t.segments, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	return t
}

// objectKey identifies an object in profiles of the same captures.
func objectKey(o *ingest.Object) string {
	return fmt.Sprintf("%d %s %s %d", o.Kind, o.File.Path, o.ID, o.PID)
}

// Open implements driver.ObjTool. A file that is no mapping's is an error: pprof looks for
// copies of files in places of its own.
func (t *objects) Open(file string, start, _, _ uint64, _ string) (driver.ObjFile, error) {
	for i := range t.segments {
		if s := &t.segments[i]; s.file == file && s.start == start {
			return &objectFile{t, s}, nil
		}
	}
	return nil, fmt.Errorf("%s is no mapping of the profile", file)
}

// at returns the segment of an address.
func (t *objects) at(address uint64) *segment {
	i, found := slices.BinarySearchFunc(t.segments, address, func(s segment, a uint64) int {
		return cmp.Compare(s.start, a)
	})
	if !found {
		i--
	}
	if i < 0 || address >= t.segments[i].limit {
		return nil
	}
	return &t.segments[i]
}

// functions returns the functions of a segment's object. The caller holds t.mu.
func (t *objects) functions(s *segment) ([]function, error) {
	if t.code == nil && t.err == nil {
		if t.code, t.err = t.load(); t.err == nil {
			t.findFunctions()
		}
	}
	if t.err != nil {
		return nil, t.err
	}
	list := slices.Clone(t.hot[s.object])
	for i := range list {
		list[i].start = uint64(list[i].hot.Start) + s.delta
	}
	return list, nil
}

// findFunctions lists the functions on stacks of any event.
func (t *objects) findFunctions() {
	p := t.code.Profile
	t.hot = make(map[string][]function)
	type key struct {
		object string
		start  uint64
	}
	seen := make(map[key]bool)
	for event := range p.Events {
		list, _, _ := annotate.HotFunctions(p, &annotate.Options{Event: event, Children: true})
		for i := range list {
			o := &p.Objects[list[i].Object]
			k := key{objectKey(o), uint64(list[i].Start)}
			if seen[k] {
				continue
			}
			seen[k] = true
			t.hot[k.object] = append(t.hot[k.object], function{hot: &list[i], object: o,
				name: t.demangle.Name(list[i].SystemName)})
		}
	}
	for _, list := range t.hot {
		slices.SortFunc(list, func(a, b function) int { return cmp.Compare(a.hot.Start, b.hot.Start) })
	}
}

// Disasm implements driver.ObjTool: the instructions of functions with samples in a range of
// addresses.
func (t *objects) Disasm(_ string, start, end uint64, intel bool) ([]driver.Inst, error) {
	s := t.at(start)
	if s == nil { // pprof widens the ranges of samples, over the start of their mapping
		s = t.at(end)
	}
	if s == nil {
		return nil, fmt.Errorf("no code at %#x", start)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	list, err := t.functions(s)
	if err != nil {
		return nil, err
	}
	var out []driver.Inst
	for i := range list {
		if list[i].start > end {
			break
		}
		insts, err := t.instructions(&list[i], intel)
		if err != nil && list[i].start == start {
			return nil, err
		}
		for _, in := range insts {
			if in.Addr >= start && in.Addr <= end {
				out = append(out, in)
			}
		}
	}
	return out, nil
}

// instructions disassembles a function, once. The caller holds t.mu.
func (t *objects) instructions(f *function, intel bool) ([]driver.Inst, error) {
	k := textKey{f.start, intel}
	if insts, ok := t.texts[k]; ok {
		return insts, nil
	}
	syntax := disasm.ATT
	if intel {
		syntax = disasm.Intel
	}
	a, err := annotate.NewFunction(f.object, f.hot, t.code.Source, syntax, t.demangle)
	if err != nil {
		return nil, err
	}
	insts := make([]driver.Inst, len(a.Instructions))
	for i := range a.Instructions {
		in := &a.Instructions[i]
		insts[i] = driver.Inst{Addr: f.start + uint64(in.Offset), Text: in.Text, Function: f.name,
			File: in.File, Line: int(in.Line)}
		if n := len(in.Inlined); n > 0 {
			insts[i].Function = in.Inlined[n-1]
		}
	}
	t.texts[k] = insts
	return insts, nil
}

// objectFile is a mapping as driver.ObjFile.
type objectFile struct {
	t *objects
	s *segment
}

func (f *objectFile) Name() string                           { return f.s.file }
func (f *objectFile) BuildID() string                        { return f.s.buildID }
func (f *objectFile) Close() error                           { return nil }
func (f *objectFile) ObjAddr(address uint64) (uint64, error) { return address, nil }

// SourceLine returns the line of the instruction at an address.
func (f *objectFile) SourceLine(address uint64) ([]driver.Frame, error) {
	insts, err := f.t.Disasm(f.s.file, address, address, false)
	if err != nil || len(insts) == 0 {
		return nil, cmp.Or(err, fmt.Errorf("no line of %#x", address))
	}
	return []driver.Frame{{Func: insts[0].Function, File: insts[0].File,
		Line: insts[0].Line}}, nil
}

// Symbols returns the functions with samples that match by name or cover an address.
func (f *objectFile) Symbols(match *regexp.Regexp, address uint64) ([]*driver.Sym, error) {
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	list, err := f.t.functions(f.s)
	if err != nil {
		return nil, err
	}
	var out []*driver.Sym
	for i := range list {
		fn := &list[i]
		named := match == nil || match.MatchString(fn.name) ||
			match.MatchString(fn.hot.SystemName)
		if !named && (address == 0 || address < fn.start) ||
			fn.start < f.s.start || fn.start >= f.s.limit {
			continue
		}
		insts, err := f.t.instructions(fn, false)
		if err != nil || len(insts) == 0 {
			continue
		}
		end := insts[len(insts)-1].Addr + 1
		if named || address < end {
			out = append(out, &driver.Sym{Name: []string{fn.name}, File: f.s.file,
				Start: fn.start, End: end})
		}
	}
	return out, nil
}
