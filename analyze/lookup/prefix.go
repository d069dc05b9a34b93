package lookup

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"symbolize/analyze/inspect"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// Store is a store.View that lists its objects, as db.Reader does.
type Store interface {
	store.View
	Objects() iter.Seq2[*store.Manifest, error]
}

// FindObject returns the only object that a text names: by its build ID or the beginning of it, or a
// function of a BPF program by a tag, in a form of bpf.ParseTag.
func FindObject(r Store, text string) (*store.Manifest, error) {
	if id, err := buildid.Parse(text); err == nil {
		if m, _, _ := store.FindOne(r, id); m != nil {
			return m, nil
		}
	}
	tag, isTag := bpf.ParseTag(text)
	var found []*store.Manifest
	if isTag {
		found = Tagged(r, tag)
	}
	entered := len(found)
	for m, err := range r.Objects() {
		switch {
		case err != nil || m.IsAlias():
		case strings.HasPrefix(m.ID.String(), strings.ToLower(text)),
			isTag && m.Kind == ingest.JIT && hasTag(m, tag):
			if !slices.ContainsFunc(found[:entered], func(o *store.Manifest) bool { return o.ID == m.ID }) {
				found = append(found, m)
			}
		}
	}
	return only(r, text, found)
}

// FindTagged returns the only function of a BPF program that a view has under a tag, in a form of
// bpf.ParseTag. Functions that were captured without lines are not found so.
func FindTagged(v store.View, text string) (*store.Manifest, error) {
	var found []*store.Manifest
	if tag, ok := bpf.ParseTag(text); ok {
		found = Tagged(v, tag)
	}
	return only(v, text, found)
}

// only returns the only object that was found for a text.
func only(v store.View, text string, found []*store.Manifest) (*store.Manifest, error) {
	switch len(found) {
	case 0:
		return nil, texts.WithHint(fmt.Errorf("no object %s in the store", text),
			"`symbolize store ls` lists them")
	case 1:
		return found[0], nil
	}
	several := &SeveralError{text: text}
	for _, m := range found {
		o := inspect.NewStored(m)
		o.Complete(v)
		several.found = append(several.found, strings.TrimSpace(o.BuildID+" "+o.Name()))
	}
	return nil, several
}

// Tagged returns the functions of BPF programs that a view has entered under a tag.
func Tagged(v store.View, tag bpf.Tag) (found []*store.Manifest) {
	alias, _, _ := store.FindOne(v, bpf.TagIdentity(tag))
	if alias == nil {
		return nil
	}
	for _, id := range alias.Probable {
		if m, _, _ := store.FindOne(v, id); m != nil {
			found = append(found, m)
		}
	}
	return found
}

// hasTag reports whether a captured function has a tag, of its own or, if it is the main one of a
// program, of the program.
func hasTag(m *store.Manifest, tag bpf.Tag) bool {
	return slices.ContainsFunc(m.Variants, func(v store.Variant) bool {
		return bpf.Tag(v.FuncTag) == tag || v.Func == 0 && bpf.Tag(v.Tag) == tag
	})
}

// SeveralError reports that a text names several objects.
type SeveralError struct {
	text  string
	found []string // at least two: build ID and name
}

// Error implements error.
func (e *SeveralError) Error() string {
	if tag, ok := bpf.ParseTag(e.text); ok {
		return fmt.Sprintf("%d objects have the tag %s, or a build ID that begins with it", len(e.found),
			tag)
	}
	return fmt.Sprintf("%d objects have a build ID that begins with %s", len(e.found), e.text)
}

// Hint lists the objects.
func (e *SeveralError) Hint() string {
	names := slices.Clone(e.found[:min(len(e.found), maxListed)])
	if more := len(e.found) - maxListed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// maxListed bounds the objects that an error lists.
const maxListed = 10
