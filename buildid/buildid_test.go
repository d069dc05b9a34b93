package buildid

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestStringAndParse(t *testing.T) {
	long := bytes.Repeat([]byte{0xab}, 32)
	for _, id := range []ID{
		New([]byte{1, 2, 3}), New(long), Make(Content, long[:20]), Make(JIT, long[:20]),
	} {
		got, err := Parse(id.String())
		if err != nil || got != id {
			t.Errorf("%v: parsed as %v, %v", id, got, err)
		}
		if !strings.HasSuffix(id.String(), id.Hex()) || len(id.Hex()) != 2*id.Len() {
			t.Errorf("%v: hexadecimal %s of %d bytes", id, id.Hex(), id.Len())
		}
	}
	for _, s := range []string{"", "abc", "xyz1", "00000000", "content:", "gnu2:ab",
		strings.Repeat("ab", MaxLen+1)} {
		if id, err := Parse(s); err == nil || !id.IsZero() {
			t.Errorf("%q: parsed as %v, %v", s, id, err)
		}
	}
}

func TestMatches(t *testing.T) {
	sum := []byte("abcdefghijklmnopqrst")
	long := append(slices.Clone(sum), "uvwx"...)
	short := sum[:8]
	padded := func(b []byte) ID {
		return Padded(append(slices.Clone(b),
			make([]byte, 20-len(b))...))
	}
	tests := []struct {
		name string
		a, b ID
		want bool
	}{
		{name: "equal", a: New(sum), b: New(sum), want: true},
		{name: "different", a: New(sum), b: New(long[1:21])},
		{name: "short and padded", a: New(short), b: padded(short), want: true},
		{name: "long and its first 20", a: New(long), b: Padded(sum), want: true},
		{name: "long and exact 20", a: New(long), b: New(sum), want: true},
		{name: "zeros at the end, exact", a: New(short), b: New(append(slices.Clone(short), 0))},
		{name: "zeros at the end, padded", a: padded(short),
			b: New(append(slices.Clone(short), 0)), want: true},
		{name: "other space", a: New(sum), b: Make(Content, sum)},
		{name: "none", a: ID{}, b: ID{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.a.Matches(tt.b) != tt.want || tt.b.Matches(tt.a) != tt.want {
				t.Errorf("%v and %v: %v and %v", tt.a, tt.b, tt.a.Matches(tt.b), tt.b.Matches(tt.a))
			}
			if tt.want && tt.a.Key() != tt.b.Key() {
				t.Error("IDs that match have different keys")
			}
		})
	}
}

func TestMakeLimits(t *testing.T) {
	if id := Make(GNU, make([]byte, 20)); !id.IsZero() {
		t.Errorf("zeros: %v", id)
	}
	if id := New(bytes.Repeat([]byte{1}, MaxLen)); id.Len() != MaxLen {
		t.Errorf("%d bytes kept of %d", id.Len(), MaxLen)
	}
	b := []byte{1, 2}
	id := New(b)
	b[0] = 9
	if id.Bytes()[0] != 1 {
		t.Error("the ID shares memory with its source")
	}
}

func TestCompare(t *testing.T) {
	sorted := []ID{
		{}, Padded([]byte{0, 1}), New([]byte{1}), Padded([]byte{1, 0}), New([]byte{1, 0}),
		New([]byte{1, 1}), Make(Content, []byte{1}),
	}
	for i, a := range sorted {
		for j, b := range sorted {
			got := a.Compare(b)
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%d, %d: %v against %v is %d", i, j, a, b, got)
			}
			if k := a.Key().Compare(b.Key()); k != 0 && k < 0 != (i < j) {
				t.Errorf("%d, %d: keys of %v and %v compare as %d", i, j, a, b, k)
			}
		}
	}
}

// TestAsExact: an inexact ID may be any of a usual length that has its bytes and zeros.
func TestAsExact(t *testing.T) {
	exact := Make(GNU, []byte{1, 2, 3})
	if got := exact.AsExact(); len(got) != 1 || got[0] != exact {
		t.Errorf("an exact ID: %v", got)
	}
	padded := make([]byte, 20)
	copy(padded, "123456789")
	var got []int
	for _, id := range Padded(padded).AsExact() {
		if !id.Exact() || !id.Matches(Padded(padded)) {
			t.Errorf("%s is not exact, or does not match", id)
		}
		got = append(got, id.Len())
	}
	if !slices.Equal(got, []int{20, 16}) {
		t.Errorf("lengths %v, want 20 and 16", got)
	}
}
