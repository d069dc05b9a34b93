package batch

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"symbolize/analyze"
	"symbolize/analyze/batch/recordfile"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
)

// The records of a collected capture.
const (
	headRecord   = "head"   // Head
	stacksRecord = "stacks" // ingest.Profile, without names but those of a pprof file
	ownRecord    = "own"    // ownNames
	partRecord   = "part-"  // with the number of the part: []places
)

// Head describes a collected capture.
type Head struct {
	Path  string // of the capture
	Parts int    // that its locations were cut into
	Meta  ingest.Meta
	// Main is the build ID of the main program, as text; "" if it is not known.
	Main    string
	Samples uint64
	Keep    ingest.Keep // labels by which samples are apart
}

// places are the locations of one object of a capture.
type places struct {
	Key       string // objectKey
	Object    ingest.Object
	Offsets   []addr.Offset // ascending
	Undecided []addr.Offset // of the bytes before possible return addresses
}

// ownNames are the answers that the capture itself gave, by objectKey.
type ownNames struct {
	Keys    []string
	Answers [][]answer
}

// Collect reads one capture and writes its stacks and the locations in them to a file. The session
// has to leave return addresses undecided (analyze.Options.Undecided); keep are its labels. Code
// that the capture itself has the symbols of is named here, for nobody else has them.
func Collect(ctx context.Context, s *analyze.Session, capture, path string, parts int,
	keep ingest.Keep) (*Head, error) {
	if parts < 1 {
		return nil, fmt.Errorf("locations cannot be cut into %d parts", parts)
	}
	var head *Head
	err := s.Each(ctx, []string{capture}, func(_ *input.Capture, p *ingest.Profile) (err error) {
		head, err = writeCollected(ctx, s, p, path, Head{Path: capture, Parts: parts, Keep: keep})
		return err
	})
	return head, err
}

// writeCollected writes the file of a capture, and completes its head.
func writeCollected(ctx context.Context, s *analyze.Session, p *ingest.Profile, path string,
	head Head) (*Head, error) {
	cut := make([][]places, head.Parts)
	var own ownNames
	for _, pl := range placesOf(p) {
		if !s.Has(pl.Object.ID) {
			n := partOf(pl.Key, head.Parts)
			cut[n] = append(cut[n], pl)
			continue
		}
		list, err := nameObject(ctx, s.View(), []places{pl})
		if err != nil {
			return nil, err
		}
		own.Keys, own.Answers = append(own.Keys, pl.Key), append(own.Answers, list)
	}
	head.Meta, head.Samples, head.Main = p.Meta, p.Stats.Samples, mainID(p)
	w, err := recordfile.Create(path)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		w.Put(headRecord, recordfile.Pack(&head)), w.Put(stacksRecord, recordfile.Pack(p)), w.Put(ownRecord, recordfile.Pack(&own)))
	for n := range cut {
		if err == nil && len(cut[n]) > 0 {
			err = w.Put(partName(n), recordfile.Pack(&cut[n]))
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.Abandon())
	}
	return &head, w.Publish()
}

func partName(n int) string { return fmt.Sprintf("%s%d", partRecord, n) }

// mainID returns the build ID of a profile's main program.
func mainID(p *ingest.Profile) string {
	for i := range p.Objects {
		if o := &p.Objects[i]; o.File.Path == p.Meta.MainProgram && !o.ID.IsZero() {
			return o.ID.String()
		}
	}
	return ""
}

// placesOf lists the locations of a profile by object, of those objects that the store can name.
func placesOf(p *ingest.Profile) []places {
	var list []places
	index := make(map[string]int) // an object and its undecided part are one
	for i := range p.Locations {
		l := &p.Locations[i]
		o := &p.Objects[l.Object]
		key := objectKey(o)
		if key == "" {
			continue
		}
		key += facts(o)
		at, ok := index[key]
		if !ok {
			at = len(list)
			index[key] = at
			list = append(list, places{Key: objectKey(o), Object: bare(o)})
		}
		if o.Undecided {
			list[at].Undecided = append(list[at].Undecided, l.Offset)
		} else {
			list[at].Offsets = append(list[at].Offsets, l.Offset)
		}
	}
	return list
}

// bare returns an object without the fields that differ between processes and do not affect names.
func bare(o *ingest.Object) ingest.Object {
	b := *o
	b.Segments, b.Undecided, b.Kernel = nil, false, ingest.NoObject
	b.IDSource, b.PID, b.Capture = ingest.IDNone, 0, ""
	b.File = ingest.FileRef{Path: o.File.Path}
	return b
}

// objectKey names an object in all captures, by its build ID or by the name that the capture gives
// it; "" if no store can have names for it.
func objectKey(o *ingest.Object) string {
	switch {
	case o.Symbol != "" && o.ID.IsZero():
		return "symbol:" + o.Symbol
	case o.Symbol == "" && (o.Reason != ingest.ReasonNone || o.ID.IsZero() || o.Kind.Collapsed()):
		return ""
	}
	k := o.ID.Key()
	return fmt.Sprintf("%s:%s", k.Space, hex.EncodeToString(k.Sum[:]))
}

// facts are the fields of an object by which names differ where the key is equal.
func facts(o *ingest.Object) string {
	path := "" // it decides only where there is no table, see answer.Found
	if o.Kind == ingest.JIT {
		path = o.File.Path
	}
	return fmt.Sprintf("|%d|%s|%t|%d|%q|%q|%t|%q|%d|%q", o.Kind, o.ID.Hex(), o.ID.Exact(), o.ID.Len(),
		o.RefSymbol, o.Symbol, o.NoImage, o.WhyNoImage, o.Length, path)
}

// partOf returns the part that an object's locations go to.
func partOf(key string, parts int) int {
	sum := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint32(sum[:4]) % uint32(parts))
}

// sortedUnion returns the elements of sorted lists, sorted, each once.
func sortedUnion(lists ...[]addr.Offset) []addr.Offset {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
