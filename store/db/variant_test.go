package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/symtab"
)

// jitID names the n-th function.
func jitID(n int) buildid.ID {
	return buildid.Make(buildid.JIT, fmt.Appendf(nil, "function %d", n))
}

// put is a captured input of a test.
func put(t testing.TB, s store.Sink, text string) store.BlobID {
	t.Helper()
	id, err := s.PutBlob(context.Background(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// entryOf returns the entry of a load: longer than a piece for some.
func entryOf(load int) string {
	return fmt.Sprintf("entry %d ", load) + strings.Repeat("code", load%3*store.RawPiece/3)
}

// addLoad merges the n-th function as it was loaded.
func addLoad(t testing.TB, s store.Sink, n, load, image int) {
	t.Helper()
	v := store.Variant{
		Image: store.NewBlobID(fmt.Appendf(nil, "image %d", image)), Size: uint32(100 + n),
		Entry: put(t, s, entryOf(load)), Func: uint32(n), BTF: put(t, s, "types"), BootID: "boot",
		Load: uint64(1000 + load), Program: uint32(load), Type: 5, Tag: [8]byte{1, 2},
		FuncTag: [8]byte{3, byte(n)}, Name: "prog",
	}
	mustMerge(t, s, &store.Contribution{
		Manifest: store.Manifest{ID: jitID(n), Kind: ingest.JIT, Machine: 62, Variants: []store.Variant{v}},
		Sources: []store.NewSource{{Info: store.SourceInfo{Kind: store.JIT, Producer: 1, Path: "/c.data"},
			Table: testTable(t, n, 1)}},
	}, &store.Contribution{
		Manifest: store.Manifest{ID: jitID(1000 + n), Kind: ingest.JIT, Probable: []buildid.ID{jitID(n)}},
	})
}

// checkLoads checks a view's variants of a function that was loaded so often.
func checkLoads(t testing.TB, v store.View, n, loads int) {
	t.Helper()
	ms, err := v.Find(jitID(n))
	if err != nil || len(ms) != 1 {
		t.Fatalf("function %d: %d objects, %v", n, len(ms), err)
	}
	m := ms[0]
	if len(m.Variants) != loads || m.MoreVariants || len(m.Sources) != 1 || m.Sources[0].Kind != store.JIT {
		t.Fatalf("function %d: %d variants, want %d; %+v", n, len(m.Variants), loads, m)
	}
	for i := range m.Variants {
		x := &m.Variants[i]
		entry, err := v.Blob(x.Entry)
		if err != nil || string(entry) != entryOf(int(x.Program)) || x.Name != "prog" ||
			x.BootID != "boot" || x.Func != uint32(n) || x.Tag[1] != 2 {
			t.Errorf("variant %+v: entry of %d bytes, %v", x, len(entry), err)
		}
		if types, err := v.Blob(x.BTF); err != nil || string(types) != "types" {
			t.Errorf("types %q, %v", types, err)
		}
	}
	ms, err = v.Find(jitID(1000 + n))
	if err != nil || len(ms) != 1 || !slices.Equal(ms[0].Probable, []buildid.ID{jitID(n)}) {
		t.Errorf("probable: %+v, %v", ms, err)
	}
}

// TestVariants takes variants through all that a store does: they are there after each step, with
// one digest.
func TestVariants(t *testing.T) {
	path := t.TempDir()
	w, o := openTestWriter(t, path), store.NewOverlay()
	for _, s := range []store.Sink{w, o} {
		for load := range 5 {
			for n := range 3 {
				addLoad(t, s, n, load, 10*load+n)
			}
		}
	}
	want, err := w.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check := func(step string, v store.View) {
		t.Run(step, func(t *testing.T) {
			for n := range 3 {
				checkLoads(t, v, n, 5)
			}
			d, ok := v.(interface {
				Digest(context.Context) ([32]byte, error)
			})
			if !ok {
				return
			}
			if got, err := d.Digest(t.Context()); err != nil || got != want {
				t.Errorf("digest %x, %v", got, err)
			}
		})
	}
	check("overlay", o)
	check("written", w)
	if _, err := w.GC(t.Context(), GCOptions{Unreferenced: true}); err != nil {
		t.Fatal(err)
	}
	check("collected", w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := openTestReader(t, path)
	check("published", r)
	whole := exportPlain(t, r, nil)
	if n := bytes.Count(whole, []byte("inputs/")); n != 9 {
		t.Errorf("%d inputs in the archive, want 3 tables, 5 entries and one BTF", n)
	}
	to := openTestWriter(t, "")
	res, err := store.Import(t.Context(), bytes.NewReader(whole), to)
	if err != nil || len(res.Problems) > 0 || res.Objects != 6 {
		t.Fatalf("import: %+v, %v", res, err)
	}
	check("imported", to)
	v := mustVerify(t, path)
	if v.Variants != 15 || v.Blobs != 6 || len(v.Problems) > 0 {
		t.Errorf("verify: %+v", v)
	}
	s, err := r.Stats(t.Context())
	if err != nil || s.Variants != 15 || s.Blobs != 6 || s.BlobBytes == 0 {
		t.Errorf("stats: %+v, %v", s, err)
	}
}

// TestVariantsAnyOrder merges more loads than are kept, in many orders: the same ones
// stay.
func TestVariantsAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var pool []store.Variant
	for load := range 40 * store.MaxImages {
		pool = append(pool, store.Variant{
			Image: store.NewBlobID(fmt.Appendf(nil, "image %d", load%(store.MaxImages+20))),
			Entry: store.BlobID{1, byte(load), byte(load >> 8)}, Load: uint64(load / 2), Program: 7,
		})
	}
	var want []byte
	for round := range 20 {
		m := store.Manifest{ID: jitID(1)}
		for part := range slices.Chunk(permuted(rnd, pool), 1+rnd.IntN(100)) {
			m = store.MergeFacts(&m, &store.Manifest{ID: jitID(1), Variants: part})
			m = store.MergeFacts(&store.Manifest{ID: jitID(1), Variants: part}, &m)
		}
		got := store.EncodeManifest(&m)
		if round == 0 {
			want = got
			if len(m.Variants) != store.MaxVariants || !m.MoreVariants {
				t.Fatalf("%d variants, more: %v", len(m.Variants), m.MoreVariants)
			}
			if again, err := store.DecodeManifest("test", got); err != nil || !reflect.DeepEqual(again, &m) {
				t.Fatalf("decoded: %v", err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("round %d: other bytes", round)
		}
	}
}

func permuted(rnd *rand.Rand, pool []store.Variant) []store.Variant {
	out := make([]store.Variant, len(pool))
	for i, k := range rnd.Perm(len(pool)) {
		out[i] = pool[k]
	}
	return out
}

// TestVariantReadTwice merges two readings of one load, which differ in its counters.
func TestVariantReadTwice(t *testing.T) {
	o := store.NewOverlay()
	for _, entry := range []string{"run 7 times", "run 9 times", "run 7 times"} {
		mustMerge(t, o, &store.Contribution{Manifest: store.Manifest{ID: jitID(1), Kind: ingest.JIT,
			Variants: []store.Variant{{Image: store.BlobID{1}, Entry: put(t, o, entry), Load: 5, Program: 6}}}})
	}
	ms, _ := o.Find(jitID(1))
	if len(ms[0].Variants) != 1 || ms[0].MoreVariants {
		t.Errorf("%+v", ms[0])
	}
}

// TestVariantsRefused gives sinks variants that no manifest may name.
func TestVariantsRefused(t *testing.T) {
	for _, s := range []store.Sink{openTestWriter(t, ""), store.NewOverlay()} {
		there := put(t, s, "there")
		for name, v := range map[string]store.Variant{
			"no entry":      {},
			"entry unknown": {Entry: store.BlobID{1}},
			"BTF unknown":   {Entry: there, BTF: store.BlobID{2}},
			"long boot ID":  {Entry: there, BootID: strings.Repeat("x", store.MaxBootID+1)},
			"long name":     {Entry: there, Name: strings.Repeat("x", store.MaxFuncName+1)},
		} {
			err := s.Merge(t.Context(), &store.Contribution{
				Manifest: store.Manifest{ID: jitID(1), Variants: []store.Variant{v}}})
			if err == nil {
				t.Errorf("%T: %s: no error", s, name)
			}
		}
		if _, err := s.PutBlob(t.Context(), nil); err == nil {
			t.Errorf("%T: empty blob: no error", s)
		}
		if _, err := s.PutBlob(t.Context(), make([]byte, store.MaxBlob+1)); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%T: large blob: %v", s, err)
		}
		if ms, err := s.(store.View).Find(jitID(1)); len(ms) > 0 || err != nil {
			t.Errorf("%T: %v, %v", s, ms, err)
		}
		if _, err := s.(store.View).Blob(store.BlobID{9}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%T: blob that is nowhere: %v", s, err)
		}
	}
}

// TestBlobDamage changes stored blobs: readers report it, Verify finds it, GC drops the
// variant and keeps the others and the table; putting the blob again repairs it.
func TestBlobDamage(t *testing.T) {
	w := openTestWriter(t, "")
	for load := range 3 {
		addLoad(t, w, 0, load, load)
	}
	bad := store.NewBlobID([]byte(entryOf(1)))
	other, err := w.get(blobKey(store.NewBlobID([]byte(entryOf(0)))))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := w.get(blobKey(bad))
	if err != nil {
		t.Fatal(err)
	}
	input, size, err := parseBlobRecord(whole)
	if err != nil {
		t.Fatal(err)
	}
	key := blobKey(bad)
	for name, payload := range map[string][]byte{
		"another's": other, "empty": {}, "of no input": blobRecord(digest{1}, size), "cut": whole[:20],
	} {
		rawSet(w, key, payload)
		if _, err := w.Blob(bad); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rawSet(w, key, whole)
	w.inputs.forget(input)
	flip(t, filepath.Join(w.path, inputsName, input.String()), 0.9)
	if _, err := w.Blob(bad); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("flipped: %v", err)
	}
	if v, err := w.Verify(t.Context()); err != nil || v.Sound() || countKind(v, Damage) != 1 {
		t.Errorf("verify: %+v, %v", v, err)
	}
	put(t, w, entryOf(1))
	checkLoads(t, w, 0, 3)
	rawSet(w, key, other)
	rawSet(w, []byte("bshort"), []byte("x"))
	if v, err := w.Verify(t.Context()); err != nil || countKind(v, Damage) != 2 {
		t.Errorf("verify: %+v, %v", v, err)
	}
	res, err := w.GC(t.Context(), GCOptions{})
	if err != nil || res.Damaged != 1 || res.Objects != 2 {
		t.Errorf("gc: %+v, %v", res, err)
	}
	checkLoads(t, w, 0, 2)
	if v, err := w.Verify(t.Context()); err != nil || len(v.Problems) > 0 {
		t.Errorf("verify after gc: %+v, %v", v, err)
	}
}

// TestBlobOrphan puts a blob that no variant names, as a killed run does.
func TestBlobOrphan(t *testing.T) {
	w := openTestWriter(t, "")
	addLoad(t, w, 0, 1, 1)
	put(t, w, "nobody's")
	v, err := w.Verify(t.Context())
	if err != nil || !v.Sound() || countKind(v, Orphan) != 1 {
		t.Errorf("verify: %+v, %v", v, err)
	}
	if _, err := w.GC(t.Context(), GCOptions{}); err != nil {
		t.Fatal(err)
	}
	if v, err := w.Verify(t.Context()); err != nil || len(v.Problems) > 0 {
		t.Errorf("verify after gc: %+v, %v", v, err)
	}
}

// TestImportDamagedBlob changes a blob in an archive: the variants that name it are
// problems, all else is merged.
func TestImportDamagedBlob(t *testing.T) {
	w := openTestWriter(t, "")
	for load := range 2 {
		addLoad(t, w, 0, 3*load, load)
	}
	b := bytes.Replace(exportPlain(t, w, nil), []byte("entry 3 "), []byte("entry 9 "), 1)
	o := store.NewOverlay()
	res, err := store.Import(t.Context(), bytes.NewReader(b), o)
	if err != nil || len(res.Problems) != 2 || !errors.Is(res.Problems[0], store.ErrDamaged) {
		t.Fatalf("import: %+v, %v", res, err)
	}
	checkLoads(t, o, 0, 1)
}

// TestLayeredVariants has loads of one function in two views.
func TestLayeredVariants(t *testing.T) {
	front, behind := store.NewOverlay(), store.NewOverlay()
	addLoad(t, front, 0, 1, 99)
	addLoad(t, behind, 0, 1, 99)
	addLoad(t, behind, 0, 2, 1)
	l := store.Layer(front, behind)
	checkLoads(t, l, 0, 2)
	ms, _ := l.Find(jitID(0))
	if ms[0].Variants[0].Program != 1 {
		t.Error("the variant of the view in front is not the first")
	}
	if _, err := l.Blob(store.BlobID{8}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("blob that is nowhere: %v", err)
	}
}

// TestRebuildJIT makes the tables of a function anew that was loaded with two tags.
func TestRebuildJIT(t *testing.T) {
	w := openTestWriter(t, "")
	addLoad(t, w, 1, 1, 1)
	addLoad(t, w, 1, 2, 2)
	fail := errors.New("cannot be read")
	var failing error
	opts := RebuildOptions{
		Producer: func(store.SourceKind) uint32 { return 9 },
		JIT: func(m *store.Manifest, v *store.Variant, entry, btf []byte) (*symtab.Encoded, error) {
			if string(entry) != entryOf(int(v.Program)) || string(btf) != "types" || m.ID != jitID(1) {
				t.Errorf("rebuild from %d bytes, %q", len(entry), btf)
			}
			return testTable(t, 77, 1), failing
		},
	}
	failing = fail
	res, err := w.Rebuild(t.Context(), opts)
	if err != nil || len(res.Problems) != 1 || !errors.Is(res.Problems[0], fail) {
		t.Fatalf("%+v, %v", res, err)
	}
	checkLoads(t, w, 1, 2)
	failing = nil
	for round, changed := range []int{1, 0} {
		res, err = w.Rebuild(t.Context(), opts)
		if err != nil || res.Sources != 1 || res.Changed != changed || len(res.Problems) > 0 {
			t.Fatalf("round %d: %+v, %v", round, res, err)
		}
		checkLoads(t, w, 1, 2)
	}
	ms, _ := w.Find(jitID(1))
	table := testTable(t, 77, 1)
	if s := ms[0].Sources[0]; s.Digest != table.Digest || s.Producer != 9 || s.Path != "/c.data" {
		t.Errorf("source %+v", s)
	}
	if v, err := w.Verify(t.Context()); err != nil || len(v.Problems) > 0 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}
