package local

import (
	"context"
	"slices"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
)

// searching is a View that looks for the objects which the view after it lacks.
type searching struct {
	store.View
	ctx     context.Context
	finder  *Finder
	problem func(error)

	mu sync.Mutex // of finder
}

// Searching returns a View of view that looks for an object on this host when its build ID is
// asked for and view lacks it, or its symbols, and has it indexed whole. view must have the objects
// of the Finder's sink. Files that could not be read are passed to problem.
func (f *Finder) Searching(ctx context.Context, view store.View, problem func(error)) store.View {
	return &searching{View: view, ctx: ctx, finder: f, problem: problem}
}

// Find implements store.View.
func (v *searching) Find(id buildid.ID) ([]*store.Manifest, error) {
	if err := v.search(id); err != nil {
		return nil, err
	}
	return v.View.Find(id)
}

func (v *searching) search(id buildid.ID) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if id.IsZero() || !v.finder.findID(id, v.View) {
		return nil
	}
	sum, err := v.finder.Index(v.ctx, nil)
	if err != nil {
		return err
	}
	for _, p := range sum.Problems {
		v.problem(p)
	}
	return nil
}

// findID looks for an object of which nothing is known but the build ID, and reports whether there
// is something to be indexed.
func (f *Finder) findID(id buildid.ID, view store.View) bool {
	if f.asked[id] {
		return false
	}
	f.asked[id] = true
	for _, kind := range []ingest.ObjectKind{ingest.ELF, ingest.Kernel} {
		l := look{Finder: f}
		place := l.find(&ingest.Object{Kind: kind, ID: id}, view)
		if place == Nowhere {
			continue
		}
		f.objects = append(f.objects, Object{kind, id, "", place})
		f.found.add(l.found)
		return len(slices.Concat(l.found.programs, l.found.debug)) > 0 || l.found.kernel
	}
	return false
}
