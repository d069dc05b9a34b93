package db

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"path/filepath"
	"slices"

	"symbolize/buildid"
	"symbolize/store"
)

// ProblemKind is the severity of a Problem.
type ProblemKind uint8

// The kinds of problems.
const (
	// Damage: a stored value differs from the written one. Index again and run GC.
	Damage ProblemKind = iota
	// Conflict: two files of one build ID disagree. Both are kept, and which is used does not
	// depend on the order of indexing.
	Conflict
	// Dangling: path rows name an object that the store does not have.
	Dangling
	// Orphan: parts that no manifest names, from an interrupted run. GC drops them.
	Orphan
)

// String returns "damage", "conflict", "dangling" or "orphan".
func (k ProblemKind) String() string {
	return [...]string{"damage", "conflict", "dangling", "orphan"}[k]
}

// Problem is one finding of Verify.
type Problem struct {
	Kind   ProblemKind
	Object buildid.ID // zero if it is about no object
	Path   string     // "" or the directory it is about
	Text   string
}

// String returns the problem in one line.
func (p Problem) String() string {
	where := p.Path
	if !p.Object.IsZero() {
		where = p.Object.String()
	}
	return fmt.Sprintf("%s: %s: %s", p.Kind, where, p.Text)
}

// VerifyResult counts the values read, and lists the problems.
type VerifyResult struct {
	Objects, Sources, Dirs int
	Bytes                  int64 // of payload read
	Problems               []Problem
	Variants, Blobs        int
	More                   int // problems beyond the first maxProblems

	wanted map[store.BlobID]buildid.ID // blobs that a variant names, and one that does
}

// Sound reports whether nothing is damaged or missing. Conflicts and orphans do no harm.
func (v *VerifyResult) Sound() bool {
	return v.More == 0 && !slices.ContainsFunc(v.Problems, func(p Problem) bool {
		return p.Kind == Damage || p.Kind == Dangling
	})
}

// maxProblems bounds the problems that are kept.
const maxProblems = 1000

func (v *VerifyResult) add(kind ProblemKind, id buildid.ID, path, format string, args ...any) {
	if len(v.Problems) == maxProblems {
		v.More++
		return
	}
	v.Problems = append(v.Problems, Problem{kind, id, path, fmt.Sprintf(format, args...)})
}

// Verify reads everything back: checksums, manifests, the invariants and digests of all tables,
// captured inputs, path rows, and keys that nothing names. The error is for a failed verification,
// not for a problem in the store.
func (d *database) Verify(ctx context.Context) (*VerifyResult, error) {
	return d.verify(ctx, new(VerifyResult))
}

// Verify is the Writer's, and finds damage in bytes of value logs that belong to no value, or
// to none any more.
func (r *Reader) Verify(ctx context.Context) (*VerifyResult, error) {
	v := new(VerifyResult)
	dir := genDir(r.path, r.gen)
	err := checkLogs(ctx, dir, func(name, text string) {
		v.add(Damage, buildid.ID{}, filepath.Join(dir, name), "%s", text)
	})
	// A writer may have removed the generation meanwhile. We have its files still.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r.database.verify(ctx, v)
}

func (d *database) verify(ctx context.Context, v *VerifyResult) (*VerifyResult, error) {
	for _, text := range d.passedOver {
		v.add(Damage, buildid.ID{}, d.path, "%s", text)
	}
	for e, err := range d.scan([]byte{prefixManifest}, true) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		v.Bytes += int64(len(e.payload))
		m := v.manifest(e)
		if m == nil || !m.IsAlias() {
			v.Objects++
		}
		if m == nil {
			continue
		}
		for i := range m.Sources {
			v.Sources++
			v.source(d, m, i)
		}
		v.variants(m)
	}
	for _, prefix := range []byte{prefixTable, prefixRaw} {
		if err := v.parts(ctx, d, prefix); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(v.blobs(ctx, d), v.dirs(ctx, d)); err != nil {
		return nil, err
	}
	return v, v.foreign(d)
}

// manifest checks one manifest and returns it, nil if it cannot be read.
func (v *VerifyResult) manifest(e entry) *store.Manifest {
	id, _, _ := cutObjKey(e.key[1:])
	if e.err != nil {
		v.add(Damage, id, "", "%v", e.err)
		return nil
	}
	m, err := store.DecodeManifest("manifest", e.payload)
	switch {
	case err != nil:
		v.add(Damage, id, "", "%v", err)
		return nil
	case !bytes.Equal(manifestKey(m.ID), e.key):
		v.add(Damage, id, "", "manifest is that of %s", m.ID)
		return nil
	case !bytes.Equal(store.EncodeManifest(m), e.payload):
		v.add(Damage, m.ID, "", "manifest is not in its canonical form")
	case !slices.IsSortedFunc(m.Sources, store.CompareSources):
		v.add(Damage, m.ID, "", "sources are not in order")
	}
	if n := len(m.OtherLayouts); n > 0 {
		v.add(Conflict, m.ID, "",
			"%d runtime files have other program headers than the one used", n)
	}
	for i := 1; i < len(m.RefSyms); i++ {
		if m.RefSyms[i].Name == m.RefSyms[i-1].Name {
			v.add(Conflict, m.ID, "", "two addresses for %s", m.RefSyms[i].Name)
		}
	}
	for i := 1; i < len(m.Sources); i++ {
		if m.Rivals(i) {
			a, b := &m.Sources[i-1], &m.Sources[i]
			v.add(Conflict, m.ID, "", "two %s tables: %s names %d bytes and is used, %s names %d",
				a.Kind, a.Path, a.Named, b.Path, b.Named)
		}
	}
	return m
}

// source checks the table and the captured input of one source.
func (v *VerifyResult) source(d *database, m *store.Manifest, i int) {
	info := &m.Sources[i]
	v.Bytes += info.Size + int64(info.RawSize)
	fail := func(format string, args ...any) {
		v.add(Damage, m.ID, "", "%s: %s", info.Kind, fmt.Sprintf(format, args...))
	}
	if raw, err := d.Raw(m, i); err != nil {
		fail("%v", err)
	} else if len(raw) > 0 && sha256.Sum256(raw) != info.RawDigest {
		fail("captured input is not the one that was kept")
	}
	sum, funcs, err := d.readTable(m, i)
	switch {
	case err != nil:
		fail("%v", err)
	case sum != info.Digest:
		fail("table has digest %x, manifest says %x", sum, info.Digest)
	case funcs != int(info.Funcs):
		fail("table has %d functions, manifest says %d", funcs, info.Funcs)
	}
}

// readTable reads a whole table back. It returns its digest and number of functions.
func (d *database) readTable(m *store.Manifest, i int) (sum [32]byte, funcs int, err error) {
	if m.Sources[i].Kind == store.Unwind {
		t, err := d.OpenUnwind(m, i)
		if err != nil {
			return sum, 0, err
		}
		sum, err = t.Digest()
		return sum, t.NumFuncs(), err
	}
	t, err := d.Open(m, i)
	if err != nil {
		return sum, 0, err
	}
	sum, err = t.Digest()
	return sum, t.NumFuncs(), err
}

// parts looks for parts that no manifest names, and checks the envelopes of parts that no other
// check reads.
func (v *VerifyResult) parts(ctx context.Context, d *database, prefix byte) error {
	var (
		current []byte // head of the source's keys
		wanted  bool
		info    store.SourceInfo
		id      buildid.ID
	)
	for e, err := range d.scan([]byte{prefix}, false) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if len(e.key) < 1+sourceKeyLen {
			v.add(Damage, buildid.ID{}, "", "key %x names nothing", e.key)
			continue
		}
		if head := e.key[:1+sourceKeyLen]; !bytes.Equal(head, current) {
			current = bytes.Clone(head)
			id, _, _ = cutObjKey(head[1:])
			info, wanted = d.sourceOf(head)
		}
		if !wanted || !hasPart(&info, prefix, e.key[1+sourceKeyLen:]) {
			v.add(Orphan, id, "", "%s is in no manifest", keyText(e.key))
		}
	}
	return nil
}

// sourceOf returns the source that a key's head belongs to.
func (d *database) sourceOf(head []byte) (store.SourceInfo, bool) {
	key := append([]byte{prefixManifest}, head[1:1+objKeyLen]...)
	m, err := d.manifest(key)
	if err != nil {
		return store.SourceInfo{}, false
	}
	for _, s := range m.Sources {
		if head[1+objKeyLen] == byte(s.Kind) && bytes.Equal(head[2+objKeyLen:], s.Digest[:sumLen]) {
			return s, true
		}
	}
	return store.SourceInfo{}, false
}

// hasPart reports whether a source has the part that a key's tail names.
func hasPart(s *store.SourceInfo, prefix byte, tail []byte) bool {
	if prefix == prefixRaw {
		return len(tail) == 4 && binary.BigEndian.Uint32(tail) < s.RawPieces
	}
	if len(tail) != 5 {
		return false
	}
	i := binary.BigEndian.Uint32(tail[1:])
	switch tail[0] {
	case partHeader:
		return i == 0
	case partChunk:
		return i < s.Chunks
	case partStrings:
		return i < s.Strings
	}
	return false
}

// dirs checks path rows and that their objects are there.
func (v *VerifyResult) dirs(ctx context.Context, d *database) error {
	for dir, err := range d.Dirs() {
		if ctxErr := ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		if err != nil {
			if dir.Path == "" {
				return err
			}
			v.add(Damage, buildid.ID{}, dir.Path, "%v", err)
			continue
		}
		v.Dirs++
		for i := range dir.Rows {
			row := &dir.Rows[i]
			if row.ID.IsZero() {
				continue
			}
			_, err := d.get(manifestKey(row.ID))
			switch {
			case errors.Is(err, store.ErrNotFound):
				v.add(Dangling, row.ID, dir.Path, "%s is listed and its object is not there",
					row.Name)
			case err != nil && !errors.Is(err, store.ErrDamaged): // damage was reported before
				return err
			}
		}
	}
	return nil
}

// foreign reports keys that no part of the schema has.
func (v *VerifyResult) foreign(d *database) error {
	known := []byte{prefixManifest, prefixTable, prefixRaw, prefixDir, prefixBlob}
	for e, err := range d.scanForeign(known) {
		if err != nil {
			return err
		}
		v.add(Damage, buildid.ID{}, "", "key %x is of no kind", e.key[:min(len(e.key), 40)])
	}
	return nil
}

// digestVersion is the version of the computation of Digest. It stays the same for a schema that
// only adds fields to manifests, and so do the digests of stores without the new fields.
const digestVersion = 1

// Digest is the SHA-256 over the sorted contents of the store: objects, sources, tables, variants.
// Paths, times and path rows are left out, as are stored sizes: two stores with the same facts have
// one digest.
func (d *database) Digest(ctx context.Context) (sum [32]byte, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "symbolize store %d\n", digestVersion)
	for m, err := range d.Objects() {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return sum, err
		}
		digestManifest(h, m)
	}
	h.Sum(sum[:0])
	return sum, nil
}

// digestManifest adds the relevant fields of a manifest. Tables are represented by
// their digests, which Verify compares with their contents.
func digestManifest(h hash.Hash, m *store.Manifest) {
	c := m.Clone()
	for i := range c.Sources {
		s := &c.Sources[i]
		*s = store.SourceInfo{Kind: s.Kind, Digest: s.Digest, Funcs: s.Funcs, Named: s.Named,
			RawSize: s.RawSize, RawDigest: s.RawDigest}
	}
	slices.SortFunc(c.Sources, store.CompareSources)
	b := store.EncodeManifest(c)
	h.Write(binary.AppendUvarint(nil, uint64(len(b))))
	h.Write(b)
}
