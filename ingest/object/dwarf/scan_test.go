package dwarf

import (
	"math/rand/v2"
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

// plainTableLength is tableLength, number by number.
func plainTableLength(b []byte) int64 {
	r := buf{b: b}
	for r.uleb() != 0 && !r.bad {
		r.skipLEB()
		r.skip(1)
		for {
			attr, form := r.uleb(), r.uleb()
			if form == formImplicitConst {
				r.skipLEB()
			}
			if attr|form == 0 {
				break
			}
		}
	}
	return int64(r.off)
}

// TestTableLength measures tables in which pairs of zeros, values and long numbers are at every
// distance from the start of an abbreviation, whole and cut at every byte.
func TestTableLength(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	numbers := []uint64{0, 1, 2, formImplicitConst, 0x7f, 0x80, 0x2117, 1 << 40}
	for range 2000 {
		var table dwarfbuild.Buf
		for code := range uint64(1 + rnd.IntN(3)) {
			table.ULEB(code+1, numbers[rnd.IntN(len(numbers))]).U8(uint8(rnd.IntN(2)))
			for range rnd.IntN(9) {
				attr, form := numbers[rnd.IntN(5)], numbers[1+rnd.IntN(3)]
				if rnd.IntN(8) == 0 {
					attr = numbers[rnd.IntN(len(numbers))]
				}
				if rnd.IntN(16) == 0 {
					form = numbers[1+rnd.IntN(len(numbers)-1)]
				}
				table.ULEB(attr, form)
				if form == formImplicitConst {
					table.ULEB(numbers[rnd.IntN(len(numbers))])
				}
			}
			table.U8(0, 0)
		}
		end := len(table.B) + 1
		table.U8(0, 1, 0, 0, formImplicitConst, 0, 0, 0, 0, 0) // and what follows
		if got := tableLength(table.B); got != int64(end) {
			t.Fatalf("%x: %d bytes, want %d", table.B, got, end)
		}
		for cut := range table.B {
			got, want := tableLength(table.B[:cut:cut]), plainTableLength(table.B[:cut])
			if got != want {
				t.Fatalf("%x: %d bytes, want %d", table.B[:cut], got, want)
			}
		}
	}
}
