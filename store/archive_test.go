package store

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest/addr"
	"symbolize/store/symtab"
)

// overlaySource exports the objects of an Overlay, without captured inputs.
type overlaySource struct {
	*Overlay
	ids    []buildid.ID
	inputs map[Digest][]byte // of the objects that were visited
}

func (s overlaySource) Objects() iter.Seq2[*Manifest, error] {
	return func(yield func(*Manifest, error) bool) {
		for _, id := range s.ids {
			list, err := s.Find(id)
			if err == nil && len(list) != 1 {
				err = errors.New("not one object")
			}
			if err == nil {
				err = s.encode(list[0])
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(list[0], nil) {
				return
			}
		}
	}
}

// encode makes the input of an object.
func (s overlaySource) encode(m *Manifest) error {
	var sources []NewSource
	for i := range m.Sources {
		t, err := s.table(m, i)
		if err != nil {
			return err
		}
		sources = append(sources, NewSource{Info: m.Sources[i], Table: t})
	}
	in := EncodeInput(sources)
	for i := range m.Sources {
		m.Sources[i].Input = in.ID
	}
	s.inputs[in.ID] = bytes.Join(in.Parts, nil)
	return nil
}

func (s overlaySource) Input(id Digest) ([]byte, error) { return s.inputs[id], nil }

func (s overlaySource) BlobInput(BlobID) (Digest, error) { return Digest{}, ErrNotFound }

// plainArchive returns an uncompressed archive of two objects with a table each.
func plainArchive(t *testing.T) []byte {
	t.Helper()
	from := overlaySource{NewOverlay(), []buildid.ID{testID(1), testID(2)}, make(map[Digest][]byte)}
	for n, id := range from.ids {
		b := symtab.NewBuilder(symtab.Options{})
		for i := range 1500 { // too many for the header alone, with names that pack badly
			name := sha256.Sum256([]byte{byte(n), byte(i >> 8), byte(i)})
			b.Add(symtab.Func{Start: addr.Addr(0x1000 + 0x40*i), Size: uint64(0x20 + name[0]&31),
				Name: hex.EncodeToString(name[:])})
		}
		table := b.Encode()
		err := from.Merge(t.Context(), &Contribution{Manifest: Manifest{ID: id, Machine: 62, Class: 2},
			Sources: []NewSource{{Info: SourceInfo{Kind: Symtab, Producer: Producer, Path: "/p"},
				Table: table}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if n, err := exportPlain(t.Context(), &b, from, nil); n != 2 || err != nil {
		t.Fatalf("%d objects, %v", n, err)
	}
	return b.Bytes()
}

// entry is one file of an archive.
type entry struct{ name, data string }

func entriesOf(t *testing.T, archive []byte) (list []entry) {
	t.Helper()
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		data, readErr := io.ReadAll(in)
		if err = errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		list = append(list, entry{h.Name, string(data)})
	}
}

func archiveOf(t *testing.T, list []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, e := range list {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.data)), Mode: 0o644}
		err := out.WriteHeader(h)
		if err == nil {
			_, err = io.WriteString(out, e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestArchive: an imported archive gives the objects that were exported, and the same bytes when it
// is exported again.
func TestArchive(t *testing.T) {
	archive := plainArchive(t)
	to := NewOverlay()
	res, err := Import(t.Context(), bytes.NewReader(archive), to)
	if err != nil || res.Objects != 2 || res.Sources != 2 || len(res.Problems) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	again := overlaySource{to, []buildid.ID{testID(1), testID(2)}, make(map[Digest][]byte)}
	var b bytes.Buffer
	_, err = exportPlain(t.Context(), &b, again, nil)
	if err != nil || !bytes.Equal(b.Bytes(), archive) {
		t.Errorf("%d bytes, %v; want the %d of before", b.Len(), err, len(archive))
	}
	b.Reset()
	if n, err := Export(t.Context(), &b, again, func(m *Manifest) bool {
		return m.ID.Key() == testID(2).Key()
	}); n != 1 || err != nil {
		t.Errorf("one object: %d, %v", n, err)
	}
	if res, err := Import(t.Context(), &b, NewOverlay()); err != nil || res.Objects != 1 {
		t.Errorf("compressed: %+v, %v", res, err)
	}
}

// TestArchiveTruncated: an archive that is cut off anywhere before its last entry is an error.
func TestArchiveTruncated(t *testing.T) {
	archive := plainArchive(t)
	end := bytes.LastIndex(archive, []byte("objects 2\n"))
	for n := 0; n < end; n += 509 {
		if _, err := Import(t.Context(), bytes.NewReader(archive[:n]), NewOverlay()); err == nil {
			t.Fatalf("%d of %d bytes are accepted", n, len(archive))
		}
	}
}

// TestArchiveRefused: entries that are damaged, missing or out of order are errors, or problems of
// their source alone.
func TestArchiveRefused(t *testing.T) {
	entries := entriesOf(t, plainArchive(t))
	at := func(suffix string) int {
		return slices.IndexFunc(entries, func(e entry) bool { return strings.HasSuffix(e.name, suffix) })
	}
	without := func(suffix string) []entry {
		return slices.Delete(slices.Clone(entries), at(suffix), at(suffix)+1)
	}
	with := func(suffix, data string) []entry {
		list := slices.Clone(entries)
		list[at(suffix)].data = data
		return list
	}
	damaged, cut := slices.Clone(entries), slices.Clone(entries)
	if !strings.HasPrefix(entries[2].name, inputPrefix) {
		t.Fatal(entries[2].name)
	}
	flipped := []byte(damaged[2].data)
	flipped[len(flipped)/2] ^= 1
	damaged[2].data = string(flipped)
	cut[2].data = cut[2].data[:9]
	var blob []entry
	for _, text := range []string{"a", "b"} {
		in := EncodeInput([]NewSource{BlobSource(NewBlobID([]byte(text)), []byte(text))})
		blob = append(blob, entry{inputPrefix + in.ID.String(), string(bytes.Join(in.Parts, nil))})
	}
	for _, tt := range []struct {
		name     string
		list     []entry
		err      string // "" for none
		problems int
	}{
		{name: "whole", list: entries},
		{name: "not an archive", list: without("symbolize-store"), err: "no archive of a store"},
		{name: "newer schema", list: with("symbolize-store", "schema 999\n"), err: "999"},
		{name: "no end", list: without("end"), err: "cut off"},
		{name: "wrong count", list: with("end", "objects 9\n"), err: "2 objects read"},
		{name: "older schema", list: with("symbolize-store", "schema 2\n"), err: "schema 2"},
		{name: "no manifest", list: without("/manifest"), err: "belongs to no object"},
		{name: "damaged manifest", list: with("/manifest", "x"), err: "manifest"},
		{name: "no input", list: slices.Delete(slices.Clone(entries), 2, 3), problems: 1},
		{name: "damaged input", list: damaged, problems: 1},
		{name: "cut input", list: cut, problems: 1},
		{name: "another file", list: slices.Insert(slices.Clone(entries), 1, entry{"x", "b"}), err: "neither"},
		{name: "damaged blob", list: slices.Insert(slices.Clone(entries), 1,
			entry{blob[0].name, blob[1].data}), problems: 1},
		{name: "blob", list: slices.Insert(slices.Clone(entries), 1, blob[0])},
	} {
		res, err := Import(t.Context(), bytes.NewReader(archiveOf(t, tt.list)), NewOverlay())
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
		}
		if tt.err == "" && len(res.Problems) != tt.problems {
			t.Errorf("%s: problems %v, want %d", tt.name, res.Problems, tt.problems)
		}
	}
}
