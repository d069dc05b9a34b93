package btf

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	cilium "github.com/cilium/ebpf/btf"
)

// TestAgainstCilium compares every type of the object with cilium/ebpf's decoding.
func TestAgainstCilium(t *testing.T) {
	f, _ := openELF(t, mapsDir+"/kinds.bpf.o")
	types, ext, err := FromELF(f)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, types)
	if s := sectionOf(ext, "socket"); s == nil || len(s.Funcs) == 0 || len(s.Lines) == 0 {
		t.Fatalf("of .BTF.ext: %+v", ext)
	}
	for _, s := range ext.Sections {
		for _, fn := range s.Funcs {
			if types.Kind(fn.Type) != KindFunc {
				t.Errorf("%s: a function at %d is a %s", s.Name, fn.Offset, types.Kind(fn.Type))
			}
		}
		for _, l := range s.Lines {
			if !strings.HasSuffix(l.File, "kinds.bpf.c") || l.Offset%8 != 0 {
				t.Errorf("%s: line %+v", s.Name, l)
			}
		}
	}
}

// compare compares all types with the types that cilium/ebpf reads from the same blob.
func compare(t *testing.T, types *Types) {
	t.Helper()
	spec, err := cilium.LoadSpecFromReader(bytes.NewReader(types.Raw()))
	if err != nil {
		t.Fatal(err)
	}
	seen, wrong := 0, 0
	for id := range ID(types.Len()) {
		typ, err := spec.TypeByID(cilium.TypeID(id))
		if err != nil {
			t.Fatalf("type %d: %v", id, err)
		}
		want := ciliumText(t, spec, typ)
		if want == "" { // the tags of declarations are not exported there
			if kind := types.Kind(id); kind != KindDeclTag {
				t.Errorf("type %d is a %s, cilium's %T", id, kind, typ)
			}
			continue
		}
		seen++
		if got := ownText(types, id); got != want {
			t.Errorf("type %d:\n%s\ncilium:\n%s", id, got, want)
			if wrong++; wrong > 10 {
				return
			}
		}
		if types.Strip(id) == 0 {
			continue // cilium gives void 0 bytes, which here is an error
		}
		n, err := cilium.Sizeof(typ)
		if size, ownErr := types.Size(id); err == nil && (ownErr != nil || size != uint64(n)) {
			t.Errorf("type %d %q: %d bytes, error %v, cilium's %d", id, types.Name(id), size,
				ownErr, n)
		}
	}
	if seen < types.Len()/2 {
		t.Errorf("%d types of %d are compared", seen, types.Len())
	}
}

// ownText formats a type as ciliumText formats cilium/ebpf's.
func ownText(t *Types, id ID) string {
	out := fmt.Sprintf("%s %q", t.Kind(id), t.Name(id))
	size, _ := t.Size(id)
	switch t.Kind(id) {
	case KindInt:
		v := t.Int(id)
		return fmt.Sprint(out, v.Size, v.Signed, v.Char, v.Bool)
	case KindArray:
		a := t.Array(id)
		return fmt.Sprint(out, a.Elem, a.Index, a.Len)
	case KindStruct, KindUnion:
		return fmt.Sprint(out, size, list(t.Members(id)))
	case KindEnum, KindEnum64:
		return fmt.Sprint(out, size, t.EnumSigned(id), list(t.Enumerators(id)))
	case KindFwd:
		return fmt.Sprint(out, t.FwdUnion(id))
	case KindFuncProto:
		return fmt.Sprint(out, t.Ref(id), list(t.Params(id)))
	case KindFunc:
		return fmt.Sprint(out, t.Ref(id), t.FuncLinkage(id))
	case KindVar:
		return fmt.Sprint(out, t.Ref(id), t.VarLinkage(id))
	case KindDatasec:
		return fmt.Sprint(out, size, list(t.Sections(id)))
	case KindFloat:
		return fmt.Sprint(out, size)
	}
	return fmt.Sprint(out, t.Ref(id))
}

func ciliumText(t *testing.T, spec *cilium.Spec, typ cilium.Type) string {
	t.Helper()
	id := func(typ cilium.Type) ID {
		n, err := spec.TypeID(typ)
		if err != nil {
			t.Fatal(err)
		}
		return ID(n)
	}
	out := func(k Kind, args ...any) string {
		return fmt.Sprintf("%s %q", k, typ.TypeName()) + fmt.Sprint(args...)
	}
	members := func(all []cilium.Member) string {
		own := []Member{}
		for _, m := range all {
			own = append(own, Member{m.Name, id(m.Type), uint32(m.Offset), uint8(m.BitfieldSize)})
		}
		return fmt.Sprint(own)
	}
	switch v := typ.(type) {
	case *cilium.Void:
		return out(KindVoid, 0)
	case *cilium.Int:
		return out(KindInt, v.Size, v.Encoding&cilium.Signed != 0, v.Encoding&cilium.Char != 0,
			v.Encoding&cilium.Bool != 0)
	case *cilium.Pointer:
		return out(KindPtr, id(v.Target))
	case *cilium.Array:
		return out(KindArray, id(v.Type), id(v.Index), v.Nelems)
	case *cilium.Struct:
		return out(KindStruct, v.Size, members(v.Members))
	case *cilium.Union:
		return out(KindUnion, v.Size, members(v.Members))
	case *cilium.Enum:
		return ciliumEnum(v, out)
	case *cilium.Fwd:
		return out(KindFwd, v.Kind == cilium.FwdUnion)
	case *cilium.Typedef:
		return out(KindTypedef, id(v.Type))
	case *cilium.Volatile:
		return out(KindVolatile, id(v.Type))
	case *cilium.Const:
		return out(KindConst, id(v.Type))
	case *cilium.Restrict:
		return out(KindRestrict, id(v.Type))
	case *cilium.TypeTag:
		return fmt.Sprintf("%s %q", KindTypeTag, v.Value) + fmt.Sprint(id(v.Type))
	case *cilium.Func:
		return out(KindFunc, id(v.Type), int(v.Linkage))
	case *cilium.FuncProto:
		own := []Param{}
		for _, p := range v.Params {
			own = append(own, Param{p.Name, id(p.Type)})
		}
		return out(KindFuncProto, id(v.Return), fmt.Sprint(own))
	case *cilium.Var:
		return out(KindVar, id(v.Type), int(v.Linkage))
	case *cilium.Datasec:
		own := []Section{}
		for _, s := range v.Vars {
			own = append(own, Section{id(s.Type), s.Offset, s.Size})
		}
		return out(KindDatasec, v.Size, fmt.Sprint(own))
	case *cilium.Float:
		return out(KindFloat, v.Size)
	}
	return ""
}

func ciliumEnum(v *cilium.Enum, out func(Kind, ...any) string) string {
	own, kind := []Enumerator{}, KindEnum
	for _, e := range v.Values {
		own = append(own, Enumerator{e.Name, e.Value})
		if e.Value>>32 != 0 && (!v.Signed || e.Value>>31 != 1<<33-1) {
			kind = KindEnum64
		}
	}
	if v.Size == 8 {
		kind = KindEnum64
	}
	return out(kind, v.Size, v.Signed, fmt.Sprint(own))
}
