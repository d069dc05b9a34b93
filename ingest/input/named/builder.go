// Package named makes Profiles of captures with counted stacks of places that may have names
// already: pprof and OTLP files. A Builder numbers objects, functions, places, stacks and strings in
// the order of their addition; Profile numbers them in sorted order, so that equal contents give
// equal Profiles. Labels selects the labels of samples to keep.
package named

import (
	"encoding/binary"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/intern"
)

// Place is a location before it is numbered. Of its object, and of the functions in Frames, it has
// the Builder's numbers.
type Place struct {
	Object uint32
	Offset addr.Offset
	Frames []ingest.Frame // innermost first; none if it has no name
	Reason ingest.Reason  // for no name, or a guessed one; ReasonNone for the object's default
}

// Builder collects the tables of a Profile. Its numbers begin at 0.
type Builder struct {
	// P is the profile in construction: the caller sets Events, Meta and Stats.
	P *ingest.Profile
	// Identify is Options.Identify.
	Identify func(*ingest.Object) (buildid.ID, ingest.IDSource)

	objects   []ingest.Object
	objectsAt map[objectKey]uint32
	funcs     []ingest.Function
	funcsAt   map[ingest.Function]ingest.FuncID
	places    []place
	seed      intern.Seed
	placesAt  intern.Table[uint32] // by the hash of all fields
	frames    []ingest.Frame
	stacks    *intern.Forest
	strings   map[string]ingest.StringID
	key       []byte // scratch
	marked    bool   // a place has a name, or the reason for none
	compacted int    // samples left by Compact
}

// objectKey is equal for mappings of one object.
type objectKey struct {
	kind      ingest.ObjectKind
	id        buildid.ID
	path, ref string
}

// place is a Place with frames [from, to) of Builder.frames.
type place struct {
	offset   addr.Offset
	object   uint32
	from, to uint32
	number   uint32 // of its addition
	reason   ingest.Reason
}

// NewBuilder returns an empty Builder.
func NewBuilder() *Builder {
	return &Builder{
		P:         &ingest.Profile{Strings: []string{""}, Meta: ingest.Meta{MapsIDs: true}},
		objectsAt: make(map[objectKey]uint32),
		funcsAt:   make(map[ingest.Function]ingest.FuncID),
		seed:      intern.MakeSeed(),
		stacks:    intern.NewForest(),
		strings:   map[string]ingest.StringID{"": 0},
	}
}

// Object returns the number of an object. Mappings with the same kind, file, build ID and reference
// symbol are one object with the segments of all.
func (b *Builder) Object(o ingest.Object) uint32 {
	k := objectKey{o.Kind, o.ID, o.File.Path, o.RefSymbol}
	n, ok := b.objectsAt[k]
	if !ok {
		n = uint32(len(b.objects))
		b.objectsAt[k] = n
		b.objects = append(b.objects, o)
		return n
	}
	have := &b.objects[n]
	for _, s := range o.Segments {
		if !slices.Contains(have.Segments, s) {
			have.Segments = append(have.Segments, s)
		}
	}
	have.Length = max(have.Length, o.Length)
	return n
}

// ObjectAt returns an object. It belongs to the Builder.
func (b *Builder) ObjectAt(object uint32) *ingest.Object { return &b.objects[object] }

// Function returns the number of a function; f.Object is the Builder's number.
func (b *Builder) Function(f ingest.Function) ingest.FuncID {
	n, ok := b.funcsAt[f]
	if !ok {
		n = ingest.FuncID(len(b.funcs))
		b.funcsAt[f] = n
		b.funcs = append(b.funcs, f)
	}
	return n
}

// FunctionAt returns a function. It belongs to the Builder.
func (b *Builder) FunctionAt(f ingest.FuncID) *ingest.Function { return &b.funcs[f] }

// Place adds a place and returns its number. The frames are copied. A place without a name in an
// object whose addresses mean nothing is at offset 0.
func (b *Builder) Place(pl Place) uint32 {
	o := &b.objects[pl.Object]
	if len(pl.Frames) > 0 || pl.Reason != ingest.ReasonNone {
		b.marked = true
	}
	if len(pl.Frames) == 0 && o.Kind.Collapsed() {
		pl.Offset = 0
	}
	n, from := uint32(len(b.places)), uint32(len(b.frames))
	b.frames = append(b.frames, pl.Frames...)
	b.places = append(b.places, place{offset: pl.Offset, object: pl.Object, from: from,
		to: uint32(len(b.frames)), number: n, reason: pl.Reason})
	return n
}

// Join is Place for captures of many parts: equal places have one number.
func (b *Builder) Join(pl Place) uint32 {
	k := append(b.key[:0], byte(pl.Reason))
	k = binary.LittleEndian.AppendUint32(k, pl.Object)
	k = binary.LittleEndian.AppendUint64(k, uint64(pl.Offset))
	for _, f := range pl.Frames {
		k = binary.LittleEndian.AppendUint32(k, uint32(f.Func))
		k = binary.LittleEndian.AppendUint32(k, uint32(f.Line))
		k = binary.LittleEndian.AppendUint32(k, uint32(f.Column))
	}
	b.key = k
	n, fresh := b.placesAt.Add(b.seed.Hash(k))
	if fresh {
		*n = b.Place(pl)
	}
	return *n
}

// Stack returns the number of a stack of places, leaf first. Places over intern.MaxList are left
// out.
func (b *Builder) Stack(places []uint32) ingest.StackID {
	if len(places) > intern.MaxList {
		b.P.Stats.CutChains++
		places = places[:intern.MaxList]
	}
	return ingest.StackID(b.stacks.Add(places))
}

// String returns the number of a string.
func (b *Builder) String(s []byte) ingest.StringID {
	n, ok := b.strings[string(s)] // without an allocation
	if !ok {
		n = ingest.StringID(len(b.P.Strings))
		b.P.Strings = append(b.P.Strings, string(s))
		b.strings[string(s)] = n
	}
	return n
}

// Add adds a folded sample with the Builder's numbers, and counts it.
func (b *Builder) Add(s ingest.Sample) {
	b.P.Samples = append(b.P.Samples, s)
	b.P.Stats.Samples += s.Count
	b.P.Stats.Weight += s.Weight
}

// Compact adds up equal samples if many were added since the last time: memory grows with distinct
// samples. Captures of many parts call it after each.
func (b *Builder) Compact() {
	const least = 1 << 16
	if len(b.P.Samples) < 2*b.compacted+least {
		return
	}
	b.P.Samples = merge.Samples(b.P.Samples)
	b.compacted = len(b.P.Samples)
}

// Profile numbers everything in sorted order and returns P, with the location of each place. The
// Builder must not be used after it.
func (b *Builder) Profile() (*ingest.Profile, []ingest.LocationID) {
	b.numberObjects()
	locations := b.numberPlaces()
	b.placesAt, b.funcsAt, b.objectsAt = intern.Table[uint32]{}, nil, nil
	b.finishSamples(locations)
	return b.P, locations
}
