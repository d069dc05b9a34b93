package dwarf

import (
	"bytes"
	stdelf "debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/containers"
)

// TestContainerMatrix builds one program in every way that debug information comes in and wants, at
// every address of its functions, the frames that llvm-symbolizer gives for the plain DWARF 4 build
// of the same compiler.
func TestContainerMatrix(t *testing.T) {
	containers.Live(t)
	root := t.TempDir()
	want := make(map[string]map[uint64]string) // by compiler
	code := make(map[string][]byte)
	for _, cc := range []string{"g++", "clang++"} {
		dir := filepath.Join(root, "src")
		os.RemoveAll(dir)
		os.MkdirAll(dir, 0o755)
		exe := containers.Compile(t, dir, containers.Variant{CC: cc, Flags: "-g -gdwarf-4"})
		want[cc], code[cc] = containers.PeerFrames(t, exe), containers.TextOf(t, exe)
	}
	for _, v := range containers.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			dir := filepath.Join(root, "src") // always the same: paths are compared
			os.RemoveAll(dir)
			os.MkdirAll(dir, 0o755)
			exe := containers.Compile(t, dir, v)
			expect := want[v.CC]
			if v.Peer {
				expect = containers.PeerFrames(t, exe)
			} else if !bytes.Equal(containers.TextOf(t, exe), code[v.CC]) {
				t.Fatal("the code differs from that of the plain build")
			}
			file := exe
			if v.Post != nil {
				file = v.Post(t, dir, exe)
			}
			compareFrames(t, openLive(t, file), containers.SymbolsOf(t, exe), expect)
		})
	}
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

// openLive loads a file with its split and supplementary files.
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

// loadLive loads as the indexer does: Load, on a mapped file.
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
			n := string(u.Subs[i].Name) // qualified; that of llvm-symbolizer is not
			return n[strings.LastIndex(":"+n, ":"):]
		}
		for _, f := range u.Functions {
			lf := liveFunc{fn: f, name: named(f.Sub)}
			lf.fn.Ranges = slices.Clone(f.Ranges)
			lf.fn.Inlines = slices.Clone(f.Inlines)
			for i, in := range f.Inlines {
				lf.fn.Inlines[i].Ranges = slices.Clone(in.Ranges)
				lf.inlines = append(lf.inlines, named(in.Sub))
				lf.calls = append(lf.calls, containers.Place(file(in.CallFile), fmt.Sprint(in.CallLine)))
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
					containers.Place(file(row.File), fmt.Sprint(row.Line))})
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
		// In strict DWARF 2 gcc makes a function of its own of a cold part, and leaves the inlined
		// calls in the hot one.
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
