package db

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/symtab"
)

// RebuildOptions configure how tables are made anew.
type RebuildOptions struct {
	// Table makes the table of a source of m from its captured input. It must not keep raw.
	Table func(m *store.Manifest, info store.SourceInfo, raw []byte) (*symtab.Encoded, error)
	// JIT makes the table of a JITed function from a variant of it, the entry of its
	// program and the BTF, nil if there is none. It must not keep them.
	JIT func(m *store.Manifest, v *store.Variant, entry, btf []byte) (*symtab.Encoded, error)
	// File makes the table of a perf map or a jitdump file from its variants; blob returns their
	// bytes.
	File func(m *store.Manifest, blob func(store.BlobID) ([]byte, error)) (*symtab.Encoded, error)
	// Producer is the revision of the decoders behind Table.
	Producer func(store.SourceKind) uint32
}

// RebuildResult counts the changes of Rebuild.
type RebuildResult struct {
	Sources  int     // with a captured input, or of a JITed function with variants
	Changed  int     // with a changed table
	Problems []error // sources that were left as they were
}

// Rebuild makes the tables of all captured inputs anew, and puts them in the place of the old ones.
func (w *Writer) Rebuild(ctx context.Context, opts RebuildOptions) (*RebuildResult, error) {
	res := new(RebuildResult)
	for m, err := range w.Objects() {
		if err := ctx.Err(); err != nil {
			return res, err
		}
		if errors.Is(err, store.ErrDamaged) {
			res.Problems = append(res.Problems, err)
			continue
		}
		if err != nil {
			return res, err
		}
		if len(m.Variants) == 0 &&
			!slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool { return s.RawSize > 0 }) {
			continue
		}
		if err := w.rebuildObject(ctx, m, opts, res); err != nil {
			return res, fmt.Errorf("object %s: %w", m.ID, err)
		}
	}
	return res, nil
}

// rebuildObject replaces the sources of one object that have a captured input.
func (w *Writer) rebuildObject(ctx context.Context, m *store.Manifest, opts RebuildOptions,
	res *RebuildResult) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.db == nil {
		return fmt.Errorf("%s: %w", w.path, store.ErrClosed)
	}
	next := m.Clone()
	var changes []store.SourceChange
	for i, info := range m.Sources {
		if info.RawSize == 0 {
			continue
		}
		res.Sources++
		ch, err := w.remake(m, i, opts)
		if err != nil {
			res.Problems = append(res.Problems, fmt.Errorf("%s of %s: %w", info.Kind, m.ID, err))
			continue
		}
		if ch.Info.Digest != info.Digest {
			res.Changed++
		}
		next.Sources = slices.DeleteFunc(next.Sources, func(s store.SourceInfo) bool {
			return s.Kind == info.Kind && (s.Digest == info.Digest || s.Digest == ch.Info.Digest)
		})
		next.Sources = append(next.Sources, ch.Info)
		changes = append(changes, ch)
	}
	changes = append(changes, w.remakeJIT(m, next, opts, res)...)
	slices.SortFunc(next.Sources, store.CompareSources)
	return w.replace(ctx, m, next, changes)
}

// remakeJIT makes the tables of a JITed function anew, from one variant of each tag
// that it was loaded with. If one cannot be made all stay as they are.
func (w *Writer) remakeJIT(m, next *store.Manifest, opts RebuildOptions,
	res *RebuildResult) (changes []store.SourceChange) {
	if m.Kind != ingest.JIT && len(m.Variants) > 0 {
		return w.remakeFile(m, next, opts, res)
	}
	type symbol struct {
		main bool
		tag  [8]byte
	}
	done := make(map[symbol]bool)
	for i := range m.Variants {
		v := &m.Variants[i]
		key := symbol{v.Func == 0, v.FuncTag}
		if key.main {
			key.tag = v.Tag
		}
		if done[key] {
			continue
		}
		done[key] = true
		res.Sources++
		ch, err := w.remakeVariant(m, v, opts)
		if err != nil {
			res.Problems = append(res.Problems, fmt.Errorf("%s of %s: %w", store.JIT, m.ID, err))
			return nil
		}
		if ch.Old.Kind == 0 {
			res.Changed++
		}
		if !slices.ContainsFunc(changes, func(c store.SourceChange) bool {
			return c.Info.Digest == ch.Info.Digest
		}) {
			changes = append(changes, ch)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	next.Sources = slices.DeleteFunc(next.Sources, func(s store.SourceInfo) bool { return s.Kind == store.JIT })
	for i := range changes {
		next.Sources = append(next.Sources, changes[i].Info)
	}
	return changes
}

// remakeFile makes the table of a perf map or a jitdump file anew. If it cannot be made all stay as
// they are.
func (w *Writer) remakeFile(m, next *store.Manifest, opts RebuildOptions,
	res *RebuildResult) []store.SourceChange {
	res.Sources++
	table, err := opts.File(m, w.Blob)
	if err != nil {
		res.Problems = append(res.Problems, fmt.Errorf("%s of %s: %w", m.Kind, m.ID, err))
		return nil
	}
	ch, err := remadeJIT(m, table, opts)
	if err != nil {
		res.Problems = append(res.Problems, fmt.Errorf("%s of %s: %w", m.Kind, m.ID, err))
		return nil
	}
	if ch.Old.Kind == 0 {
		res.Changed++
	}
	next.Sources = slices.DeleteFunc(next.Sources, func(s store.SourceInfo) bool { return s.Kind == store.JIT })
	next.Sources = append(next.Sources, ch.Info)
	return []store.SourceChange{ch}
}

// remakeVariant makes the table of one variant.
func (w *Writer) remakeVariant(m *store.Manifest, v *store.Variant, opts RebuildOptions) (
	ch store.SourceChange, err error) {
	entry, err := w.Blob(v.Entry)
	if err != nil {
		return ch, err
	}
	var btf []byte
	if !v.BTF.IsZero() {
		if btf, err = w.Blob(v.BTF); err != nil {
			return ch, err
		}
	}
	table, err := opts.JIT(m, v, entry, btf)
	if err != nil {
		return ch, err
	}
	return remadeJIT(m, table, opts)
}

// remadeJIT is the change to a table that was made anew, under the path of the old one.
func remadeJIT(m *store.Manifest, table *symtab.Encoded, opts RebuildOptions) (
	ch store.SourceChange, err error) {
	src := &store.NewSource{Info: store.SourceInfo{Kind: store.JIT, Producer: opts.Producer(store.JIT)}, Table: table}
	at := slices.IndexFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind == store.JIT && s.Digest == table.Digest
	})
	if at >= 0 {
		ch.Old, src.Info.Path = m.Sources[at], m.Sources[at].Path
	} else if k := slices.IndexFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind == store.JIT
	}); k >= 0 {
		src.Info.Path = m.Sources[k].Path
	}
	ch.Source, ch.WriteTable = src, true
	ch.Info, err = src.Describe()
	return ch, err
}

// remake makes one table anew.
func (w *Writer) remake(m *store.Manifest, i int, opts RebuildOptions) (store.SourceChange, error) {
	old := m.Sources[i]
	raw, err := w.Raw(m, i)
	if err != nil {
		return store.SourceChange{}, err
	}
	table, err := opts.Table(m, old, raw)
	if err != nil {
		return store.SourceChange{}, err
	}
	src := &store.NewSource{Info: old, Table: table, Raw: raw}
	src.Info.Producer, src.Info.TableVersion = opts.Producer(old.Kind), 0
	info, err := src.Describe()
	if err != nil {
		return store.SourceChange{}, err
	}
	ch := store.SourceChange{Source: src, Info: info, WriteTable: true, WriteRaw: true}
	if at := store.FindSource(m.Sources, &info); at >= 0 {
		ch.Old = m.Sources[at]
	}
	return ch, nil
}

// replace writes the new sources, then the manifest, and last removes the parts that it no longer
// names. A captured input is named by a manifest at any moment: it could not be made again.
func (w *Writer) replace(ctx context.Context, m, next *store.Manifest, changes []store.SourceChange) error {
	b := &batch{ctx: ctx, w: w}
	if err := b.putSources(next, changes); err != nil {
		return err
	}
	if err := b.put(manifestKey(m.ID), store.EncodeManifest(next)); err != nil {
		return err
	}
	for i := range m.Sources {
		old := &m.Sources[i]
		if store.FindSource(next.Sources, old) >= 0 {
			continue
		}
		for key := range sourceKeys(m.ID, old) {
			if err := b.remove(key); err != nil {
				return err
			}
		}
	}
	return b.commit()
}
