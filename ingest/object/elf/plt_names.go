package elf

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/machine"
)

// namer matches relocations with stubs, and then symbols with both.
type namer struct {
	f      *File
	stubs  []stub
	bySlot []int           // stubs with a slot, by slot
	byPush []int           // stubs with an index, by index
	left   int             // stubs without a relocation
	names  strings.Builder // the present block of names

	bySymbol   []target // stubs to be named after a symbol of .dynsym
	byResolver []target // stubs to be named after the function at an address
}

// target is the name source of a stub: a symbol's number, or an address.
type target struct {
	key  uint64
	stub int
}

func newNamer(f *File, stubs []stub) *namer {
	n := &namer{f: f, stubs: stubs, left: len(stubs)}
	for i := range stubs {
		if stubs[i].index >= 0 {
			n.byPush = append(n.byPush, i)
		} else {
			n.bySlot = append(n.bySlot, i)
		}
	}
	slices.SortStableFunc(n.bySlot, func(i, j int) int {
		return cmp.Compare(stubs[i].slot, stubs[j].slot)
	})
	slices.SortStableFunc(n.byPush, func(i, j int) int {
		return cmp.Compare(stubs[i].index, stubs[j].index)
	})
	return n
}

// add notes which stubs a relocation names: those with its slot, or its number.
func (n *namer) add(r *reloc, number int64, isPLT bool, types machine.Dynamic) {
	n.assign(n.bySlot, func(s *stub) int { return cmp.Compare(s.slot, r.off) }, r, types)
	if isPLT {
		n.assign(n.byPush, func(s *stub) int { return cmp.Compare(s.index, number) }, r, types)
	}
}

// taken marks a stub with a found relocation, until resolve names it.
const taken = "?"

// assign marks the stubs of a sorted list that order finds equal: several can share a slot. Of
// several relocations of a slot the first one met counts, for all its stubs alike, so a hostile
// file cannot make this quadratic.
func (n *namer) assign(list []int, order func(*stub) int, r *reloc, types machine.Dynamic) {
	i, found := slices.BinarySearchFunc(list, r, func(i int, _ *reloc) int {
		return order(&n.stubs[i])
	})
	if !found || n.stubs[list[i]].name == taken {
		return
	}
	key, irelative := uint64(r.sym), r.kind == types.IRelative
	if irelative {
		key = r.addend
		if !r.hasAdd { // Elf_Rel keeps the addend in the slot
			if key, found = n.f.wordAt(r.off); !found {
				return
			}
		}
	} else if key == 0 {
		return
	}
	for ; i < len(list) && order(&n.stubs[list[i]]) == 0; i++ {
		if irelative {
			n.byResolver = append(n.byResolver, target{key, list[i]})
		} else {
			n.bySymbol = append(n.bySymbol, target{key, list[i]})
		}
		n.stubs[list[i]].name, n.stubs[list[i]].data = taken, r.kind == types.GlobDat
		n.left--
	}
}

// resolve replaces the marks by names.
func (n *namer) resolve() error {
	for i := range n.stubs {
		if n.stubs[i].name == taken {
			n.stubs[i].name = ""
		}
	}
	for _, t := range n.byResolver {
		n.stubs[t.stub].name = fmt.Sprintf("*ABS*+%#x@plt", t.key)
	}
	byKey := func(a, b target) int { return cmp.Compare(a.key, b.key) }
	slices.SortStableFunc(n.bySymbol, byKey)
	slices.SortStableFunc(n.byResolver, byKey)
	if len(n.bySymbol) > 0 {
		if err := n.nameBySymbol(); err != nil {
			return err
		}
	}
	if len(n.byResolver) > 0 {
		return n.nameByResolver()
	}
	return nil
}

// suffixed returns name@plt, in a block of memory with its neighbours.
func (n *namer) suffixed(name string) string {
	const suffix, block = "@plt", 4 << 10
	if size := len(name) + len(suffix); n.names.Cap()-n.names.Len() < size {
		n.names = strings.Builder{}
		n.names.Grow(max(size, block))
	}
	start := n.names.Len()
	n.names.WriteString(name)
	n.names.WriteString(suffix)
	return n.names.String()[start:]
}

// nameBySymbol walks through .dynsym beside the sorted symbol numbers.
func (n *namer) nameBySymbol() error {
	left := n.bySymbol
	return n.f.rawSymbols(Dynsym, func(i int, s *rawSymbol) bool {
		for len(left) > 0 && left[0].key <= uint64(i) {
			if left[0].key == uint64(i) && n.f.table.has(s.name) {
				n.stubs[left[0].stub].name = n.suffixed(n.f.table.name(s.name))
			}
			left = left[1:]
		}
		return len(left) > 0
	})
}

// nameByResolver looks for the functions at the addresses of resolvers. Of several
// names the first of .dynsym wins, else the bytewise smallest one of .symtab, global before local.
func (n *namer) nameByResolver() error {
	type choice struct {
		name string
		rank int
	}
	best := make(map[uint64]choice, len(n.byResolver))
	for _, t := range n.byResolver {
		best[t.key] = choice{rank: 3}
	}
	for _, table := range []Table{Dynsym, Symtab} {
		err := n.f.rawSymbols(table, func(_ int, s *rawSymbol) bool {
			if k := s.kind(); k != elf.STT_GNU_IFUNC && k != elf.STT_FUNC ||
				!n.f.table.has(s.name) {
				return true
			}
			old, ok := best[s.value]
			if !ok {
				return true
			}
			rank := 0
			switch {
			case s.info>>4 == uint8(elf.STB_LOCAL):
				rank = 2
			case table == Symtab:
				rank = 1
			}
			name := n.f.table.name(s.name)
			if rank < old.rank || rank == old.rank && name < old.name {
				best[s.value] = choice{name, rank}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	for _, t := range n.byResolver {
		if b := best[t.key]; b.name != "" {
			n.stubs[t.stub].name = b.name + "@plt"
		}
	}
	return nil
}

// wordAt reads a word of the file by its virtual address.
func (f *File) wordAt(a uint64) (uint64, bool) {
	n := f.wordSize()
	for _, s := range f.Segments {
		off := a - uint64(s.Addr)
		if a < uint64(s.Addr) || off >= s.FileSize || s.FileSize-off < n {
			continue
		}
		var b [8]byte
		if f.readAt(b[:n], uint64(s.Offset)+off) != nil {
			return 0, false
		}
		if n == 4 {
			return uint64(f.u32(b[:])), true
		}
		return f.u64(b[:]), true
	}
	return 0, false
}
