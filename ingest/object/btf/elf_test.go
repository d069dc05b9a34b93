package btf

import (
	"bytes"
	"errors"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/elf"
)

// inELF reads the types of a file with these sections.
func inELF(t *testing.T, sections map[string][]byte) (*Types, *Ext, error) {
	t.Helper()
	file := &elfbuild.File{}
	for _, name := range []string{".BTF", ".BTF.base", ".BTF.ext"} {
		if data, ok := sections[name]; ok {
			file.Sections = append(file.Sections, elfbuild.Section{Name: name, Data: data})
		}
	}
	raw := file.Bytes()
	f, err := elf.Open("m.ko", bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return FromELF(f)
}

// TestFromELF reads files with types, with types and .BTF.ext, and with neither.
func TestFromELF(t *testing.T) {
	b, raw, parts := extOf(false)
	ext := parts.bytes(b, 6)
	for _, c := range []struct {
		name       string
		sections   map[string][]byte
		types, ext bool
	}{
		{name: "none"},
		{name: "only .BTF.ext", sections: map[string][]byte{".BTF.ext": ext}},
		{name: "types", sections: map[string][]byte{".BTF": raw}, types: true},
		{name: "both", sections: map[string][]byte{".BTF": raw, ".BTF.ext": ext}, types: true,
			ext: true},
	} {
		types, x, err := inELF(t, c.sections)
		if err != nil || (types != nil) != c.types || (x != nil) != c.ext {
			t.Errorf("%s: %v, %v, error %v", c.name, types, x, err)
		}
	}
}

// TestModule reads a module's types over the part of the kernel's in the module.
func TestModule(t *testing.T) {
	kernel, id := everyKind(false)
	base, err := Parse("base", kernel, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := over(base)
	own := b.ref(KindTypedef, "mine", id["struct"])
	types, _, err := inELF(t, map[string][]byte{".BTF": b.bytes(), ".BTF.base": kernel})
	if err != nil {
		t.Fatal(err)
	}
	if types.Name(own) != "mine" || types.Name(types.Strip(own)) != "pair" ||
		types.Base() == nil {
		t.Errorf("type %d is %q of %q", own, types.Name(own), types.Name(types.Strip(own)))
	}
	for name, sections := range map[string]map[string][]byte{
		"m.ko: .BTF":      {".BTF": b.bytes()},
		"m.ko: .BTF.base": {".BTF": b.bytes(), ".BTF.base": kernel[:40]},
	} {
		types, _, err := inELF(t, sections)
		var e *decode.Error
		if !errors.As(err, &e) || e.Name != name || types != nil {
			t.Errorf("error %v, want one of %s", err, name)
		}
	}
}

// TestDamagedExt keeps the types, and the valid part of .BTF.ext.
func TestDamagedExt(t *testing.T) {
	b, raw, parts := extOf(false)
	ext := parts.bytes(b, 6)
	types, x, err := inELF(t, map[string][]byte{".BTF": raw, ".BTF.ext": ext[:len(ext)-4]})
	var e *decode.Error
	if !errors.As(err, &e) || e.Name != "m.ko: .BTF.ext" || types == nil {
		t.Fatalf("%v, error %v", types, err)
	}
	if s := sectionOf(x, ".text"); s == nil || len(s.Funcs) != 2 || len(s.Lines) != 2 {
		t.Errorf("of .BTF.ext: %+v", x)
	}
}
