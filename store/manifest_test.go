package store

import (
	"bytes"
	"reflect"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/object/elf"
)

// fullManifest has something in every field.
func fullManifest() *Manifest {
	return &Manifest{
		ID: testID(7), Kind: ingest.Kernel, Machine: 62, Class: 2, BigEndian: true, Type: 3,
		Layout: []elf.Segment{
			{Offset: 0x1000, Addr: 0xffffffff81000000, FileSize: 1 << 24, MemSize: 1 << 25, Flags: 5,
				Align: 1 << 21},
		},
		Sections: []elf.PlacedSection{readSectionOf(".text"), readSectionOf(".init.text")},
		OtherLayouts: [][]byte{
			encodeLayout([]elf.Segment{
				{Offset: 1, Addr: 2, FileSize: 3, MemSize: 4, Flags: 5, Align: 6},
			}, nil),
		},
		RefSyms: []RefSymbol{{Name: "_etext", Addr: 0xe00000}, {Name: "_stext", Addr: 0x200}},
		VDSO:    []buildid.ID{testID(1), testID(2)},
		Sources: []SourceInfo{
			{Kind: DWARF, Digest: [32]byte{1}, Producer: 3, Path: "/usr/lib/debug/vmlinux", Funcs: 5,
				Named: 1 << 40, Size: 99, TableVersion: 1, Chunks: 2, Strings: 3},
			{Kind: Kallsyms, Digest: [32]byte{2}, Producer: 1, Path: "/proc/kallsyms", Funcs: 1,
				Named: 16, Size: 1, TableVersion: 1, RawSize: 70, RawPieces: 1, RawStored: 30,
				RawDigest: [32]byte{9}},
		},
	}
}

// readSectionOf returns a placed section as the codec keeps it.
func readSectionOf(name string) elf.PlacedSection {
	return elf.PlacedSection{Name: name, Index: 3, Addr: 0x40, Size: 0x200}
}

func TestManifestRoundTrip(t *testing.T) {
	for _, m := range []*Manifest{fullManifest(), {ID: buildid.Make(buildid.Content, []byte{1})}} {
		b := EncodeManifest(m)
		got, err := DecodeManifest("test", b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("decoded\n%+v\nwant\n%+v", got, m)
		}
	}
}

// TestManifestSkipsUnknownTags reads the manifest of a newer program of the same schema.
func TestManifestSkipsUnknownTags(t *testing.T) {
	m := fullManifest()
	b := appendTag(EncodeManifest(m), 99, []byte("from later"))
	got, err := DecodeManifest("test", b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestManifestTruncated cuts an encoded manifest at every length: an error, or a
// manifest of the fields that were whole.
func TestManifestTruncated(t *testing.T) {
	b := EncodeManifest(fullManifest())
	errs := 0
	for n := range len(b) {
		m, err := DecodeManifest("test", b[:n:n])
		if (m == nil) == (err == nil) {
			t.Fatalf("%d bytes: manifest %v and error %v", n, m, err)
		}
		if err != nil {
			errs++
		}
	}
	if errs < len(b)-20 {
		t.Errorf("only %d of %d prefixes are errors", errs, len(b))
	}
}

func TestManifestRefusals(t *testing.T) {
	id := appendTag([]byte{manifestVersion}, tagID, appendID(nil, testID(1)))
	repeat := func(n int, tag uint64, payload []byte) []byte {
		b := bytes.Clone(id)
		for range n {
			b = appendTag(b, tag, payload)
		}
		return b
	}
	source := appendSource(nil, &SourceInfo{Kind: Symtab})
	layout := encodeLayout([]elf.Segment{{}}, nil)
	cases := map[string][]byte{
		"empty":             nil,
		"newer version":     append([]byte{2}, id[1:]...),
		"no build ID":       {manifestVersion},
		"zero build ID":     appendTag([]byte{manifestVersion}, tagID, make([]byte, 21)),
		"space of no kind":  appendTag([]byte{manifestVersion}, tagID, []byte{9, 1, 2}),
		"kind of no source": repeat(1, tagSource, append([]byte{200}, source[1:]...)),
		"source cut":        repeat(1, tagSource, source[:40]),
		"many sources":      repeat(MaxSources+1, tagSource, source),
		"many layouts":      repeat(maxOtherLayouts+1, tagOtherLayout, layout),
		"many vdsos":        repeat(maxVDSOs+1, tagVDSO, appendID(nil, testID(1))),
		"many symbols":      repeat(maxRefSyms+1, tagRefSym, []byte{1, 'a'}),
		"segments missing":  repeat(1, tagLayout, []byte{200, 1, 0}),
		"layout of nothing": repeat(1, tagLayout, []byte{0, 0}),
		"layout with rest":  repeat(1, tagLayout, append(bytes.Clone(layout), 0)),
		"over the limit":    append(bytes.Clone(id), make([]byte, MaxManifest)...),
	}
	for name, b := range cases {
		if m, err := DecodeManifest("test", b); err == nil {
			t.Errorf("%s: no error, got %+v", name, m)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(EncodeManifest(fullManifest()))
	f.Add(EncodeManifest(&Manifest{ID: testID(1)}))
	f.Add([]byte{manifestVersion, tagLayout, 3, 200, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeManifest("fuzz", b)
		if (m == nil) == (err == nil) {
			t.Fatalf("manifest %v and error %v", m, err)
		}
		if err != nil {
			return
		}
		if m.ID.IsZero() || len(b) > MaxManifest || len(m.Sources) > MaxSources ||
			len(m.OtherLayouts) > maxOtherLayouts || len(m.VDSO) > maxVDSOs || len(m.RefSyms) > maxRefSyms {
			t.Fatalf("limits: %+v", m)
		}
		for i := range m.Sources {
			if s := &m.Sources[i]; s.Kind >= endOfKinds {
				t.Fatalf("source %d has kind %d", i, s.Kind)
			}
		}
		// Accepted manifests survive being written: in all fields, and in the same bytes.
		written := EncodeManifest(m)
		again, err := DecodeManifest("again", written)
		if err != nil || !reflect.DeepEqual(again, m) || !bytes.Equal(EncodeManifest(again), written) {
			t.Fatalf("second decoding: %+v, %v\nwant %+v", again, err, m)
		}
	})
}

// TestVariantTruncated cuts an encoded variant at every length.
func TestVariantTruncated(t *testing.T) {
	m := &Manifest{ID: testID(1), MoreVariants: true, Probable: []buildid.ID{testID(2)},
		Variants: []Variant{{Image: BlobID{1}, Entry: BlobID{2}, BTF: BlobID{3}, Size: 9, Func: 1,
			BootID: "boot", Load: 1 << 60, Program: 4, Type: 5, Tag: [8]byte{6}, FuncTag: [8]byte{7},
			Name: "name"}}}
	b := EncodeManifest(m)
	if got, err := DecodeManifest("test", b); err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("%+v, %v", got, err)
	}
	payload := appendVariant(nil, &m.Variants[0])
	head := EncodeManifest(&Manifest{ID: testID(1)})
	for n := range len(payload) {
		if _, err := DecodeManifest("cut", appendTag(head, tagVariant, payload[:n])); err == nil {
			t.Errorf("%d bytes of a variant: no error", n)
		}
	}
}

// testID returns a build ID that depends on n.
func testID(n int) buildid.ID {
	return buildid.New(append(bytes.Repeat([]byte{0xa0}, 19), byte(n)))
}

func TestCompareSources(t *testing.T) {
	digest := func(n byte) (d [32]byte) { d[0] = n; return d }
	for _, tt := range []struct {
		name          string
		first, second SourceInfo
	}{
		{name: "kind", first: SourceInfo{Kind: DWARF, Digest: digest(2)}, second: SourceInfo{Kind: Symtab, Named: 9}},
		{name: "newest producer", first: SourceInfo{Kind: Symtab, Producer: 2, Digest: digest(2)},
			second: SourceInfo{Kind: Symtab, Producer: 1, Named: 9}},
		{name: "most named bytes", first: SourceInfo{Kind: Symtab, Named: 9, Digest: digest(2)},
			second: SourceInfo{Kind: Symtab, Named: 8, Funcs: 100}},
		{name: "a kernel's list with most functions", first: SourceInfo{Kind: Kallsyms, Funcs: 100, Digest: digest(2)},
			second: SourceInfo{Kind: Kallsyms, Named: 9, Funcs: 99}},
		{name: "digest", first: SourceInfo{Kind: Kallsyms, Digest: digest(1)},
			second: SourceInfo{Kind: Kallsyms, Digest: digest(2)}},
	} {
		if CompareSources(tt.first, tt.second) >= 0 || CompareSources(tt.second, tt.first) <= 0 {
			t.Errorf("%s: %+v is not before %+v", tt.name, tt.first, tt.second)
		}
	}
}
