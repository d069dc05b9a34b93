package gopclntab

import (
	"bytes"
	"compress/gzip"
	stdelf "debug/elf"
	"debug/gosym"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	ingestelf "symbolize/ingest/object/elf"
)

// openELF opens a file by its bytes.
func openELF(t testing.TB, name string, b []byte) *ingestelf.File {
	t.Helper()
	f, err := ingestelf.Open(name, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// self returns this program.
func self(t testing.TB) []byte {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := must.Read(t, path)
	if !ingestelf.IsELF(b) {
		t.Skip("SKIPPED: this program is no ELF file")
	}
	return b
}

// find returns the table of a file, which must have one.
func find(t testing.TB, name string, b []byte) *Table {
	t.Helper()
	tab, err := Find(openELF(t, name, b))
	if err != nil {
		t.Fatal(err)
	}
	if tab == nil {
		t.Fatalf("%s: no table found", name)
	}
	return tab
}

// checkGosym compares functions, and files and lines at the start of each stretch and
// at its last byte, with the standard library.
func checkGosym(t *testing.T, tab *Table) {
	t.Helper()
	std, err := gosym.NewTable(nil, gosym.NewLineTable(tab.in.Data, uint64(tab.in.Text)))
	if err != nil {
		t.Fatal(err)
	}
	n, compared, wrong := 0, 0, 0
	lost, err := tab.Functions(func(f *Function) bool {
		want := std.Funcs[n]
		n++
		if uint64(f.Start) != want.Entry || string(f.Name) != want.Name ||
			uint64(f.End) > want.End || f.End <= f.Start {
			t.Errorf("%s %x-%x, want %s %x-%x", f.Name, f.Start, f.End, want.Name, want.Entry,
				want.End)
		}
		for i, l := range f.Lines {
			next := f.End
			if i+1 < len(f.Lines) {
				next = f.Lines[i+1].Addr
			}
			for _, a := range []addr.Addr{l.Addr, next - 1} {
				if l.File == NoFile && l.Line == 0 {
					continue // gosym treats the absence of a table as a table
				}
				compared++
				file, num, fn := std.PCToLine(uint64(a))
				if fn == nil || file != string(tab.File(l.File)) || max(num, 0) != int(l.Line) {
					if wrong++; wrong < 10 {
						t.Errorf("%s %x: %s:%d, want %s:%d", f.Name, a, tab.File(l.File), l.Line,
							file, num)
					}
				}
			}
		}
		return true
	})
	if lost != 0 || err != nil {
		t.Errorf("lost %d: %v", lost, err)
	}
	if n != len(std.Funcs) || compared < 1000 || wrong > 0 {
		t.Errorf("%d functions, want %d; %d of %d lines differ", n, len(std.Funcs), wrong,
			compared)
	}
}

func TestGosymSelf(t *testing.T) { checkGosym(t, find(t, "self", self(t))) }

func TestGosymGo(t *testing.T) {
	path := filepath.Join(goroot(t), "bin", "go")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !ingestelf.IsELF(b) {
		t.Skip("SKIPPED: no Go toolchain")
	}
	checkGosym(t, find(t, path, b))
}

// TestGosym115 reads the table of Go 1.15 in the standard library's tests.
func TestGosym115(t *testing.T) {
	path := filepath.Join(goroot(t), "src/debug/gosym/testdata/pcln115.gz")
	r, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("SKIPPED: no sources of the standard library")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	tab := openTable(t, Input{Name: path, Data: b, Text: 0x1001000})
	if tab.version != go12 || tab.shape.wide {
		t.Errorf("version %v, wide %v", tab.version, tab.shape.wide)
	}
	checkGosym(t, tab)
}

// stackAt returns the frames at an address, innermost first, as name, file and line.
func stackAt(tab *Table, f *Function, a addr.Addr) (frames []runtime.Frame) {
	file, line := NoFile, uint32(0)
	for _, l := range f.Lines {
		if l.Addr <= a {
			file, line = l.File, l.Line
		}
	}
	inner := NoParent
	for i, c := range f.Inlines {
		for _, r := range c.Ranges {
			if r.Contains(a) {
				inner = int32(i) // pre-order: the deepest comes last
			}
		}
	}
	for i := inner; i != NoParent; i = f.Inlines[i].Parent {
		c := &f.Inlines[i]
		frames = append(frames, runtime.Frame{
			Function: string(c.Name), File: string(tab.File(file)), Line: int(line)})
		file, line = c.CallFile, c.CallLine
	}
	return append(frames, runtime.Frame{
		Function: string(f.Name), File: string(tab.File(file)), Line: int(line)})
}

// shown returns a name as the runtime prints it, without type arguments.
func shown(name string) string {
	i, j := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']')
	if i < 0 || j <= i {
		return name
	}
	return name[:i] + "[...]" + name[j+1:]
}

func (t *Table) firstEntry() addr.Addr {
	a, _ := t.entryOf(0)
	return addr.Addr(a)
}

// TestRuntime compares the stacks at all addresses where a value changes in this program with the
// runtime's own.
func TestRuntime(t *testing.T) {
	tab := find(t, "self", self(t))
	var first addr.Addr
	tab.Functions(func(f *Function) bool {
		if string(f.Name) == "runtime.main" {
			first = f.Start
		}
		return first == 0
	})
	if f := runtime.FuncForPC(uintptr(first)); f == nil || f.Name() != "runtime.main" {
		t.Skip("SKIPPED: this program does not run where it was linked to")
	}
	const endless = 1000 // frames: the runtime can report a caller as its own caller
	compared, inlined, hidden, wrong, loops := 0, 0, 0, 0, 0
	tab.Functions(func(f *Function) bool {
		if f.Start == tab.firstEntry() {
			return true // the runtime treats its name at offset 0 as none
		}
		for _, l := range f.Lines {
			if l.Addr+1 == f.End {
				continue // as a return address it would be of the next function
			}
			got := stackAt(tab, f, l.Addr)
			// The runtime expands inlined calls unless the address is the last.
			iter := runtime.CallersFrames([]uintptr{uintptr(l.Addr) + 1, uintptr(first) + 1})
			var want []runtime.Frame
			for more := true; more && len(want) < endless; {
				var fr runtime.Frame
				if fr, more = iter.Next(); more {
					want = append(want, fr)
				}
			}
			if len(want) == endless {
				if loops++; len(got) >= endless {
					t.Errorf("%s at %x: %d frames", f.Name, l.Addr, len(got))
				}
				continue
			}
			compared++
			inlined += len(got) - 1
			if n := len(want); len(got) == n+1 && n > 0 { // it hides generated callers
				got = got[:n]
				hidden++
			}
			same := len(got) == len(want)
			for i := range min(len(got), len(want)) {
				g, w := got[i], want[i]
				if w.File == "?" {
					w.File = ""
				}
				same = same && shown(g.Function) == w.Function && g.File == w.File &&
					g.Line == max(w.Line, 0)
			}
			if !same {
				if wrong++; wrong < 5 {
					t.Errorf("%s at %x:\n got  %+v\n want %+v", f.Name, l.Addr, got, want)
				}
			}
		}
		return true
	})
	t.Logf("%d stacks with %d inlined calls compared, %d differ, %d without outermost caller, %d endless",
		compared, inlined, wrong, hidden, loops)
	if loops > compared/1000 || compared < 50000 || inlined < 20000 || wrong > 0 || hidden > compared/100 {
		t.Error("we do not agree with the runtime")
	}
}

// without returns a file with all occurrences of names of sections overwritten.
func without(t testing.TB, b []byte, names ...string) []byte {
	t.Helper()
	b = bytes.Clone(b)
	f, err := stdelf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	table := f.Section(".shstrtab")
	for _, name := range names {
		text := b[table.Offset : table.Offset+table.Size]
		if i := bytes.Index(text, []byte("\x00"+name+"\x00")); i >= 0 {
			text[i+1] = 'X'
		}
	}
	return b
}

// TestFind looks for the table of this program in the layouts of other linkers and strip.
func TestFind(t *testing.T) {
	b := self(t)
	want := show(t, find(t, "self", b))
	if !strings.Contains(want, "gopclntab.TestFind ") || !strings.Contains(want, "depth 2") {
		t.Fatal("this test is not in its own table")
	}
	headless := bytes.Clone(b) // by sstrip
	clear(headless[0x28:0x30])
	clear(headless[0x3a:0x40])
	for name, b := range map[string][]byte{
		"section merged":       without(t, b, ".gopclntab"),
		"no section of module": without(t, b, ".gopclntab", ".go.module"),
		"no section headers":   headless,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no section headers" && b[4] != byte(stdelf.ELFCLASS64) {
				t.Skip("SKIPPED: header of another class")
			}
			tab := find(t, "self", b)
			if got := show(t, tab); got != want {
				t.Error("another table was found")
			}
		})
	}
}

// TestFindNone checks files without a table.
func TestFindNone(t *testing.T) {
	b := self(t)
	f := openELF(t, "self", b)
	if Bytes(f) == 0 {
		t.Error("the table of this program takes no memory")
	}
	for i := range f.Sections {
		f.Sections[i].Type = stdelf.SHT_NOBITS // a separate debug file
	}
	if tab, err := Find(f); tab != nil || err != nil {
		t.Errorf("table %v in a debug file, %v", tab, err)
	}
	if Bytes(f) != 0 {
		t.Error("a table without contents takes memory")
	}
	f = openELF(t, "self", without(t, b, ".gopclntab", ".go.buildinfo", ".note.go.buildid",
		".go.module"))
	if tab, err := Find(f); tab != nil || err != nil {
		t.Errorf("a file without signs of Go was looked through: %v, %v", tab, err)
	}
}

// goroot is where the toolchain that runs the test has its files.
func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("SKIPPED: no go command: %v", err)
	}
	return strings.TrimSpace(string(out))
}
