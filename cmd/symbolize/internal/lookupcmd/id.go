package lookupcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"symbolize/analyze/lookup"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/local"
)

// minPrefix is how many digits of a build ID must be given, where not all are.
const minPrefix = 8

// idSource has the objects that lookup finds by build ID: objects of the store, and files of this
// host.
type idSource struct {
	reader  *db.Reader // nil without a store
	view    store.View
	session *cli.Session // with --remote
}

// newIDSource opens the sources of objects of build IDs. The caller closes them.
func newIDSource(ctx context.Context, a *cli.App, o *lookupOptions, reader *db.Reader) (*idSource,
	error) {
	if o.remote.Given(a) || len(o.with) > 0 {
		s, err := a.OpenSession(ctx, &cli.InputOptions{Remote: o.remote, With: o.with, NoLocal: o.noLocal, Jobs: o.jobs,
			MaxMemory: o.maxMemory, Columns: true})
		if err != nil {
			return nil, err
		}
		return &idSource{reader: reader, view: s.Search(ctx), session: s}, nil
	}
	overlay := store.NewOverlay()
	src := &idSource{reader: reader, view: overlay}
	if reader != nil {
		src.view = store.Layer(overlay, store.Cached(reader))
	}
	if opts := a.Local(nil, o.noLocal); opts != nil {
		opts.Index.Workers, opts.Index.MaxMemory = o.jobs, int64(o.maxMemory)
		opts.Index.Columns, opts.Index.NoUnwind = true, true
		src.view = local.New(overlay, *opts).Searching(ctx, src.view, func(err error) {
			a.Warn(err.Error(), cli.Hint(err))
		})
	}
	return src, nil
}

func (s *idSource) close() error {
	if s == nil || s.session == nil {
		return nil
	}
	return s.session.Close()
}

// find returns the build ID of the object that a text names, in the forms of lookup.FindObject, and
// the view that has its object.
func (s *idSource) find(text string) (store.View, buildid.ID, error) {
	id, err := buildid.Parse(text)
	if err == nil {
		found, err := s.view.Find(id)
		if len(found) > 0 || err != nil {
			return s.view, id, err
		}
	}
	if m, named := s.named(text); m != nil {
		return s.view, m.ID, nil
	} else if named != nil {
		return s.view, id, named
	}
	if s.reader == nil {
		return nil, id, &lookup.IDError{ID: id}
	}
	if err != nil {
		return nil, id, texts.WithHint(fmt.Errorf("no object %q in the store", text),
			"name it by the first %d or more digits of its build ID, or a BPF function by its tag", minPrefix)
	}
	return nil, id, &lookup.IDError{ID: id}
}

// named returns the object that is named by the beginning of its build ID or by a tag, nil if there is
// none. The error is a *lookup.SeveralError.
func (s *idSource) named(text string) (m *store.Manifest, err error) {
	_, isTag := bpf.ParseTag(text)
	if s.reader != nil && (isTag || isPrefix(text)) {
		m, err = lookup.FindObject(s.reader, text)
	}
	several := (*lookup.SeveralError)(nil)
	if isTag && m == nil && !errors.As(err, &several) {
		m, err = lookup.FindTagged(s.view, text)
	}
	if errors.As(err, &several) {
		return nil, err
	}
	return m, nil
}

// isPrefix reports whether a text is the beginning of a build ID, as they are printed: "jit:" can be before it.
func isPrefix(text string) bool {
	digits := strings.TrimPrefix(strings.ToLower(text), "jit:")
	return len(digits) >= minPrefix && isHex(digits)
}

// isHex reports whether a text has only hexadecimal digits.
func isHex(text string) bool {
	return strings.Trim(strings.ToLower(text), "0123456789abcdef") == ""
}
