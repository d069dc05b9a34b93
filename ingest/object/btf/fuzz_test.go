package btf

import (
	"slices"
	"testing"
)

// walk calls every accessor on every type: none of them can fail, and all references are in
// range.
func walk(t *testing.T, types *Types) {
	ref := func(id ID, of ...ID) {
		for _, to := range of {
			if int(to) >= types.Len() {
				t.Fatalf("type %d refers to %d of %d", id, to, types.Len())
			}
		}
	}
	for id := range ID(types.Len()) {
		kind := types.Kind(id)
		if kind >= numKinds {
			t.Fatalf("type %d is of kind %d", id, kind)
		}
		ref(id, types.Ref(id), types.Strip(id), types.Array(id).Elem, types.Array(id).Index)
		n := 0
		for _, m := range types.Members(id) {
			ref(id, m.Type)
			n++
		}
		if n != types.MemberCount(id) {
			t.Fatalf("type %d: %d members of %d", id, n, types.MemberCount(id))
		}
		for range types.Enumerators(id) {
			n++
		}
		for _, p := range types.Params(id) {
			ref(id, p.Type)
		}
		for _, s := range types.Sections(id) {
			ref(id, s.Type)
		}
		if v := types.Int(id); uint32(v.Bits)+uint32(v.Offset) > 8*v.Size {
			t.Fatalf("type %d: %+v", id, v)
		}
		if size, err := types.Size(id); err == nil && size > maxSize {
			t.Fatalf("type %d: %d bytes", id, size)
		}
		_, _, _, _ = types.FuncLinkage(id), types.VarLinkage(id), types.FwdUnion(id),
			types.DeclTagComponent(id)
		if name := types.Name(id); name != "" {
			first, ok := types.ByName(kind, name)
			if !ok || first > id || types.Name(first) != name || types.Kind(first) != kind {
				t.Fatalf("type %d is called %q; by that name type %d is found", id, name, first)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, big := range []bool{false, true} {
		raw, _ := everyKind(big)
		base, err := Parse("base", raw, nil)
		if err != nil {
			f.Fatal(err)
		}
		b := over(base)
		b.ref(KindTypedef, "mine", ID(b.next-1))
		f.Add(raw, b.bytes())
	}
	f.Fuzz(func(t *testing.T, raw, split []byte) {
		base, err := Parse("fuzz", raw, nil)
		if err != nil {
			if base != nil {
				t.Fatal("types and an error")
			}
			return
		}
		walk(t, base)
		if types, err := Parse("split", split, base); err == nil {
			walk(t, types)
		}
	})
}

func FuzzExt(f *testing.F) {
	for _, big := range []bool{false, true} {
		b, raw, parts := extOf(big)
		f.Add(raw, parts.bytes(b, 6))
		f.Add(raw, parts.bytes(b, 4))
	}
	f.Fuzz(func(t *testing.T, raw, ext []byte) {
		types, err := Parse("fuzz", raw, nil)
		if err != nil {
			return
		}
		x, err := parseExt("ext", ext, 0, types)
		if x == nil {
			t.Fatal("nothing was kept")
		}
		records := 0
		for i, s := range x.Sections {
			if sectionOf(x, s.Name) != &x.Sections[i] {
				t.Fatalf("section %q is there twice", s.Name)
			}
			records += len(s.Funcs) + len(s.Lines) + len(s.Cores)
			if slices.ContainsFunc(s.Funcs, func(fn FuncInfo) bool {
				return int(fn.Type) >= types.Len()
			}) {
				t.Fatalf("section %q: a function without a type", s.Name)
			}
		}
		if err == nil && len(ext) < extHeaderSize || 3*len(ext) < funcInfoSize*records {
			t.Fatalf("%d records from %d bytes, error %v", records, len(ext), err)
		}
	})
}
