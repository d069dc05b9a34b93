package datatypes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/flow"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
)

// Recorded counts the samples with the address of a global variable (ingest.AddressTag), or with an instruction that
// accesses one, by what the address says of the access.
type Recorded struct {
	Confirmed uint64 // the variable there has the type
	Refuted   uint64 // it has not, or the instruction's variable is not there: no type is given
	Given     uint64 // the type was not known without
}

// Add adds other counts.
func (r *Recorded) Add(o *Recorded) {
	r.Confirmed, r.Refuted, r.Given = r.Confirmed+o.Confirmed, r.Refuted+o.Refuted, r.Given+o.Given
}

// Warning returns a warning about refuted types; nil if there are none.
func (r *Recorded) Warning() *ingest.Warning {
	if r.Refuted == 0 {
		return nil
	}
	return &ingest.Warning{Text: fmt.Sprintf("%d of %d samples have the address of other data than their instruction accesses by its code: "+
		"their types are not counted", r.Refuted, r.Confirmed+r.Refuted+r.Given),
		Hint: "the program casts, or the event is not precise, as cycles:pp is", Result: true}
}

// told is an instruction of an object.
type told struct {
	object buildid.Key
	offset addr.Offset
}

// variables are the global variables of an object.
type variables struct {
	*datatype.Variables
	object  *Object              // with their types
	symbols *indexer.DataSymbols // of a file without debug information
	addrs   resolve.Addresses
}

// Variable is a place in a global variable.
type Variable struct {
	Name   string
	Offset int64

	access Access
	of     *variables
	at     flow.Access
}

// Text returns the name of a variable with the offset in it, "books+0x428".
func (v *Variable) Text() string { return textAt(v.Name, v.Offset) }

// textAt returns the name of a place in data, with the distance from its start.
func textAt(name string, distance int64) string {
	if distance == 0 {
		return name
	}
	return fmt.Sprintf("%s+%#x", name, distance)
}

// Symbol returns the symbol at an offset of an object whose file is there without debug information, "" if there is
// none, with the offset in it as Variable.Text has it. It is for what Variable does not know.
func (f *Finder) Symbol(o *ingest.Object, off addr.Offset) string {
	vars := f.data[o.ID.Key()]
	if vars == nil || vars.symbols == nil {
		return ""
	}
	at, ok := vars.addrs.Data(off)
	if !ok {
		return ""
	}
	name, distance, _ := vars.symbols.At(at)
	return texts.Printable(textAt(name, int64(distance)))
}

// Variable returns the global variable at an offset of an object, nil if there is none, and whether the offset is
// in the object's memory, if that is known.
func (f *Finder) Variable(o *ingest.Object, off addr.Offset) (v *Variable, inside bool) {
	vars, known := f.data[o.ID.Key()]
	if !known {
		vars = f.variables(o)
		f.data[o.ID.Key()] = vars
	}
	if vars == nil {
		return nil, true
	}
	at, ok := vars.addrs.Data(off)
	if !ok || vars.Variables == nil {
		return nil, ok
	}
	g, ok := vars.At(at)
	if !ok {
		return nil, true
	}
	v = &Variable{Name: g.Name, Offset: int64(at - g.Addr), of: vars}
	v.at = vars.object.leaves.OfVariable(g.Type, v.Offset)
	v.access = Access{Access: v.at, Object: vars.object}
	v.at.Type = g.Type
	return v, true
}

// variables returns the variables of an object: of the table in the view, else of files. nil: its layout is not
// known.
func (f *Finder) variables(o *ingest.Object) *variables {
	if o.ID.IsZero() {
		return nil
	}
	m, _, _ := store.FindOne(f.view, o.ID)
	if m == nil {
		return nil
	}
	addrs, why := resolve.NewAddresses(o, m)
	if why != ingest.ReasonNone {
		return nil
	}
	out := &variables{addrs: addrs}
	if t := f.stored(o); t != nil {
		out.Variables, out.object = datatype.VariablesOf(t.Types), t
		return out
	}
	if f.files == nil {
		return out
	}
	program, debug, _ := f.files.Debug(o)
	if program == "" {
		return out
	}
	if debug == "" {
		var err error
		if out.symbols, err = indexer.FileDataSymbols(program); err != nil {
			f.failed(err)
		}
		return out
	}
	vars, err := indexer.FileVariables(f.ctx, program, debug)
	if err != nil && f.ctx.Err() == nil {
		f.failed(err)
	}
	if vars != nil {
		out.Variables = vars
		out.object = &Object{Types: vars.Types, Source: datatype.FromDWARF, leaves: flow.NewLayouts(vars.Types)}
	}
	return out
}

// data is what a recorded address says.
type data struct {
	variable *Variable // there; nil for none
	// elsewhere: the address is mapped, but in no variable of the object of the code.
	elsewhere bool
}

// dataOf returns what the recorded address of a sample with a stack says, if it is of the part of the system that its
// code is of.
func (f *Finder) dataOf(p *ingest.Profile, s *ingest.Sample) (d data) {
	code := &p.Objects[p.Locations[p.Leaves[s.Stack]].Object]
	for t := range p.AllTags(s) {
		if t.Key != ingest.AddressTag {
			continue
		}
		o, off, ok := t.Place()
		switch {
		case !ok:
			return data{elsewhere: isMemory(t.Text) && t.Text != ingest.MemoryText(code) && !inKernel(code)}
		case inKernel(&o) != inKernel(code):
			return data{}
		}
		v, _ := f.Variable(&o, off)
		of := f.data[o.ID.Key()]
		known := of != nil && of.Variables != nil
		return data{v, v == nil && (known || o.ID.Key() != code.ID.Key())}
	}
	return data{}
}

// isMemory reports whether a text of AddressTag is of mapped memory: variables have no brackets.
func isMemory(text string) bool {
	if !strings.HasPrefix(text, "[") {
		return false
	}
	for _, path := range []string{ingest.UnmappedPath, ingest.UnmappedKernelPath} {
		if text == ingest.MemoryText(&ingest.Object{Kind: ingest.Unmapped, File: ingest.FileRef{Path: path}}) {
			return false
		}
	}
	return true
}

func inKernel(o *ingest.Object) bool {
	d := o.Domain()
	return d == ingest.KernelDomain || d == ingest.BPFDomain
}

// checked returns what an instruction accesses, by its code and by what the recorded address says.
func (f *Finder) checked(a *Access, d data, samples uint64) Access {
	v := d.variable
	switch {
	case d.elsewhere && a.Reason == flow.Known && a.Fixed:
		f.Recorded.Refuted += samples
		return Access{Access: flow.Access{Reason: flow.Refuted}}
	case v == nil:
		return *a
	}
	switch a.Reason {
	case flow.Known:
		if v.of.object.leaves.Compatible(v.at.Type, v.Offset, &a.Access, a.Object.leaves) {
			f.Recorded.Confirmed += samples
			return *a
		}
		f.Recorded.Refuted += samples
		return Access{Access: flow.Access{Reason: flow.Refuted}}
	case flow.NoMemory, flow.StackOp, flow.Canary:
		return *a
	}
	f.Recorded.Given += samples
	return v.access
}

// EachSample calls visit for the samples of a profile with what their instructions access. Of a profile that was
// read with ingest.Keep.Accesses the recorded addresses count, too.
func (f *Finder) EachSample(p *ingest.Profile, visit func(*ingest.Sample, *Access)) {
	f.eachSample(p, f.leaves(p), visit)
}

// eachSample is EachSample with the accesses of the leaves.
func (f *Finder) eachSample(p *ingest.Profile, leaves map[ingest.LocationID]Access, visit func(*ingest.Sample, *Access)) {
	f.Recorded = Recorded{}
	type key struct {
		leaf ingest.LocationID
		tags ingest.StringID
	}
	known := make(map[key]data)
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.Stack == 0 {
			visit(s, &noTypes)
			continue
		}
		k := key{p.Leaves[s.Stack], s.Tags}
		d, ok := known[k]
		if !ok {
			d = f.dataOf(p, s)
			known[k] = d
		}
		a := leaves[k.leaf]
		a = f.checked(&a, d, s.Count)
		visit(s, &a)
	}
}

// Load finds what the samples of a profile access, so that Texts of their functions reads no files again, and has
// what recorded addresses say.
func (f *Finder) Load(p *ingest.Profile) {
	leaves := f.leaves(p)
	analyzed := make(map[ingest.LocationID]string, len(leaves))
	for l, a := range leaves {
		analyzed[l] = a.Field()
	}
	f.eachSample(p, leaves, func(s *ingest.Sample, a *Access) {
		if s.Stack == 0 {
			return
		}
		leaf := p.Leaves[s.Stack]
		text := a.Field()
		if text == analyzed[leaf] {
			return
		}
		l := &p.Locations[leaf]
		k := told{p.Objects[l.Object].ID.Key(), l.Offset}
		if at, found := slices.BinarySearchFunc(f.told[k], text, cmp.Compare[string]); !found {
			f.told[k] = slices.Insert(f.told[k], at, text)
		}
	})
}
