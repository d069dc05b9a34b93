package batch

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"symbolize/analyze"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

// Head describes a collected capture.
type Head struct {
	Path string // of the capture
	Key  string // digest of its absolute path and of Reading
	Meta ingest.Meta
	// Main is the build ID of the main program, as text; "" if it is not known.
	Main    string
	Samples uint64
	Named   bool        // it came with names of its own, as pprof files do
	Keep    ingest.Keep // labels by which samples are apart
	// Content is a digest of the capture and the bundles beside it. Files of one content are of one
	// capture, wherever it was. Files are by which it is recognized without reading it.
	Content string
	Files   []fileState
	// Reading is a digest of the options that the capture was read with.
	Reading string
	// Needs are the questions that reading the capture asked of the store. Lacking counts those of
	// them without an answer, such as for the unwind table of an object of copied stacks.
	Needs   []analyze.Dependency
	Lacking int
	// FramePointers: all stacks are made of frame pointers. WholeMappings: all mappings of the
	// processes are known. See Chains.
	FramePointers, WholeMappings bool
	// Warnings are what was wrong with the capture, such as damage and losses, without its path in
	// front. Each run that uses the capture reports them.
	Warnings []ingest.Warning
}

// isDamage reports whether something is lost, by the warnings about it.
func isDamage(list []ingest.Warning) bool {
	return slices.ContainsFunc(list, func(w ingest.Warning) bool { return w.Partial })
}

// state identifies the content that was read of a capture, and the answers of the store.
func (h *Head) state() string {
	needs := h.Needs
	return digest(fmt.Sprintf("%s %s %x", h.Content, h.Reading, encodeRecord(&needs)))
}

// warn adds a warning about the capture.
func (h *Head) warn(w ingest.Warning) {
	w.Text = strings.TrimPrefix(w.Text, h.Path+": ")
	h.Warnings = append(h.Warnings, w)
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

// collect reads the capture of a head, which it completes, and writes its stacks to a file of their
// own. The head has the warnings of the session. The session has to leave return addresses undecided (analyze.Options.Undecided). Code that
// the capture itself has the symbols of is named here, for no other file has them. serves reports
// that there are captures which a bundle completes, so that it need not have samples.
func collect(ctx context.Context, s *analyze.Session, head *Head, path string, serves bool) error {
	return s.Each(ctx, []string{head.Path}, func(c *input.Capture, p *ingest.Profile) error {
		if err := s.ReadError(); err != nil {
			return texts.WithHint(fmt.Errorf("not read whole: %w", err),
				"the file system could not read it: run it again when it can")
		}
		if serves {
			p.Stats.Warnings = slices.DeleteFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
				return strings.HasSuffix(w.Text, input.NoSamples)
			})
		}
		if _, err := s.Need(ctx, nil); err != nil { // passes on its warnings
			return err
		}
		head.FramePointers, head.WholeMappings = c.FramePointers()
		return writeCollected(ctx, s, p, path, head)
	})
}

// writeCollected writes the file of a capture, and completes its head.
func writeCollected(ctx context.Context, s *analyze.Session, p *ingest.Profile, path string,
	head *Head) error {
	var own ownNames
	state := s.State()
	for _, pl := range placesOf(p) {
		if !state.Has(pl.Object.ID) {
			continue
		}
		list, err := nameObject(ctx, s.View(), state.Traced(), []places{pl})
		if err != nil {
			return err
		}
		own.Keys, own.Answers = append(own.Keys, pl.Key), append(own.Answers, list)
	}
	head.Meta, head.Samples, head.Main = p.Meta, p.Stats.Samples, mainID(p)
	for _, w := range p.Stats.Warnings {
		head.warn(w)
	}
	p.Stats.Warnings = nil // profiles of parts of its samples would repeat them
	head.Named = p.Names != nil
	head.Needs = state.Traced().Dependencies()
	for i := range head.Needs {
		if head.Needs[i].Lacking {
			head.Lacking++
		}
	}
	w, err := createRecords(path, head.Path)
	if err != nil {
		return outputErr(err)
	}
	heads := []Head{*head}
	err = errors.Join(w.Put(packRecord, pack(&packHead{})), w.Put(headsRecord, pack(&heads)),
		w.Put(stacksName(0), pack(p)), w.Put(ownName(0), pack(&own)))
	if err != nil {
		return outputErr(errors.Join(err, w.Abandon()))
	}
	return outputErr(w.Publish())
}

// mainID returns the build ID of a profile's main program.
func mainID(p *ingest.Profile) string {
	for i := range p.Objects {
		if o := &p.Objects[i]; o.File.Path == p.Meta.MainProgram && !o.ID.IsZero() {
			return o.ID.String()
		}
	}
	return ""
}

// placesOf lists the locations of a profile by object, for objects that the store can name.
func placesOf(p *ingest.Profile) []places {
	var list []places
	index := make(map[string]int) // an object and its undecided part are one
	entry := func(o *ingest.Object) int {
		key := objectKey(o)
		if key == "" {
			return -1
		}
		id := key + facts(o)
		at, ok := index[id]
		if !ok {
			at = len(list)
			index[id] = at
			list = append(list, places{Key: key, Object: bare(o)})
		}
		return at
	}
	const unknown = -2
	at := slices.Repeat([]int{unknown}, len(p.Objects)) // in list; -1 for none
	for _, l := range p.Locations {
		o := &p.Objects[l.Object]
		if at[l.Object] == unknown {
			at[l.Object] = entry(o)
		}
		switch n := at[l.Object]; {
		case n < 0:
		case o.Undecided:
			list[n].Undecided = append(list[n].Undecided, l.Offset)
		default:
			list[n].Offsets = append(list[n].Offsets, l.Offset)
		}
	}
	return list
}

// bare returns an object without the fields that differ between processes and do not affect names.
func bare(o *ingest.Object) ingest.Object {
	b := *o
	b.Segments, b.Undecided, b.Kernel = nil, false, ingest.NoObject
	b.IDSource, b.PID, b.Program, b.Capture = ingest.IDNone, 0, "", ""
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
	return fmt.Sprintf("|%d|%s|%t|%d|%q|%q|%t|%q|%d|%q|%t", o.Kind, o.ID.Hex(), o.ID.Exact(), o.ID.Len(),
		o.RefSymbol, o.Symbol, o.NoImage, o.WhyNoImage, o.Length, path, o.Entry)
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
