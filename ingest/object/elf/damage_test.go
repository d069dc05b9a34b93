package elf

import (
	"bytes"
	"debug/elf"
	"errors"
	"runtime/metrics"
	"testing"

	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest/decode"
	"symbolize/ingest/files"
)

// everything declares a small file with one of each structure that the package reads.
func everything(t testing.TB, fm form) *elfbuild.File {
	inner := elfbuild.Lib(testID, 64, elfbuild.Func{Name: "hidden", Size: 16}).DebugOnly()
	machine := elf.EM_X86_64
	if fm.class == elf.ELFCLASS32 {
		machine = elf.EM_386
	}
	plt := pltFile(machine,
		elfbuild.Section{Name: ".plt", Addr: pltAddr + 0x1000, EntSize: 16,
			Data: lazy(pltAddr+0x1000, gotAddr, 0)})
	b := lib(fm, elfbuild.Func{Name: "one", Offset: 0, Size: 16},
		elfbuild.Func{Name: "two", Offset: 32})
	b.Sections[0].Data = append(b.Sections[0].Data, b.Note("Go", 4, []byte("go"), 4)...)
	b.Sections[1].Data = b.Sections[1].Data[:48]
	b.Machine, b.Dynsyms = machine, plt.Dynsyms
	for i := range b.Sections {
		b.Sections[i].Congruent = false // keeps the file small
	}
	b = b.With(plt.Sections...).With(
		elfbuild.Section{Name: ".rela.plt", Type: elf.SHT_RELA, Flags: elf.SHF_ALLOC,
			Data: b.Rela(true, elfbuild.Reloc{Offset: gotAddr, Symbol: 1, Type: 7})},
		elfbuild.Section{Name: ".debug_str", Flags: elf.SHF_COMPRESSED,
			Data: chdr(t, b, elf.COMPRESS_ZLIB, files.Zlib, 5, []byte("hello"))},
		b.DebugLink("test.debug", 1), b.AltLink("test.dwz", testID), elfbuild.DebugData(inner))
	return b
}

// moduleOf declares a module in a form.
func moduleOf(fm form) *elfbuild.File {
	return inForm(fm, elfbuild.Module(testID, 64, elfbuild.Func{Name: "demo", Size: 16}))
}

// walk calls every method on a file and returns the number of items found. All errors must have a
// position.
func walk(t testing.TB, b []byte) (things int) {
	t.Helper()
	see := func(err error) {
		if de := (*decode.Error)(nil); err != nil && !errors.As(err, &de) &&
			!errors.Is(err, errNotRelocatable) {
			t.Errorf("error %v is no decode.Error", err)
		}
	}
	f, err := Open("test.so", bytes.NewReader(b), int64(len(b)))
	if (f == nil) != (err != nil) {
		t.Fatalf("file %v and error %v", f, err)
	}
	if see(err); err != nil {
		return 0
	}
	count := func(s Symbol) bool {
		things++
		if s.Name == "" || s.End < s.Addr || s.Section >= len(f.Sections) {
			t.Errorf("bad symbol %+v", s)
		}
		return true
	}
	for _, table := range []Table{Symtab, Dynsym} {
		see(f.Symbols(table, count))
		f.SymbolBytes(table)
	}
	see(f.PLT(count))
	_, err = f.RefSymbols()
	see(err)
	placed, err := f.ModuleLayout()
	see(err)
	things += len(placed)
	if m, err := f.Image(1 << 20); err == nil {
		see(m.Entries(func(e Entry) bool {
			things++
			return e.Section < len(f.Sections)
		}))
	}
	for i := range f.Sections {
		if _, err := f.Data(&f.Sections[i], 1<<20); err == nil {
			things++
		}
	}
	for _, ok := range []bool{f.HasCode(), f.IsDebugOnly(), f.IsModule(), f.IsKernelImage(),
		!f.ID.IsZero()} {
		if ok {
			things++
		}
	}
	f.DebugLink()
	f.AltLink()
	mini, release, err := f.DebugData()
	see(err)
	if mini != nil {
		see(mini.Symbols(Symtab, count))
	}
	release()
	return things
}

// maxWalk bounds the allocations of a walk through a file of a few KiB: some buffers of 64 KiB, and
// the xz decoder's tables.
const maxWalk = 4 << 20

// allocated returns the bytes allocated so far. Unlike runtime.ReadMemStats it does not stop the
// world, and it is exact for large allocations.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// bounded walks through a file and checks the bytes it allocates.
func bounded(t *testing.T, what string, at int, b []byte) int {
	t.Helper()
	before := allocated()
	n := walk(t, b)
	if d := allocated() - before; d > maxWalk {
		t.Errorf("%s %d: %d bytes allocated", what, at, d)
	}
	return n
}

// TestTruncated cuts files at every length.
func TestTruncated(t *testing.T) {
	for _, fm := range forms {
		t.Run(fm.String(), func(t *testing.T) {
			for i := range 4 {
				file := everything(t, fm)
				if i%2 == 1 {
					file = moduleOf(fm)
				}
				file.HeadersFirst = i >= 2
				b := file.Bytes()
				whole := walk(t, b)
				if whole < 12 {
					t.Fatalf("only %d things in the whole file", whole)
				}
				for n := range b {
					if got := bounded(t, "cut at", n, b[:n]); got > whole {
						t.Errorf("cut at %d of %d: %d things, the whole has %d", n, len(b), got,
							whole)
					}
				}
			}
		})
	}
}

// TestDamaged overwrites every byte of a file, one at a time.
func TestDamaged(t *testing.T) {
	for _, fm := range forms {
		t.Run(fm.String(), func(t *testing.T) {
			b := everything(t, fm).Bytes()
			for i := range sweep.Of(sweep.Rand(t), len(b), 1000) {
				old := b[i]
				for _, v := range []byte{0xff, old + 1} {
					b[i] = v
					bounded(t, "damaged at", i, b)
				}
				b[i] = old
			}
		})
	}
}

func FuzzOpen(f *testing.F) {
	for _, fm := range forms {
		f.Add(everything(f, fm).Bytes())
		f.Add(moduleOf(fm).Bytes())
	}
	ppc := elfbuild.Lib(testID, 64, elfbuild.Func{Name: "f", Size: 8}).With(
		elfbuild.Section{Name: ".opd", Flags: elfbuild.Data, Addr: 0x700000,
			Data: make([]byte, 48)})
	ppc.Machine = elf.EM_PPC64
	f.Add(ppc.Bytes())
	arm := pltFile(elf.EM_AARCH64, elfbuild.Section{Name: ".plt", Addr: pltAddr,
		Data: make([]byte, 64)})
	f.Add(arm.Bytes())
	f.Add(bare(withPLT(3)))
	f.Fuzz(func(t *testing.T, b []byte) { walk(t, b) })
}
