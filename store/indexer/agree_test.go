package indexer

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/store"
	"symbolize/store/symtab"
)

// TestAgreement indexes the files named in SYMBOLIZE_DEBUG_FILES (paths separated as in
// $PATH) and compares lines and depth of 100,000 random addresses of functions with
// those of llvm-symbolizer. Files are compared by their last element: relative compilation
// directories are joined in another way there (stdlib/stdlib/abort.c). A kernel's tables
// count from its _text.
func TestAgreement(t *testing.T) {
	files := os.Getenv("SYMBOLIZE_DEBUG_FILES")
	if files == "" {
		t.Skip("SYMBOLIZE_DEBUG_FILES names no files with debug information")
	}
	for _, path := range filepath.SplitList(files) {
		t.Run(filepath.Base(path), func(t *testing.T) { agree(t, path, 100_000) })
	}
}

func agree(t *testing.T, path string, n int) {
	m := newMemory()
	sum := m.index(t, Options{}, path)
	t.Logf("problems %v, losses %+v", sum.Problems, sum.Debugs)
	tables := make(map[store.SourceKind]*symtab.Table)
	base := addr.Addr(0)
	for id := range m.ids {
		o := m.object(t, id)
		if o.Kind == ingest.Kernel {
			base = textOf(t, path)
		}
		for i, s := range o.Sources {
			table, err := m.Open(o, i)
			if err != nil {
				t.Fatal(err)
			}
			tables[s.Kind] = table
			t.Logf("%s: %d bytes, %d functions", s.Kind, s.Size, s.Funcs)
		}
	}
	addrs := randomAddrs(t, tables[store.Symtab], n)
	got := make([]string, len(addrs))
	err := tables[store.DWARF].JoinFrames(addrs, func(i int, _ symtab.Hit, fr []symtab.Frame) {
		var out []string
		for _, f := range fr {
			file := "??"
			if f.File != symtab.NoFile {
				file, _ = tables[store.DWARF].File(f.File)
			}
			if f.Line == 0 {
				file = "??"
			}
			out = append(out, fmt.Sprintf("%s:%d", filepath.Base(file), f.Line))
		}
		got[i] = strings.Join(out, " < ")
	})
	if err != nil {
		t.Fatal(err)
	}
	compareAgreement(t, addrs, got, llvmFrames(t, path, addrs, base))
}

// textOf returns the address that a vmlinux is linked to.
func textOf(t *testing.T, path string) addr.Addr {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "_text" })
	if i < 0 {
		t.Fatalf("%s: no _text", path)
	}
	return addr.Addr(symbols[i].Value)
}

// randomAddrs returns addresses of random functions.
func randomAddrs(t *testing.T, table *symtab.Table, n int) []addr.Addr {
	var funcs []addr.Range
	for p, err := range table.Pieces() {
		if err != nil {
			t.Fatal(err)
		}
		funcs = append(funcs, p.Range)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	addrs := make([]addr.Addr, n)
	for i := range addrs {
		r := funcs[rnd.IntN(len(funcs))]
		addrs[i] = r.Start + addr.Addr(rnd.Uint64N(uint64(r.End-r.Start)))
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// llvmFrames returns the frames of llvm-symbolizer, in our form.
func llvmFrames(t *testing.T, path string, addrs []addr.Addr, base addr.Addr) []string {
	var in bytes.Buffer
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", uint64(a+base))
	}
	cmd := exec.Command("llvm-symbolizer", "--inlines", "--no-demangle", "-e", path)
	cmd.Stdin = &in
	b, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var out, frames []string
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "" {
			out, frames = append(out, strings.Join(frames, " < ")), nil
			continue
		}
		lines.Scan()
		part := strings.Split(lines.Text(), ":")
		file, line := filepath.Base(strings.Join(part[:len(part)-2], ":")), part[len(part)-2]
		if line == "0" {
			file = "??"
		}
		frames = append(frames, file+":"+line)
	}
	return out
}

// compareAgreement wants 99.5 % of the lines and 99.9 % of the depths equal.
func compareAgreement(t *testing.T, addrs []addr.Addr, got, want []string) {
	if len(want) != len(addrs) {
		t.Fatalf("%d answers to %d addresses", len(want), len(addrs))
	}
	var frames, lines, depth, shown int
	for i := range addrs {
		if got[i] == "" {
			got[i] = "??:0"
		}
		w, g := strings.Split(want[i], " < "), strings.Split(got[i], " < ")
		frames += len(w)
		if len(w) != len(g) {
			depth++
		}
		for k := range w {
			if k >= len(g) || w[k] != g[k] {
				lines++
			}
		}
		if got[i] != want[i] && shown < 10 {
			shown++
			t.Logf("%#x:\n got %s\nwant %s", addrs[i], got[i], want[i])
		}
	}
	t.Logf("%d addresses, %d frames: %d lines and %d depths differ", len(addrs), frames, lines, depth)
	if lines*200 > frames || depth*1000 > len(addrs) {
		t.Error("too many differ")
	}
}
