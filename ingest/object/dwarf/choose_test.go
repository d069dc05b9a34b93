package dwarf

import (
	"bytes"
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

// infoOf builds the .debug_info of one unit of a kind.
func infoOf(version uint16, kind uint8, is64 bool) []byte {
	b := one()
	u := cu(version)
	u.Kind, u.ID, u.Is64 = kind, 7, is64
	b.Units = []*dwarfbuild.Unit{u}
	return b.Sections()[".debug_info"]
}

// Of several sections of .debug_info in a file that was not linked, Load chooses the one with the
// code, at any position; a single one is always used.
func TestLoadTypeSections(t *testing.T) {
	code, code4 := infoOf(5, utCompile, false), infoOf(4, 0, false)
	split := infoOf(5, utSplitCompile, false)
	typ, typ64 := infoOf(5, utType, false), infoOf(5, utType, true)
	splitType := infoOf(5, utSplitType, false)
	packed := func(b []byte) []byte {
		return append(chdr(elfCompressZlib, uint64(len(b)), true, false), deflate(t, b)...)
	}
	for name, c := range map[string]struct {
		secs   [][]byte // compressed if they do not begin as a unit does
		split  bool
		want   []byte
		packed bool
	}{
		"last":           {secs: [][]byte{typ, typ, code}, want: code},
		"first":          {secs: [][]byte{code, typ}, want: code},
		"DWARF 4":        {secs: [][]byte{typ, code4, typ}, want: code4},
		"64-bit":         {secs: [][]byte{typ64, code}, want: code},
		"split":          {secs: [][]byte{splitType, split}, split: true, want: split},
		"compressed":     {secs: [][]byte{packed(typ), packed(code)}, want: code, packed: true},
		"only one":       {secs: [][]byte{typ}, want: typ},
		"only types":     {secs: [][]byte{typ, typ64}},
		"too short":      {secs: [][]byte{{1, 2, 3}, code}, want: []byte{1, 2, 3}},
		"not compressed": {secs: [][]byte{{1, 2}, packed(code)}, packed: true},
	} {
		var file []byte
		var raw []RawSection
		for _, s := range c.secs {
			r := RawSection{Name: ".debug_info", Offset: uint64(len(file)), Size: uint64(len(s)),
				Compressed: c.packed}
			if c.split {
				r.Name += ".dwo"
			}
			raw = append(raw, r)
			file = append(file, s...)
		}
		l := Load(bytes.NewReader(file), raw, LoadOptions{Class64: true, Split: c.split})
		if got := l.Sections.Info; !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, want %x", name, got, c.want)
		}
	}
}
