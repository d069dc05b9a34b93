package dwarf

import (
	"bytes"
	stdelf "debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// live skips a test that needs compilers, loudly, unless SYMBOLIZE_LIVE is set.
func live(t *testing.T) {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("needs gcc, clang and llvm-symbolizer: set SYMBOLIZE_LIVE=1")
	}
}

const liveMain = `#include "inl.h"
int other(int);
struct S { int v; __attribute__((noinline)) int method(int x) const; };
int S::method(int x) const { return level1(x + v) * 3; }
static __attribute__((noinline)) int local(int x) {
	auto f = [x](int y) __attribute__((noinline)) { return level2(y) - x; };
	return f(x + 1) + f(x - 1);
}
int main(int argc, char **argv) {
	S s{argc};
	int r = level1(argc) + s.method(argc) + local(argc) + other(argc);
	if (__builtin_expect(r == 12345, 0)) { sink(argv[0][0]); __builtin_abort(); }
	return r & 1;
}
`

const liveOther = `#include "inl.h"
int other(int x) {
	int r = 0;
	for (int i = 0; i < x; i++)
		r += level1(i);
	return r;
}
volatile int sunk;
`

const liveHeader = `extern volatile int sunk;
static inline __attribute__((always_inline)) void sink(int x) { sunk = x; }
static inline __attribute__((always_inline)) int level3(int x) { sink(x); return sunk + x; }
static inline __attribute__((always_inline)) int level2(int x) {
	int a = level3(x);
	return a * level3(x + 1);
}
static inline __attribute__((always_inline)) int level1(int x) {
	sink(7);
	return level2(x) + 1;
}
`

// variant is one way to build the program. Peer says that llvm-symbolizer is asked
// about the file itself: its code is not that of the plain build.
type variant struct {
	name  string
	cc    string
	flags string
	post  func(t *testing.T, dir, exe string) string // returns the file to read
	peer  bool
}

func liveVariants() []variant {
	var all []variant
	for _, cc := range []string{"g++", "clang++"} {
		add := func(name, flags string, post func(*testing.T, string, string) string) {
			all = append(all, variant{name: cc + " " + name, cc: cc, flags: flags, post: post})
		}
		for _, v := range []string{"2", "3", "4", "5"} {
			add("dwarf"+v, "-g -gdwarf-"+v, nil)
		}
		for _, v := range []string{"4", "5"} {
			add("zlib dwarf"+v, "-g -gdwarf-"+v, objcopy("--compress-debug-sections=zlib"))
			add("zlib-gnu dwarf"+v, "-g -gdwarf-"+v, objcopy("--compress-debug-sections=zlib-gnu"))
			add("zstd dwarf"+v, "-g -gdwarf-"+v, objcopy("--compress-debug-sections=zstd"))
			add("dwo dwarf"+v, "-g -gsplit-dwarf -gdwarf-"+v, nil)
			add("dwp dwarf"+v, "-g -gsplit-dwarf -gdwarf-"+v, makeDWP)
			add("dwz dwarf"+v, "-g -gdwarf-"+v, makeDwz(false))
			add("dwz multifile dwarf"+v, "-g -gdwarf-"+v, makeDwz(true))
		}
		add("sections", "-g -ffunction-sections -Wl,--gc-sections", nil)
		all[len(all)-1].peer = true
		add("64-bit", "-g -gdwarf-5 -gdwarf64", nil)
		for _, flags := range []string{"-g -flto", "-g1", "-g -gstrict-dwarf -gdwarf-2"} {
			add(flags, flags, nil)
			all[len(all)-1].peer = true
		}
	}
	return append(all, variant{name: "clang++ lines", cc: "clang++", flags: "-gline-tables-only",
		peer: true})
}

func objcopy(flag string) func(*testing.T, string, string) string {
	return func(t *testing.T, _, exe string) string {
		run(t, "", "objcopy", flag, exe, exe+".z")
		return exe + ".z"
	}
}

// makeDWP packs the .dwo files and removes them.
func makeDWP(t *testing.T, dir, exe string) string {
	// binutils' dwp dies of DWARF 5, llvm-dwp 14 never ends on gcc's files: gcc's
	// DWARF 5 cannot be packed here.
	tool := "dwp"
	if strings.Contains(t.Name(), "dwarf5") {
		tool = "llvm-dwp"
	}
	run(t, dir, "timeout", "10", tool, "-e", exe, "-o", exe+".dwp")
	dwos, _ := filepath.Glob(filepath.Join(dir, "*.dwo"))
	if len(dwos) == 0 {
		t.Fatal("no .dwo files")
	}
	for _, f := range dwos {
		os.Remove(f)
	}
	return exe
}

func makeDwz(multi bool) func(*testing.T, string, string) string {
	return func(t *testing.T, dir, exe string) string {
		if _, err := exec.LookPath("dwz"); err != nil {
			t.Skip("dwz is not installed")
		}
		if !multi {
			run(t, dir, "dwz", exe)
			return exe
		}
		second := exe + "2"
		run(t, dir, "cp", exe, second)
		run(t, dir, "dwz", "-m", filepath.Join(dir, "common.debug"), exe, second)
		return exe
	}
}

// cannot lists what tools say when they know an option or a format no better.
var cannot = []string{"not supported", "unrecognized", "unknown argument", "invalid",
	"Unknown debugging section"}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	var out, msg bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &msg
	if err := cmd.Run(); err != nil {
		text := msg.String()
		if slices.ContainsFunc(cannot, func(s string) bool { return strings.Contains(text, s) }) ||
			args[0] == "timeout" && cmd.ProcessState.ExitCode() == 124 {
			t.Skipf("%s: %v: %s", strings.Join(args, " "), err, text)
		}
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, text)
	}
	return out.String()
}

func compileLive(t *testing.T, dir string, v variant) string {
	t.Helper()
	for name, text := range map[string]string{"main.cc": liveMain, "other.cc": liveOther,
		"inl.h": liveHeader} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flags := append(strings.Fields(v.flags), "-O2")
	for _, src := range []string{"main", "other"} {
		args := append([]string{v.cc, "-c", src + ".cc", "-o", src + ".o"}, flags...)
		run(t, dir, args...)
	}
	exe := filepath.Join(dir, "prog")
	run(t, dir, append([]string{v.cc, "-o", exe, "main.o", "other.o"}, flags...)...)
	return exe
}

// TestContainerMatrix builds one program in every way that debug information comes
// in and wants, at every address of its functions, the frames that llvm-symbolizer
// gives for the plain DWARF 4 build of the same compiler.
func TestContainerMatrix(t *testing.T) {
	live(t)
	root := t.TempDir()
	want := make(map[string]map[uint64]string) // by compiler
	code := make(map[string][]byte)
	for _, cc := range []string{"g++", "clang++"} {
		dir := filepath.Join(root, "src")
		os.RemoveAll(dir)
		os.MkdirAll(dir, 0o755)
		exe := compileLive(t, dir, variant{cc: cc, flags: "-g -gdwarf-4"})
		want[cc], code[cc] = peerFrames(t, exe), textOf(t, exe)
	}
	for _, v := range liveVariants() {
		t.Run(v.name, func(t *testing.T) {
			dir := filepath.Join(root, "src") // always the same: paths are compared
			os.RemoveAll(dir)
			os.MkdirAll(dir, 0o755)
			exe := compileLive(t, dir, v)
			expect := want[v.cc]
			if v.peer {
				expect = peerFrames(t, exe)
			} else if !bytes.Equal(textOf(t, exe), code[v.cc]) {
				t.Fatal("the code differs from that of the plain build")
			}
			file := exe
			if v.post != nil {
				file = v.post(t, dir, exe)
			}
			compareFrames(t, openLive(t, file), symbolsOf(t, exe), expect)
		})
	}
}

// symbolsOf lists functions of the symbol table by address. llvm-symbolizer takes
// the name of the outermost frame from there: gcc gives lambdas no linkage name.
func symbolsOf(t *testing.T, exe string) map[uint64]string {
	t.Helper()
	f, err := stdelf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[uint64]string)
	for _, s := range syms {
		if stdelf.ST_TYPE(s.Info) == stdelf.STT_FUNC {
			names[s.Value], _, _ = strings.Cut(s.Name, ".")
		}
	}
	return names
}

func compareFrames(t *testing.T, d *Data, symbols, want map[uint64]string) {
	t.Helper()
	r := newResolver(t, d)
	r.symbols = symbols
	for i := range r.funcs {
		if name, ok := symbols[uint64(r.funcs[i].fn.Ranges[0].Start)]; ok {
			r.funcs[i].name = name
		}
	}
	bad := 0
	for _, a := range slices.Sorted(keysOf(want)) {
		if got := r.frames(a); got != want[a] {
			if bad++; bad <= 5 {
				t.Errorf("%#x:\n got %s\nwant %s", a, got, want[a])
			}
		}
	}
	t.Logf("%d addresses, %d differ", len(want), bad)
}

func keysOf[V any](m map[uint64]V) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func textOf(t *testing.T, exe string) []byte {
	t.Helper()
	f, err := stdelf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := f.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// openLive loads a file with whatever belongs to it.
func openLive(t *testing.T, path string) *Data {
	t.Helper()
	opts := Options{Name: path}
	if _, err := os.Stat(path + ".dwp"); err == nil {
		opts.DWP = NewSplit(loadLive(t, path+".dwp", true, &Options{}), Options{})
	}
	opts.DWO = func(name, dir string, _ uint64) (*Data, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if _, err := os.Stat(name); err != nil {
			return nil, err
		}
		return NewSplit(loadLive(t, name, true, &Options{}), Options{}), nil
	}
	return New(loadLive(t, path, false, &opts), opts)
}

// loadLive goes the way of the product: Load, on a file that is mapped.
func loadLive(t testing.TB, path string, split bool, opts *Options) Sections {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ef, err := stdelf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	var raw []RawSection
	for _, s := range ef.Sections {
		raw = append(raw, RawSection{Name: s.Name, Offset: s.Offset, Size: s.FileSize,
			Compressed: s.Flags&stdelf.SHF_COMPRESSED != 0})
	}
	l := Load(f, raw, LoadOptions{Name: path, Class64: true, Split: split, Workers: 2})
	t.Cleanup(func() { l.Close(); f.Close() })
	for _, p := range l.Problems {
		t.Error(p)
	}
	opts.Text, opts.Release = stdText(ef), l.Release
	if s := ef.Section(".gnu_debugaltlink"); s != nil {
		b, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := bytes.Cut(b, []byte{0})
		alt := string(name)
		if !filepath.IsAbs(alt) {
			alt = filepath.Join(filepath.Dir(path), alt)
		}
		opts.Alt = New(loadLive(t, alt, false, &Options{}), Options{})
	}
	return l.Sections
}

// peerFrames asks llvm-symbolizer about every address of the program's functions.
func peerFrames(t *testing.T, exe string) map[uint64]string {
	t.Helper()
	f, err := stdelf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[uint64]string)
	var in strings.Builder
	var asked []uint64
	for _, s := range syms {
		ours := strings.HasPrefix(s.Name, "_Z") || strings.HasPrefix(s.Name, "main")
		if stdelf.ST_TYPE(s.Info) != stdelf.STT_FUNC || !ours {
			continue
		}
		for a := s.Value; a < s.Value+s.Size; a++ {
			asked = append(asked, a)
			fmt.Fprintf(&in, "%#x\n", a)
		}
	}
	cmd := exec.Command("llvm-symbolizer", "--inlines", "--no-demangle", "-e", exe)
	cmd.Stdin = strings.NewReader(in.String())
	b, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSpace(string(b)), "\n\n")
	if len(blocks) != len(asked) || len(asked) < 100 {
		t.Fatalf("%d answers to %d addresses", len(blocks), len(asked))
	}
	for i, block := range blocks {
		lines := strings.Split(block, "\n")
		var frames []string
		for j := 0; j+1 < len(lines); j += 2 {
			// The path is cleaned, as ours is; the column goes.
			path, pos, _ := strings.Cut(lines[j+1], ":")
			line, _, _ := strings.Cut(pos, ":")
			name, _, _ := strings.Cut(lines[j], ".") // .cold, .part
			frames = append(frames, name+" "+sourceLine(filepath.Clean(path), line))
		}
		out[asked[i]] = strings.Join(frames, " < ")
	}
	return out
}

// sourceLine joins a place. Without a line llvm-symbolizer names the unit's file,
// which says nothing.
func sourceLine(file, line string) string {
	if line == "0" {
		return "?:0"
	}
	return file + ":" + line
}

// resolver answers look-ups from a walk, in the simplest way that can be right.
type resolver struct {
	funcs []liveFunc
	rows  []liveRow

	symbols map[uint64]string // clang -g1 describes functions with inlined calls only
}

type liveFunc struct {
	fn      Function
	name    string
	inlines []string // names
	calls   []string // call sites
}

type liveRow struct {
	start, end uint64
	place      string
}

func newResolver(t *testing.T, d *Data) *resolver {
	t.Helper()
	r := &resolver{}
	err := d.Walk(t.Context(), 2, func(u *Unit) error {
		for _, p := range u.Problems {
			t.Error(p)
		}
		file := func(i uint32) string {
			if i == NoFile {
				return "??"
			}
			return string(AppendPath(nil, u.Files[i]))
		}
		named := func(i int32) string {
			if i == NoSub {
				return "??"
			}
			if l := u.Subs[i].Linkage; l != nil {
				return string(l)
			}
			return string(u.Subs[i].Name)
		}
		for _, f := range u.Functions {
			lf := liveFunc{fn: f, name: named(f.Sub)}
			lf.fn.Ranges = slices.Clone(f.Ranges)
			lf.fn.Inlines = slices.Clone(f.Inlines)
			for i, in := range f.Inlines {
				lf.fn.Inlines[i].Ranges = slices.Clone(in.Ranges)
				lf.inlines = append(lf.inlines, named(in.Sub))
				lf.calls = append(lf.calls, sourceLine(file(in.CallFile), fmt.Sprint(in.CallLine)))
			}
			r.funcs = append(r.funcs, lf)
		}
		for _, s := range u.Sequences {
			for i, row := range s.Rows {
				end := s.End
				if i+1 < len(s.Rows) {
					end = s.Rows[i+1].Addr
				}
				r.rows = append(r.rows, liveRow{uint64(row.Addr), uint64(end),
					sourceLine(file(row.File), fmt.Sprint(row.Line))})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// frames gives "name file:line" of all frames at an address, innermost first.
func (r *resolver) frames(a uint64) string {
	place := "?:0"
	for _, row := range r.rows {
		if a >= row.start && a < row.end {
			place = row.place
		}
	}
	best, inner := -1, NoParent
	for i := range r.funcs {
		f := &r.funcs[i].fn
		if best < 0 && covers(f.Ranges, a) {
			best = i
		}
		// In strict DWARF 2 gcc makes a function of its own of a cold part, whose
		// inlined calls stay with the hot one.
		for j, in := range f.Inlines {
			if covers(in.Ranges, a) && (inner < 0 || in.Depth > f.Inlines[inner].Depth) {
				best, inner = i, int32(j)
			}
		}
	}
	if best < 0 {
		for ; r.symbols[a] == ""; a-- {
		}
		return r.symbols[a] + " " + place
	}
	f := &r.funcs[best]
	var frames []string
	for ; inner >= 0; inner = f.fn.Inlines[inner].Parent {
		frames = append(frames, f.inlines[inner]+" "+place)
		place = f.calls[inner]
	}
	return strings.Join(append(frames, f.name+" "+place), " < ")
}
