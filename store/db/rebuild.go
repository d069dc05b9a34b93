package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"symbolize/buildid"
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

// Rebuild makes the tables of all captured inputs anew, and puts them in the place of the old ones:
// it joins all facts.
func (w *Writer) Rebuild(ctx context.Context, opts RebuildOptions) (*RebuildResult, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	res := new(RebuildResult)
	if err := w.open(); err != nil {
		return res, err
	}
	remade := make(map[buildid.ID]*store.Manifest)
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
		next, err := w.rebuildObject(m, opts, res)
		if err != nil {
			return res, fmt.Errorf("object %s: %w", m.ID, err)
		}
		if !bytes.Equal(store.AppendStored(nil, next), store.AppendStored(nil, m)) {
			remade[m.ID] = next
		}
	}
	if len(remade) == 0 {
		return res, nil
	}
	return res, w.join(func(j *joiner) error {
		for e, err := range w.scanAll(nil) {
			if err := errors.Join(err, ctx.Err(), skipDamage(e.err)); err != nil {
				return err
			}
			if e.err != nil {
				continue
			}
			if e.key[0] == prefixManifest {
				if m, err := e.manifest(); err == nil && remade[m.ID] != nil {
					e.payload = store.AppendStored(nil, remade[m.ID])
				}
			}
			if err := j.put(e.key, e.payload); err != nil {
				return err
			}
		}
		return nil
	})
}

// rebuildObject returns an object with the sources made anew that have a captured input. Their inputs
// are written.
func (w *Writer) rebuildObject(m *store.Manifest, opts RebuildOptions, res *RebuildResult) (
	*store.Manifest, error) {
	next := m.Clone()
	var changes []store.NewSource
	for i, info := range m.Sources {
		if info.RawSize == 0 {
			continue
		}
		res.Sources++
		src, err := w.remake(m, i, opts)
		if err != nil {
			res.Problems = append(res.Problems, fmt.Errorf("%s of %s: %w", info.Kind, m.ID, err))
			continue
		}
		if src.Table.Digest != info.Digest {
			res.Changed++
		}
		next.Sources = slices.DeleteFunc(next.Sources, func(s store.SourceInfo) bool {
			return s.Kind == info.Kind && (s.Digest == info.Digest || s.Digest == src.Table.Digest)
		})
		changes = append(changes, src)
	}
	changes = append(changes, w.remakeJIT(m, next, opts, res)...)
	for i := range changes {
		info, err := w.keep(&changes[i])
		if err != nil {
			return nil, err
		}
		next.Sources = append(next.Sources, info)
	}
	slices.SortFunc(next.Sources, store.CompareSources)
	return next, nil
}

// keep writes the input of one source.
func (w *Writer) keep(src *store.NewSource) (store.SourceInfo, error) {
	one := []store.NewSource{*src}
	in := store.EncodeInput(one)
	if err := w.roomFor(in.Size); err != nil {
		return store.SourceInfo{}, err
	}
	w.written[in.ID] = true
	if err := w.inputs.put(in); err != nil {
		return store.SourceInfo{}, err
	}
	return one[0].Describe()
}

// remakeJIT makes the tables of a JITed function anew, from one variant of each tag
// that it was loaded with. If one cannot be made all stay as they are.
func (w *Writer) remakeJIT(m, next *store.Manifest, opts RebuildOptions,
	res *RebuildResult) (changes []store.NewSource) {
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
		src, fresh, err := w.remakeVariant(m, v, opts)
		if err != nil {
			res.Problems = append(res.Problems, fmt.Errorf("%s of %s: %w", store.JIT, m.ID, err))
			return nil
		}
		if fresh {
			res.Changed++
		}
		if !slices.ContainsFunc(changes, func(c store.NewSource) bool {
			return c.Table.Digest == src.Table.Digest
		}) {
			changes = append(changes, src)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	dropJIT(next)
	return changes
}

// remakeFile makes the table of a perf map or a jitdump file anew. If it cannot be made all stay as
// they are.
func (w *Writer) remakeFile(m, next *store.Manifest, opts RebuildOptions,
	res *RebuildResult) []store.NewSource {
	res.Sources++
	table, err := opts.File(m, w.Blob)
	if err != nil {
		res.Problems = append(res.Problems, fmt.Errorf("%s of %s: %w", m.Kind, m.ID, err))
		return nil
	}
	src, fresh := remadeJIT(m, table, opts)
	if fresh {
		res.Changed++
	}
	dropJIT(next)
	return []store.NewSource{src}
}

// remakeVariant makes the table of one variant.
func (w *Writer) remakeVariant(m *store.Manifest, v *store.Variant, opts RebuildOptions) (
	src store.NewSource, fresh bool, err error) {
	entry, err := w.Blob(v.Entry)
	if err != nil {
		return src, false, err
	}
	var btf []byte
	if !v.BTF.IsZero() {
		if btf, err = w.Blob(v.BTF); err != nil {
			return src, false, err
		}
	}
	table, err := opts.JIT(m, v, entry, btf)
	if err != nil {
		return src, false, err
	}
	src, fresh = remadeJIT(m, table, opts)
	return src, fresh, nil
}

// dropJIT removes the sources of kind JIT.
func dropJIT(m *store.Manifest) {
	m.Sources = slices.DeleteFunc(m.Sources, func(s store.SourceInfo) bool { return s.Kind.PerLoad() })
}

// remadeJIT is the source of a table that was made anew, under the path of the old one. fresh is true
// if the object did not have that table.
func remadeJIT(m *store.Manifest, table *symtab.Encoded, opts RebuildOptions) (src store.NewSource,
	fresh bool) {
	src = store.NewSource{Info: store.SourceInfo{Kind: store.JIT, Producer: opts.Producer(store.JIT)},
		Table: table}
	at := slices.IndexFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind.PerLoad() && s.Digest == table.Digest
	})
	fresh = at < 0
	if fresh {
		at = slices.IndexFunc(m.Sources, func(s store.SourceInfo) bool { return s.Kind.PerLoad() })
	}
	if at >= 0 {
		src.Info.Path = m.Sources[at].Path
	}
	return src, fresh
}

// remake makes one table anew.
func (w *Writer) remake(m *store.Manifest, i int, opts RebuildOptions) (src store.NewSource, err error) {
	old := m.Sources[i]
	raw, err := w.Raw(m, i)
	if err != nil {
		return src, err
	}
	table, err := opts.Table(m, old, raw)
	if err != nil {
		return src, err
	}
	src = store.NewSource{Info: old, Table: table, Raw: raw}
	src.Info.Producer, src.Info.TableVersion = opts.Producer(old.Kind), 0
	return src, nil
}
