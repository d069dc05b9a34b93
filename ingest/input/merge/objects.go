package merge

import (
	"cmp"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
)

// identity is equal for records of one object: the build ID and the file's base name, or without a
// build ID all recorded fields. Copies of a program under several names have one ID, and frames
// keep the name of their file.
type identity struct {
	kind      ingest.ObjectKind
	key       buildid.Key
	name      string
	length    int // of an ID shorter than a key: such IDs match only at equal lengths
	refSymbol string
	undecided bool
	entry     bool
	reason    ingest.Reason
	file      ingest.FileRef // this and the following only without an ID
	symbol    string
	codeLen   uint64
	pid       int32
	capture   string
}

// identities returns the identities of objects. An inexact ID joins the exact ID that it matches;
// if it matches IDs of different lengths it is ambiguous and joins none.
func identities(objects []ingest.Object) []identity {
	exact := make(map[identity][]int) // lengths by identity of length 0
	ids := make([]identity, len(objects))
	for i := range objects {
		o := &objects[i]
		id := identity{kind: o.Kind, refSymbol: o.RefSymbol, undecided: o.Undecided,
			entry: o.Entry}
		if o.ID.IsZero() {
			id.file, id.symbol, id.codeLen, id.pid = o.File, o.Symbol, o.Length, o.PID
			id.capture, id.reason = o.Capture, o.Reason
			ids[i] = id
			continue
		}
		if o.Reason == ingest.KernelHidden {
			id.reason = o.Reason
		}
		id.key = o.ID.Key()
		if n := min(o.ID.Len(), buildid.KeyLen); o.ID.Exact() && !slices.Contains(exact[id], n) {
			exact[id] = append(exact[id], n)
		}
		ids[i] = id
	}
	for i := range objects {
		o := &objects[i]
		if o.ID.IsZero() {
			continue
		}
		switch lengths := exact[ids[i]]; {
		case o.ID.Exact():
			ids[i].length = min(o.ID.Len(), buildid.KeyLen)
		case len(lengths) == 1:
			ids[i].length = lengths[0]
		case len(lengths) > 1:
			ids[i].length = -1
			o.Reason = ingest.Ambiguous
		}
	}
	addNames(ids, objects)
	return ids
}

// addNames adds the names of files to the identities of objects with a build ID. Objects of stack
// maps have no names: they get the smallest name of other records with the ID.
func addNames(ids []identity, objects []ingest.Object) {
	least := make(map[identity]string)
	name := func(i int) string {
		o := &objects[i]
		if o.ID.IsZero() || o.Kind != ingest.ELF && o.Kind != ingest.Module {
			return ""
		}
		return ingest.BaseName(o.File.Path)
	}
	for i := range ids {
		if own, known := name(i), least[ids[i]]; own != "" && (known == "" || own < known) {
			least[ids[i]] = own
		}
	}
	for i, id := range ids {
		if least[id] != "" {
			ids[i].name = cmp.Or(name(i), least[id])
		}
	}
}

// Objects makes one object of each identity, sorted by CompareObjects, and returns the new number
// of each input object. Objects for which used is false are left out (NoObject).
func Objects(objects []ingest.Object, used []bool) (joined []ingest.Object,
	number []ingest.ObjectID) {
	ids := identities(objects)
	index := make(map[identity]int)
	group := make([]int, len(objects))
	for i := range objects {
		group[i] = -1
		if !used[i] {
			continue
		}
		at, ok := index[ids[i]]
		if !ok {
			at = len(joined)
			index[ids[i]] = at
			o := objects[i]
			o.Segments = slices.Clone(o.Segments)
			joined = append(joined, o)
		} else {
			joinObject(&joined[at], &objects[i])
		}
		group[i] = at
	}
	order := make([]int, len(joined))
	for i := range order {
		order[i] = i
		slices.SortFunc(joined[i].Segments, ingest.CompareSegments)
		joined[i].Segments = slices.Compact(joined[i].Segments)
	}
	slices.SortFunc(order, func(a, b int) int {
		return ingest.CompareObjects(&joined[a], &joined[b])
	})
	rank := make([]ingest.ObjectID, len(joined))
	sorted := make([]ingest.Object, len(joined))
	for to, from := range order {
		rank[from], sorted[to] = ingest.ObjectID(to), joined[from]
	}
	number = make([]ingest.ObjectID, len(objects))
	for i, g := range group {
		number[i] = ingest.NoObject
		if g >= 0 {
			number[i] = rank[g]
		}
	}
	return sorted, number
}

// joinObject adds the fields of another record of the same object, independently of the order of
// records. It keeps the smallest path.
func joinObject(o, other *ingest.Object) {
	if o.File.Path == "" || other.File.Path != "" && ingest.CompareFiles(&other.File, &o.File) < 0 {
		o.File = other.File
	}
	if other.ID.Exact() && !o.ID.Exact() {
		o.ID = other.ID
	}
	if other.IDSource != ingest.IDNone &&
		(o.IDSource == ingest.IDNone || other.IDSource < o.IDSource) {
		o.IDSource = other.IDSource
	}
	if o.Symbol == "" || other.Symbol != "" && other.Symbol < o.Symbol {
		o.Symbol = other.Symbol
	}
	if o.Program == "" || other.Program != "" && other.Program < o.Program {
		o.Program = other.Program
	}
	o.Length = max(o.Length, other.Length)
	o.NoImage = o.NoImage && other.NoImage
	switch {
	case !o.NoImage:
		o.WhyNoImage = ""
	case o.WhyNoImage == "" || other.WhyNoImage != "" && other.WhyNoImage < o.WhyNoImage:
		o.WhyNoImage = other.WhyNoImage
	}
	o.Segments = append(o.Segments, other.Segments...)
}
