package pgo

import (
	"cmp"
	stdelf "debug/elf"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// ErrNoCounts is the error for an object without samples or branches.
var ErrNoCounts = errors.New("no sample or branch in it")

// Object is a file of code with counts: all Objects of a Profile with one build ID, or one without.
type Object struct {
	*ingest.Object        // the first of them
	Counts         uint64 // samples and branches that begin in it

	// NoAddress is how many of Counts are left out, since their offsets have no address in the file;
	// Reason is why.
	NoAddress uint64
	Reason    ingest.Reason

	library bool
}

// place is a location as an address of an object.
type place struct {
	object int // index into Profile.Objects; -1 outside of files
	at     addr.Addr
	known  bool // at is known
}

// Profile is the counts of a profile by the addresses of its files.
type Profile struct {
	// Objects has those with most counts first, then by path and build ID. The last ones may have none:
	// they are targets of branches.
	Objects []Object
	// Overflow counts samples that are left out, as the sum of all counts would exceed maxTotal.
	Overflow uint64

	source *ingest.Profile
	event  int
	places []place // by ingest.LocationID
}

// New reads the counts of a profile by addresses of ELF files. Without branch stacks they are those of
// one event. The view has the layouts of files.
func New(p *ingest.Profile, v store.View, event int) *Profile {
	t := &Profile{source: p, event: event}
	groups := t.group(v)
	var stack []ingest.LocationID
	for s := range t.samples() {
		stack = p.Stack(stack[:0], s.Stack)
		if len(stack) == 0 {
			continue
		}
		x := t.places[stack[len(stack)-1]] // of a branch its source
		if p.Tag(s, ingest.BranchTag) == "" {
			x = t.places[stack[0]]
		}
		if x.object < 0 {
			continue
		}
		groups[x.object].Counts += s.Count
		if !x.known {
			groups[x.object].NoAddress += s.Count
		}
	}
	t.sort(groups)
	return t
}

// maxTotal bounds the sum of all counts: BOLT reads signed numbers. Only damaged captures exceed it.
const maxTotal = math.MaxInt64

// samples visits the samples that have the event or were made from branch stacks. The sum of their counts
// is at most maxTotal; it sets Overflow to how many more there are.
func (t *Profile) samples() iter.Seq[*ingest.Sample] {
	return func(visit func(*ingest.Sample) bool) {
		total := uint64(0)
		t.Overflow = 0
		for i := range t.source.Samples {
			s := &t.source.Samples[i]
			if int(s.Event) != t.event && t.source.Tag(s, ingest.BranchTag) == "" {
				continue
			}
			if s.Count > maxTotal-total {
				t.Overflow++
				continue
			}
			total += s.Count
			if !visit(s) {
				return
			}
		}
	}
}

// group joins the objects with one build ID, and locates all locations.
func (t *Profile) group(v store.View) []Object {
	p := t.source
	var list []Object
	byID, of := make(map[string]int), make([]int, len(p.Objects))
	converters := make([]*resolve.Addresses, len(p.Objects))
	for i := range p.Objects {
		o := &p.Objects[i]
		if of[i] = -1; o.Kind != ingest.ELF {
			continue
		}
		key := o.ID.Hex()
		if o.ID.IsZero() {
			key = fmt.Sprint("object ", i)
		}
		g, ok := byID[key]
		if !ok {
			g = len(list)
			byID[key], list = g, append(list, Object{Object: o})
		}
		of[i] = g
		m, reason, _ := store.FindCode(v, o.ID) // one that cannot be read has no layout
		if m == nil {
			list[g].Reason = reason
			continue
		}
		list[g].library = stdelf.Type(m.Type) == stdelf.ET_DYN && ingest.IsLibraryName(o.File.Path)
		if a, reason := resolve.NewAddresses(o, m); reason == ingest.ReasonNone {
			converters[i] = &a
		} else {
			list[g].Reason = reason
		}
	}
	t.places = make([]place, len(p.Locations))
	for i, l := range p.Locations {
		x := place{object: of[l.Object]}
		if a := converters[l.Object]; a != nil {
			if x.at, x.known = a.Of(l.Offset); !x.known {
				list[x.object].Reason = a.Reason()
			}
		}
		t.places[i] = x
	}
	return list
}

// sort sets Objects, and numbers places by it.
func (t *Profile) sort(groups []Object) {
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &groups[i], &groups[j]
		return cmp.Or(cmp.Compare(b.Counts, a.Counts), cmp.Compare(a.File.Path, b.File.Path))
	})
	number := make([]int, len(groups))
	for n, i := range order {
		number[i] = n
		t.Objects = append(t.Objects, groups[i])
	}
	for i := range t.places {
		if x := &t.places[i]; x.object >= 0 {
			x.object = number[x.object]
		}
	}
}

// Find returns the number of the object with a base name, a path or a build ID, or of the one with most
// counts for "".
func (t *Profile) Find(name string) (int, error) {
	if name == "" {
		if len(t.Objects) == 0 || t.Objects[0].Counts == 0 {
			return 0, fmt.Errorf("programs and libraries: %w", ErrNoCounts)
		}
		return 0, nil
	}
	found := -1
	for i := range t.Objects {
		o := &t.Objects[i]
		if o.Counts == 0 || !o.named(name) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("%s is the name of %s and %s", name, t.Objects[found].Text(), o.Text())
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("%s: %w", name, ErrNoCounts)
	}
	return found, nil
}

// Builds returns the numbers of all objects with counts that have a name as Find finds it, or any name for "".
// Those without a build ID are left out, with warnings.
func (t *Profile) Builds(name string) (list []int, without []ingest.Warning) {
	for i := range t.Objects {
		o := &t.Objects[i]
		switch {
		case o.Counts == 0 || name != "" && !o.named(name):
		case o.ID.IsZero():
			without = append(without, ingest.Warning{Text: texts.Printable(o.File.Path) +
				" has no build ID, and no file is written of it"})
		default:
			list = append(list, i)
		}
	}
	return list, without
}

// named reports whether a text, which is not empty, is the base name, the path or the build ID of an
// object.
func (o *Object) named(name string) bool {
	return o.File.Path == name || ingest.BaseName(o.File.Path) == name || strings.EqualFold(o.ID.Hex(), name)
}

// Text is the path, fit for a terminal, and the build ID of an object.
func (o *Object) Text() string {
	return strings.TrimSuffix(texts.Printable(o.File.Path)+" "+o.ID.Hex(), " ")
}
