package dwarf

import (
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

// treeDump prints all entries of a Tree with their names, indented by depth, and problems.
func treeDump(t testing.TB, d *Data) string {
	t.Helper()
	tree := d.Tree()
	defer tree.Close()
	var b strings.Builder
	tree.Roots(true, func(r *Root) bool {
		var e Entry
		if !tree.Read(r.First(), &e) {
			return true
		}
		fmt.Fprintf(&b, "unit %s\n", tree.String(&e, atName))
		tree.Kids(&e, func(k *Entry, depth int) Step {
			fmt.Fprintf(&b, "%*s%#x %s %x", depth, "", k.Tag, tree.String(k, atName), tree.Ranges(k))
			if p, ok := tree.Ref(k, atAbstractOrigin); ok {
				var to Entry
				tree.Read(p, &to)
				fmt.Fprintf(&b, " of %s", tree.String(&to, atName))
			}
			b.WriteByte('\n')
			return Into
		}, nil)
		return true
	})
	for _, p := range tree.Problems {
		fmt.Fprintln(&b, "problem", p)
	}
	return b.String()
}

// A Tree reads entries of each version, also of split units.
func TestTree(t *testing.T) {
	for version := uint16(2); version <= 5; version++ {
		f := abstract("f")
		u := cu(version)
		u.Root.Add(namespace("n", f), fn("main", 0x1000, 0x20).Add(inl(f, low(0x1004), length(4))))
		b := one(u)
		want := "unit a.c\n 0x39 n []\n  0x2e f []\n 0x2e main [{1000 1020}]\n  0x1d  [{1004 1008}] of f\n"
		if got := treeDump(t, New(built(b.Sections(), false), Options{})); got != want {
			t.Errorf("version %d: got\n%s\nwant\n%s", version, got, want)
		}
	}
	for _, version := range []uint16{4, 5} {
		exe, dwo := splitPair(version, 42)
		opts := Options{DWO: func(string, string, uint64) (*Data, error) {
			return NewSplit(built(splitNames(dwo.Sections()), false), Options{Name: "a.dwo"}), nil
		}}
		got := treeDump(t, New(built(exe.Sections(), false), opts))
		if !strings.Contains(got, "main [{1000") || strings.Contains(got, "problem") {
			t.Errorf("split, version %d: got\n%s", version, got)
		}
	}
}

// splitNames returns sections without the end of the names of .dwo files.
func splitNames(secs map[string][]byte) map[string][]byte {
	out := make(map[string][]byte)
	for name, b := range secs {
		out[strings.TrimSuffix(name, ".dwo")] = b
	}
	return out
}

// A reference by signature leads to the type of a type unit, in .debug_types and in .debug_info.
func TestTreeSignature(t *testing.T) {
	var types dwarfbuild.Buf
	types.U32(0).U16(4).U32(0).U8(8).U64(77).U32(23 + 1)
	types.U8(1).U8(2).Str("T").U8(0)
	length := len(types.B) - 4
	types.B[0] = byte(length)
	var abbrev dwarfbuild.Buf
	abbrev.ULEB(1, tagTypeUnit).U8(1).ULEB(0, 0)
	abbrev.ULEB(2, tagStructureType).U8(0).ULEB(atName, formString, 0, 0)
	abbrev.ULEB(3, tagCompileUnit).U8(1).ULEB(0, 0)
	abbrev.ULEB(4, tagSubprogram).U8(0).ULEB(atAbstractOrigin, formRefSig8, 0, 0).ULEB(0)
	var info dwarfbuild.Buf
	info.U32(0).U16(4).U32(0).U8(8).U8(3).U8(4).U64(77).U8(4).U64(78).U8(0)
	info.B[0] = byte(len(info.B) - 4)
	s := Sections{Info: info.B, Abbrev: abbrev.B, Types: types.B}
	got := treeDump(t, New(s, Options{}))
	if !strings.Contains(got, "of T") || !strings.Contains(got, "no type unit has the signature") {
		t.Errorf("got\n%s", got)
	}
	// as gcc has it, with the line table of the type's unit
	lined := dwarfbuild.Buf{}
	lined.U32(0).U16(4).U32(0).U8(8).U64(77).U32(23 + 5)
	lined.U8(5).U32(0).U8(2).Str("T").U8(0)
	lined.B[0] = byte(len(lined.B) - 4)
	abbrev.B = abbrev.B[:len(abbrev.B)-1]
	abbrev.ULEB(5, tagTypeUnit).U8(1).ULEB(atStmtList, formSecOffset, 0, 0).ULEB(0)
	s = Sections{Info: info.B, Abbrev: abbrev.B, Types: lined.B, Line: make([]byte, 64)}
	if got = treeDump(t, New(s, Options{})); !strings.Contains(got, "of T") {
		t.Errorf("with a line table: got\n%s", got)
	}
	five := dwarfbuild.Buf{}
	five.U32(0).U16(5).U8(utType, 8).U32(0).U64(77).U32(25)
	five.U8(1).U8(2).Str("T").U8(0)
	five.B[0] = byte(len(five.B) - 4)
	s = Sections{Info: append(five.B, info.B...), Abbrev: abbrev.B}
	if got = treeDump(t, New(s, Options{})); !strings.Contains(got, "of T") {
		t.Errorf("DWARF 5: got\n%s", got)
	}
}
