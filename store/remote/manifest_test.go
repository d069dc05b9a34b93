package remote

import (
	"bytes"
	"errors"
	"testing"

	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/db"
)

// sample returns an object of a store with its sources' streams.
func sample(t testing.TB) (m *store.Manifest, streams [][]byte) {
	t.Helper()
	tt, ok := t.(*testing.T)
	if !ok {
		m = &store.Manifest{ID: buildid.New([]byte{1, 2, 3})}
		return m, nil
	}
	r, err := db.OpenReader(indexed(tt, binaries+"/fixed"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m = objectsIn(tt, r)[0]
	for i := range m.Sources {
		var b bytes.Buffer
		if err := r.EachPart(m, i, func(name string, part []byte) error { return writePart(&b, name, part) }); err != nil {
			t.Fatal(err)
		}
		streams = append(streams, b.Bytes())
	}
	return m, streams
}

// encoded returns the object of a manifest and its key.
func encoded(m *store.Manifest, streams [][]byte) (b []byte, key string) {
	out := &manifest{Manifest: m}
	for _, s := range streams {
		out.pieces = append(out.pieces, []piece{{sumOf(s), int64(len(s))}})
	}
	text := store.EncodeManifest(m)
	return out.encode(text), manifestKey(m.ID, text)
}

// TestCut: each prefix of a manifest and of a source's stream is an error.
func TestCut(t *testing.T) {
	m, streams := sample(t)
	b, key := encoded(m, streams)
	if got, err := decodeManifest(b, key, "url"); err != nil || got.ID != m.ID || len(got.pieces) != len(streams) {
		t.Fatal(err)
	}
	for n := range b {
		if _, err := decodeManifest(b[:n], key, "url"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes of a manifest: %v", n, err)
		}
	}
	if _, err := decodeManifest(b, manifestKey(buildid.New([]byte{1}), b), "url"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a manifest of another name: %v", err)
	}
	for i, s := range streams {
		if _, err := readSource(bytes.NewReader(s), int64(len(s)), &m.Sources[i]); err != nil {
			t.Fatal(err)
		}
		for n := range s {
			if _, err := readSource(bytes.NewReader(s[:n]), int64(n), &m.Sources[i]); err == nil {
				t.Errorf("%d bytes of source %d", n, i)
			}
			if _, err := readSource(bytes.NewReader(s[:n]), int64(len(s)), &m.Sources[i]); err == nil {
				t.Errorf("%d of %d bytes of source %d", n, len(s), i)
			}
		}
	}
}

// TestPieces: a stream is cut every pieceSize bytes, whatever the sizes of its parts.
func TestPieces(t *testing.T) {
	var got [][]byte
	c := &cutter{put: func(b []byte) error {
		got = append(got, b)
		return nil
	}}
	var want []byte
	for _, n := range []int{1, pieceSize - 2, 5, 0, 3*pieceSize + 7, 100} {
		b := bytes.Repeat([]byte{byte(n)}, n)
		want = append(want, b...)
		c.Write(b)
	}
	if err := c.flush(); err != nil || len(got) != 5 {
		t.Fatalf("%d pieces, %v", len(got), err)
	}
	for i, b := range got {
		if i < 4 && len(b) != pieceSize {
			t.Errorf("piece %d has %d bytes", i, len(b))
		}
	}
	if !bytes.Equal(bytes.Join(got, nil), want) {
		t.Error("the pieces are not the stream")
	}
}

func FuzzManifest(f *testing.F) {
	m, _ := sample(f)
	b, key := encoded(m, nil)
	f.Add(b[len(manifestHead)+len("sum \n")+64:])
	f.Fuzz(func(t *testing.T, rest []byte) {
		b := append([]byte(manifestHead+"sum "+sumOf(rest)+"\n"), rest...)
		if got, err := decodeManifest(b, key, "url"); (got == nil) == (err == nil) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func FuzzSource(f *testing.F) {
	f.Add([]byte("table 3\nabc"), uint64(0))
	f.Add([]byte("table 3\nabcraw.zst 4\nabcd"), uint64(9))
	f.Fuzz(func(t *testing.T, b []byte, raw uint64) {
		info := &store.SourceInfo{Kind: store.Symtab, RawSize: raw}
		if src, err := readSource(bytes.NewReader(b), int64(len(b)), info); (src == nil) == (err == nil) {
			t.Errorf("%v, %v", src, err)
		}
	})
}
