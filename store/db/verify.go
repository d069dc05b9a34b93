package db

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/files"
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
	keys   hashes                      // of manifests
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

// Verify reads everything back: the digests of facts and inputs, manifests, the invariants and digests
// of all tables, captured inputs, path rows, and files that nothing names. The error is for a failed
// verification, not for a problem in the store.
func (d *database) Verify(ctx context.Context) (*VerifyResult, error) {
	v := new(VerifyResult)
	d.view(func(s *state) error {
		for _, text := range s.passed {
			v.add(Damage, buildid.ID{}, d.path, "%s", text)
		}
		return nil
	})
	for e, err := range d.scan(prefixManifest) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		v.object(d, e)
	}
	err := errors.Join(v.blobs(ctx, d), v.dirs(ctx, d))
	v.keys = hashes{}
	return v, errors.Join(err, v.files(ctx, d))
}

// object checks one object.
func (v *VerifyResult) object(d *database, e entry) {
	v.Bytes += int64(len(e.payload))
	v.keys.add(maphash.Bytes(seed, e.key))
	m := v.manifest(e)
	if m == nil || !m.IsAlias() {
		v.Objects++
	}
	if m == nil {
		return
	}
	v.inputs(d, m)
	for i := range m.Sources {
		v.Sources++
		v.source(d, m, i)
	}
	v.variants(m)
}

// inputs compares the inputs of an object with their names.
func (v *VerifyResult) inputs(d *database, m *store.Manifest) {
	done := make(map[digest]bool)
	m.Inputs(func(id digest) {
		if done[id] {
			return
		}
		done[id] = true
		n, err := d.inputs.check(id)
		if v.Bytes += n; err != nil {
			v.add(Damage, m.ID, "", "%v", err)
		}
	})
}

// manifest checks one manifest and returns it, nil if it cannot be read.
func (v *VerifyResult) manifest(e entry) *store.Manifest {
	id, _, _ := cutObjKey(e.key[1:])
	m, err := e.manifest()
	switch {
	case err != nil:
		v.add(Damage, id, "", "%v", err)
		return nil
	case !bytes.Equal(manifestKey(m.ID), e.key):
		v.add(Damage, id, "", "manifest belongs to %s", m.ID)
		return nil
	case !bytes.Equal(store.AppendStored(nil, m), e.payload):
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
	fail := func(format string, args ...any) {
		v.add(Damage, m.ID, "", "%s: %s", info.Kind, fmt.Sprintf(format, args...))
	}
	if raw, err := d.Raw(m, i); err != nil {
		fail("%v", err)
	} else if len(raw) > 0 && sha256.Sum256(raw) != info.RawDigest {
		fail("captured input is not the one that was kept")
	}
	if info.Outdated() {
		return // its bytes are those of its input, which was checked
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
	var t interface {
		Digest() ([32]byte, error)
		NumFuncs() int
	}
	switch m.Sources[i].Kind.Format() {
	case store.FormatUnwind:
		t, err = d.OpenUnwind(m, i)
	case store.FormatCalls:
		t, err = d.OpenCalls(m, i)
	case store.FormatTypes:
		t, err = d.OpenTypes(m, i)
	default:
		t, err = d.Open(m, i)
	}
	if err != nil {
		return sum, 0, err
	}
	sum, err = t.Digest()
	return sum, t.NumFuncs(), err
}

// variants checks an object's variants, and notes their blobs.
func (v *VerifyResult) variants(m *store.Manifest) {
	if list, _ := store.MergeVariants(m.Variants, nil); len(list) != len(m.Variants) ||
		!slices.IsSortedFunc(m.Variants, store.CompareVariants) {
		v.add(Damage, m.ID, "", "variants are not in order")
	}
	if v.wanted == nil {
		v.wanted = make(map[store.BlobID]buildid.ID)
	}
	for i := range m.Variants {
		v.Variants++
		for _, id := range m.Variants[i].Blobs() {
			if _, ok := v.wanted[id]; !ok {
				v.wanted[id] = m.ID
			}
		}
	}
}

// blobs reads all blobs that variants name, and looks for others.
func (v *VerifyResult) blobs(ctx context.Context, d *database) error {
	ids := slices.SortedFunc(maps.Keys(v.wanted), func(a, b store.BlobID) int {
		return bytes.Compare(a[:], b[:])
	})
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.Blobs++
		data, err := d.Blob(id)
		if err != nil {
			v.add(Damage, v.wanted[id], "", "captured input: %v", err)
		}
		v.Bytes += int64(len(data))
	}
	for e, err := range d.scan(prefixBlob) {
		if err != nil {
			return err
		}
		if len(e.key) != 1+len(store.BlobID{}) || e.err != nil {
			v.add(Damage, buildid.ID{}, "", "%s: %v", keyText(e.key), cmp.Or(e.err, store.ErrDamaged))
		} else if _, ok := v.wanted[store.BlobID(e.key[1:])]; !ok {
			v.add(Orphan, buildid.ID{}, "", "%s is in no manifest", keyText(e.key))
		}
	}
	return nil
}

// files checks facts, and looks for inputs that they do not name.
func (v *VerifyResult) files(ctx context.Context, d *database) error {
	var facts []digest
	err := d.view(func(s *state) error {
		facts = slices.Collect(maps.Keys(s.facts))
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(facts, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	var named hashes
	for _, id := range facts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.facts(d.path, id, &named); err != nil {
			return err
		}
	}
	return eachName(filepath.Join(d.path, inputsName), func(name string) error {
		id, ok := store.ParseDigest(name)
		switch {
		case ok && named.has(prefixOf(id)), strings.HasPrefix(name, tmpPrefix):
		case ok:
			v.add(Orphan, buildid.ID{}, "", "input %s is in no facts", name)
		default:
			v.add(Orphan, buildid.ID{}, "", "inputs/%s is not an input", name)
		}
		return ctx.Err()
	})
}

// facts checks one file of facts, and adds the inputs that it names.
func (v *VerifyResult) facts(root string, id digest, named *hashes) error {
	path := filepath.Join(root, factsName, id.String())
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if path = findTrash(root, id.String()); path == "" { // a collection ended meanwhile
			return nil
		}
	}
	_, sum, whole, err := readFacts(path, named.addRecord)
	if files.OfMachine(err) {
		return err
	}
	if err != nil || !whole || sum != id {
		v.add(Damage, buildid.ID{}, path, "%v", cmp.Or(err, store.Damagef("its content is another")))
	}
	return nil
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
			if !v.keys.has(maphash.Bytes(seed, manifestKey(row.ID))) {
				v.add(Dangling, row.ID, dir.Path, "%s is listed and its object is not there", row.Name)
			}
		}
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
