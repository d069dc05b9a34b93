package lookup

import (
	stdelf "debug/elf"
	"testing"

	"symbolize/ingest/machine"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
	"symbolize/store"
	"symbolize/store/indexer"
)

func TestPlaceTexts(t *testing.T) {
	x := Variables{obj: &Object{manifest: &store.Manifest{}}, v: &indexer.Variables{Info: &dwarfvar.Info{}},
		arch: machine.Of(stdelf.EM_X86_64)}
	for _, c := range []struct {
		place dwarfvar.Place
		want  string
	}{
		{dwarfvar.Place{}, "optimized out"},
		{dwarfvar.Place{Kind: dwarfvar.Register, Reg: 3}, "%rbx"},
		{dwarfvar.Place{Kind: dwarfvar.Memory, Reg: 3, Off: 8}, "memory %rbx+8"},
		{dwarfvar.Place{Kind: dwarfvar.Memory, Reg: 7}, "stack %rsp"},
		{dwarfvar.Place{Kind: dwarfvar.Stack, Off: -176}, "stack CFA-176"},
		{dwarfvar.Place{Kind: dwarfvar.Static, Off: 0x4000}, "memory 0x4000"},
		{dwarfvar.Place{Kind: dwarfvar.ThreadLocal, Off: 16}, "thread-local 0x10"},
		{dwarfvar.Place{Kind: dwarfvar.Sum, Reg: 0, Off: -1}, "value %rax-1"},
		{dwarfvar.Place{Kind: dwarfvar.StackAddress, Off: -80}, "address CFA-80"},
		{dwarfvar.Place{Kind: dwarfvar.Entry, Reg: 4}, "entry value %rsi"},
		{dwarfvar.Place{Kind: dwarfvar.Bytes, Data: []byte{1, 255}}, "constant bytes 01ff"},
		{dwarfvar.Place{Kind: dwarfvar.Pointee}, "optimized out pointer"},
		{dwarfvar.Place{Kind: dwarfvar.Computed}, "computed"},
		{dwarfvar.Place{Kind: dwarfvar.Parts, Parts: []dwarfvar.Part{
			{Place: dwarfvar.Place{Kind: dwarfvar.Register}, Bits: 64}, {Bits: 3}}},
			"8 bytes %rax, 3 bits optimized out"},
	} {
		if got := x.text(c.place, 0); got != c.want {
			t.Errorf("%+v: %s, want %s", c.place, got, c.want)
		}
	}
}

func TestConstants(t *testing.T) {
	b := btf.NewBuilder(false, 8)
	ids := b.Add([]btf.Def{
		{Kind: btf.KindInt, Name: "int", Size: 4, Int: btf.Int{Bits: 32, Signed: true}},
		{Kind: btf.KindInt, Name: "unsigned char", Size: 1, Int: btf.Int{Bits: 8}},
		{Kind: btf.KindEnum, Name: "e", Size: 4, Items: []btf.DefItem{{Name: "TWO", Value: 2}}},
		{Kind: btf.KindPtr, Ref: 1}})
	types, final, err := b.Types("test")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ  int
		v    int64
		want string
	}{{1, -1, "-1"}, {2, -1, "255"}, {3, 2, "TWO"}, {3, 7, "7"}, {4, 0, "0"}, {4, 0x1000, "0x1000"}} {
		if got := constant(types, final(ids[c.typ]), c.v); got != c.want {
			t.Errorf("type %d: %s, want %s", c.typ, got, c.want)
		}
	}
}
