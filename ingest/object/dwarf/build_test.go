package dwarf

import (
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

// Short names for the builder's types.
type (
	attr = dwarfbuild.Attr
	die  = dwarfbuild.DIE
)

func addrAt(at uint16, v uint64) attr { return attr{Attr: at, Form: formAddr, Val: v} }
func udata(at uint16, v uint64) attr  { return attr{Attr: at, Form: formUdata, Val: v} }
func secOff(at uint16, v uint64) attr {
	return attr{Attr: at, Form: formSecOffset, Val: v}
}

func str(at uint16, s string) attr { return attr{Attr: at, Form: formString, Val: s} }
func name(s string) attr           { return str(atName, s) }
func origin(d *die) attr           { return attr{Attr: atAbstractOrigin, Form: formRef4, Val: d} }
func low(v uint64) attr            { return addrAt(atLowPC, v) }
func length(n uint64) attr         { return attr{Attr: atHighPC, Form: formData4, Val: n} }

func fn(n string, at, len uint64) *die { return sub(name(n), low(at), length(len)) }

func sub(attrs ...attr) *die { return dwarfbuild.D(tagSubprogram, attrs...) }
func inl(o *die, attrs ...attr) *die {
	return dwarfbuild.D(tagInlinedSubroutine, append([]attr{origin(o)}, attrs...)...)
}
func abstract(n string) *die {
	return sub(name(n), attr{Attr: atInline, Form: formData1, Val: 1})
}

// cu makes a compile unit with a low_pc of 0, as one of several sections has.
func cu(version uint16, attrs ...attr) *dwarfbuild.Unit {
	own := []attr{name("a.c"), str(atCompDir, "/src"), udata(atLanguage, LangC11)}
	attrs = append(own, attrs...)
	return &dwarfbuild.Unit{Version: version, Root: &die{
		Tag: tagCompileUnit, Attrs: attrs, Parent: true,
	}}
}

// built turns sections by name into Sections.
func built(secs map[string][]byte, big bool) Sections {
	s := Sections{BigEndian: big}
	for base, dst := range s.wanted(true) {
		*dst = secs[".debug_"+base]
	}
	return s
}

// dump lists units in a form for comparison: functions with their ranges and source
// lines, inlined calls indented below them, rows and problems.
func dump(t testing.TB, d *Data) string {
	t.Helper()
	var b strings.Builder
	err := d.Walk(t.Context(), 1, func(u *Unit) error {
		dumpUnit(&b, u)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func dumpUnit(b *strings.Builder, u *Unit) {
	file := func(i uint32) string {
		if i == NoFile {
			return "?"
		}
		return string(AppendPath(nil, u.Files[i]))
	}
	named := func(i int32) string {
		if i == NoSub {
			return "?"
		}
		s, text := u.Subs[i], string(u.Subs[i].Name)
		if s.Linkage != nil {
			text += "=" + string(s.Linkage)
		}
		if s.DeclLine != 0 || s.DeclFile != NoFile {
			text += fmt.Sprintf(" decl %s:%d", file(s.DeclFile), s.DeclLine)
		}
		return text
	}
	for _, f := range u.Functions {
		fmt.Fprintf(b, "%s %x\n", named(f.Sub), f.Ranges)
		for i, in := range f.Inlines {
			if in.Parent >= int32(i) {
				fmt.Fprintf(b, "parent %d of %d\n", in.Parent, i)
			}
			fmt.Fprintf(b, "%s%s %x call %s:%d:%d%s\n", strings.Repeat(" ", int(in.Depth)+1),
				named(in.Sub), in.Ranges, file(in.CallFile), in.CallLine, in.CallColumn,
				discriminator(in.CallDiscriminator))
		}
	}
	for _, s := range u.Sequences {
		fmt.Fprintf(b, "seq %x", s.Range)
		for _, r := range s.Rows {
			fmt.Fprintf(b, " %x=%s:%d:%d%s", r.Addr, file(r.File), r.Line, r.Column, discriminator(r.Discriminator))
		}
		b.WriteByte('\n')
	}
	if u.Dead > 0 {
		fmt.Fprintf(b, "dead %d\n", u.Dead)
	}
	for _, p := range u.Problems {
		fmt.Fprintf(b, "problem %v\n", p)
	}
}

// check builds the units and compares the decoded result with want, lines trimmed.
func check(t *testing.T, b *dwarfbuild.Builder, o Options, want string) {
	t.Helper()
	checkData(t, New(built(b.Sections(), b.Big), o), want)
}

func checkData(t *testing.T, d *Data, want string) {
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
	if got := trim(dump(t, d)); got != trim(want) {
		t.Errorf("got\n%s\nwant\n%s", got, trim(want))
	}
}

// discriminator is the text of a discriminator, "" for none.
func discriminator(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint("/", n)
}
