package calltree

import (
	"regexp"
	"slices"

	"symbolize/analyze/demangle"
	"symbolize/ingest"
)

// Filter selects samples and frames by regular expressions and labels, as the options of pprof with
// the same names do. An expression matches a frame if it matches the frame's function name, as it
// is printed, or source file, and a location if it matches one of its frames or the path of its
// object. The zero value keeps everything.
type Filter struct {
	Focus    *regexp.Regexp // samples with a location that matches
	Ignore   *regexp.Regexp // not samples with a location that matches
	Hide     *regexp.Regexp // not frames that match
	Show     *regexp.Regexp // only frames that match
	ShowFrom *regexp.Regexp // not frames above the outermost that matches

	TagFocus  *TagFilter // samples with matching labels
	TagIgnore *TagFilter // not samples with matching labels
}

// The expressions as bits.
const (
	bitFocus uint8 = 1 << iota
	bitIgnore
	bitHide
	bitShow
	bitShowFrom
)

// ofFrames reports whether frames or stacks are filtered.
func (f *Filter) ofFrames() bool {
	return *f != Filter{TagFocus: f.TagFocus, TagIgnore: f.TagIgnore}
}

// words are the names of the expressions, for messages.
var words = []struct {
	bit  uint8
	name string
	of   func(*Filter) *regexp.Regexp
}{
	{bitFocus, "focus", func(f *Filter) *regexp.Regexp { return f.Focus }},
	{bitIgnore, "ignore", func(f *Filter) *regexp.Regexp { return f.Ignore }},
	{bitHide, "hide", func(f *Filter) *regexp.Regexp { return f.Hide }},
	{bitShow, "show", func(f *Filter) *regexp.Regexp { return f.Show }},
	{bitShowFrom, "show-from", func(f *Filter) *regexp.Regexp { return f.ShowFrom }},
}

// match returns the bits of the expressions that match a text.
func (f *Filter) match(text string) (bits uint8) {
	for _, w := range words {
		if re := w.of(f); re != nil && re.MatchString(text) {
			bits |= w.bit
		}
	}
	return bits
}

// samples that are kept or dropped for one of their locations
const (
	placeFocused uint8 = 1 << iota
	placeIgnored
	placeShowFrom
)

// filtered holds the results of a Filter for the locations of a profile.
type filtered struct {
	place   []uint8 // by location: bits
	kept    [][]bool
	matched uint8 // expressions that matched anything
	scratch []bool
}

// filterLocations applies the expressions to each location. The result's kept lists have, for
// locations that lose frames, the remaining ones, innermost first; nil keeps all.
func (f *Folder) filterLocations() {
	flt := &f.opts.Filter
	if !flt.ofFrames() {
		return
	}
	functions, objects := f.filterBits()
	r := &filtered{place: make([]uint8, len(f.Profile.Locations)),
		kept: make([][]bool, len(f.Profile.Locations))}
	var bits []uint8
	for l := range f.Profile.Locations {
		bits = bits[:0]
		for _, fr := range f.frames(ingest.LocationID(l)) {
			bits = append(bits, functions[fr.Func])
		}
		if len(bits) == 0 {
			bits = append(bits, flt.match(f.unresolvedText(ingest.LocationID(l))))
		}
		r.location(flt, l, bits, objects[f.Profile.Locations[l].Object])
	}
	f.filtered = r
}

// filterBits matches each function and each object once.
func (f *Folder) filterBits() (functions, objects []uint8) {
	flt := &f.opts.Filter
	if f.Profile.Names != nil {
		functions = make([]uint8, len(f.Profile.Names.Functions))
		for i := range f.Profile.Names.Functions {
			fn := &f.Profile.Names.Functions[i]
			functions[i] = flt.match(f.opts.Demangler.Name(fn.SystemName)) | flt.match(fn.File)
			if _, ok := demangle.Encoded(fn.SystemName); ok {
				functions[i] |= flt.match(fn.SystemName) // either may be known
			}
		}
	}
	objects = make([]uint8, len(f.Profile.Objects))
	for i := range f.Profile.Objects {
		objects[i] = flt.match(f.Profile.Objects[i].File.Path)
		if name, ok := f.jit[ingest.ObjectID(i)]; ok {
			objects[i] |= flt.match(name)
		}
	}
	return functions, objects
}

// location applies the expressions to one location with these frames, innermost first. The
// steps and their order are as in pprof's FilterSamplesByName and ShowFrom.
func (r *filtered) location(flt *Filter, l int, frames []uint8, object uint8) {
	any := object
	for _, b := range frames {
		any |= b
	}
	r.matched |= any & (bitHide | bitIgnore)
	switch {
	case any&bitIgnore != 0:
		r.place[l] |= placeIgnored
	case flt.Focus == nil || any&bitFocus != 0:
		r.place[l] |= placeFocused
		r.matched |= bitFocus
	}
	kept := r.scratch[:0]
	left := 0
	for _, b := range frames {
		keep := (b|object)&bitHide == 0 && (flt.Show == nil || (b|object)&bitShow != 0)
		kept = append(kept, keep)
		if keep {
			left++
		}
	}
	if flt.Show != nil && left > 0 {
		r.matched |= bitShow
	}
	if flt.ShowFrom != nil && left > 0 {
		left = r.showFrom(l, frames, kept, object)
	}
	if left < len(frames) {
		r.kept[l] = slices.Clone(kept)
	}
	r.scratch = kept
}

// showFrom drops the frames of a location that are above the outermost one that matches. It
// returns how many frames are left.
func (r *filtered) showFrom(l int, frames []uint8, kept []bool, object uint8) (left int) {
	last := -1
	for i := range kept {
		if kept[i] && (frames[i]|object)&bitShowFrom != 0 {
			last = i
		}
	}
	if last >= 0 {
		r.place[l] |= placeShowFrom
		r.matched |= bitShowFrom
	}
	for i := range kept {
		if object&bitShowFrom == 0 && last >= 0 && i > last {
			kept[i] = false
		}
		if kept[i] {
			left++
		}
	}
	return left
}

// stack applies the filters to a stack, leaf first. It returns the part of the stack that
// stays, and whether its samples do.
func (r *filtered) stack(flt *Filter, locs []ingest.LocationID) ([]ingest.LocationID, bool) {
	byName := flt.Focus != nil || flt.Ignore != nil || flt.Hide != nil || flt.Show != nil
	focused, frames := false, false
	for _, l := range locs {
		if r.place[l]&placeIgnored != 0 {
			return nil, false
		}
		focused = focused || r.place[l]&placeFocused != 0
		frames = frames || r.hasFrames(l)
	}
	if byName && !(focused && frames) {
		return nil, false
	}
	if flt.ShowFrom == nil {
		return locs, true
	}
	for i := len(locs) - 1; i >= 0; i-- {
		if r.place[locs[i]]&placeShowFrom != 0 {
			return locs[:i+1], true
		}
	}
	return nil, false
}

func (r *filtered) hasFrames(l ingest.LocationID) bool {
	if r.kept[l] == nil {
		return true
	}
	return slices.Contains(r.kept[l], true)
}

// Active returns the expressions that are set with their names: "focus=regexp".
func (f *Filter) Active() (list []string) {
	for _, w := range words {
		if re := w.of(f); re != nil {
			list = append(list, w.name+"="+re.String())
		}
	}
	for _, t := range f.tagMatchers() {
		list = append(list, t.name+"="+t.filter.text)
	}
	return list
}

// unmatched returns the names of the expressions that matched nothing in the profile.
func (f *Folder) unmatched() (names []string) {
	for _, w := range words {
		if w.of(&f.opts.Filter) != nil && f.filtered.matched&w.bit == 0 {
			names = append(names, w.name)
		}
	}
	for _, t := range f.tags {
		if !t.any {
			names = append(names, t.name)
		}
	}
	return names
}
