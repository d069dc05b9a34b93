package annotate

import (
	"cmp"
	"slices"
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
	SystemName string
	Object     string
	HTML       string
	Calls      []PartCall // of functions that are inlined in it and have samples, heaviest first
}

// PartCall is the code of a function that is inlined in a Part, its own callees included.
type PartCall struct {
	SystemName string
	Value      uint64 // of its samples, as those of the Annotation
	// Offsets are the first bytes of instructions, from the function's start: of each run of
	// neighbours the first and the last.
	Offsets []int
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
		f := &a.Functions[i]
		out.Functions = append(out.Functions, Part{SystemName: f.key.name, Object: f.Object,
			HTML: b.String(), Calls: f.calls(a.Unit == "samples")})
	}
	return out, nil
}

// calls lists the inlined functions, by samples with count.
func (f *Function) calls(count bool) []PartCall {
	index := make(map[string]int)
	var list []PartCall
	before := make([]int, 0) // by call: the last instruction that it has
	for i := range f.Instructions {
		in := &f.Instructions[i]
		for k, name := range in.calls {
			if slices.Contains(in.calls[:k], name) {
				continue // recursive
			}
			n, ok := index[name]
			if !ok {
				n = len(list)
				index[name] = n
				list, before = append(list, PartCall{SystemName: name}), append(before, -2)
			}
			c := &list[n]
			if before[n]+1 != i {
				c.Offsets = append(c.Offsets, in.Offset, in.Offset)
			}
			c.Offsets[len(c.Offsets)-1], before[n] = in.Offset, i
			if count {
				c.Value += in.Samples
			} else {
				c.Value += in.Weight
			}
		}
	}
	list = slices.DeleteFunc(list, func(c PartCall) bool { return c.Value == 0 })
	slices.SortStableFunc(list, func(a, b PartCall) int { return cmp.Compare(b.Value, a.Value) })
	return list
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
