package analyze

import (
	"context"
	"slices"

	"symbolize/analyze/code"
	"symbolize/analyze/datatypes"
	"symbolize/ingest"
	"symbolize/ingest/object/flow"
)

// DataTypes returns a Finder of what instructions access, by the tables of the session, and by the
// files that have the code and the debug information of objects.
func (s *Session) DataTypes(ctx context.Context) *datatypes.Finder {
	_, with := SplitBundles(s.opts.With)
	files := &code.Options{View: s.view, Paths: with, Recorded: s.opts.Local != nil}
	return datatypes.New(ctx, s.view, files, func(err error) { s.warnError(err, "symbolize store verify", true) })
}

// addDataTags adds the tags of what the sampled instructions access, if they are asked for.
func (s *Session) addDataTags(ctx context.Context, p *ingest.Profile) error {
	words := slices.DeleteFunc(s.opts.Keep.TagList(), func(w string) bool { return !ingest.DataTag(w) })
	if len(words) == 0 || len(p.Samples) == 0 {
		return nil
	}
	ofLeaf := leafTags(p, s.DataTypes(ctx), words)
	without := dataTags(words, &datatypes.Access{Access: flow.Access{Reason: flow.NoDebugInfo}})
	type key struct {
		tags ingest.StringID
		more string
	}
	list, made := slices.Clone(p.Strings), make(map[key]ingest.StringID)
	samples := slices.Clone(p.Samples)
	for i := range samples {
		x := &samples[i]
		k := key{x.Tags, without}
		if x.Stack != 0 {
			k.more = ofLeaf[p.Leaves[x.Stack]]
		}
		if p.Tag(x, words[0]) != "" { // of a pprof file that has them
			continue
		}
		id, ok := made[k]
		if !ok {
			id = ingest.StringID(len(list))
			list = append(list, ingest.AppendTags(p.Strings[k.tags], k.more))
			made[k] = id
		}
		x.Tags = id
	}
	p.Samples = samples
	renumber(p, list)
	return ctx.Err()
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

// leafTags returns the texts of the tags by the locations that are leaves.
func leafTags(p *ingest.Profile, f *datatypes.Finder, words []string) map[ingest.LocationID]string {
	tags := make(map[ingest.LocationID]string)
	f.EachLeaf(p, func(l ingest.LocationID, a *datatypes.Access) { tags[l] = dataTags(words, a) })
	return tags
}
