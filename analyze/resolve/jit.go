package resolve

import (
	"cmp"
	"errors"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
	"symbolize/store"
)

// findJIT finds the table of an object that the capture itself has the name of. It adds files and
// lines to the name, and nothing more: the name is the capture's.
//
// An object whose image was not captured is only known by name, tag and length. The lines of a
// function from another capture are used if it is the only one with these three: the same
// instructions may come from a changed source file, so the lines are probable, not certain.
func (j *join) findJIT(o *object, src *ingest.Object) {
	o.noImage = src.NoImage
	if src.Kind != ingest.JIT {
		return
	}
	if src.ID.Space() != buildid.JIT {
		j.declare(o, src, nil)
		return
	}
	m := j.findOne(o, src, src.ID)
	if m == nil {
		if len(o.warnings) == 0 {
			j.declare(o, src, nil)
		}
		return
	}
	if hasTable(m) {
		o.manifest = m
		o.noImage = src.NoImage && !slices.ContainsFunc(m.Variants, func(v store.Variant) bool {
			return !v.Image.IsZero()
		})
		if !j.hasLines(m) {
			j.declare(o, src, m.Probable)
			return
		}
		j.declareName(o, src)
		return
	}
	if len(m.Probable) == 1 {
		if m := j.findOne(o, src, m.Probable[0]); m != nil && hasTable(m) {
			o.manifest, o.probable = m, m.ID
			j.declareName(o, src)
			return
		}
	}
	j.declare(o, src, nil)
}

// findOne returns the manifest of an ID, nil if there is none.
func (j *join) findOne(o *object, src *ingest.Object, id buildid.ID) *store.Manifest {
	m, _, err := store.FindOne(j.view, id)
	if err != nil {
		o.warn("%s: build ID %s: %v", ingest.ShortName(src), id, err)
	}
	return m
}

// hasLines reports whether a table of a JITed function has lines. One that cannot be read
// is reported where it is used.
func (j *join) hasLines(m *store.Manifest) bool {
	for i := range m.Sources {
		if !m.Sources[i].Kind.PerLoad() {
			continue
		}
		t, err := j.view.Open(m, i)
		if err != nil {
			return true
		}
		if lined, _ := t.HasDebug(); lined > 0 {
			return true
		}
	}
	return false
}

func hasTable(m *store.Manifest) bool {
	return slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind.PerLoad()
	})
}

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
// Manifest.Probable lists for others. Unreadable objects are skipped and reported in the error.
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
	s.errs = append(s.errs, f.Errors()...)
	frames := f.Frames(f.Place(0))
	if len(frames) == 0 {
		return
	}
	fr := &frames[len(frames)-1]
	d := Declared{Name: f.Text(fr.Name), File: f.Text(cmp.Or(fr.DeclFile, fr.File)),
		Line: cmp.Or(fr.DeclLine, fr.Line), ID: m.ID}
	if _, name, ok := bpf.SplitSymbol(d.Name); ok {
		d.Name = bpf.NameOf(name)
	}
	if d.Name != "" && (s.name == "" || bpf.SameName(d.Name, s.name)) {
		s.list = append(s.list, d)
	}
}

// agreed returns the facts that all of the list share. Their names may differ in their length: the
// kernel cut some of them.
func (s *declarations) agreed() Declared {
	if len(s.list) == 0 {
		return Declared{}
	}
	d := s.list[0]
	for _, o := range s.list[1:] {
		if !bpf.SameName(o.Name, d.Name) {
			return Declared{Several: true}
		}
		if len(o.Name) > len(d.Name) {
			d.Name = o.Name
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

// declareName looks for the whole name of an object that has lines.
func (j *join) declareName(o *object, src *ingest.Object) {
	if _, name, ok := bpf.SplitSymbol(src.Symbol); !ok || !bpf.MayBeCut(name) {
		return
	}
	probable := o.probable
	j.declare(o, src, nil)
	o.declared, o.probable = Declared{Name: o.declared.Name}, probable
}

// symbolOf is the name of a JITed function: the capture's, completed.
func (o *object) symbolOf(src *ingest.Object) string { return o.declared.Complete(src.Symbol) }

// Complete returns the symbol of the function that d declares with its whole name, if the kernel
// cut the name or has none. A probable name is no proof.
func (d *Declared) Complete(symbol string) string {
	tag, name, ok := bpf.SplitSymbol(symbol)
	if !ok || d.Probable || !bpf.MayBeCut(name) || len(d.Name) <= len(bpf.NameOf(name)) {
		return symbol
	}
	return bpf.SymbolOf(tag, d.Name)
}

// WholeSymbol returns the kernel's symbol of a BPF function with the whole name that objects with
// its tag have. Objects that cannot be read are passed over: they are reported where they are used.
func WholeSymbol(view store.View, symbol string) string {
	_, name, ok := bpf.SplitSymbol(symbol)
	if !ok || !bpf.MayBeCut(name) {
		return symbol
	}
	d, _ := Declare(view, symbol, nil)
	return d.Complete(symbol)
}
