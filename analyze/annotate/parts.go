package annotate

import (
	"sort"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// Parts are the parts of a page of functions, for another page, as HTML. They need CodeStyle. All
// texts are escaped.
type Parts struct {
	// List is the list of functions, with links to the IDs of their code, and of functions without
	// code.
	List      string `json:"list"`
	Functions []Part `json:"functions"`
}

// Part is the code of a function.
type Part struct {
	Name   string `json:"name"`
	Object string `json:"object"`
	HTML   string `json:"html"`
}

// NewParts returns the parts of an annotation; nil if it has no function.
func NewParts(a *Annotation) (*Parts, error) {
	if len(a.Functions)+len(a.Missing) == 0 {
		return nil, nil
	}
	p := newPage(a)
	var b strings.Builder
	for _, name := range []string{"list", "missing"} {
		if err := pageTemplate().ExecuteTemplate(&b, name, p); err != nil {
			return nil, err
		}
	}
	out := &Parts{List: b.String()}
	for i := range p.Functions {
		b.Reset()
		if err := pageTemplate().ExecuteTemplate(&b, "function", &p.Functions[i]); err != nil {
			return nil, err
		}
		out.Functions = append(out.Functions,
			Part{Name: p.Functions[i].Name, Object: p.Functions[i].Object, HTML: b.String()})
	}
	return out, nil
}

// lineShift is the first bit of the number of a function in the results of Lines; those before it
// are an offset.
const lineShift = 20

// Lines returns a function that numbers the instructions of the annotation, which is of p, at
// locations: the number of the function, from 1 on, times 1<<20, plus the offset of the instruction.
// It returns 0 for other locations.
func (a *Annotation) Lines(p *ingest.Profile) func(ingest.LocationID) uint32 {
	index := make(map[hotKey]int, len(a.Functions))
	for i := range a.Functions {
		index[a.Functions[i].key] = i
	}
	return func(l ingest.LocationID) uint32 {
		frames := p.Names.At(l)
		if len(frames) == 0 {
			return 0
		}
		loc, off := &p.Locations[l], p.Names.SymOff[l]
		i, ok := index[hotKey{object: loc.Object, start: loc.Offset - addr.Offset(off),
			name: p.Names.Functions[frames[len(frames)-1].Func].SystemName}]
		if !ok {
			return 0
		}
		f := &a.Functions[i]
		at := sort.Search(len(f.Instructions), func(k int) bool {
			return uint64(f.Instructions[k].Offset) > off
		}) - 1
		if at < 0 || off >= uint64(f.Length) || f.Instructions[at].Offset >= 1<<lineShift ||
			i >= 1<<(32-lineShift)-1 {
			return 0
		}
		return uint32(i+1)<<lineShift | uint32(f.Instructions[at].Offset)
	}
}
