package dwarfvar

import (
	"fmt"
	"testing"

	"symbolize/fixtures/dwarfbuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
)

// sample is a unit of each form of location lists with a function of all kinds of places, and global
// variables.
func sample(version uint16, big bool) dwarf.Sections {
	b := &dwarfbuild.Builder{Big: big}
	integer := baseType("int", 4, ateSigned)
	integer8 := baseType("long", 8, ateSigned)
	var lists *buf
	locations := attr{}
	if version < 5 {
		lists = b.Section(".debug_loc")
		for _, e := range []struct {
			from, to uint64
			expr     []byte
		}{{0, 4, []byte{opReg0 + 5}}, {4, 4, []byte{opReg0 + 9}}, {8, 16, []byte{opFbreg, 0x70}},
			{16, 32, []byte{opGNUEntry, 1, opReg0 + 5, opStackValue}}} {
			lists.U64(e.from).U64(e.to).U16(uint16(len(e.expr))).U8(e.expr...)
		}
		lists.U64(0).U64(0)
		locations = list(atLocation, 0)
	} else {
		lists = b.Section(".debug_loclists")
		lists.U32(0).U16(5).U8(8, 0).U32(1).U32(4)
		lists.U8(9).ULEB(1, 2)
		lists.U8(4).ULEB(0, 4).ULEB(1).U8(opReg0 + 5)
		lists.U8(6).U64(0x1000)
		lists.U8(4).ULEB(8, 16).ULEB(2).U8(opFbreg, 0x70)
		lists.U8(8).U64(0x1010).ULEB(16).ULEB(4).U8(opEntryValue, 1, opReg0+5, opStackValue)
		lists.U8(5).ULEB(2).U8(opLit0+7, opStackValue)
		lists.U8(0)
		locations = attr{Attr: atLocation, Form: dwarfbuild.FormLoclistx, Val: 0}
	}
	at := func(n string, e ...byte) *die {
		return d(tagVariable, name(n), typ(integer), expr(atLocation, e...))
	}
	inlined := d(tagSubprogram, name("inlined"), typ(integer), num(0x20, 1))
	arg, gone := d(tagFormalParameter, name("arg"), typ(integer)), d(tagVariable, name("gone"), typ(integer))
	inlined.Add(arg, gone)
	address := append([]byte{opAddr}, new(buf).U64(0x4000).B...)
	if big {
		address = append([]byte{opAddr}, (&buf{Big: true}).U64(0x4000).B...)
	}
	fn := d(tagSubprogram, name("f"), typ(integer8), low(0x1000), span(64), flag(atExternal),
		expr(atFrameBase, opCallFrameCFA)).Add(
		d(tagFormalParameter, name("p"), typ(integer), locations),
		at("memory", opBreg0+3, 8), at("sum", opBreg0+3, 0x78, opStackValue), at("address", opFbreg, 0x60, opStackValue),
		at("stack", opFbreg, 0x60), at("parts", opReg0+1, opPiece, 4, opPiece, 4, opLit0+3, opStackValue, opPiece, 8),
		at("bytes", opImplicit, 2, 1, 2), at("lost"), at("deref", opFbreg, 0x60, opDeref),
		at("number", opConst1s, 0xfe, opPlusUconst, 5, opLit0+2, opMul, opStackValue),
		d(tagVariable, name("minus"), typ(integer), attr{Attr: atConstValue, Form: dwarfbuild.FormData4, Val: uint64(0xffffffff)}),
		d(tagVariable, name("fixed"), typ(integer), expr(atLocation, address...)),
		d(tagInlinedSubroutine, ref(atAbstractOrigin, inlined), low(0x1010), span(16)).Add(
			d(tagFormalParameter, ref(atAbstractOrigin, arg), expr(atLocation, opReg0+2))),
		d(tagLexicalBlock, low(0x1020), span(8)).Add(at("inner", opRegx, 17)))
	tls := []byte{opConst4u, 16, 0, 0, 0, opGNUTLS}
	if big {
		tls = []byte{opConst4u, 0, 0, 0, 16, opGNUTLS}
	}
	u := unitOf(version, dwarf.LangC11, integer, integer8, inlined, fn, at("local", tls...),
		d(tagVariable, name("elsewhere"), typ(integer), flag(atDeclaration)))
	if version >= 5 {
		u.Root.Attrs = append(u.Root.Attrs, list(atLoclistsBase, 12))
	}
	b.Units = []*dwarfbuild.Unit{u}
	return sections(b)
}

func TestPlaces(t *testing.T) {
	for version := uint16(2); version <= 5; version++ {
		for _, big := range []bool{false, true} {
			whole := ""
			if version == 5 {
				whole = " const+7@{0 ffffffffffffffff}"
			}
			want := fmt.Sprintf(`
f  [{1000 1040}] long
parameter int p reg5@{1000 1004} stack-16@{1008 1010} entry5@{1010 1020}%s
variable int memory mem3+8
variable int sum sum3-8
variable int address &stack-32
variable int stack stack-32
variable int parts parts[32 reg1][32 lost][64 const+3]
variable int bytes bytes0102
variable int lost
variable int deref computed
variable int number const+6
variable int minus const-1
variable int fixed static+16384
parameter int arg in inlined [{1010 1020}] reg2
variable int gone in inlined [{1010 1020}]
variable int inner reg17
global int fixed 0x4000 4 false
global int local 0x10 4 true
`, whole)
			x := read(t, sample(version, big), &Options{All: true})
			t.Logf("version %d, big %v", version, big)
			compare(t, places(t, x), want)
		}
	}
}

// An inlined call without entries of its own has the parameters of its abstract instance; a static
// variable of a block that has no code there is found in it, too.
func TestAbstractVariables(t *testing.T) {
	integer := baseType("int", 4, ateSigned)
	address := append([]byte{opAddr}, new(buf).U64(0x4000).B...)
	inlined := d(tagSubprogram, name("inlined"), num(0x20, 1)).Add(
		d(tagFormalParameter, name("arg"), typ(integer)),
		d(tagLexicalBlock).Add(d(tagVariable, name("gone"), typ(integer)),
			d(tagVariable, name("once"), typ(integer), expr(atLocation, address...))))
	fn := d(tagSubprogram, name("f"), low(0x1000), span(16)).Add(
		d(tagInlinedSubroutine, ref(atAbstractOrigin, inlined), low(0x1004), span(4)),
		d(tagVariable, name("after"), typ(integer), expr(atLocation, opReg0)))
	s := sections(&dwarfbuild.Builder{Units: []*dwarfbuild.Unit{unitOf(4, dwarf.LangC11, integer, inlined, fn)}})
	compare(t, places(t, read(t, s, &Options{Names: []string{"f"}})), `
f  [{1000 1010}] void
parameter int arg in inlined [{1004 1008}]
variable int once in inlined [{1004 1008}] static+16384
variable int after reg0
`)
}

// A function is read alone, by an address or a name.
func TestOnDemand(t *testing.T) {
	s := sample(4, false)
	for _, o := range []*Options{{Addrs: []addr.Addr{0x1013}}, {Names: []string{"f"}}} {
		x := read(t, s, o)
		f, err := x.FunctionAt(0x1013)
		if err != nil || f == nil || x.Len() != 1 {
			t.Fatalf("%v: %d functions, error %v", o, x.Len(), err)
		}
		var in []string
		for i := range f.Vars {
			if v := &f.Vars[i]; f.Holds(v.Scope, 0x1013) && (v.Name == "p" || v.Scope > 0) {
				in = append(in, v.Name+" "+place(v.At(0x1013)))
			}
		}
		if got := fmt.Sprint(in); got != "[p entry5 arg reg2 gone lost]" {
			t.Errorf("%v: %s", o, got)
		}
		if g := len(x.Globals()); g != 0 {
			t.Errorf("%d global variables that nobody asked for", g)
		}
	}
	if f, err := read(t, s, &Options{Addrs: []addr.Addr{0x9000}}).FunctionAt(0x9000); f != nil || err != nil {
		t.Errorf("a function %v, error %v where there is none", f, err)
	}
}

// A frame base of a location list gives a variable one place for each.
func TestFrameBaseList(t *testing.T) {
	b := &dwarfbuild.Builder{}
	b.Section(".debug_loc").U64(0).U64(1).U16(2).U8(opBreg0+7, 8).U64(1).U64(16).U16(2).U8(opBreg0+6, 16).U64(0).U64(0)
	fn := d(tagSubprogram, name("f"), low(0x1000), span(16), list(atFrameBase, 0)).Add(
		d(tagVariable, name("v"), expr(atLocation, opFbreg, 0x60)))
	b.Units = []*dwarfbuild.Unit{unitOf(4, dwarf.LangC11, fn)}
	compare(t, places(t, read(t, sections(b), &Options{All: true})), `
f  [{1000 1010}] void
variable void v mem7-24@{1000 1001} mem6-16@{1001 1010}
`)
}

// Every prefix of a section gives a result or a problem.
func TestTruncated(t *testing.T) {
	rnd := sweep.Rand(t)
	for _, version := range []uint16{2, 4, 5} {
		s := sample(version, false)
		for _, part := range []*[]byte{&s.Info, &s.Abbrev, &s.Loc, &s.LocLists, &s.Str} {
			whole := *part
			for n := range sweep.Of(rnd, len(whole), 200) {
				*part = whole[:n:n]
				places(t, read(t, s, &Options{All: true}))
			}
			*part = whole
		}
	}
}

// Expressions with nonsense are no places.
func TestExpressions(t *testing.T) {
	for _, c := range []struct {
		name string
		expr []byte
		want string
	}{
		{"nothing", nil, "lost"},
		{"cut", []byte{opConst8u, 1}, "computed"},
		{"unknown operation", []byte{0xff}, "computed"},
		{"empty stack", []byte{opPlus}, "computed"},
		{"swap", []byte{opLit0 + 1, opBreg0 + 3, 0, opSwap, opPlus}, "mem3+1"},
		{"stack value of a register", []byte{opReg0 + 3, opStackValue}, "sum3"},
		{"entry value without stack value", []byte{opEntryValue, 1, opReg0 + 5}, "computed"},
		{"entry value plus", []byte{opEntryValue, 1, opReg0 + 5, opPlusUconst, 4, opStackValue}, "entry5+4"},
		{"typed", []byte{opRegvalType, 17, 0, opConvert, 0, opStackValue}, "computed"},
		{"branch", []byte{opLit0, opBra, 0, 0}, "computed"},
		{"pointee", []byte{opImplicitPtr, 1, 0, 0, 0, 0}, "pointee"},
		{"two registers", []byte{opReg0, opReg0 + 1}, "computed"},
		{"bits of a register", []byte{opReg0 + 1, opBitPiece, 8, 8, opPiece, 1}, "parts[8 computed][8 lost]"},
		{"place after the last part", []byte{opReg0, opPiece, 4, opReg0 + 1}, "computed"},
		{"frame base that is not known", []byte{opFbreg, 0}, "computed"},
	} {
		x := read(t, sections(&dwarfbuild.Builder{Units: []*dwarfbuild.Unit{unitOf(4, dwarf.LangC11,
			d(tagSubprogram, name("f"), low(0x1000), span(16)).Add(d(tagVariable, name("v"), expr(atLocation, c.expr...))))}}),
			&Options{All: true})
		f, err := x.Function(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := place(f.Vars[0].At(0x1000)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// FuzzRead mutates the sections of whole files.
func FuzzRead(f *testing.F) {
	for _, version := range []uint16{2, 4, 5} {
		for _, big := range []bool{false, true} {
			s := sample(version, big)
			f.Add(s.Info, s.Abbrev, s.Loc, s.LocLists, s.Str, big)
		}
	}
	f.Fuzz(func(t *testing.T, info, abbrev, loc, lists, str []byte, big bool) {
		s := dwarf.Sections{Info: info, Abbrev: abbrev, Loc: loc, LocLists: lists, Str: str, Types: loc, BigEndian: big}
		for _, o := range []*Options{{All: true}, {Addrs: []addr.Addr{0x1013}}, {Names: []string{"f"}, Globals: true}} {
			x, err := Read(t.Context(), dwarf.New(s, dwarf.Options{Name: "a.out"}), o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range x.Len() {
				if _, err := x.Function(i); err != nil {
					t.Fatal(err)
				}
			}
			x.Close()
		}
	})
}

// TestCalls reads what called functions return, by the entries of calls.
func TestCalls(t *testing.T) {
	integer := baseType("int", 4, ateSigned)
	item := d(tagStructureType, name("item"), num(atByteSize, 8)).Add(member("n", integer, 0))
	pointer := d(tagPointerType, typ(item))
	external := d(tagSubprogram, name("find"), typ(pointer), flag(atDeclaration), flag(atExternal))
	nothing := d(tagSubprogram, name("stop"), flag(atDeclaration), flag(atExternal))
	own := d(tagSubprogram, name("own"), typ(integer), low(0x1100), span(16))
	instance := d(tagSubprogram, ref(atAbstractOrigin, own), low(0x1200), span(16))
	at := func(code uint16, a uint64) attr { return attr{Attr: code, Form: dwarfbuild.FormAddr, Val: a} }
	for _, c := range []struct {
		name string
		call *die
		want string
	}{
		{name: "a declared function", call: d(tagCallSite, at(atCallReturnPC, 0x1010), ref(atCallOrigin, external)),
			want: "[{0x1010 struct item *}]"},
		{name: "one of the file", call: d(tagCallSite, at(atCallReturnPC, 0x1010), ref(atCallOrigin, own)),
			want: "[{0x1010 int}]"},
		{name: "an instance of it", call: d(tagCallSite, at(atCallReturnPC, 0x1010), ref(atCallOrigin, instance)),
			want: "[{0x1010 int}]"},
		{name: "GNU's before DWARF 5", call: d(tagGNUCallSite, low(0x1010), ref(atAbstractOrigin, external)),
			want: "[{0x1010 struct item *}]"},
		{name: "of an inlined function", call: d(tagInlinedSubroutine, ref(atAbstractOrigin, own), low(0x1010), span(16)).Add(
			d(tagCallSite, at(atCallReturnPC, 0x1018), ref(atCallOrigin, external))), want: "[{0x1018 struct item *}]"},
		{name: "no result", call: d(tagCallSite, at(atCallReturnPC, 0x1010), ref(atCallOrigin, nothing)), want: "[]"},
		{name: "no origin", call: d(tagCallSite, at(atCallReturnPC, 0x1010)), want: "[]"},
		{name: "no address", call: d(tagCallSite, ref(atCallOrigin, external)), want: "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fn := d(tagSubprogram, name("f"), low(0x1000), span(64)).Add(c.call)
			u := unitOf(5, dwarf.LangC11, integer, item, pointer, external, nothing, own, instance, fn)
			b := &dwarfbuild.Builder{Units: []*dwarfbuild.Unit{u}}
			for _, o := range []Options{{All: true}, {Addrs: []addr.Addr{0x1000}}} {
				x := read(t, sections(b), &o)
				f, err := x.FunctionAt(0x1000)
				if err != nil {
					t.Fatal(err)
				}
				got := []string{}
				for _, call := range f.Calls {
					got = append(got, fmt.Sprintf("{%#x %s}", call.Return, x.Types().TypeName(call.Result)))
				}
				if fmt.Sprint(got) != c.want {
					t.Errorf("all: %v: %v, want %s", o.All, got, c.want)
				}
			}
		})
	}
}

// TestResultAt reads what the functions of a unit return, of which one is selected.
func TestResultAt(t *testing.T) {
	integer := baseType("int", 4, ateSigned)
	item := d(tagStructureType, name("item"), num(atByteSize, 8)).Add(member("n", integer, 0))
	pointer := d(tagPointerType, typ(item))
	fn := d(tagSubprogram, name("f"), low(0x1000), span(64))
	maker := d(tagSubprogram, name("make"), typ(pointer), low(0x1100), span(16))
	declared := d(tagSubprogram, name("declared"), typ(integer), flag(atDeclaration))
	instance := d(tagSubprogram, ref(atSpecification, declared), low(0x1200), span(16))
	nothing := d(tagSubprogram, name("nothing"), low(0x1300), span(16))
	first := unitOf(4, dwarf.LangRust, integer, item, pointer, fn, maker, declared, instance, nothing)
	number := baseType("u64", 8, ateSigned)
	second := unitOf(4, dwarf.LangRust, number, d(tagSubprogram, name("other"), typ(number), low(0x2000), span(16)))
	b := &dwarfbuild.Builder{Units: []*dwarfbuild.Unit{first, second}}
	for _, o := range []Options{{All: true}, {Addrs: []addr.Addr{0x1000}, Linked: true}} {
		x := read(t, sections(b), &o)
		for _, c := range []struct {
			name string
			at   addr.Addr
			want string
		}{
			{name: "a pointer", at: 0x1100, want: "struct item *"},
			{name: "by its declaration", at: 0x1200, want: "int"},
			{name: "nothing", at: 0x1300, want: "void"},
			{name: "inside of a function", at: 0x1104, want: "void"},
			{name: "of another unit", at: 0x2000, want: "void"},
		} {
			if got := x.Types().TypeName(x.ResultAt(0, c.at)); got != c.want {
				t.Errorf("all: %v: %s: %s, want %s", o.All, c.name, got, c.want)
			}
		}
	}
}
