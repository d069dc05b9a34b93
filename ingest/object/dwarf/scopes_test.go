package dwarf

import (
	stddwarf "debug/dwarf"
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

func namespace(n string, kids ...*die) *die {
	if n == "" {
		return dwarfbuild.D(tagNamespace).Add(kids...)
	}
	return dwarfbuild.D(tagNamespace, name(n)).Add(kids...)
}

func structure(n string, kids ...*die) *die {
	d := dwarfbuild.D(tagStructureType, udata(atDeclLine, 12)).Add(kids...)
	if n != "" {
		d.Attrs = append(d.Attrs, name(n))
	}
	return d
}

// declared is the declaration of a function, defines one that refers to it.
func declared(n string) *die {
	return sub(name(n), attr{Attr: atDeclaration, Form: formFlagPresent})
}

func defines(decl *die, attrs ...attr) *die {
	return sub(append(attrs, attr{Attr: atSpecification, Form: formRef4, Val: decl})...)
}

// scoped builds a C++ unit with one function main, which calls all of the given ones.
func scoped(lang uint64, roots []*die, called ...*die) *dwarfbuild.Unit {
	u := cu(4)
	u.Root.Attrs[2].Val = lang
	caller := fn("main", 0x1000, 0x1000)
	for i, c := range called {
		caller.Add(inl(c, low(0x1000+uint64(i)*16), length(16)))
	}
	u.Root.Add(caller) // references lead forward
	u.Root.Add(roots...)
	return u
}

// calledNames returns the names of the inlined calls of a unit.
func calledNames(t *testing.T, d *Data) string {
	t.Helper()
	var names []string
	err := d.Walk(t.Context(), 1, func(u *Unit) error {
		for _, p := range u.Problems {
			names = append(names, p.Error())
		}
		for _, f := range u.Functions {
			for _, in := range f.Inlines {
				names = append(names, string(u.Subs[in.Sub].Name))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

func TestScopesOfNames(t *testing.T) {
	direct, unnamed := abstract("direct"), abstract("unnamed")
	method, template := declared("get"), abstract("as<double>")
	defined := defines(method, attr{Attr: atInline, Form: formData1, Val: 1})
	local, call, inner := abstract("run"), abstract("operator()<int>"), abstract("deep")
	outerDecl := declared("outer")
	outer := defines(outerDecl).Add(
		dwarfbuild.D(tagLexicalBlock).Add(structure("Local", local)),
		structure("", call.Add(structure("In", inner))))
	linked := abstract("linked")
	linked.Attrs = append(linked.Attrs, str(atLinkageName, "_ZN3app6linkedEv"))
	top, part := abstract("top"), abstract("main._omp_fn.0")
	anonymous, later := abstract("member"), abstract("later")
	nested := structure("Nested")
	called := []*die{direct, unnamed, defined, template, local, call, inner, linked, top, part,
		anonymous, later}
	roots := []*die{
		namespace("app", direct, namespace("", unnamed), structure("Box<int>", method, template),
			outerDecl, linked, namespace("part", part), structure("Holder", nested)),
		top, defined, outer, structure("", anonymous),
		dwarfbuild.D(tagStructureType,
			attr{Attr: atSpecification, Form: formRef4, Val: nested}).Add(later),
	}
	want := `app::direct
app::(anonymous namespace)::unnamed
app::Box<int>::get
app::Box<int>::as<double>
app::outer()::Local::run
app::outer()::{lambda:12}::operator()<int>
app::outer()::{lambda:12}::operator()<int>()::In::deep
linked
top
main._omp_fn.0
(anonymous struct)::member
app::Holder::Nested::later`
	for _, siblings := range []bool{false, true} {
		if siblings {
			for _, d := range roots {
				withSiblings(d)
			}
		}
		b := one(scoped(LangCpp14, roots, called...))
		if got := calledNames(t, New(built(b.Sections(), b.Big), Options{})); got != want {
			t.Errorf("siblings %v: got\n%s\nwant\n%s", siblings, got, want)
		}
	}
}

// withSiblings gives all entries with children the place of their sibling, as gcc does.
func withSiblings(d *die) {
	if len(d.Children) > 0 {
		d.Attrs = append(d.Attrs, attr{Attr: atSibling, Form: formRef4, Val: dwarfbuild.Sibling{}})
	}
	for _, c := range d.Children {
		withSiblings(c)
	}
}

func TestScopesByLanguage(t *testing.T) {
	for lang, want := range map[uint64]string{
		LangC11: "f", LangGo: "f", LangSwift: "f", LangCpp: "n::f", LangRust: "n::f", LangD: "n.f",
	} {
		f := abstract("f")
		b := one(scoped(lang, []*die{dwarfbuild.D(tagModule, name("n")).Add(f)}, f))
		if got := calledNames(t, New(built(b.Sections(), b.Big), Options{})); got != want {
			t.Errorf("language %#x: got %q, want %q", lang, got, want)
		}
	}
}

// A declaration in another unit, as of link-time optimization, in the file of shared parts that dwz
// makes, and within a .dwo file.
func TestScopesInOtherUnits(t *testing.T) {
	decl := func() (*die, *die) {
		f := abstract("f")
		return f, namespace("n", structure("C", f))
	}
	f, scope := decl()
	other := cu(4)
	other.Root.Attrs[2].Val = uint64(LangCpp14)
	other.Root.Add(scope)
	user := scoped(LangCpp14, nil, f)
	call := user.Root.Children[0].Children[0]
	call.Attrs[0].Form = formRefAddr
	b := one(other, user)
	if got := calledNames(t, New(built(b.Sections(), b.Big), Options{})); got != "n::C::f" {
		t.Errorf("other unit: got %q", got)
	}

	f, scope = decl()
	alt := one(&dwarfbuild.Unit{Version: 4,
		Root: dwarfbuild.D(tagPartialUnit).Add(scope)})
	ad := New(built(alt.Sections(), false), Options{})
	user = scoped(LangCpp14, nil, f)
	user.Root.Children[0].Children[0].Attrs[0] = attr{Attr: atAbstractOrigin,
		Form: formGNURefAlt, Val: offsetOf(t, ad, "f")}
	b = one(user)
	if got := calledNames(t, New(built(b.Sections(), false), Options{Alt: ad})); got != "n::C::f" {
		t.Errorf("shared parts: got %q", got)
	}
}

// offsetOf returns the offset of the only entry with a name among the subprograms of a Data.
func offsetOf(t *testing.T, d *Data, n string) uint64 {
	t.Helper()
	d.scan()
	u := d.units.at(0)
	at := strings.LastIndex(string(d.sec.Info[:u.end]), n+"\x00") // after its code
	return uint64(at) - 1
}

// A hostile file has each unit search all of a large one: the budget of a unit ends that, and the
// names stay as they are.
func TestScopesBudget(t *testing.T) {
	f := abstract("f")
	filler := make([]*die, 1<<16)
	for i := range filler {
		filler[i] = dwarfbuild.D(tagArrayType, udata(atDeclLine, 1))
	}
	other := cu(4)
	other.Root.Attrs[2].Val = uint64(LangCpp14)
	other.Root.Add(filler...)
	other.Root.Add(namespace("n", f))
	user := scoped(LangCpp14, nil, f)
	user.Root.Children[0].Children[0].Attrs[0].Form = formRefAddr
	b := one(other, user)
	got := calledNames(t, New(built(b.Sections(), b.Big), Options{}))
	if !strings.Contains(got, "scopes") || !strings.HasSuffix(got, "\nf") {
		t.Errorf("got %q", got)
	}
}

// stdScopes qualifies names by debug/dwarf, for comparison: it keeps the parents of all entries.
type stdScopes struct {
	d       *stddwarf.Data
	parents map[stddwarf.Offset]stddwarf.Offset
	sep     string // of the unit at hand
}

func newStdScopes(t testing.TB, d *stddwarf.Data) *stdScopes {
	s := &stdScopes{d: d, parents: make(map[stddwarf.Offset]stddwarf.Offset)}
	var open []stddwarf.Offset
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return s
		}
		if e.Tag == 0 {
			open = open[:len(open)-1]
			continue
		}
		if len(open) > 0 {
			s.parents[e.Offset] = open[len(open)-1]
		}
		if e.Children {
			open = append(open, e.Offset)
		}
	}
}

func (s *stdScopes) entry(t testing.TB, off stddwarf.Offset) *stddwarf.Entry {
	r := s.d.Reader()
	r.Seek(off)
	e, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// of returns the scopes of an entry; calls is that it is a call operator.
func (s *stdScopes) of(t testing.TB, off stddwarf.Offset, calls bool) string {
	up, ok := s.parents[off]
	if !ok || s.sep == "" {
		return ""
	}
	e := s.entry(t, up)
	text, _ := e.Val(stddwarf.AttrName).(string)
	decl := e
	for {
		next, ok := decl.Val(stddwarf.AttrAbstractOrigin).(stddwarf.Offset)
		if !ok {
			next, ok = decl.Val(stddwarf.AttrSpecification).(stddwarf.Offset)
		}
		if !ok {
			break
		}
		decl = s.entry(t, next)
		if n, ok := decl.Val(stddwarf.AttrName).(string); ok && text == "" {
			text = n
		}
	}
	outer := s.of(t, decl.Offset, calls && text == "" && e.Tag != stddwarf.TagStructType &&
		e.Tag != stddwarf.TagClassType || strings.HasPrefix(text, "operator()"))
	switch e.Tag {
	case stddwarf.TagSubprogram:
		if text != "main" {
			text += "()"
		}
	case stddwarf.TagNamespace:
		if text == "" {
			text = "(anonymous namespace)"
		}
	case stddwarf.TagStructType, stddwarf.TagClassType, stddwarf.TagUnionType,
		stddwarf.TagEnumerationType, stddwarf.TagModule:
		if text == "" && calls {
			line, _ := e.Val(stddwarf.AttrDeclLine).(int64)
			text = fmt.Sprintf("{lambda:%d}", line)
		} else if text == "" {
			text = map[stddwarf.Tag]string{stddwarf.TagStructType: "(anonymous struct)",
				stddwarf.TagClassType: "(anonymous class)",
				stddwarf.TagUnionType: "(anonymous union)"}[e.Tag]
		}
	default:
		return outer
	}
	return outer + text + s.sep
}

// Scopes that are nested deeper than any compiler nests them are not read.
func TestScopesDepth(t *testing.T) {
	for _, depth := range []int{maxScopes, maxScopes + 1} {
		f := abstract("f")
		scope := f
		for range depth {
			scope = namespace("n", scope)
		}
		b := one(scoped(LangCpp14, []*die{scope}, f))
		got := calledNames(t, New(built(b.Sections(), b.Big), Options{}))
		want := strings.Repeat("n::", depth) + "f"
		if depth > maxScopes {
			want = ".debug_info: offset"
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%d scopes: got %q", depth, got)
		}
	}
}
