package sys

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// spec is a kernel with one structure {u64 first; union { struct { u64 one; u64 two; }; }; }.
func spec(t *testing.T) *btf.Spec {
	t.Helper()
	word := &btf.Int{Name: "unsigned long", Size: 8}
	inner := &btf.Union{Size: 16, Members: []btf.Member{{Type: &btf.Struct{Size: 16,
		Members: []btf.Member{{Name: "one", Type: word}, {Name: "two", Type: word, Offset: 64}}}}}}
	b, err := btf.NewBuilder([]btf.Type{&btf.Struct{Name: "outer", Size: 24, Members: []btf.Member{
		{Name: "first", Type: word}, {Type: inner, Offset: 64}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLayout finds members, also in anonymous unions, and reports the first missing one; later ones
// are not found.
func TestLayout(t *testing.T) {
	l := NewLayout(spec(t))
	for member, want := range map[string]int32{"first": 0, "one": 8, "two": 16} {
		if at := l.At("outer", member); at != want || l.Err != nil {
			t.Errorf("%s at %d, %v", member, at, l.Err)
		}
	}
	if l.At("outer", "nothing"); l.Err == nil || !strings.Contains(l.Err.Error(), "nothing") {
		t.Errorf("error %v", l.Err)
	}
	first := l.Err
	if at := l.At("no_struct", "x"); l.Err != first || at != 0 {
		t.Errorf("the first error became %v", l.Err)
	}
	if at := l.At("outer", "two"); at != 0 {
		t.Errorf("two at %d after an error", at)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "2,5-6": {2, 5, 6},
		"0-2,5\n": {0, 1, 2, 5}} {
		if got, err := ParseCPUs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("Parse(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "a", "x", "1-", "3-1", "-1", "0-", "0-99999999999", "0-65536"} {
		if got, err := ParseCPUs(text); err == nil || got != nil {
			t.Errorf("Parse(%q) = %v", text, got)
		}
	}
}
