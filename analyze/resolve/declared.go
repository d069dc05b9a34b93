package resolve

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bpf"
	"symbolize/store"
)

// Declared is the known origin of a BPF function without lines in a capture: where its source is,
// by its tag, or by its name and its number of instructions.
type Declared struct {
	Name string     // "" if nothing is known
	File string     // "" if it is not known, or functions in several files are the same code
	Line uint32     // where the function begins; 0 if not known
	ID   buildid.ID // the object that declares it; one of them, if they agree
	// Probable: not the tag, but name and number of instructions are the same, or only the name
	// (DeclareByName).
	Probable bool
	// Several: functions of different names have this tag, and Name is "".
	Several bool
	// Differ: functions of one name are in several places, and File is "".
	Differ bool
	// OtherTag: a function of the name is known, but always has another tag.
	OtherTag bool
}

// Declare looks for the source of the function that the kernel calls symbol: "bpf_prog_TAG" or
// "bpf_prog_TAG_NAME". Objects with the same tag are tried first, then the objects that
// Manifest.Probable gives for others. Unreadable objects are skipped and reported in the error.
func Declare(view store.View, symbol string, others []buildid.ID) (Declared, error) {
	tag, name, ok := bpf.SplitSymbol(symbol)
	if !ok {
		return Declared{}, nil
	}
	s := declarations{view: view, name: bpf.NameOf(name), seen: make(map[buildid.ID]bool)}
	s.follow(bpf.TagIdentity(tag), 1)
	if len(s.list) == 0 {
		for _, id := range others {
			s.follow(id, 1)
		}
		for i := range s.list {
			s.list[i].Probable = true
		}
	}
	return s.agreed(), errors.Join(s.errs...)
}

// DeclareByName finds the source of a function only by its name: for subprograms, because the
// kernel computes their tag from rewritten code, and for programs with code that depends on the
// host.
func DeclareByName(view store.View, symbol string) (Declared, error) {
	_, name, _ := bpf.SplitSymbol(symbol)
	if name = bpf.NameOf(name); name == "" {
		return Declared{}, nil
	}
	s := declarations{view: view, name: name, seen: make(map[buildid.ID]bool)}
	s.follow(bpf.NameIdentity(name, false), 1)
	if d := s.agreed(); d != (Declared{}) {
		d.Probable = true
		return d, errors.Join(s.errs...)
	}
	s.follow(bpf.NameIdentity(name, true), 1)
	return Declared{OtherTag: len(s.list) > 0}, errors.Join(s.errs...)
}

// declarations are the possible origins of a function.
type declarations struct {
	view store.View
	name string // as the kernel has it; "" if it has none
	seen map[buildid.ID]bool
	list []Declared
	errs []error
}

// follow lists the declarations of an object, or of its probable objects.
func (s *declarations) follow(id buildid.ID, depth int) {
	if s.seen[id] {
		return
	}
	s.seen[id] = true
	m, _, err := store.FindOne(s.view, id)
	if err != nil {
		s.errs = append(s.errs, err)
	}
	if m == nil {
		return
	}
	if !hasTable(m) {
		for _, next := range m.Probable {
			if depth > 0 {
				s.follow(next, depth-1)
			}
		}
		return
	}
	f := NewFinder(s.view, m)
	f.Join([]addr.Addr{0})
	for _, e := range f.Errors() {
		s.errs = append(s.errs, fmt.Errorf("%s of %s: %w", m.Sources[e.Source].Kind, m.ID, e.Err))
	}
	frames := f.Frames(f.Place(0))
	if len(frames) == 0 {
		return
	}
	fr := &frames[len(frames)-1]
	d := Declared{Name: f.Text(fr.Name), File: f.Text(cmp.Or(fr.DeclFile, fr.File)),
		Line: cmp.Or(fr.DeclLine, fr.Line), ID: m.ID}
	if _, name, ok := bpf.SplitSymbol(d.Name); ok {
		d.Name = name
	}
	if d.Name != "" && (s.name == "" || bpf.SameName(d.Name, s.name)) {
		s.list = append(s.list, d)
	}
}

// agreed returns the facts that all of the list share.
func (s *declarations) agreed() Declared {
	if len(s.list) == 0 {
		return Declared{}
	}
	d := s.list[0]
	for _, o := range s.list[1:] {
		if o.Name != d.Name {
			return Declared{Several: true}
		}
		switch {
		case d.File == "":
			d.File, d.Line, d.ID = o.File, o.Line, o.ID
		case o.File != "" && (o.File != d.File || o.Line != d.Line):
			return Declared{Name: d.Name, ID: d.ID, Probable: d.Probable, Differ: true}
		}
	}
	return d
}

// declare looks for the source of an object that has no lines.
func (j *join) declare(o *object, src *ingest.Object, others []buildid.ID) {
	d, err := Declare(j.view, src.Symbol, others)
	if err != nil {
		o.warn("%s: %v", ingest.ShortName(src), err)
	}
	if o.declared = d; d.Probable {
		o.probable = d.ID
	}
}

// symbolOf is the name of a JITed function: the capture's, completed.
func (o *object) symbolOf(src *ingest.Object) string {
	_, name, ok := bpf.SplitSymbol(src.Symbol)
	if ok && bpf.NameOf(name) == "" && o.declared.Name != "" {
		return strings.TrimSuffix(src.Symbol, "_"+name) + "_" + o.declared.Name
	}
	return src.Symbol
}
