package dwarfvar

import (
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
)

// TestLinkedTypes reads one function with Options.Linked: types of its unit are there that it does not refer to.
func TestLinkedTypes(t *testing.T) {
	integer := baseType("int", 4, ateSigned)
	item := d(tagStructureType, name("item"), num(atByteSize, 4)).Add(member("n", integer, 0))
	pair := d(tagStructureType, name("pair"), num(atByteSize, 8)).Add(member("a", item, 0), member("b", item, 4))
	u := unitOf(5, dwarf.LangC11, integer, item, pair, d(tagSubprogram, name("f"), low(0x1000), span(16)).Add(
		d(tagFormalParameter, name("p"), typ(item))))
	b := &dwarfbuild.Builder{Units: []*dwarfbuild.Unit{u}}
	for _, linked := range []bool{false, true} {
		x := read(t, sections(b), &Options{Addrs: []addr.Addr{0x1004}, Linked: linked})
		if _, ok := x.Types().ByName(btf.KindStruct, "pair"); ok != linked {
			t.Errorf("linked %v: a structure that holds the parameter's: %v", linked, ok)
		}
	}
}

// TestDeclared reads the variables that a unit declares and another one defines, and those without a place.
func TestDeclared(t *testing.T) {
	declared := func(tag uint16, word string, of *die, more ...attr) *die {
		return d(tag, append([]attr{name(word), typ(of), flag(atDeclaration)}, more...)...)
	}
	units := func() []*dwarfbuild.Unit {
		integer, long := baseType("int", 4, ateSigned), baseType("long", 8, ateSigned)
		u := unitOf(5, dwarf.LangC11, integer, long,
			declared(tagVariable, "shared", integer, flag(atExternal)), declared(tagVariable, "hidden", integer),
			d(tagVariable, name("thread"), typ(long)), d(tagVariable, name("twice"), typ(long)),
			d(tagVariable, name("number"), typ(long), attr{Attr: atConstValue, Form: dwarfbuild.FormData4, Val: uint64(1)}),
			d(tagSubprogram, name("f"), typ(integer), low(0x1000), span(16), flag(atExternal)).Add(
				declared(tagVariable, "shared", integer, flag(atExternal)), declared(tagVariable, "inner", long, flag(atExternal))))
		integer2 := baseType("int", 4, ateSigned)
		other := unitOf(5, dwarf.LangC11, integer2, declared(tagVariable, "elsewhere", integer2, flag(atExternal)),
			d(tagVariable, name("twice"), typ(integer2)),
			d(tagSubprogram, name("g"), low(0x3000), span(16)))
		u.Root.Attrs = append(u.Root.Attrs, low(0x1000), span(0x1010))
		other.Root.Attrs = append(other.Root.Attrs, low(0x3000), span(16))
		return []*dwarfbuild.Unit{u, other}
	}
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"one function", Options{Addrs: []addr.Addr{0x1004}, Linked: true},
			"inner long, shared int, thread long without a place, twice long without a place"},
		{"all", Options{All: true, Linked: true},
			"elsewhere int, inner long, shared int, thread long without a place, twice long without a place, several"},
		{"not asked for", Options{All: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &dwarfbuild.Builder{Units: units()}
			x := read(t, sections(b), &c.o)
			var list []string
			for _, d := range x.Declared() {
				text := d.Symbol + " " + x.Types().TypeName(d.Type)
				if !d.Placed {
					text += " without a place"
				}
				if d.Several {
					text += ", several"
				}
				list = append(list, text)
			}
			if got := strings.Join(list, ", "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
