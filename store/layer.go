package store

import (
	"errors"
	"fmt"
	"slices"

	"symbolize/buildid"
	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/typetab"
	"symbolize/store/unwindtab"
)

// layered is the View that Layer returns.
type layered []View

// Layer returns a View of several views, the first in front: the first view with a match decides
// which objects an inexact ID matches, the layout of an object is the one of the first view that has one,
// and the earlier of two sources of a kind is preferred for names. Nil views are left out.
func Layer(views ...View) View {
	var l layered
	for _, v := range views {
		if v != nil {
			l = append(l, v)
		}
	}
	if len(l) == 1 {
		return l[0]
	}
	return l
}

// Find implements View.
func (l layered) Find(id buildid.ID) ([]*Manifest, error) {
	var found []*Manifest
	var errs []error
	for i, v := range l {
		ms, err := v.Find(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if found != nil || len(ms) == 0 {
			continue
		}
		found = ms
		for j := range found {
			for _, behind := range l[i+1:] {
				if err := addBehind(&found[j], behind); err != nil {
					errs = append(errs, err)
				}
			}
		}
	}
	if found != nil {
		return found, nil // another view may have a blob that one lacks
	}
	return nil, errors.Join(errs...)
}

// addBehind adds the facts of a view further back on the same object.
func addBehind(front **Manifest, behind View) error {
	ms, err := behind.Find((*front).ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(ms, func(m *Manifest) bool { return m.ID == (*front).ID })
	if at < 0 {
		return nil
	}
	f, b := *front, ms[at]
	m := MergeFacts(f, b)
	m.preferLayout(f)
	m.Sources = slices.Clone(f.Sources)
	for _, s := range b.Sources {
		if FindSource(m.Sources, &s) < 0 {
			m.Sources = append(m.Sources, s)
		}
	}
	// All of the front's, beyond the limits of one store.
	m.Variants = slices.Concat(f.Variants, NewVariants(b.Variants, f.Variants))
	slices.SortStableFunc(m.Sources, func(a, b SourceInfo) int { return CompareKinds(a.Kind, b.Kind) })
	*front = &m
	return nil
}

// Open implements View.
func (l layered) Open(m *Manifest, i int) (*symtab.Table, error) {
	return openIn(l, m, i, View.Open)
}

// OpenUnwind implements View.
func (l layered) OpenUnwind(m *Manifest, i int) (*unwindtab.Table, error) {
	return openIn(l, m, i, View.OpenUnwind)
}

// OpenCalls implements View.
func (l layered) OpenCalls(m *Manifest, i int) (*calltab.Table, error) {
	return openIn(l, m, i, View.OpenCalls)
}

// OpenTypes implements View.
func (l layered) OpenTypes(m *Manifest, i int) (*typetab.Table, error) {
	return openIn(l, m, i, View.OpenTypes)
}

// openIn opens a source in the first view that can.
func openIn[T any](l layered, m *Manifest, i int, open func(View, *Manifest, int) (*T, error)) (
	*T, error) {
	info := &m.Sources[i]
	var errs []error
	for _, v := range l {
		ms, err := v.Find(m.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, have := range ms {
			at := FindSource(have.Sources, info)
			if have.ID != m.ID || at < 0 {
				continue
			}
			t, err := open(v, have, at)
			if err == nil {
				return t, nil
			}
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return nil, fmt.Errorf("%s of %s: %w", info.Kind, m.ID, ErrNotFound)
}

// Blob implements View.
func (l layered) Blob(id BlobID) ([]byte, error) {
	var errs []error
	for _, v := range l {
		data, err := v.Blob(id)
		if err == nil {
			return data, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		errs = append(errs, ErrNotFound)
	}
	return nil, errors.Join(errs...)
}

// Dir implements View. Rows of several views are united: of two rows of a file the one of the
// earlier view counts.
func (l layered) Dir(dir string) (DirRows, bool, error) {
	var all DirRows
	var errs []error
	found := 0
	for _, v := range l {
		rows, ok, err := v.Dir(dir)
		switch {
		case err != nil:
			errs = append(errs, err)
		case ok:
			if found++; found == 1 {
				all = slices.Clip(rows)
			} else {
				all = append(all, rows...)
			}
		}
	}
	if found == 0 {
		return nil, false, errors.Join(errs...)
	}
	if found > 1 {
		all = all.Sort()
	}
	return all, true, nil
}
