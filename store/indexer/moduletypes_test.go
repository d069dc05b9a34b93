package indexer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/flow"
	"symbolize/store/typetab"
)

const typesModule = "../../fixtures/types/module.ko"

// fields returns what a table has for the instructions of a file, of all addresses with a type or a reason
// that is worth to be told.
func fields(t *testing.T, table *typetab.Table, size addr.Addr) string {
	t.Helper()
	types, err := table.Types()
	if err != nil {
		t.Fatal(err)
	}
	layouts := flow.NewLayouts(types)
	var list []string
	for a := range size {
		x, err := table.At(a)
		if err != nil {
			t.Fatal(err)
		}
		switch x.Reason {
		case flow.NoMemory, flow.StackOp, flow.NoDebugInfo:
			continue
		case flow.Known:
			var paths []string
			for _, leaf := range layouts.Leaves(&x) {
				paths = append(paths, leaf.Path)
			}
			list = append(list, fmt.Sprintf("%#x %s.%s", uint64(a), types.TypeName(x.Type), strings.Join(paths, "|")))
		default:
			list = append(list, fmt.Sprintf("%#x (%s)", uint64(a), x.Reason))
		}
	}
	return strings.Join(list, "\n")
}

// moduleFields is what the code of fixtures/src/types/module.c accesses: by parameters, the results of
// functions of the kernel, its own data, the kernel's, that of processors, and a call through a pointer.
const moduleFields = `0x10 struct item.i_next
0x18 struct item.i_key
0x1c struct item.i_key
0x1e struct item.i_count
0x39 struct node.n_depth
0x57 struct node.n_depth
0x5f struct shared.s_limit
0x74 struct shared.s_users
0x81 struct shared *.
0x89 struct shared.s_limit
0xa4 struct node.n_pick
0xad struct item.i_count`

// TestTypesOfModule asks for the code of a kernel module, which is relocated for that.
func TestTypesOfModule(t *testing.T) {
	for _, c := range []struct {
		name string
		only []addr.Addr
		want string
	}{
		{"all functions", []addr.Addr{0, 0x30, 0x50, 0x70, 0xa0}, "0x0 struct node.n_first\n" + moduleFields},
		{"one function", []addr.Addr{0xa4}, "0xa4 struct node.n_pick\n0xad struct item.i_count"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := FileTypes(context.Background(), typesModule, typesModule, c.only)
			if err != nil {
				t.Fatal(err)
			}
			if got := fields(t, table, 0x100); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestTypesOfBTF asks for the same code, by BTF: all but what is not in BTF is as by DWARF.
func TestTypesOfBTF(t *testing.T) {
	table, err := BTFTypes(context.Background(), "../../fixtures/types/module.btf.ko", nil, []addr.Addr{0, 0x30, 0x50, 0x70, 0xa0})
	if err != nil {
		t.Fatal(err)
	}
	if table.Source() != datatype.FromBTF {
		t.Errorf("from %s", table.Source())
	}
	if got, want := fields(t, table, 0x100), "0x0 struct node.n_first\n"+moduleFields; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTypesOfDamage asks for the code of damaged modules: it ends, with fewer answers or an error.
func TestTypesOfDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "damaged.ko")
	use := func(b []byte) {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		_, _ = FileTypes(context.Background(), path, path, []addr.Addr{0, 0x50})
		_, _ = BTFTypes(context.Background(), path, nil, []addr.Addr{0, 0x50})
	}
	for _, name := range []string{typesModule, "../../fixtures/types/module.btf.ko"} {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(whole); n += 61 {
			use(whole[:n])
		}
		for i := 0; i < len(whole); i += 17 {
			b := slices.Clone(whole)
			b[i] ^= 0x81
			use(b)
		}
		for at := len(whole) - 64*30; at+8 <= len(whole); at += 8 { // headers of sections
			b := slices.Clone(whole)
			copy(b[at:], "\xff\xff\xff\xff\xff\xff\xff\x7f")
			use(b)
		}
	}
}
