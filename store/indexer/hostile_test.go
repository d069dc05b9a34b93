package indexer

import (
	"bytes"
	"compress/gzip"
	stdelf "debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/dwarfbuild"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/store"

	"github.com/klauspost/compress/zstd"
)

const codeSize = 1 << 20 // of the hostile files

// sharedList puts n ranges of 2 bytes, every 4 bytes of the code, into .debug_rnglists
// and returns their offset. With overlap each reaches to the code's end.
func sharedList(b *dwarfbuild.Builder, n int, overlap bool) uint64 {
	lists := b.Section(".debug_rnglists")
	lists.U32(0).U16(5).U8(8, 0).U32(0)
	at := uint64(len(lists.B))
	for i := range n {
		end := uint64(4*i + 2)
		if overlap {
			end = codeSize / 2
		}
		lists.U8(4).ULEB(uint64(4*i), end) // DW_RLE_offset_pair
	}
	lists.U8(0)
	return at
}

func listed(name string, list uint64, attrs ...dwarfbuild.Attr) *dwarfbuild.DIE {
	return dwarfbuild.D(tagFunction, append([]dwarfbuild.Attr{named(name),
		attr(atRanges, dwarfbuild.FormSecOffset, list)}, attrs...)...)
}

func baseUnit() *dwarfbuild.DIE {
	return dwarfbuild.D(tagUnit, named("a.c"), attr(atLowPC, dwarfbuild.FormAddr, uint64(text)))
}

// hostile are small files that ask for much: each repeats, by reference or by nesting,
// something that is large once.
var hostile = map[string]func() *elfbuild.File{
	"units share a list": func() *elfbuild.File {
		b := &dwarfbuild.Builder{}
		list := sharedList(b, 3000, false)
		shared := &dwarfbuild.Abbrevs{}
		for i := range 4000 {
			b.Units = append(b.Units, &dwarfbuild.Unit{Version: 5, Abbrevs: shared,
				Root: baseUnit().Add(listed(fmt.Sprint("f", i), list))})
		}
		return hostileFile(b)
	},
	"functions share a list": func() *elfbuild.File {
		b := &dwarfbuild.Builder{}
		list, root := sharedList(b, 60_000, false), baseUnit()
		for i := range 20_000 {
			root.Add(listed(fmt.Sprint("f", i), list))
		}
		b.Units = []*dwarfbuild.Unit{{Version: 5, Root: root}}
		return hostileFile(b)
	},
	"functions share a list of overlapping ranges": func() *elfbuild.File {
		b := &dwarfbuild.Builder{}
		list, root := sharedList(b, 60_000, true), baseUnit()
		for i := range 20_000 {
			root.Add(listed(fmt.Sprint("f", i), list))
		}
		b.Units = []*dwarfbuild.Unit{{Version: 5, Root: root}}
		return hostileFile(b)
	},
	"calls over many ranges": func() *elfbuild.File {
		b := &dwarfbuild.Builder{}
		inner := dwarfbuild.D(tagFunction, named("inner"), attr(atInline, dwarfbuild.FormData1, 1))
		f := listed("f", sharedList(b, 60_000, false))
		for range 30_000 {
			f.Add(dwarfbuild.D(tagInlined, attr(atOrigin, dwarfbuild.FormRef4, inner),
				attr(atLowPC, dwarfbuild.FormAddr, uint64(text)),
				attr(atHighPC, dwarfbuild.FormData4, codeSize/2)))
		}
		b.Units = []*dwarfbuild.Unit{{Version: 5, Root: baseUnit().Add(inner, f)}}
		return hostileFile(b)
	},
	"a function of many ranges": func() *elfbuild.File {
		b := &dwarfbuild.Builder{}
		f, pad := listed("f", sharedList(b, 200_000, false)), strings.Repeat("x", 200)
		root := baseUnit().Add(f)
		for range 2000 {
			root.Add(dwarfbuild.D(tagFunction, named(pad)))
		}
		b.Units = []*dwarfbuild.Unit{{Version: 5, Root: root}}
		return hostileFile(b)
	},
	"a function cut by many": func() *elfbuild.File {
		b := &dwarfbuild.Builder{}
		line := b.Line(dwarfbuild.LineTable{Version: 5, Dirs: []string{"/src"},
			Files: []dwarfbuild.LineFile{{Name: "a.c"}},
			Program: func(p *dwarfbuild.Prog) {
				p.Set(text).File(0)
				for i := range 250_000 {
					p.Row(1, int64(i%2*2-1)+1)
				}
				p.End(1)
			}})
		root := dwarfbuild.D(tagUnit, named("a.c"),
			attr(atStmtList, dwarfbuild.FormSecOffset, line))
		root.Add(function(text, 250_000, named("f")))
		for i := range 20_000 {
			root.Add(function(text+uint64(12*i)+4, 1, named(fmt.Sprint("g", i))))
		}
		b.Units = []*dwarfbuild.Unit{{Version: 5, Root: root}}
		return hostileFile(b)
	},
}

func hostileFile(b *dwarfbuild.Builder) *elfbuild.File {
	return withSections(elfbuild.Lib([]byte(debugID), codeSize,
		elfbuild.Func{Name: "outer_symbol", Size: 0x40}), b.Sections())
}

// sharedNames is a file with n symbols named by ends of one long string.
func sharedNames(t *testing.T, n int) []byte {
	t.Helper()
	f := elfbuild.Lib([]byte(debugID), codeSize)
	for i := range n {
		f.Symbols = append(f.Symbols, elfbuild.Symbol{Name: "n", Section: ".text",
			Type: stdelf.STT_FUNC, Value: text + uint64(i)*4, Size: 4})
	}
	f.Symbols[0].Name = strings.Repeat("n", 60_000)
	b := f.Bytes()
	ef, err := stdelf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	table := b[ef.Section(".symtab").Offset:]
	first := binary.LittleEndian.Uint32(table[24:])
	for i := range n {
		binary.LittleEndian.PutUint32(table[24*(i+1):], first+uint32(i))
	}
	return b
}

// TestHostileFiles has small files that ask for gigabytes and minutes. Each is read up to a
// limit, which is reported; the data before it is there, and so are symbols.
func TestHostileFiles(t *testing.T) {
	for name, file := range hostile {
		t.Run(name, func(t *testing.T) {
			root, m := realDir(t), newMemory()
			must.Write(t, filepath.Join(root, "lib.so"), file().Bytes())
			many := name == "a function of many ranges" // which are no more than it has
			memory := int64(16 << 20)
			if many {
				memory = 0
			}
			sum := m.index(t, Options{Workers: 2, MaxMemory: memory}, root)
			if many && len(sum.Problems) != 0 {
				t.Errorf("problems %v", sum.Problems)
			}
			if !many && (sum.Skipped[SkipLimit] != 1 || len(sum.Problems) != 1 ||
				!strings.Contains(sum.Problems[0].Error(), limitReached)) {
				t.Errorf("skipped %v, problems %v", sum.Skipped, sum.Problems)
			}
			id := buildid.New([]byte(debugID))
			if names := m.names(t, id, store.Symtab); !slices.Contains(names, "outer_symbol") {
				t.Errorf("%d symbols", len(names))
			}
			if got := m.names(t, id, store.DWARF); len(got) == 0 || len(got) > 250_000 {
				t.Errorf("%d functions of debug information", len(got))
			}
			for _, s := range m.object(t, id).Sources {
				if s.Kind == store.DWARF && s.Size > 8<<20 {
					t.Errorf("a table of %d bytes", s.Size)
				}
			}
		})
	}
}

// TestLimitIsMaxMemory raises the limit that a file meets.
func TestLimitIsMaxMemory(t *testing.T) {
	for _, c := range []struct {
		memory int64
		limit  uint64
	}{{memory: 16 << 20, limit: 1}, {memory: 512 << 20, limit: 0}} {
		root, m := realDir(t), newMemory()
		must.Write(t, filepath.Join(root, "lib.so"), sharedNames(t, 1000))
		sum := m.index(t, Options{MaxMemory: c.memory}, root)
		if sum.Skipped[SkipLimit] != c.limit {
			t.Errorf("%d MiB: skipped %v, problems %v", c.memory>>20, sum.Skipped, sum.Problems)
		}
	}
}

// TestPackedBombs has modules that unpack to far more than they are. The next run may allow
// more memory, and reads them then.
func TestPackedBombs(t *testing.T) {
	noise := make([]byte, 128<<10)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	f := elfbuild.Module([]byte(debugID), 64, elfbuild.Func{Name: "inside", Size: 16}).With(
		elfbuild.Section{Name: "noise", Data: noise},
		elfbuild.Section{Name: "zeros", Data: make([]byte, 4<<20)})
	var gz, zs bytes.Buffer
	zw, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	for kind, packed := range map[string][]byte{"gz": pack(t, gzip.NewWriter(&gz), &gz, f.Bytes()),
		"zst": pack(t, zw, &zs, f.Bytes())} {
		t.Run(kind, func(t *testing.T) {
			root, m := realDir(t), newMemory()
			must.Write(t, filepath.Join(root, "demo.ko."+kind), packed)
			settle()
			sum := m.index(t, Options{MaxMemory: 1}, root)
			if sum.Skipped[SkipLimit] != 1 || len(m.ids) != 0 ||
				!strings.Contains(sum.Problems[0].Error(), limitReached) {
				t.Errorf("skipped %v, problems %v", sum.Skipped, sum.Problems)
			}
			sum = m.index(t, Options{}, root)
			if len(sum.Problems) != 0 || sum.Modules != 1 {
				t.Errorf("with more memory: problems %v", sum.Problems)
			}
			m.again(t, Options{}, root)
		})
	}
}
