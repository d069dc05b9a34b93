package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"symbolize/buildid"
	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/typetab"
	"symbolize/store/unwindtab"
)

// Overlay is a store in memory, for the objects of one run: an InputSink and a View. Use NewOverlay; the
// zero value is not ready. It keeps blobs, but no captured inputs of sources.
type Overlay struct {
	mu      sync.RWMutex
	Objects map[string]*Manifest // by objectKey
	tables  map[string]*symtab.Encoded
	dirs    map[string]DirRows
	blobs   map[BlobID][]byte
	inputs  map[Digest]*Input // of PutInput, with their content
}

// NewOverlay returns an empty Overlay.
func NewOverlay() *Overlay {
	return &Overlay{
		Objects: make(map[string]*Manifest),
		tables:  make(map[string]*symtab.Encoded),
		dirs:    make(map[string]DirRows),
		blobs:   make(map[BlobID][]byte),
		inputs:  make(map[Digest]*Input),
	}
}

// Merge implements Sink.
func (o *Overlay) Merge(ctx context.Context, c *Contribution) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := CheckContribution(c); err != nil {
		return err
	}
	key := objectKey(c.Manifest.ID)
	o.mu.Lock()
	defer o.mu.Unlock()
	old := o.Objects[key]
	if old == nil {
		old = &Manifest{ID: c.Manifest.ID}
	}
	own, err := c.Describe()
	if err != nil {
		return fmt.Errorf("object %s: %w", c.Manifest.ID, err)
	}
	next := MergeStored(old, own)
	if err := errors.Join(CheckSources(old, own),
		CheckBlobs(NewVariants(next.Variants, old.Variants), o.hasBlob)); err != nil {
		return fmt.Errorf("object %s: %w", c.Manifest.ID, err)
	}
	for i := range own.Sources {
		info := &own.Sources[i]
		s := &next.Sources[FindSource(next.Sources, info)]
		if FindSource(old.Sources, info) < 0 || s.TableVersion == info.TableVersion &&
			s.Size == info.Size && s.Chunks == info.Chunks && s.Strings == info.Strings {
			o.tables[sourceKey(key, info)] = c.Sources[i].Table
		}
	}
	for i := range next.Sources {
		s := &next.Sources[i]
		s.RawSize, s.RawPieces, s.RawStored, s.RawDigest = 0, 0, 0, [32]byte{}
		s.Input, s.RawInput = [32]byte{}, [32]byte{}
	}
	o.Objects[key] = &next
	return nil
}

// PutInput implements InputSink.
func (o *Overlay) PutInput(ctx context.Context, id Digest, content []byte) error {
	in, err := ParseInput(id, content)
	if err != nil {
		return err
	}
	for i := range in.Sources {
		if in.Sources[i].Kind != 0 {
			continue
		}
		data, err := in.Blob(nil, &in.Sources[i])
		if err == nil {
			_, err = o.PutBlob(ctx, data)
		}
		if err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inputs[id] = in
	return nil
}

// MergeObject implements InputSink.
func (o *Overlay) MergeObject(ctx context.Context, m *Manifest) error {
	c := &Contribution{Manifest: *m}
	c.Manifest.Sources = nil
	for i := range m.Sources {
		info := &m.Sources[i]
		o.mu.RLock()
		in := o.inputs[info.Input]
		o.mu.RUnlock()
		if in == nil {
			return fmt.Errorf("%s of %s: %w", info.Kind, m.ID, ErrNotFound)
		}
		table, err := in.table(info)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", info.Kind, m.ID, err)
		}
		c.Sources = append(c.Sources, NewSource{Info: *info, Table: table})
	}
	return o.Merge(ctx, c)
}

// PutBlob implements Sink.
func (o *Overlay) PutBlob(_ context.Context, data []byte) (BlobID, error) {
	if err := CheckBlob(data); err != nil {
		return BlobID{}, err
	}
	id := NewBlobID(data)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.blobs[id] == nil {
		o.blobs[id] = slices.Clone(data)
	}
	return id, nil
}

// Blob implements View.
func (o *Overlay) Blob(id BlobID) ([]byte, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if data := o.blobs[id]; data != nil {
		return data, nil
	}
	return nil, fmt.Errorf("blob %s: %w", id, ErrNotFound)
}

// hasBlob is database.hasBlob; the caller holds mu.
func (o *Overlay) hasBlob(id BlobID) (bool, error) { return o.blobs[id] != nil, nil }

// PutDir implements Sink.
func (o *Overlay) PutDir(dir string, rows DirRows) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(rows) == 0 {
		delete(o.dirs, dir)
		return nil
	}
	o.dirs[dir] = slices.Clone(rows).Sort()
	return nil
}

// Find implements View.
func (o *Overlay) Find(id buildid.ID) ([]*Manifest, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.find(id)
}

// find is Find for a caller that holds mu.
func (o *Overlay) find(id buildid.ID) ([]*Manifest, error) {
	if id.Exact() {
		if m := o.Objects[objectKey(id)]; m != nil {
			return Follow(m.Clone(), o.find)
		}
	}
	var found []*Manifest
	for _, m := range o.Objects {
		if m.ID.Matches(id) {
			found = append(found, m.Clone())
		}
	}
	slices.SortFunc(found, func(a, b *Manifest) int { return a.ID.Compare(b.ID) })
	return found, nil
}

// Open implements View.
func (o *Overlay) Open(m *Manifest, i int) (*symtab.Table, error) {
	table, err := o.table(m, i)
	if err != nil {
		return nil, err
	}
	return symtab.Open(table.Header, table)
}

// OpenUnwind implements View.
func (o *Overlay) OpenUnwind(m *Manifest, i int) (*unwindtab.Table, error) {
	table, err := o.table(m, i)
	if err != nil {
		return nil, err
	}
	return unwindtab.Open(table.Header, table)
}

// OpenCalls implements View.
func (o *Overlay) OpenCalls(m *Manifest, i int) (*calltab.Table, error) {
	table, err := o.table(m, i)
	if err != nil {
		return nil, err
	}
	return calltab.Open(table.Header, table)
}

// OpenTypes implements View.
func (o *Overlay) OpenTypes(m *Manifest, i int) (*typetab.Table, error) {
	table, err := o.table(m, i)
	if err != nil {
		return nil, err
	}
	return typetab.Open(table.Header, table)
}

// table returns the parts of a table.
func (o *Overlay) table(m *Manifest, i int) (*symtab.Encoded, error) {
	info := &m.Sources[i]
	o.mu.RLock()
	table := o.tables[sourceKey(objectKey(m.ID), info)]
	o.mu.RUnlock()
	if table == nil {
		return nil, fmt.Errorf("%s of %s: %w", info.Kind, m.ID, ErrNotFound)
	}
	return table, nil
}

// Dir implements View.
func (o *Overlay) Dir(dir string) (DirRows, bool, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	rows, ok := o.dirs[dir]
	return slices.Clone(rows), ok, nil
}

// Named returns the sorted build IDs of the file at a path; without a row for that path, of all
// files that have its last element.
func (o *Overlay) Named(file string) []buildid.ID {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if row := o.dirs[path.Dir(file)].Find(path.Base(file)); row != nil && !row.ID.IsZero() {
		return []buildid.ID{row.ID}
	}
	var ids []buildid.ID
	for _, rows := range o.dirs {
		if row := rows.Find(path.Base(file)); row != nil && !row.ID.IsZero() {
			ids = append(ids, row.ID)
		}
	}
	slices.SortFunc(ids, buildid.ID.Compare)
	return slices.Compact(ids)
}

// objectKey returns the name of an object in the overlay's maps: equal for equal exact IDs.
func objectKey(id buildid.ID) string {
	k := id.Key()
	return string([]byte{byte(k.Space)}) + string(k.Sum[:]) + string([]byte{byte(id.Len())})
}

// sourceKey names a source of an object, both in a map and in the store.
func sourceKey(object string, info *SourceInfo) string {
	return object + string([]byte{byte(info.Kind)}) + string(info.Digest[:])
}

// Clone returns a copy that shares only immutable data.
func (m *Manifest) Clone() *Manifest {
	c := *m
	c.Layout, c.Sections = slices.Clone(m.Layout), slices.Clone(m.Sections)
	c.RefSyms, c.VDSO = slices.Clone(m.RefSyms), slices.Clone(m.VDSO)
	c.Sources = slices.Clone(m.Sources)
	c.Variants, c.Probable = slices.Clone(m.Variants), slices.Clone(m.Probable)
	return &c
}

// CheckContribution refuses contributions that cannot have a key.
func CheckContribution(c *Contribution) error {
	id := c.Manifest.ID
	switch {
	case id.IsZero():
		return fmt.Errorf("contribution without a build ID")
	case !id.Exact():
		return fmt.Errorf("contribution to %s: the length of the build ID is not known", id)
	case len(c.Manifest.Sources) != 0:
		return fmt.Errorf("contribution to %s: sources inside the manifest", id)
	}
	for i := range c.Manifest.Variants {
		if err := c.Manifest.Variants[i].check(); err != nil {
			return fmt.Errorf("contribution to %s: %w", id, err)
		}
	}
	return nil
}
