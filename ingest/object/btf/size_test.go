package btf

import (
	"errors"
	"strings"
	"testing"
)

// TestSize sizes every kind of type.
func TestSize(t *testing.T) {
	raw, id := everyKind(true)
	types, err := Parse("test", raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]uint64{"int": 4, "bool": 1, "char": 1, "bits": 4, "ptr": 8, "array": 28,
		"struct": 12, "flagged": 4, "union": 4, "enum": 4, "signed": 4, "enum64": 8,
		"typedef": 4, "volatile": 4, "const": 4, "restrict": 8, "var": 4, "datasec": 16,
		"float": 8, "typetag": 4}
	none := []string{"fwd", "proto", "func", "decltag"}
	if len(sizes)+len(none) != len(id) {
		t.Errorf("%d types are not told of", len(id)-len(sizes)-len(none))
	}
	for name, want := range sizes {
		if got, err := types.Size(id[name]); got != want || err != nil {
			t.Errorf("%s: %d bytes, error %v, want %d", name, got, err, want)
		}
	}
	for _, name := range none {
		if got, err := types.Size(id[name]); got != 0 || !errors.Is(err, errIncomplete) {
			t.Errorf("%s: %d bytes, error %v", name, got, err)
		}
	}
}

// TestPointerSize finds the size of pointers by the size of long.
func TestPointerSize(t *testing.T) {
	for _, c := range []struct {
		name       string
		size, want uint32
	}{{name: "long", size: 4, want: 4}, {name: "unsigned long", size: 8, want: 8}, {name: "long",
		size: 2, want: 8}, {name: "int", size: 4, want: 8}} {
		b := newBuilder(false)
		p := b.ref(KindPtr, "", 0)
		b.integer(c.name, c.size, 8*c.size)
		types, err := Parse("test", b.bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := types.Size(p); got != uint64(c.want) || err != nil {
			t.Errorf("%s of %d bytes: a pointer of %d, error %v", c.name, c.size, got, err)
		}
	}
}

// TestHostile: types that are endless or outsized end in an error, at once and without memory.
func TestHostile(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *builder) ID
		want  error
	}{
		{name: "a typedef of itself",
			build: func(b *builder) ID { return b.ref(KindTypedef, "t", 1) },
			want:  errEndless},
		{name: "two constants of each other", build: func(b *builder) ID {
			b.ref(KindConst, "", 2)
			return b.ref(KindConst, "", 1)
		}, want: errEndless},
		{name: "an array of itself", build: func(b *builder) ID { return b.array(1, 1) },
			want: errEndless},
		{name: "no elements of itself", build: func(b *builder) ID { return b.array(1, 0) },
			want: errEndless},
		{name: "a growing array of itself", build: func(b *builder) ID { return b.array(1, 2) },
			want: errTooBig},
		{name: "2^64 bytes", build: func(b *builder) ID {
			return b.array(b.array(b.integer("char", 1, 8), 0xffffffff), 0xffffffff)
		}, want: errTooBig},
		{name: "2^64 structures of 2^32 bytes", build: func(b *builder) ID {
			s := b.add(KindStruct, "s", false, 0, 0xffffffff)
			return b.array(b.array(s, 0xffffffff), 0xffffffff)
		}, want: errTooBig},
		{name: "nothing of something outsized", build: func(b *builder) ID {
			return b.array(b.array(b.array(b.integer("char", 1, 8), 1<<31), 1<<31), 0)
		}},
		{name: "a deep type", build: func(b *builder) ID {
			id := b.integer("char", 1, 8)
			for range maxRefs {
				id = b.ref(KindConst, "", id)
			}
			return id
		}, want: errEndless},
		{name: "a less deep type", build: func(b *builder) ID {
			id := b.integer("char", 1, 8)
			for range maxRefs - 1 {
				id = b.ref(KindConst, "", id)
			}
			return id
		}},
		{name: "an array of void", build: func(b *builder) ID { return b.array(0, 3) },
			want: errIncomplete},
	} {
		b := newBuilder(false)
		id := c.build(b)
		types, err := Parse("test", b.bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := types.Size(id); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		stripped := types.Strip(id)
		if allocs := testing.AllocsPerRun(10, func() { types.Strip(id) }); allocs > 0 {
			t.Errorf("%s: Strip allocates", c.name)
		}
		if kindTable[types.Kind(stripped)].transparent {
			t.Errorf("%s: type %d is not stripped", c.name, stripped)
		}
	}
}

// TestSelfContaining: a structure within itself has its declared size; its members are listed and
// not followed.
func TestSelfContaining(t *testing.T) {
	b := newBuilder(false)
	id := b.add(KindStruct, "matryoshka", false, 1, 8, b.name("doll"), 1, 0)
	types, err := Parse("test", b.bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := types.Size(id); n != 8 || err != nil {
		t.Errorf("%d bytes, error %v", n, err)
	}
	if got := list(types.Members(id)); got != "[{doll 1 0 0}]" {
		t.Errorf("members %s", got)
	}
}

// TestBounds: blobs over the limits are refused before they cost memory.
func TestBounds(t *testing.T) {
	many := newBuilder(false)
	one := make([]byte, 12*(maxTypes+1))
	for i := 7; i < len(one); i += 12 {
		one[i] = byte(KindFwd)
	}
	many.types = one
	if _, err := Parse("test", many.bytes(), nil); err == nil ||
		!strings.Contains(err.Error(), "more than 1048576 types") {
		t.Errorf("many types: error %v", err)
	}
	long := newBuilder(false)
	long.name(strings.Repeat("x", maxString+1))
	if _, err := Parse("test", long.bytes(), nil); err == nil ||
		!strings.Contains(err.Error(), "a string of 32769 bytes") {
		t.Errorf("a long string: error %v", err)
	}
	if _, err := Parse("test", make([]byte, maxBlob+1), nil); err == nil ||
		!strings.Contains(err.Error(), "is the most") {
		t.Errorf("a long blob: error %v", err)
	}
}
