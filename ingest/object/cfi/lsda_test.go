package cfi

import (
	"debug/elf"
	"fmt"
	"slices"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/ingest/addr"
)

const exceptAddr = 0x700000

// exceptFile has two functions at 0x401000 and 0x402000 with exception tables, each function with another
// encoding, and one without.
func exceptFile(class64, big bool) (file *elfbuild.File, table []byte) {
	f := &frames{class64: class64, big: big}
	f.common(1, "zPLR", formatU4, 1, 2, 3, 4, basePC|formatS4, formatU4)
	function := func(start, size, lsda uint64, sized bool) {
		f.entry(func(idAt int) uint32 { return uint32(idAt - f.cie) }, func(at int) []byte {
			d := f.put(f.put(nil, 4, start), 4, size)
			if !sized {
				return append(d, 0)
			}
			d = append(d, 4)
			return f.put(d, 4, lsda-uint64(tableAddr+at+len(d)))
		})
	}
	function(0x401000, 0x100, exceptAddr, true)
	function(0x402000, 0x100, exceptAddr+17, true)
	function(0x403000, 0x100, 0, false)
	table = []byte{omitted, basePC | formatS4, 0x20, formatULEB, 12, // landing pads from the start of the function
		0, 5, 0x40, 0, 5, 5, 0, 0, 10, 4, 0x10, 1}
	table = append(table, formatU4)
	table = f.put(table, 4, 0x400000)
	table = append(table, omitted, formatU2, 7)
	table = append(f.put(f.put(f.put(table, 2, 0), 2, 8), 2, 0x2080), 1)
	file = &elfbuild.File{Class: elf.ELFCLASS64, BigEndian: big, Type: elf.ET_EXEC, Sections: []elfbuild.Section{
		{Name: ".eh_frame", Addr: tableAddr, Data: f.b}, {Name: ".gcc_except_table", Addr: exceptAddr, Data: table}}}
	if !class64 {
		file.Class, file.Machine = elf.ELFCLASS32, elf.EM_386
	}
	return file, table
}

// TestLandingPads: tables of each form, and each prefix of one.
func TestLandingPads(t *testing.T) {
	for _, fm := range forms {
		t.Run(fmt.Sprint(fm), func(t *testing.T) {
			file, table := exceptFile(fm.class64, fm.big)
			for n := range len(table) + 1 {
				file.Sections[1].Data = table[:n]
				pads, err := LandingPads(openELF(t, "a.out", file.Bytes()))
				want := []addr.Addr{0x401010, 0x401040, 0x402080}
				if err != nil || n == len(table) && !slices.Equal(pads, want) || len(pads) > len(want) {
					t.Errorf("%d bytes: %#x, %v, want %#x", n, pads, err, want)
				}
			}
		})
	}
}

// TestLandingPadsAgain: a long table of many functions is not read for each.
func TestLandingPadsAgain(t *testing.T) {
	f := &frames{class64: true}
	f.common(1, "zLR", formatU4, formatU4)
	const sites = 1 << 14
	for range sites {
		f.entry(func(idAt int) uint32 { return uint32(idAt - f.cie) }, func(int) []byte {
			return f.put(append(f.put(f.put(nil, 4, 0x401000), 4, 0x100), 4), 4, exceptAddr)
		})
	}
	table := []byte{omitted, omitted, formatULEB, 0x80, 0x80, 0x04} // 4 * sites bytes
	for range sites {
		table = append(table, 0, 1, 1, 0)
	}
	pads := 0
	file := openELF(t, "a.out", (&elfbuild.File{Type: elf.ET_EXEC, Sections: []elfbuild.Section{
		{Name: ".eh_frame", Addr: tableAddr, Data: f.b}, {Name: ".gcc_except_table", Addr: exceptAddr, Data: table}}}).Bytes())
	allocs := testing.AllocsPerRun(1, func() {
		list, err := LandingPads(file)
		if pads = len(list); err != nil {
			t.Fatal(err)
		}
	})
	if pads != 1 || allocs > 1000 {
		t.Errorf("%d landing pads, %v allocations", pads, allocs)
	}
}

func FuzzLandingPads(f *testing.F) {
	_, table := exceptFile(true, false)
	f.Add(table, uint32(0), false)
	f.Add(table, uint32(17), true)
	f.Fuzz(func(t *testing.T, b []byte, at uint32, big bool) {
		if int64(at) >= int64(len(b)) {
			return
		}
		x := exceptTable{b, exceptAddr}
		pads, size := x.read(nil, exceptAddr+addr.Addr(at), addr.Range{Start: 0x401000, End: 0x402000}, 8, big)
		if size < 0 || size > len(b) || len(pads) > len(b)/4 {
			t.Errorf("%d landing pads, %d of %d bytes", len(pads), size, len(b))
		}
	})
}
