package remote

import (
	"bytes"
	"errors"
	"testing"

	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/db"
)

// sample returns an object of a store as it is pushed, and the input of its sources.
func sample(t *testing.T) (m *manifest, in []byte) {
	t.Helper()
	r, err := db.OpenReader(indexed(t, binaries+"/fixed"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := &pusher{from: r}
	if m, err = p.inputs(objectsIn(t, r)[0]); err == nil {
		in, err = r.Input(m.Sources[0].Input)
	}
	if err != nil || len(m.Sources) < 2 {
		t.Fatal(err)
	}
	return m, in
}

// encoded returns the object of a manifest and its key.
func encoded(m *manifest) (b []byte, key string) {
	text := store.EncodeManifest(m.Manifest)
	return m.encode(text), manifestKey(m.ID, text)
}

// TestCut: each prefix of a manifest and of an input is an error, and so is each changed byte of an
// input.
func TestCut(t *testing.T) {
	m, in := sample(t)
	b, key := encoded(m)
	got, err := decodeManifest(b, key, "url")
	if err != nil || got.ID != m.ID || got.Sources[0].Input != m.Sources[0].Input ||
		got.sizes[m.Sources[0].Input] != int64(len(in)) {
		t.Fatal(got, err)
	}
	for n := range b {
		if _, err := decodeManifest(b[:n], key, "url"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes of a manifest: %v", n, err)
		}
	}
	if _, err := decodeManifest(b, manifestKey(buildid.New([]byte{1}), b), "url"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a manifest of another name: %v", err)
	}
	put := func(b []byte) error { return store.NewOverlay().PutInput(t.Context(), m.Sources[0].Input, b) }
	if err := put(in); err != nil {
		t.Fatal(err)
	}
	for n := range in {
		if err := put(in[:n]); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%d bytes of an input: %v", n, err)
		}
		if n%7 == 0 {
			c := bytes.Clone(in)
			c[n] ^= 0x10
			if err := put(c); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("byte %d of an input: %v", n, err)
			}
		}
	}
}

// TestIncomplete: a manifest names an input of each source and blob.
func TestIncomplete(t *testing.T) {
	m, _ := sample(t)
	m.Sources[1].Input = store.Digest{}
	b, key := encoded(m)
	if _, err := decodeManifest(b, key, "url"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a source without an input: %v", err)
	}
	m.Variants = []store.Variant{{Entry: store.BlobID{1}}}
	m.Sources = nil
	if b, key = encoded(m); m.blobs != nil {
		m.blobs[store.BlobID{1}] = store.Digest{2}
	}
	if _, err := decodeManifest(b, key, "url"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a blob without an input: %v", err)
	}
	m.sizes[store.Digest{2}] = 7
	b, key = encoded(m)
	got, err := decodeManifest(b, key, "url")
	if err != nil || got.blobs[store.BlobID{1}] != (store.Digest{2}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzManifest(f *testing.F) {
	m := &manifest{Manifest: &store.Manifest{ID: buildid.New([]byte{1, 2, 3}),
		Sources: []store.SourceInfo{{Kind: store.Symtab, Input: store.Digest{1}}}},
		sizes: map[store.Digest]int64{{1}: 99}}
	b, key := encoded(m)
	f.Add(b[len(manifestHead)+len("sum \n")+64:])
	f.Fuzz(func(t *testing.T, rest []byte) {
		b := append([]byte(manifestHead+"sum "+sumOf(rest)+"\n"), rest...)
		if got, err := decodeManifest(b, key, "url"); (got == nil) == (err == nil) {
			t.Errorf("%v, %v", got, err)
		}
	})
}
