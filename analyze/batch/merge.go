package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze"
	"symbolize/analyze/columns"
	"symbolize/analyze/demangle"
	"symbolize/analyze/export"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/texts"
)

// Answers are the files that Name wrote, of all parts.
type Answers struct {
	files []*recordFile
	parts map[int]bool // that they are of

	chains Chains
}

// OpenAnswers opens the files of all parts, in any order.
func OpenAnswers(paths []string) (*Answers, error) {
	a := &Answers{parts: make(map[int]bool)}
	for _, path := range paths {
		f, err := openRecords(path)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		a.files = append(a.files, f)
		var head namesHead
		if ok, err := f.Get(namesRecord, &head); !ok || err != nil {
			return nil, errors.Join(err, f.Fail("no names of a part"), a.Close())
		}
		if err := a.sameChains(&head, f); err != nil {
			return nil, errors.Join(err, a.Close())
		}
		a.parts[head.Part] = true
	}
	return a, nil
}

// have returns an error unless all parts are named.
func (a *Answers) have(parts int) error {
	var left []string
	for part := range parts {
		if !a.parts[part] {
			left = append(left, strconv.Itoa(part))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return texts.WithHint(fmt.Errorf("%d of %d parts are not named: %s", len(left), parts,
		strings.Join(left, ", ")), "run `symbolize batch name --part` for each")
}

// state returns a digest of the records of object keys.
func (a *Answers) state(keys []string) string {
	h := sha256.New()
	for _, key := range keys {
		for _, f := range a.files {
			e, _ := f.find(key)
			fmt.Fprintf(h, "%s %d %x\n", key, e.Stored, e.Sum)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Close closes the files.
func (a *Answers) Close() error {
	var errs []error
	for _, f := range a.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// of returns the answers for an object key.
func (a *Answers) of(key string) ([]answer, error) {
	for _, f := range a.files {
		var list answers
		if ok, err := f.Get(key, &list); ok || err != nil {
			return list, err
		}
	}
	return nil, nil
}

// group makes one named profile of collected captures.
type group struct {
	answers  *Answers
	own      map[string][]answer // of the captures themselves
	seen     map[string]bool     // digests of the answers in own
	known    map[string][]answer // that were looked for
	used     [][]*answer         // by object of the profile
	accesses *analyze.Accesses   // nil unless Group.Accesses
}

func newGroup(a *Answers) *group {
	return &group{answers: a, own: make(map[string][]answer), seen: make(map[string]bool),
		known: make(map[string][]answer)}
}

// loadAll reads the captures of a group, as profiles that are yet to be merged: one of each, or
// fewer unless they are split.
func (g *group) loadAll(ctx context.Context, gr *Group, split bool) ([]*ingest.Profile, error) {
	open := make(openPacks)
	defer open.trim(0)
	var j joiner
	for _, m := range gr.Collected {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		open.trim(maxOpenPacks)
		f, err := open.get(m.pack)
		if err != nil {
			return nil, err
		}
		p, err := g.load(f, &m)
		switch {
		case err != nil:
			return nil, err
		case gr.named || split: // each gets its names, or is split, before it is merged
			j.list = append(j.list, p)
			continue
		}
		if err := j.add(p); err != nil {
			return nil, err
		}
	}
	return j.list, nil
}

// load reads a capture of a pack: with its completed stacks, otherwise it decides which of its addresses
// are return addresses.
func (g *group) load(f *recordFile, m *member) (*ingest.Profile, error) {
	p, own, err := readCapture(f, m.n)
	if err != nil {
		return nil, err
	}
	for i, key := range own.Keys {
		if id := digest(key + string(encodeRecord(&own.Answers[i]))); !g.seen[id] {
			g.seen[id] = true
			g.own[key] = append(g.own[key], own.Answers[i]...)
		}
	}
	q, err := g.answers.completed(m.state)
	switch {
	case err != nil:
		return nil, err
	case q != nil:
		p = q
	default:
		if err := g.decide(p); err != nil {
			return nil, err
		}
	}
	if g.accesses != nil {
		g.accesses.Add(p, &m.keep)
	}
	return p, nil
}

// merge makes one profile of all, as analyze.Session.Merge does.
func (g *group) merge(profiles []*ingest.Profile) (*ingest.Profile, error) {
	named := slices.ContainsFunc(profiles, func(p *ingest.Profile) bool { return p.Names != nil })
	if named {
		for _, p := range profiles {
			if err := g.name(p); err != nil {
				return nil, err
			}
		}
	}
	p, err := merge.Profiles(profiles)
	if err != nil {
		return nil, err
	}
	if named { // for the layout
		return p, g.find(p)
	}
	return p, g.name(p)
}

// decide replaces the undecided objects of a profile by the decided ones, by the answers.
func (g *group) decide(p *ingest.Profile) error {
	return decideAll(p, func(id ingest.ObjectID) (exact []addr.Offset, err error) {
		list, err := g.answersFor(&p.Objects[id])
		for _, a := range list {
			exact = sortedUnion(exact, a.Exact)
		}
		return exact, err
	})
}

// decideAll replaces the undecided objects of a profile by the decided ones. exactOf returns which
// addresses of an undecided object are not return addresses, ascending. The locations are no longer sorted, nor unique:
// merge.Profiles accepts that.
func decideAll(p *ingest.Profile,
	exactOf func(undecided ingest.ObjectID) ([]addr.Offset, error)) error {
	number := make([]ingest.ObjectID, len(p.Objects))
	exact := make([][]addr.Offset, len(p.Objects))
	var objects []ingest.Object
	for i := range p.Objects {
		o := &p.Objects[i]
		if !o.Undecided {
			number[i] = ingest.ObjectID(len(objects))
			objects = append(objects, *o)
			continue
		}
		if i == 0 {
			return fmt.Errorf("an undecided object without the object itself: %w", ErrFormat)
		}
		number[i] = number[i-1]
		var err error
		if exact[i], err = exactOf(ingest.ObjectID(i)); err != nil {
			return err
		}
	}
	for i := range objects {
		if k := objects[i].Kernel; k != ingest.NoObject {
			objects[i].Kernel = number[k]
		}
	}
	for i := range p.Locations {
		l := &p.Locations[i]
		if p.Objects[l.Object].Undecided {
			l.Offset = decide(l.Offset, exact[l.Object])
		}
		l.Object = number[l.Object]
	}
	p.Objects = objects
	return nil
}

// find sets used for the objects of a profile.
func (g *group) find(p *ingest.Profile) (err error) {
	g.used = make([][]*answer, len(p.Objects))
	for i := range p.Objects {
		if g.used[i], err = g.answersFor(&p.Objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// answersFor returns the answers for an object, from its own captures first; none if no store
// can have names for it. The object may have been joined from records of several captures, none
// of which has all its facts: then answers for some of its facts serve.
func (g *group) answersFor(o *ingest.Object) ([]*answer, error) {
	key := objectKey(o)
	if key == "" {
		return nil, nil
	}
	list, ok := g.known[key]
	if !ok {
		var err error
		if list, err = g.answers.of(key); err != nil {
			return nil, err
		}
		list = append(slices.Clone(g.own[key]), list...)
		g.known[key] = list
	}
	var same, similar []*answer
	b := bare(o)
	wanted := facts(&b)
	for i := range list {
		switch c := &list[i].Object; {
		case facts(c) == wanted:
			same = append(same, &list[i])
		case c.Kind == o.Kind && c.RefSymbol == o.RefSymbol && c.NoImage == o.NoImage && c.Entry == o.Entry:
			similar = append(similar, &list[i])
		}
	}
	if same = append(same, similar...); len(same) == 0 {
		return nil, noAnswer(o)
	}
	return same, nil
}

// noAnswer is the error for an object or location that the files of Name do not have.
func noAnswer(o *ingest.Object) error {
	return fmt.Errorf("no answer for %s %s: the parts are not all there, or belong to other captures",
		ingest.ShortName(o), o.ID)
}

// name sets the names of a profile. Those that it has stay, as resolve.Resolve leaves them.
func (g *group) name(p *ingest.Profile) error {
	if err := g.find(p); err != nil {
		return err
	}
	b := newNamesBuilder(p)
	for l := range p.Locations {
		id := p.Locations[l].Object
		if err := b.add(ingest.LocationID(l), g.used[id]); err != nil {
			return err
		}
	}
	b.finish()
	for i, list := range g.used {
		for _, a := range list {
			b.facts(ingest.ObjectID(i), a)
		}
	}
	return nil
}

// layout returns the objects' layout in the answers.
func (g *group) layout() pprof.WriteOptions {
	return pprof.WriteOptions{
		Layout: func(id ingest.ObjectID) []pprof.Segment {
			for _, a := range g.used[id] {
				if len(a.Segments) > 0 {
					return a.Segments
				}
			}
			return nil
		},
		RefShift: func(id ingest.ObjectID) (addr.Offset, bool) {
			for _, a := range g.used[id] {
				if a.Shifted {
					return a.Shift, true
				}
			}
			return 0, false
		},
	}
}

// Write writes a merged profile in a format, which is one of the extensions FormatPprof …; Parquet
// files have the labels as columns.
func Write(w io.Writer, p *ingest.Profile, opts pprof.WriteOptions, format string,
	labels []columns.Label, d *demangle.Demangler) error {
	switch format {
	case FormatFolded:
		return export.Folded(w, p, export.FoldedOptions{Event: p.DefaultEvent(), Demangler: d})
	case FormatParquet:
		return columns.Write(w, p, columns.Options{Demangler: d, Labels: labels})
	}
	d.Warm(p)
	opts.Demangle = d.Name
	return pprof.Write(w, p, opts)
}
