package merge

import (
	"slices"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
)

// TestPaddedIDs joins IDs of unknown length with exact ones.
func TestPaddedIDs(t *testing.T) {
	long, short := buildid.New([]byte{1, 2, 3, 4, 5, 6, 7, 8, 0}), buildid.New([]byte{1, 2, 3, 4, 5,
		6, 7, 8})
	padded := buildid.Padded(append([]byte{1, 2, 3, 4, 5, 6, 7, 8}, make([]byte, 12)...))
	object := func(id buildid.ID, path string) ingest.Object {
		return ingest.Object{ID: id, IDSource: ingest.IDRecorded, File: ingest.FileRef{Path: path},
			Kernel: ingest.NoObject}
	}
	used := []bool{true, true, true}
	joined, number := Objects([]ingest.Object{object(short, "/b/x"), object(padded, "/a/x")},
		used)
	if len(joined) != 1 || !joined[0].ID.Exact() || joined[0].File.Path != "/a/x" || number[0] != 0 ||
		number[1] != 0 {
		t.Errorf("one exact and one padded: %+v", joined)
	}
	joined, number = Objects([]ingest.Object{object(short, "/b"), object(padded, "/a"),
		object(long, "/c")}, used)
	if len(joined) != 3 || joined[number[1]].Reason != ingest.Ambiguous ||
		joined[number[0]].Reason != ingest.ReasonNone {
		t.Errorf("two exact and one padded: %+v", joined)
	}
}

// TestCopies: files with one build ID and several names are as many objects; records without a name
// belong to the first of them.
func TestCopies(t *testing.T) {
	id := buildid.New([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	var list []ingest.Object
	for _, path := range []string{"", "/b/t2", "/t1", "/a/t2"} {
		list = append(list, ingest.Object{ID: id, File: ingest.FileRef{Path: path}, Kernel: ingest.NoObject})
	}
	joined, number := Objects(list, []bool{true, true, true, true})
	if len(joined) != 2 || joined[0].File.Path != "/a/t2" || joined[1].File.Path != "/t1" ||
		!slices.Equal(number, []ingest.ObjectID{1, 0, 1, 0}) {
		t.Errorf("%v: %+v", number, joined)
	}
}

// TestJoinWhyNoImage: in either order of two objects one reason is left, and none where one of them
// has the image.
func TestJoinWhyNoImage(t *testing.T) {
	for _, tt := range []struct{ a, b, want ingest.Object }{
		{a: ingest.Object{NoImage: true, WhyNoImage: "a"},
			b:    ingest.Object{NoImage: true, WhyNoImage: "b"},
			want: ingest.Object{NoImage: true, WhyNoImage: "a"}},
		{a: ingest.Object{NoImage: true, WhyNoImage: "a"}, b: ingest.Object{NoImage: true},
			want: ingest.Object{NoImage: true, WhyNoImage: "a"}},
		{a: ingest.Object{NoImage: true, WhyNoImage: "a"}, b: ingest.Object{},
			want: ingest.Object{}},
	} {
		for _, pair := range [][2]ingest.Object{{tt.a, tt.b}, {tt.b, tt.a}} {
			joinObject(&pair[0], &pair[1])
			if pair[0].NoImage != tt.want.NoImage || pair[0].WhyNoImage != tt.want.WhyNoImage {
				t.Errorf("%+v joined %+v", pair[0], tt.want)
			}
		}
	}
}
