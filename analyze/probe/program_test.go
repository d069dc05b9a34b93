package probe

import (
	stdelf "debug/elf"
	"math"
	"strings"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
)

// debugInfo is debug information of built functions.
type debugInfo struct {
	types   *btf.Types
	funcs   []*dwarfvar.Function
	globals []dwarfvar.Global
	body    addr.Addr
	btf     bool
}

func (d *debugInfo) Types() *btf.Types                          { return d.types }
func (d *debugInfo) FromBTF() bool                              { return d.btf }
func (d *debugInfo) Len() int                                   { return len(d.funcs) }
func (d *debugInfo) Function(i int) (*dwarfvar.Function, error) { return d.funcs[i], nil }
func (d *debugInfo) Globals() []dwarfvar.Global                 { return d.globals }
func (d *debugInfo) Decl(*dwarfvar.Function, int32) dwarfvar.SourceLine {
	return dwarfvar.SourceLine{File: "/src/a.c", Line: 10}
}
func (d *debugInfo) LinesFrom(*dwarfvar.Function, int32, uint32) []addr.Addr {
	return []addr.Addr{0x1008, 0x1010}
}
func (d *debugInfo) Places(dwarfvar.SourceLine) []addr.Addr    { return []addr.Addr{0x1008} }
func (d *debugInfo) Body(*dwarfvar.Function) (addr.Addr, bool) { return d.body, d.body != 0 }
func (d *debugInfo) CFA(addr.Addr) (uint16, int64, bool)       { return 7, 32, true }

// Types of the built functions.
const (
	void = iota
	integer
	char
	double
	structure // { int a:3, b:9; int c; struct { long d; } }
	inner
	long
	pointer // to structure
	text    // char *
	matrix  // int [3][4]
	row
	byte3 // structure of 3 bytes
)

func built(t *testing.T) (*btf.Types, func(int) btf.ID) {
	t.Helper()
	b := btf.NewBuilder(false, 8)
	ids := b.Add([]btf.Def{
		integer - 1: {Kind: btf.KindInt, Name: "int", Size: 4, Int: btf.Int{Bits: 32, Signed: true}},
		char - 1:    {Kind: btf.KindInt, Name: "char", Size: 1, Int: btf.Int{Bits: 8, Signed: true}},
		double - 1:  {Kind: btf.KindFloat, Name: "double", Size: 8},
		structure - 1: {Kind: btf.KindStruct, Name: "s", Size: 16, Items: []btf.DefItem{
			{Name: "a", Ref: integer, Bits: 3}, {Name: "b", Ref: integer, Value: 3, Bits: 9}, {Name: "c", Ref: integer, Value: 32},
			{Ref: inner, Value: 64}}},
		inner - 1:   {Kind: btf.KindStruct, Size: 8, Items: []btf.DefItem{{Name: "d", Ref: long}}},
		long - 1:    {Kind: btf.KindInt, Name: "long", Size: 8, Int: btf.Int{Bits: 64, Signed: true}},
		pointer - 1: {Kind: btf.KindPtr, Ref: structure},
		text - 1:    {Kind: btf.KindPtr, Ref: char},
		matrix - 1:  {Kind: btf.KindArray, Ref: row, Len: 3},
		row - 1:     {Kind: btf.KindArray, Ref: integer, Len: 4},
		byte3 - 1:   {Kind: btf.KindStruct, Name: "b", Size: 3, Items: []btf.DefItem{{Name: "x", Ref: char}}},
	})
	types, final, err := b.Types("test")
	if err != nil {
		t.Fatal(err)
	}
	return types, func(n int) btf.ID { return final(ids[n]) }
}

// program returns a program with a function f at 0x1000, of which the named variables are in places.
func program(t *testing.T, m stdelf.Machine, vars ...dwarfvar.Variable) *Program {
	t.Helper()
	types, _ := built(t)
	f := &dwarfvar.Function{Name: "f", Entry: 0x1000, Ranges: []addr.Range{{Start: 0x1000, End: 0x1100}},
		Scopes: []dwarfvar.Scope{{Parent: -1, Ranges: []addr.Range{{Start: 0x1000, End: 0x1100}}}}, Vars: vars}
	return &Program{Path: "/bin/p", Arch: machine.Of(m), Vars: &debugInfo{types: types, funcs: []*dwarfvar.Function{f}},
		FileOffset: func(a addr.Addr) (uint64, bool) { return uint64(a) - 0x1000 + 0x400, true }}
}

// first returns the first line of a text that is a definition for tracefs, without its place.
func first(text []byte) string {
	for _, line := range strings.Split(string(text), "\n") {
		if words := strings.SplitN(line, " ", 3); len(words) == 3 && strings.Contains(words[0], ":symbolize/") {
			return words[2]
		}
	}
	return ""
}

// TestFetches: what is read for places and steps, or why not.
func TestFetches(t *testing.T) {
	_, typ := built(t)
	type place = dwarfvar.Place
	part := func(p place, bits uint64) dwarfvar.Part { return dwarfvar.Part{Place: p, Bits: bits} }
	for _, c := range []struct {
		where   string // f, or f+8
		typ     int
		in      place
		arg     string
		arm     bool
		want    string
		failure string
	}{
		{typ: integer, in: place{Kind: dwarfvar.Register, Reg: 5}, want: "v=%di:s32"},
		{typ: integer, in: place{Kind: dwarfvar.Register, Reg: 8}, want: "v=%r8:s32"},
		{typ: integer, in: place{Kind: dwarfvar.Register, Reg: 17}, failure: "in %xmm0"},
		{typ: integer, in: place{Kind: dwarfvar.Stack, Off: -4}, want: "v=+4(%sp):s32"},
		{where: "f+8", typ: integer, in: place{Kind: dwarfvar.Stack, Off: -4}, want: "v=+28(%sp):s32"},
		{typ: integer, in: place{Kind: dwarfvar.Stack, Off: 16}, arm: true, want: "v=+16(%sp):s32"},
		{typ: integer, in: place{Kind: dwarfvar.Register, Reg: 1}, arm: true, want: "v=%x1:s32"},
		{typ: double, in: place{Kind: dwarfvar.Memory, Reg: 6, Off: -8}, want: "v=-8(%bp):x64"},
		{typ: integer, in: place{Kind: dwarfvar.Constant, Off: -3}, want: `v=\-3:s32`},
		{typ: double, in: place{Kind: dwarfvar.Bytes, Data: []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x3f}}, want: `v=\0x3ff8000000000000:x64`},
		{typ: integer, in: place{Kind: dwarfvar.Sum, Reg: 5, Off: 8}, failure: "the value %di+8"},
		{typ: integer, in: place{Kind: dwarfvar.Sum, Reg: 5}, want: "v=%di:s32"},
		{typ: pointer, in: place{Kind: dwarfvar.Sum, Reg: 5, Off: 8}, arg: "v->c", want: "c=+12(%di):s32"},
		{where: "f+8", typ: pointer, in: place{Kind: dwarfvar.StackAddress, Off: -16}, arg: "v->c", want: "c=+20(%sp):s32"},
		{typ: integer, in: place{Kind: dwarfvar.Entry, Reg: 5}, want: "v=%di:s32"},
		{where: "f+8", typ: integer, in: place{Kind: dwarfvar.Entry, Reg: 5}, failure: "at the function's entry"},
		{typ: integer, in: place{Kind: dwarfvar.Static, Off: 0x4010}, want: "v=@+13328:s32"},
		{typ: matrix, in: place{Kind: dwarfvar.Static, Off: 0x4010}, arg: "v[1][2]", want: "v=@+13352:s32"},
		{typ: integer, in: place{Kind: dwarfvar.ThreadLocal}, failure: "thread-local"},
		{typ: integer, in: place{Kind: dwarfvar.Computed}, failure: "computed"},
		{typ: pointer, in: place{Kind: dwarfvar.Pointee}, failure: "pointer is optimized out"},
		{typ: integer, in: place{}, failure: "optimized out"},
		{typ: pointer, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "v->b", want: "b=+0(%di):b9@3/32"},
		{typ: pointer, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "v->d", want: "d=+8(%di):s64"},
		{typ: pointer, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "n=v->c:x8", want: "n=+4(%di):x8"},
		{typ: pointer, in: place{Kind: dwarfvar.Stack}, arg: "v->c@user", want: "c=+u4(+8(%sp)):s32"},
		{typ: pointer, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "v[2].c", want: "c=+36(%di):s32"},
		{typ: pointer, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "v.c", failure: "is behind ->"},
		{typ: pointer, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "v->x", failure: "has no member x"},
		{typ: structure, in: place{Kind: dwarfvar.Stack}, arg: "v->c", failure: "is behind a dot"},
		{typ: integer, in: place{Kind: dwarfvar.Stack}, arg: "v[1]", failure: "neither an array nor a pointer"},
		{typ: text, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "v:string", want: "v_string=+0(%di):string"},
		{typ: text, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "v:ustring", want: "v_ustring=+0(%di):ustring"},
		{typ: integer, in: place{Kind: dwarfvar.Stack}, arg: "v:string", failure: "array of char"},
		{typ: structure, in: place{Kind: dwarfvar.Stack}, want: "v=+8(%sp):x64"},
		{typ: byte3, in: place{Kind: dwarfvar.Stack}, want: "v=+8(%sp):x16"},
		{typ: matrix, in: place{Kind: dwarfvar.Stack}, want: "v=+8(%sp)"},
		{typ: structure, in: place{Kind: dwarfvar.Parts, Parts: []dwarfvar.Part{part(place{Kind: dwarfvar.Register, Reg: 5}, 64),
			part(place{Kind: dwarfvar.Register, Reg: 4}, 64)}}, want: "v=%di:x64"},
		{typ: structure, in: place{Kind: dwarfvar.Parts, Parts: []dwarfvar.Part{part(place{Kind: dwarfvar.Register, Reg: 5}, 64),
			part(place{Kind: dwarfvar.Register, Reg: 4}, 64)}}, arg: "v.d", want: "d=%si:s64"},
		{typ: structure, in: place{Kind: dwarfvar.Parts, Parts: []dwarfvar.Part{part(place{Kind: dwarfvar.Register, Reg: 5}, 64),
			part(place{}, 64)}}, arg: "v.d", failure: "optimized out"},
		{typ: structure, in: place{Kind: dwarfvar.Register, Reg: 5}, arg: "v.c", failure: "structure in a register"},
	} {
		if c.where == "" {
			c.where = "f"
		}
		if c.arg == "" {
			c.arg = "v"
		}
		m := stdelf.EM_X86_64
		if c.arm {
			m = stdelf.EM_AARCH64
		}
		v := dwarfvar.Variable{Name: "v", Param: true, Type: typ(c.typ)}
		if c.in.Kind != dwarfvar.Lost {
			v.Where = []dwarfvar.Located{{Range: addr.Range{End: math.MaxUint64}, Place: c.in}}
		}
		q, err := Parse(c.where + " " + c.arg)
		if err != nil {
			t.Fatal(err)
		}
		out, err := program(t, m, v).Text([]*Query{q})
		if c.failure != "" {
			if err == nil || !strings.Contains(err.Error(), c.failure) {
				t.Errorf("%s %s in %+v: %q, %v; want an error with %q", c.where, c.arg, c.in, first(out), err, c.failure)
			}
		} else if err != nil || first(out) != c.want {
			t.Errorf("%s %s in %+v: %q, %v; want %q", c.where, c.arg, c.in, first(out), err, c.want)
		}
	}
}

// TestInnermost: of several variables of a name the innermost one is meant, then one of an inlined call.
func TestInnermost(t *testing.T) {
	_, typ := built(t)
	in := func(name string, scope int32, reg uint16) dwarfvar.Variable {
		return dwarfvar.Variable{Name: name, Scope: scope, Type: typ(integer), Where: []dwarfvar.Located{
			{Range: addr.Range{End: math.MaxUint64}, Place: dwarfvar.Place{Kind: dwarfvar.Register, Reg: reg}}}}
	}
	p := program(t, stdelf.EM_X86_64, in("v", 0, 0), in("v", 1, 1), in("v", 2, 2), in("w", 2, 3), in("w", 2, 4))
	f := p.Vars.(*debugInfo).funcs[0]
	block := []addr.Range{{Start: 0x1008, End: 0x1020}}
	f.Scopes = append(f.Scopes, dwarfvar.Scope{Ranges: block},
		dwarfvar.Scope{Parent: 1, Ranges: block, Inline: "app::g", Entry: 0x1010})
	for _, c := range []struct{ text, want string }{
		{"f v", "v=%ax:s32"}, {"f+8 v", "v=%dx:s32"}, {"f+8 w", "w=%bx:s32"}, {"g v", "v=%cx:s32"}, {"app::g w", "w=%bx:s32"},
		{"f:3 v", "v=%dx:s32"}, {"*g w", "w=%bx:s32"}, {"f@a.c v", "v=%ax:s32"}, {"a.c:12 v", "v=%dx:s32"}, {"0x1008 v v", "v=%dx:s32 v_1=%dx:s32"},
		{"f+8 $vars", "v=%dx:s32"},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.Text([]*Query{q}); err != nil || first(out) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.text, first(out), err, c.want)
		}
	}
	for _, text := range []string{"f@b.c v", "g%return", "h", "f+0x100 v", "f z"} {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.Text([]*Query{q}); err == nil {
			t.Errorf("%s: %s, and no error", text, out)
		}
	}
}

// TestKernel: probes of kernels are relative to symbols, of several functions of a name to _text.
func TestKernel(t *testing.T) {
	p := program(t, stdelf.EM_X86_64)
	p.Kernel, p.Vars.(*debugInfo).body = true, 0x1004
	p.Symbols = Symbols{{Name: "_text", Start: 0x800, End: 0x900}, {Name: "f", Start: 0x1000, End: 0x1100}}
	for _, c := range []struct{ text, module, want string }{
		{"f", "", "p:symbolize/f f+4\n"}, {"f %di", "", "p:symbolize/f f %di\n"}, {"f+8", "ext4", "p:symbolize/f ext4:f+8\n"},
		{"f%return", "", "r:symbolize/f__return f $retval\n"},
	} {
		p.Module = c.module
		q, _ := Parse(c.text)
		if out, err := p.Text([]*Query{q}); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %s, %v; want %q", c.text, out, err, c.want)
		}
	}
	p.Module, p.Symbols = "", append(p.Symbols, Symbol{Name: "f", Start: 0x2000, End: 0x2010})
	q, _ := Parse("f %di")
	if out, err := p.Text([]*Query{q}); err != nil || !strings.Contains(string(out), "p:symbolize/f _text+2048 %di\n") {
		t.Errorf("%s, %v", out, err)
	}
}

// TestBTFLines: BTF has no lines and files, and is not asked for them.
func TestBTFLines(t *testing.T) {
	p := program(t, stdelf.EM_X86_64)
	p.Vars.(*debugInfo).btf = true
	for _, text := range []string{"f:3", "f@a.c", "f@a.c:3", "a.c:12"} {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.Text([]*Query{q}); err == nil || !strings.Contains(err.Error(), "BTF has no lines") {
			t.Errorf("%s: %s, %v", text, out, err)
		}
	}
}
