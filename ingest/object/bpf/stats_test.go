package bpf

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func example() *Stats {
	return &Stats{Begin: 1000, End: 5000, Lost: 1, Programs: []ProgramStats{
		{ID: 9, Type: 6, Name: "drop"},
		{ID: 4, Tag: "0123456789abcdef", Name: "count", Type: 5, UID: 7, Loaded: 500, First: 1000,
			Last: 4000, Gone: true, Runs: 10, RunTime: 300, Missed: 1,
			Maps: []MapStats{{ID: 3, Name: "counts", Type: 1}},
		},
	}, Maps: []MapStats{{ID: 8, Type: 2}, {ID: 3, Name: "counts", Type: 1, BTF: 5, Value: 7, ValueSize: 8, Entries: 9}}}
}

// TestStatsRoundTrip: a list is read as it was written, sorted by program and map, and written with the same
// bytes again.
func TestStatsRoundTrip(t *testing.T) {
	l := example()
	b, err := EncodeStats(l)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeStats("list", b)
	if err != nil || !reflect.DeepEqual(l, back) || back.Programs[0].ID != 4 || back.Maps[0].ID != 3 || !back.Counted() {
		t.Errorf("%+v, %v", back, err)
	}
	if again, err := EncodeStats(back); err != nil || !bytes.Equal(b, again) {
		t.Errorf("%s, %v", again, err)
	}
	if b, err := EncodeStats(&Stats{}); err != nil || string(b) != "{\"programs\":[]}\n" {
		t.Errorf("an empty list is %s, %v", b, err)
	}
}

func TestStatsDecodeErrors(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{name: "no JSON", text: "{", want: "offset 1"},
		{name: "a text for a number", text: `{"begin":"x"}`, want: "offset"},
		{name: "ends before it begins", text: `{"begin":2,"end":1}`, want: "before it begins"},
		{name: "not sorted", text: `{"programs":[{"id":2},{"id":1}]}`,
			want: "program 1 follows program 2"},
		{name: "twice", text: `{"programs":[{"id":2},{"id":2}]}`,
			want: "program 2 follows program 2"},
		{name: "maps that are not sorted", text: `{"programs":[],"maps":[{"id":2},{"id":2}]}`, want: "map 2 follows map 2"},
	} {
		l, err := DecodeStats("list", []byte(test.text))
		if l != nil || err == nil || !strings.HasPrefix(err.Error(), "list: ") ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %v", test.name, l, err)
		}
	}
	if l, err := DecodeStats("list", []byte(`{"later":[1],"programs":[{"id":1,"new":{}}]}`)); err != nil ||
		len(l.Programs) != 1 {
		t.Errorf("unknown members: %v, %v", l, err)
	}
}

// TestStatsTruncated: every prefix gives an error, the whole a list.
func TestStatsTruncated(t *testing.T) {
	b, err := EncodeStats(example())
	if err != nil {
		t.Fatal(err)
	}
	whole := len(bytes.TrimSpace(b))
	for n := range whole {
		if l, err := DecodeStats("list", b[:n]); err == nil {
			t.Fatalf("%d of %d bytes give %+v", n, whole, l)
		}
	}
}

func FuzzStatsDecode(f *testing.F) {
	b, _ := EncodeStats(example())
	f.Add(b)
	f.Add([]byte(`{"programs":[{"id":1},{"id":2,"maps":[{}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := DecodeStats("list", data)
		if (l == nil) == (err == nil) {
			t.Fatalf("%v and %v", l, err)
		}
		if err != nil {
			return
		}
		b, err := EncodeStats(l)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeStats("list", b)
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		if again, _ := EncodeStats(back); !bytes.Equal(b, again) {
			t.Fatalf("%s became %s", b, again)
		}
	})
}
