package indexer

import (
	"bytes"
	stdelf "debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/containers"
	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// separate lists the ways to keep debug information outside the program, all of the plain build.
// They return the file to index and where debug files are.
var separate = []struct {
	name  string
	names bool // there are names only
	post  func(t *testing.T, dir, exe string) (file string, roots []string)
}{
	{name: "debuglink", post: func(t *testing.T, dir, exe string) (string, []string) {
		splitOff(t, exe, exe+".debug")
		containers.Run(t, dir, "objcopy", "--add-gnu-debuglink="+exe+".debug", exe)
		return exe, []string{}
	}},
	{name: "debuglink, compressed", post: func(t *testing.T, dir, exe string) (string, []string) {
		splitOff(t, exe, exe+".debug", "--compress-debug-sections=zlib")
		containers.Run(t, dir, "objcopy", "--add-gnu-debuglink="+exe+".debug", exe)
		return exe, []string{}
	}},
	{name: "build ID directory", post: func(t *testing.T, dir, exe string) (string, []string) {
		splitOff(t, exe, filepath.Join(dir, "x"))
		hex := idOf(t, exe)
		place := filepath.Join(dir, "dbg/.build-id", hex[:2], hex[2:]+".debug")
		b := must.Read(t, filepath.Join(dir, "x"))
		must.Write(t, place, b)
		return exe, []string{filepath.Join(dir, "dbg")}
	}},
	{name: "MiniDebugInfo", names: true,
		post: func(t *testing.T, dir, exe string) (string, []string) {
			mini := filepath.Join(dir, "mini")
			containers.Run(t, dir, "objcopy", "-S", "--remove-section=.gdb_index",
				"--remove-section=.comment", "--keep-symbol=main", "--keep-symbol=_Z5otheri",
				"--only-keep-debug", exe, mini)
			containers.Run(t, dir, "strip", "-s", exe)
			containers.Run(t, dir, "xz", "-f", mini)
			containers.Run(t, dir, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", exe)
			return exe, []string{}
		}},
}

func splitOff(t *testing.T, exe, debug string, flags ...string) {
	t.Helper()
	args := append([]string{"objcopy", "--only-keep-debug"}, flags...)
	containers.Run(t, "", append(args, exe, debug)...)
	containers.Run(t, "", "strip", "-s", exe)
}

func idOf(t *testing.T, path string) string {
	t.Helper()
	m := newMemory()
	m.index(t, Options{}, path)
	for id := range m.ids {
		return id.Hex()
	}
	t.Fatal("no object")
	return ""
}

// TestContainers indexes one program built in every way that debug information comes
// in, and wants at every address of its functions the answer of llvm-symbolizer for the
// plain DWARF 4 build of the same compiler.
func TestContainers(t *testing.T) {
	containers.Live(t)
	root := realDir(t)
	dir := filepath.Join(root, "src") // always the same: paths are compared
	fresh := func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := make(map[string]map[uint64]string) // by compiler
	for _, cc := range []string{"g++", "clang++"} {
		fresh()
		exe := containers.Compile(t, dir, containers.Variant{CC: cc, Flags: "-g -gdwarf-4"})
		want[cc] = containers.PeerFrames(t, exe)
	}
	for _, v := range containers.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			fresh()
			file := containers.Compile(t, dir, v)
			expect, symbols := want[v.CC], containers.SymbolsOf(t, file)
			if v.Peer {
				expect = containers.PeerFrames(t, file)
			}
			if v.Post != nil {
				file = v.Post(t, dir, file)
			}
			compareContainer(t, file, []string{}, symbols, expect)
		})
	}
	for _, s := range separate {
		t.Run(s.name, func(t *testing.T) {
			fresh()
			exe := containers.Compile(t, dir, containers.Variant{CC: "g++", Flags: "-g -gdwarf-4"})
			symbols := containers.SymbolsOf(t, exe)
			file, roots := s.post(t, dir, exe)
			if s.names {
				haveNames(t, file, roots, symbols)
				return
			}
			compareContainer(t, file, roots, symbols, want["g++"])
		})
	}
	t.Run("relocatable", func(t *testing.T) {
		fresh()
		for _, cc := range []string{"g++", "clang++"} {
			exe := containers.Compile(t, dir, containers.Variant{CC: cc, Flags: "-g -gdwarf-4"})
			relocatable(t, dir, exe, want[cc])
		}
	})
}

// haveNames wants the functions named, and no more.
func haveNames(t *testing.T, file string, roots []string, symbols map[uint64]string) {
	t.Helper()
	m := newMemory()
	m.index(t, Options{DebugRoots: roots}, file)
	for id := range m.ids {
		names := m.names(t, id, store.Dynsym)
		for _, name := range []string{"main", "_Z5otheri"} {
			if !slices.Contains(names, name) {
				t.Errorf("no %s among %q", name, names)
			}
		}
	}
}

func compareContainer(
	t *testing.T, file string, roots []string, symbols, want map[uint64]string,
) {
	t.Helper()
	m := newMemory()
	sum := m.index(t, Options{DebugRoots: roots}, file)
	if len(sum.Problems) > 0 {
		t.Errorf("problems %v", sum.Problems)
	}
	if len(m.ids) != 1 {
		t.Fatalf("%d objects", len(m.ids))
	}
	for id := range m.ids {
		o := m.object(t, id)
		if o.Quality() != store.DWARF {
			t.Fatalf("no debug information: %+v", o.Sources)
		}
		table, err := m.Open(o, 0)
		if err != nil {
			t.Fatal(err)
		}
		compareTable(t, table, symbols, want)
	}
}

// compareTable asks for all addresses at once.
func compareTable(t *testing.T, table *symtab.Table, symbols, want map[uint64]string) {
	t.Helper()
	var addrs []addr.Addr
	for a := range want {
		addrs = append(addrs, addr.Addr(a))
	}
	slices.Sort(addrs)
	got := make(map[uint64]string)
	err := table.JoinFrames(addrs, func(i int, hit symtab.Hit, frames []symtab.Frame) {
		a := uint64(addrs[i])
		got[a] = containerFrames(table, symbols, uint64(hit.Start), a, frames)
	})
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for _, a := range addrs {
		if got[uint64(a)] != want[uint64(a)] {
			if bad++; bad <= 5 {
				t.Errorf("%#x:\n got %s\nwant %s", a, got[uint64(a)], want[uint64(a)])
			}
		}
	}
	t.Logf("%d addresses, %d differ", len(addrs), bad)
}

// containerFrames writes frames as containers.PeerFrames does: the outermost has the
// name of the symbol, where there is one.
func containerFrames(table *symtab.Table, symbols map[uint64]string, start, at uint64,
	frames []symtab.Frame) string {
	var out []string
	for i, f := range frames {
		name, file := "", ""
		if f.Name != symtab.NoName {
			name, _ = table.Name(f.Name)
			name, _, _ = strings.Cut(name, ".")
		}
		if i == len(frames)-1 {
			if name == "" { // a line without a function: the symbol before it
				for start = at; start > 0 && symbols[start] == ""; start-- {
				}
			}
			if s := symbols[start]; s != "" {
				name = s
			}
		}
		place := "?:0"
		if f.File != symtab.NoFile && f.Line != 0 {
			file, _ = table.File(f.File)
			place = containers.Place(file, strconv.FormatUint(uint64(f.Line), 10))
		}
		out = append(out, name+" "+place)
	}
	return strings.Join(out, " < ")
}

// relocatable links the objects of a program into one that looks like a kernel module,
// and wants the same at the same distance from each function.
func relocatable(t *testing.T, dir, exe string, want map[uint64]string) {
	t.Helper()
	info := filepath.Join(dir, "modinfo.c")
	must.Write(t, info, []byte(`const char m[] __attribute__((section(".modinfo"))) = "license=GPL";`))
	containers.Run(t, dir, "gcc", "-c", info, "-o", "modinfo.o")
	ko := filepath.Join(dir, "prog.ko")
	containers.Run(t, dir, "ld", "-r", "--build-id", "-o", ko, "main.o", "other.o", "modinfo.o")
	m := newMemory()
	if sum := m.index(t, Options{}, ko); len(sum.Problems) > 0 || sum.Modules != 1 {
		t.Fatalf("summary %+v", sum)
	}
	for id := range m.ids {
		o := m.object(t, id)
		starts := make(map[string]uint64)
		for i, s := range o.Sources {
			if s.Kind != store.Symtab {
				continue
			}
			table, err := m.Open(o, i)
			if err != nil {
				t.Fatal(err)
			}
			for f, err := range table.All() {
				if err != nil {
					t.Fatal(err)
				}
				starts[f.Name] = uint64(f.Start)
			}
		}
		moved, symbols := make(map[uint64]string), make(map[uint64]string)
		for _, s := range funcSymbols(t, exe) {
			start, ok := starts[s.Name]
			if !ok {
				continue
			}
			symbols[start], _, _ = strings.Cut(s.Name, ".")
			for a := s.Value; a < s.Value+s.Size; a++ {
				if w, ok := want[a]; ok {
					moved[start+a-s.Value] = w
				}
			}
		}
		if len(moved) < 100 {
			t.Fatalf("only %d addresses of %d", len(moved), len(want))
		}
		table, err := m.Open(o, 0)
		if err != nil {
			t.Fatal(err)
		}
		compareTable(t, table, symbols, moved)
	}
}

func funcSymbols(t *testing.T, exe string) []stdelf.Symbol {
	t.Helper()
	b := must.Read(t, exe)
	f, err := stdelf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(syms, func(s stdelf.Symbol) bool {
		return stdelf.ST_TYPE(s.Info) != stdelf.STT_FUNC
	})
}
