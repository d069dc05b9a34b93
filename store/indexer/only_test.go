package indexer

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// TestOnly limits the tables of real files to some addresses: each source gives there the same as
// the whole table gives, and has no more functions than there are addresses.
func TestOnly(t *testing.T) {
	whole := newMemory()
	dirs := []string{filepath.Join(objectsDir, "bin"), filepath.Join(objectsDir, "lib")}
	whole.index(t, Options{Columns: true, NoUnwind: true}, dirs...)
	rng := rand.New(rand.NewPCG(1, 2))
	want := make(map[buildid.ID][]addr.Addr)
	for _, id := range slices.SortedFunc(maps.Keys(whole.ids), buildid.ID.Compare) {
		want[id] = someAddrs(t, rng, whole, id)
	}
	limited := newMemory()
	limited.index(t, Options{Columns: true, Only: func(m *store.Manifest) ([]addr.Addr, bool) {
		return want[m.ID], false
	}}, dirs...)
	kinds := make(map[store.SourceKind]bool)
	for id, addrs := range want {
		for _, s := range whole.object(t, id).Sources {
			kinds[s.Kind] = true
			a, _ := answers(t, whole, id, s.Kind, addrs)
			b, funcs := answers(t, limited, id, s.Kind, addrs)
			if a != b || funcs > len(addrs) {
				t.Errorf("%s of %s: %d functions at %d addresses\nwhole   %s\nlimited %s", s.Kind, id,
					funcs, len(addrs), a, b)
			}
		}
	}
	for _, k := range []store.SourceKind{store.DWARF, store.Symtab, store.EhFrame, store.PLT} {
		if !kinds[k] {
			t.Errorf("no object has a source of kind %s", k)
		}
	}
}

// someAddrs chooses addresses of an object: the starts of functions, and some within.
func someAddrs(t *testing.T, rng *rand.Rand, m *memory, id buildid.ID) []addr.Addr {
	t.Helper()
	var addrs []addr.Addr
	o := m.object(t, id)
	for i := range o.Sources {
		table, err := m.Open(o, i)
		if err != nil {
			t.Fatal(err)
		}
		for p, err := range table.Pieces() {
			if err != nil {
				t.Fatal(err)
			}
			if rng.IntN(4) == 0 {
				addrs = append(addrs, p.Range.Start+addr.Addr(rng.Uint64N(uint64(p.Range.End-p.Range.Start))))
			}
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// answers looks addresses up in one source of an object.
func answers(t *testing.T, m *memory, id buildid.ID, kind store.SourceKind, addrs []addr.Addr) (
	text string, funcs int) {
	t.Helper()
	o := m.object(t, id)
	i := slices.IndexFunc(o.Sources, func(s store.SourceInfo) bool { return s.Kind == kind })
	if i < 0 { // a table without a function is left out
		for _, a := range addrs {
			text += fmt.Sprintf("%x: false 0+0; ", a)
		}
		return text, 0
	}
	table, err := m.Open(o, i)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, a := range addrs {
		h, frames, err := lookupOne(table, a)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%x: %v %x+%x", a, h.OK, h.Start, h.Size)
		if h.OK {
			writeName(t, &out, table, h.Name)
		}
		for _, f := range frames {
			writeName(t, &out, table, f.Name)
			fmt.Fprintf(&out, ":%d:%d", f.Line, f.Column)
		}
		out.WriteString("; ")
	}
	return out.String(), table.NumFuncs()
}

func writeName(t *testing.T, w io.Writer, table *symtab.Table, id symtab.NameID) {
	t.Helper()
	name, err := table.Name(id)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, " ", name)
}

// TestOnlyKernel limits the running kernel's tables. A module that is not wanted has none.
func TestOnlyKernel(t *testing.T) {
	kernel, ext4 := buildid.New([]byte(kernelID)), buildid.New([]byte(ext4ID))
	m := newMemory()
	sum := m.index(t, Options{Kernel: true, sys: fakeSystem(t, 0xffffffff81000000),
		Only: func(m *store.Manifest) ([]addr.Addr, bool) {
			if m.ID == kernel && len(m.RefSyms) > 0 {
				return []addr.Addr{0x13f}, false
			}
			return nil, false
		}})
	if len(sum.Problems) != 0 {
		t.Error(sum.Problems)
	}
	if got := m.functions(t, kernel); got != "0x100+0x40 helper" {
		t.Errorf("kernel: %s", got)
	}
	if found, err := m.Find(ext4); err != nil || len(found) > 0 && len(found[0].Sources) > 0 {
		t.Errorf("ext4: %v, %v", found, err)
	}
}
