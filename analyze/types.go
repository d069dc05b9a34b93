package analyze

import (
	"context"
	"slices"

	"symbolize/analyze/code"
	"symbolize/analyze/datatypes"
	"symbolize/ingest"
)

// DataTypes returns a Finder of what instructions access, by the tables of the session, and by the
// files that have the code and the debug information of objects.
func (s *Session) DataTypes(ctx context.Context) *datatypes.Finder {
	_, with := SplitBundles(s.opts.With)
	files := &code.Options{View: s.view, Paths: with, Recorded: s.opts.Local != nil}
	return datatypes.New(ctx, s.view, files, func(err error) { s.warnError(err, "symbolize store verify", true) })
}

// addDataTags adds the tags of what the sampled instructions access, if they are asked for, and names the data
// that recorded addresses are of.
func (s *Session) addDataTags(ctx context.Context, p *ingest.Profile) error {
	f := s.DataTypes(ctx)
	tagAccesses(p, f, &s.opts.Keep)
	if w := f.Recorded.Warning(); w != nil {
		p.Stats.Warnings = append(p.Stats.Warnings, *w)
	}
	return ctx.Err()
}

// Accesses adds the tags of what sampled instructions access to profiles of several captures, by the tables of
// the store alone. It is for one goroutine.
type Accesses struct {
	finder   *datatypes.Finder
	trace    *Trace
	recorded datatypes.Recorded
	failed   []string // errors of tables, each once
}

// maxAccessTables bounds the tables of types that Accesses keeps from one profile to the next.
const maxAccessTables = 64

// Accesses returns an Accesses without profiles.
func (s *Session) Accesses(ctx context.Context) *Accesses {
	view, trace := s.Trace()
	a := &Accesses{trace: trace}
	a.finder = datatypes.New(ctx, view, nil, func(err error) {
		trace.Spoil()
		if text := err.Error(); !slices.Contains(a.failed, text) {
			a.failed = append(a.failed, text)
		}
	})
	return a
}

// Add adds the tags of keep to the samples of a profile, and names the data that recorded addresses are of. The
// profile need not have names.
func (a *Accesses) Add(p *ingest.Profile, keep *ingest.Keep) {
	a.finder.Recorded = datatypes.Recorded{}
	tagAccesses(p, a.finder, keep)
	a.recorded.Add(&a.finder.Recorded)
	a.finder.Trim(maxAccessTables)
}

// Warnings returns the warnings about all profiles.
func (a *Accesses) Warnings() (list []ingest.Warning) {
	for _, text := range a.failed {
		list = append(list, ingest.Warning{Text: text, Hint: "symbolize store verify", Partial: true})
	}
	if w := a.recorded.Warning(); w != nil {
		list = append(list, *w)
	}
	return list
}

// Dependencies returns the questions to the store so far.
func (a *Accesses) Dependencies() []Dependency { return a.trace.Dependencies() }

// tagAccesses adds the tags of keep that a finder knows the values of.
func tagAccesses(p *ingest.Profile, f *datatypes.Finder, keep *ingest.Keep) {
	asked := keep.TagList()
	t := dataTagger{p: p, f: f, address: slices.Contains(asked, ingest.AddressTag)}
	for _, w := range asked {
		if ingest.DataTag(w) {
			t.words = append(t.words, w)
		}
	}
	if len(p.Samples) > 0 && (len(t.words) > 0 || t.address) {
		t.add()
	}
}

// dataTagger adds tags to the samples of a profile.
type dataTagger struct {
	p       *ingest.Profile
	f       *datatypes.Finder
	words   []string // DataTags to add
	address bool     // AddressTag is asked for
	named   map[ingest.StringID]string
}

// add adds the tags. Samples that are equal then become one.
func (t *dataTagger) add() {
	p := t.p
	type key struct {
		tags ingest.StringID
		more string
	}
	t.named = make(map[ingest.StringID]string)
	list, made := slices.Clone(p.Strings), make(map[key]ingest.StringID)
	samples := slices.Clone(p.Samples)
	i := -1
	visit := func(s *ingest.Sample, a *datatypes.Access) {
		i++
		var more string
		if len(t.words) > 0 && p.Tag(s, t.words[0]) == "" { // else of a pprof file that has them
			more = dataTags(t.words, a)
		}
		k := key{s.Tags, more}
		id, ok := made[k]
		if !ok {
			id = ingest.StringID(len(list))
			list = append(list, ingest.AppendTags(t.recorded(s), more))
			made[k] = id
		}
		samples[i].Tags = id
	}
	if len(t.words) > 0 {
		t.f.EachSample(p, visit)
	} else {
		for k := range p.Samples {
			visit(&p.Samples[k], nil)
		}
	}
	p.Samples = samples
	renumber(p, list)
	p.Samples = joinEqual(p.Samples)
}

// recorded returns the tags of a sample, with the name of its data in AddressTag, or without that.
func (t *dataTagger) recorded(s *ingest.Sample) string {
	text, ok := t.named[s.Tags]
	if ok {
		return text
	}
	var tags []ingest.Tag
	for tag := range t.p.AllTags(s) {
		if tag.Key == ingest.AddressTag {
			if !t.address {
				continue
			}
			tag = t.name(tag)
		}
		tags = append(tags, tag)
	}
	text = ingest.EncodeTags(tags)
	t.named[s.Tags] = text
	return text
}

// name returns the tag of an address with the variable that is there, or the object.
func (t *dataTagger) name(tag ingest.Tag) ingest.Tag {
	o, off, ok := tag.Place()
	if !ok {
		return tag
	}
	text := tag.Text
	if v, inside := t.f.Variable(&o, off); v != nil {
		text = v.Text()
	} else if symbol := t.f.Symbol(&o, off); symbol != "" {
		text = symbol
	} else if inside && (o.Kind == ingest.Kernel || o.Kind == ingest.Module) {
		text = ingest.MemoryText(&o)
	}
	return ingest.Tag{Key: tag.Key, Text: text}
}

// joinEqual adds sorted samples up that are equal.
func joinEqual(samples []ingest.Sample) []ingest.Sample {
	out := samples[:0]
	for i := range samples {
		if n := len(out) - 1; n >= 0 && ingest.CompareSamples(out[n], samples[i]) == 0 {
			out[n].Count, out[n].Weight = out[n].Count+samples[i].Count, out[n].Weight+samples[i].Weight
			continue
		}
		out = append(out, samples[i])
	}
	return out
}

// dataTags returns the text of the tags of an access.
func dataTags(words []string, a *datatypes.Access) string {
	var list []string
	for _, w := range words {
		if w == ingest.DataTypeTag {
			list = append(list, w, a.Type())
		} else {
			list = append(list, w, a.Field())
		}
	}
	return ingest.JoinTags(list...)
}
