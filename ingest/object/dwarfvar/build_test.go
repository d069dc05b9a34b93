package dwarfvar

import (
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
)

// Short names for the builder's types.
type (
	attr = dwarfbuild.Attr
	die  = dwarfbuild.DIE
	buf  = dwarfbuild.Buf
)

var d = dwarfbuild.D

const atLanguage, atByteStride, atLoclistsBase = 0x13, 0x2e, 0x8c

func name(s string) attr { return attr{Attr: atName, Form: dwarfbuild.FormString, Val: s} }
func num(code uint16, n uint64) attr {
	return attr{Attr: code, Form: dwarfbuild.FormUdata, Val: n}
}
func signed(code uint16, n int64) attr {
	return attr{Attr: code, Form: dwarfbuild.FormSdata, Val: uint64(n)}
}
func ref(code uint16, to *die) attr {
	return attr{Attr: code, Form: dwarfbuild.FormRef4, Val: to}
}
func typ(to *die) attr      { return ref(atType, to) }
func flag(code uint16) attr { return attr{Attr: code, Form: dwarfbuild.FormFlag, Val: 1} }
func low(a uint64) attr     { return attr{Attr: atLowPC, Form: dwarfbuild.FormAddr, Val: a} }
func span(n uint64) attr    { return attr{Attr: atHighPC, Form: dwarfbuild.FormData4, Val: n} }
func expr(code uint16, b ...byte) attr {
	return attr{Attr: code, Form: dwarfbuild.FormBlock1, Val: b}
}
func list(code uint16, off uint64) attr {
	return attr{Attr: code, Form: dwarfbuild.FormSecOffset, Val: off}
}

func baseType(n string, size, enc uint64) *die {
	return d(tagBaseType, name(n), num(atByteSize, size), num(atEncoding, enc))
}

func member(n string, to *die, at uint64, more ...attr) *die {
	return d(tagMember, append([]attr{name(n), typ(to), num(atMemberLocation, at)}, more...)...)
}

// unitOf makes a unit with code at 0x1000.
func unitOf(version uint16, lang uint64, kids ...*die) *dwarfbuild.Unit {
	root := d(tagCompileUnit, name("a.c"), num(atLanguage, lang), low(0x1000), span(0x1000))
	return &dwarfbuild.Unit{Version: version, Root: root.Add(kids...)}
}

// sections returns the sections of units.
func sections(b *dwarfbuild.Builder) dwarf.Sections {
	s := b.Sections()
	return dwarf.Sections{Info: s[".debug_info"], Abbrev: s[".debug_abbrev"], Str: s[".debug_str"],
		Addr: s[".debug_addr"], Ranges: s[".debug_ranges"], RngLists: s[".debug_rnglists"],
		Loc: s[".debug_loc"], LocLists: s[".debug_loclists"], Types: s[".debug_types"], BigEndian: b.Big}
}

func read(t testing.TB, s dwarf.Sections, o *Options) *Info {
	t.Helper()
	x, err := Read(t.Context(), dwarf.New(s, dwarf.Options{Name: "a.out"}), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// types returns the named types of units as C.
func types(t *testing.T, units ...*dwarfbuild.Unit) string {
	t.Helper()
	x := read(t, sections(&dwarfbuild.Builder{Units: units}), &Options{All: true})
	return declarations(t, x)
}

func declarations(t *testing.T, x *Info) string {
	t.Helper()
	ts := x.Types()
	var b strings.Builder
	for id := btf.ID(1); id < btf.ID(ts.Len()); id++ {
		switch ts.Kind(id) {
		case btf.KindInt, btf.KindTypeTag, btf.KindFloat:
			continue
		}
		if ts.Name(id) == "" {
			continue
		}
		c, err := ts.AppendC(nil, id, &btf.COptions{Plain: true})
		if err != nil {
			c = append(c, err.Error()+"\n"...)
		}
		b.Write(c)
	}
	problems, _ := x.Problems()
	for _, p := range problems {
		fmt.Fprintln(&b, "problem", p)
	}
	return b.String()
}

// places prints the functions with their variables and places.
func places(t testing.TB, x *Info) string {
	t.Helper()
	var b strings.Builder
	for i := range x.Len() {
		f, err := x.Function(i)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %x %s\n", f.Name, f.Linkage, f.Ranges, x.Types().TypeName(f.Result))
		for _, v := range f.Vars {
			kind := "variable"
			if v.Param {
				kind = "parameter"
			}
			fmt.Fprintf(&b, "  %s %s %s", kind, x.Types().TypeName(v.Type), v.Name)
			if in := f.Inlined(v.Scope); in != "" {
				fmt.Fprintf(&b, " in %s %x", in, f.Scopes[v.Scope].Ranges)
			}
			for _, w := range v.Where {
				fmt.Fprintf(&b, " %s", place(w.Place))
				if !v.Whole {
					fmt.Fprintf(&b, "@%x", w.Range)
				}
			}
			b.WriteByte('\n')
		}
	}
	for _, g := range x.Globals() {
		fmt.Fprintf(&b, "global %s %s %#x %d %v\n", x.Types().TypeName(g.Type), g.Name, g.Addr, g.Size, g.Local)
	}
	problems, _ := x.Problems()
	for _, p := range problems {
		fmt.Fprintln(&b, "problem", p)
	}
	return b.String()
}

var kindNames = []string{"lost", "reg", "mem", "stack", "static", "tls", "const", "sum", "&stack",
	"entry", "bytes", "pointee", "parts", "computed"}

func place(p Place) string {
	s := kindNames[p.Kind]
	switch p.Kind {
	case Register, Memory, Sum, Entry:
		s += fmt.Sprint(p.Reg)
	}
	if p.Off != 0 {
		s += fmt.Sprintf("%+d", p.Off)
	}
	if p.Data != nil {
		s += fmt.Sprintf("%x", p.Data)
	}
	for _, part := range p.Parts {
		s += fmt.Sprintf("[%d %s]", part.Bits, place(part.Place))
	}
	return s
}
