package dwarfvar

import (
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
)

func compare(t *testing.T, got, want string) {
	t.Helper()
	trim := func(s string) string {
		var out []string
		for l := range strings.Lines(s) {
			if l = strings.TrimSpace(l); l != "" {
				out = append(out, l)
			}
		}
		return strings.Join(out, "\n")
	}
	if trim(got) != trim(want) {
		t.Errorf("got\n%s\nwant\n%s", trim(got), trim(want))
	}
}

func TestTypesOfC(t *testing.T) {
	integer, char := baseType("int", 4, ateSigned), baseType("char", 1, ateSignedChar)
	wide := baseType("__int128", 16, ateSigned)
	list := d(tagStructureType, name("list"), num(atByteSize, 16))
	next := d(tagPointerType, num(atByteSize, 8), typ(list))
	list.Add(member("next", next, 0), member("value", integer, 8),
		d(tagMember, name("low"), typ(integer), num(atBitSize, 3), num(atDataBitOffset, 96)),
		d(tagMember, name("high"), typ(integer), num(atBitSize, 5), num(atDataBitOffset, 99)))
	matrix := d(tagArrayType, typ(integer)).Add(d(tagSubrangeType, num(atUpperBound, 1)),
		d(tagSubrangeType, num(atCount, 3)))
	flexible := d(tagArrayType, typ(char)).Add(d(tagSubrangeType))
	inner := d(tagUnionType, num(atByteSize, 32)).Add(member("m", matrix, 0), member("w", wide, 0))
	tail := d(tagStructureType, name("tail"), num(atByteSize, 32)).Add(
		d(tagMember, typ(inner), num(atMemberLocation, 0)), member("text", flexible, 32))
	small := d(tagEnumerationType, name("small"), num(atByteSize, 4)).Add(
		d(tagEnumerator, name("NONE"), signed(atConstValue, -1)), d(tagEnumerator, name("ONE"), num(atConstValue, 1)))
	large := d(tagEnumerationType, name("large"), num(atByteSize, 8)).Add(
		d(tagEnumerator, name("BIG"), num(atConstValue, 1<<40)))
	proto := d(tagSubroutineType, typ(integer)).Add(d(tagFormalParameter, typ(next)), d(tagUnspecifiedParams))
	callee := d(tagPointerType, typ(proto))
	call := d(tagTypedef, name("call_t"), typ(callee))
	double, complex := baseType("double", 8, ateFloat), baseType("complex double", 16, ateComplexFloat)
	atomic := d(tagAtomicType, typ(integer))
	count := d(tagTypedef, name("count_t"), typ(atomic))
	got := types(t, unitOf(4, dwarf.LangC11, integer, char, wide, list, next, matrix, flexible, inner, tail, small, large, proto,
		callee, call, double, complex, atomic, count))
	compare(t, got, `
struct list {
	struct list *next;
	int value;
	int low: 3;
	int high: 5;
};
struct tail {
	union {
		int m[2][3];
		__int128 w;
	};
	char text[0];
};
enum small {
	NONE = -1,
	ONE = 1,
};
enum large {
	BIG = 1099511627776ULL,
};
typedef int (*call_t)(struct list *, ...);
struct complex double {
	double real;
	double imag;
};
typedef int __attribute__((btf_type_tag("atomic"))) count_t;
`)
}

// Bit fields in the form of DWARF 2: from the most significant bit of their storage.
func TestBitFieldsOfDWARF2(t *testing.T) {
	for _, big := range []bool{false, true} {
		integer := baseType("int", 4, ateSigned)
		s := d(tagStructureType, name("bits"), num(atByteSize, 4)).Add(
			d(tagMember, name("a"), typ(integer), num(atByteSize, 4), num(atBitSize, 3), num(atBitOffset, 29), expr(atMemberLocation, opPlusUconst, 0)),
			d(tagMember, name("b"), typ(integer), num(atBitSize, 5), num(atBitOffset, 24), expr(atMemberLocation, opPlusUconst, 0)))
		x := read(t, sections(&dwarfbuild.Builder{Big: big, Units: []*dwarfbuild.Unit{unitOf(2, dwarf.LangC89, integer, s)}}), &Options{All: true})
		want := []uint32{0, 3}
		if big {
			want = []uint32{24, 29}
		}
		id, ok := x.Types().ByName(4, "bits")
		if !ok {
			t.Fatal(declarations(t, x))
		}
		var got []uint32
		for _, m := range x.Types().Members(id) {
			got = append(got, m.BitOffset)
		}
		if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("big %v: bits %v, want %v", big, got, want)
		}
	}
}

// C++: bases are members, names are qualified, and a class that a unit only declares has the
// definition of another unit.
func TestTypesOfCpp(t *testing.T) {
	integer := baseType("int", 4, ateSigned)
	base := d(tagStructureType, name("Base"), num(atByteSize, 8)).Add(member("x", integer, 0))
	declared := d(tagClassType, name("Far"), flag(atDeclaration))
	pointer := d(tagReferenceType, typ(declared))
	object := d(tagStructureType, name("__aligned_membuf<int>"), num(atByteSize, 4))
	bytes := d(tagArrayType, typ(integer)).Add(d(tagSubrangeType, num(atCount, 4)))
	object.Add(member("_M_storage", bytes, 0), d(tagTemplateType, name("_Tp"), typ(base)))
	derived := d(tagClassType, name("Derived<int>"), num(atByteSize, 24)).Add(
		d(tagInheritance, typ(base), num(atMemberLocation, 0)),
		d(tagInheritance, typ(base), num(atVirtuality, 1), expr(atMemberLocation, opDup, opDeref)),
		member("far", pointer, 8), d(tagMember, name("shared"), typ(integer), flag(atExternal), flag(atDeclaration)),
		d(tagStructureType, name("Inner"), num(atByteSize, 4)).Add(member("i", integer, 0)))
	first := unitOf(4, dwarf.LangCpp14, integer, bytes, pointer, d(tagNamespace, name("app")).Add(base, declared, derived),
		d(tagNamespace, name("__gnu_cxx")).Add(object))
	integer2 := baseType("int", 4, ateSigned)
	second := unitOf(4, dwarf.LangCpp14, integer2, d(tagNamespace, name("app")).Add(
		d(tagClassType, name("Far"), num(atByteSize, 4)).Add(member("deep", integer2, 0))))
	want := `
struct app::Base {
	int x;
	int: 32;
};
struct app::Derived<int> {
	struct app::Base;
	struct app::Far *far;
	long long: 64;
};
struct app::Derived<int>::Inner {
	int i;
};
struct __gnu_cxx::__aligned_membuf<int> {
	struct app::Base _M_storage;
};
struct app::Far {
	int deep;
};
`
	compare(t, types(t, first, second), want)
}

// On demand, the definition of a declared class comes from another unit that is not read otherwise.
func TestDefinitionElsewhere(t *testing.T) {
	declared := d(tagClassType, name("Far"), flag(atDeclaration))
	pointer := d(tagPointerType, typ(declared))
	fn := d(tagSubprogram, name("f"), low(0x1000), span(16)).Add(
		d(tagFormalParameter, name("p"), typ(pointer), expr(atLocation, opReg0+5)))
	integer := baseType("int", 4, ateSigned)
	second := unitOf(4, dwarf.LangCpp14, integer, d(tagClassType, name("Far"), num(atByteSize, 4)).Add(member("deep", integer, 0)),
		d(tagClassType, name("Other"), num(atByteSize, 4)))
	second.Root.Attrs[2].Val = uint64(0x8000)
	x := read(t, sections(&dwarfbuild.Builder{Units: []*dwarfbuild.Unit{unitOf(4, dwarf.LangCpp14, declared, pointer, fn), second}}),
		&Options{Addrs: []addr.Addr{0x1004}})
	compare(t, declarations(t, x), `
static void f(struct Far *p);
struct Far {
	int deep;
};
`)
}

// Rust's enumerations are a union of their variants and the discriminant.
func TestVariants(t *testing.T) {
	u32, u8 := baseType("u32", 4, 7), baseType("u8", 1, 7)
	some := d(tagStructureType, name("Some"), num(atByteSize, 8)).Add(member("__0", u32, 4))
	none := d(tagStructureType, name("None"), num(atByteSize, 8))
	tag := d(tagMember, typ(u8), num(atMemberLocation, 0), flag(atArtificial))
	option := d(tagStructureType, name("Option"), num(atByteSize, 8)).Add(
		d(tagVariantPart, ref(atDiscr, tag)).Add(tag,
			d(tagVariant, num(atDiscrValue, 0)).Add(member("None", none, 0)),
			d(tagVariant, num(atDiscrValue, 1)).Add(member("Some", some, 0))), some, none)
	compare(t, types(t, unitOf(5, dwarf.LangRust, u32, u8, d(tagNamespace, name("core")).Add(option))), `
struct core::Option {
	union {
		u8 __discriminant;
		struct core::Option::None None;
		struct core::Option::Some Some;
	};
};
struct core::Option::None {
	long long: 64;
};
struct core::Option::Some {
	int: 32;
	u32 __0;
};
`)
}

// Circles, deep nests and impossible sizes end, with a problem where something is lost.
func TestHostileTypes(t *testing.T) {
	a, b := d(tagTypedef, name("a")), d(tagTypedef, name("b"))
	a.Attrs, b.Attrs = append(a.Attrs, typ(b)), append(b.Attrs, typ(a))
	self := d(tagArrayType)
	self.Attrs = append(self.Attrs, typ(self))
	huge := d(tagStructureType, name("huge"), num(atByteSize, 1<<40))
	outside := d(tagStructureType, name("outside"), num(atByteSize, 4)).Add(member("m", a, 1<<20))
	got := types(t, unitOf(4, dwarf.LangC11, a, b, self, huge, outside))
	for _, want := range []string{"problem .debug_info", "member begins outside", "structure of more than"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	nest := baseType("int", 4, ateSigned)
	chain := []*die{nest}
	for range 5000 {
		nest = d(tagPointerType, typ(nest))
		chain = append(chain, nest)
	}
	types(t, unitOf(4, dwarf.LangC11, append(chain, d(tagTypedef, name("deep"), typ(nest)))...))
}
