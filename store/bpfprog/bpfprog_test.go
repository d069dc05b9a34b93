package bpfprog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/bpfbuild"
	"symbolize/fixtures/golden"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/symtab"
)

func tagOf(b byte) (t [8]byte) {
	for i := range t {
		t[i] = b
	}
	return t
}

// loadOf is a load of a program of two functions: the image differs from load to load, the lines do
// not.
func loadOf(id uint32, load byte) bpfbuild.Program {
	const file = "src/a.bpf.c"
	return bpfbuild.Program{
		Type: 6, ID: id, BTFID: 4, Tag: tagOf(0xaa), Name: "pass_most_of_th", LoadTime: 1000 + uint64(id),
		Funcs: []bpfbuild.Func{
			{Name: "pass_most_of_them", Tag: tagOf(0x10), Start: 0xffffffffc0025b94 + 64*uint64(load),
				Code: bytes.Repeat([]byte{load}, 40), Lines: []bpfbuild.Line{
					{At: 0, Insn: 0, Line: 30, File: file, Source: "int pass_most_of_them(void *ctx)"},
					{At: 11, Insn: 3, Line: 35, Column: 7, File: file, Source: "	return x;"},
					{At: 20, Insn: 5, Line: 7, Column: 1023, File: "inc.h", Source: "	y++;"},
				}},
			{Name: "helper", Tag: tagOf(0x11), Start: 0xffffffffc002218c + 64*uint64(load),
				Code: bytes.Repeat([]byte{load, 1, 2}, 11), Lines: []bpfbuild.Line{
					{At: 0, Insn: 7, Line: 9, Column: 2, File: file, Source: "static int helper(int x)"},
				}},
		},
	}
}

// decoded decodes built programs, which may be damaged.
func decoded(t testing.TB, big bool, programs ...bpfbuild.Program) []bpf.Program {
	t.Helper()
	info, blobs := bpfbuild.Sections(big, programs...)
	btfs, err := bpf.DecodeBTFs("test", blobs, 0, big)
	if err != nil {
		t.Fatal(err)
	}
	out, err := bpf.DecodePrograms("test", info, 0, big, btfs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// add merges programs.
func add(t testing.TB, s store.Sink, boot string, programs ...bpf.Program) *Stats {
	t.Helper()
	stats, err := Add(t.Context(), s,
		CaptureInfo{Machine: "x86_64", BootID: boot, Path: "/c/" + boot}, programs)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

func find(t testing.TB, v store.View, id buildid.ID) *store.Manifest {
	t.Helper()
	ms, err := v.Find(id)
	if err != nil || len(ms) != 1 {
		t.Fatalf("%s: %d objects, %v", id, len(ms), err)
	}
	return ms[0]
}

// describe prints a view's facts on a function.
func describe(t testing.TB, v store.View, id buildid.ID) string {
	t.Helper()
	m := find(t, v, id)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s machine %d class %d big endian %v\n", m.ID, m.Kind, m.Machine, m.Class,
		m.BigEndian)
	for i, s := range m.Sources {
		table, err := v.Open(m, i)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s from %s, %d functions, %d bytes named\n", s.Kind, s.Path, s.Funcs, s.Named)
		addrs := make([]addr.Addr, s.Named+1)
		for k := range addrs {
			addrs[k] = addr.Addr(k)
		}
		last := ""
		err = table.JoinFrames(addrs, func(k int, hit symtab.Hit, frames []symtab.Frame) {
			f := frames[0]
			name, _ := table.Name(f.Name)
			file, _ := table.File(f.File)
			decl, _ := table.File(f.DeclFile)
			text := fmt.Sprintf("%s of %s:%d, %s:%d:%d", name, decl, f.DeclLine, file, f.Line, f.Column)
			if text != last {
				fmt.Fprintf(&b, "  %#x %s\n", k, text)
			}
			last = text
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	variants, err := Variants(v, id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range variants {
		x := &variants[i]
		f := x.Function()
		fmt.Fprintf(&b, "variant %s of boot %q: program %d, %s, loaded %d, %s, own tag %s\n"+
			"  at %#x, %d bytes, %.8s, %d lines, the last %q, probable %v\n", x.Symbol(), x.BootID,
			x.Program, TypeName(x.Type), x.Load, x.Name, f.Tag, uint64(f.Start), len(f.Image),
			x.Image, len(f.Lines), f.Lines[len(f.Lines)-1].Source, x.Probable)
	}
	return b.String()
}

// TestAdd has two loads of one program, and one of another, in two captures.
func TestAdd(t *testing.T) {
	o := store.NewOverlay()
	programs := decoded(t, false, loadOf(7, 1), loadOf(8, 2))
	stats := add(t, o, "b1", programs...)
	want := &Stats{Programs: 2, Functions: 4, Images: 4, Lined: 4, Missing: map[string]int{}}
	if !reflect.DeepEqual(stats, want) {
		t.Errorf("stats %+v", stats)
	}
	add(t, o, "b2", decoded(t, false, loadOf(7, 3))...)
	p := &programs[0]
	var got strings.Builder
	for i := range p.Funcs {
		got.WriteString(describe(t, o, p.Identity(i, "x86_64")))
		for _, symbol := range []string{p.Symbol(i), p.PerfSymbol(i)} {
			m := find(t, o, bpf.SymbolIdentity("x86_64", symbol, uint64(p.Funcs[i].Length)))
			fmt.Fprintf(&got, "%s: %d sources, probably %s\n", symbol, len(m.Sources), m.Probable)
		}
	}
	golden.Compare(t, "programs.golden", []byte(got.String()))
}

// TestProgramsAnyOrder indexes the same loads in many orders, some twice.
func TestProgramsAnyOrder(t *testing.T) {
	var loads []bpf.Program
	for i := range 4 {
		loads = append(loads, decoded(t, false, loadOf(uint32(i), byte(i%3)))...)
	}
	other := loadOf(9, 9)
	other.Tag, other.Funcs[1].Tag = tagOf(0xbb), tagOf(0x22) // as another kernel hashes it
	loads = append(loads, decoded(t, false, other)...)
	var want [32]byte
	for round := range 6 {
		w, err := db.OpenWriter(t.Context(), t.TempDir(), db.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range loads {
			k := (i*3 + round) % len(loads)
			if round%2 == 1 {
				k = len(loads) - 1 - k
			}
			add(t, w, "boot", loads[k], loads[round%len(loads)])
		}
		sum, err := w.Digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			want = sum
		}
		if sum != want {
			t.Errorf("round %d: another digest", round)
		}
		m := find(t, w, loads[0].Identity(1, "x86_64"))
		if len(m.Variants) != 5 || len(m.Sources) != 2 {
			t.Errorf("%d variants, %d tables; want a table for each of two tags", len(m.Variants),
				len(m.Sources))
		}
		res, err := w.Rebuild(t.Context(), rebuildJIT)
		if err != nil || res.Changed != 0 || res.Sources != 4 || len(res.Problems) > 0 {
			t.Errorf("rebuild: %+v, %v", res, err)
		}
		v, err := w.Verify(t.Context())
		if err != nil || len(v.Problems) > 0 {
			t.Errorf("verify: %+v, %v", v, err)
		}
		if again, _ := w.Digest(t.Context()); again != want {
			t.Error("another digest after rebuild")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVariantsLikeDecoded reads kept programs back, of both byte orders.
func TestVariantsLikeDecoded(t *testing.T) {
	for _, big := range []bool{false, true} {
		o := store.NewOverlay()
		p := decoded(t, big, loadOf(7, 1))[0]
		add(t, o, "boot", p)
		for i := range p.Funcs {
			list, err := Variants(o, p.Identity(i, "x86_64"))
			if err != nil || len(list) != 1 {
				t.Fatalf("big endian %v, function %d: %d variants, %v", big, i, len(list), err)
			}
			v := &list[0]
			if f := v.Function(); !reflect.DeepEqual(*f, p.Funcs[i]) || v.Symbol() != p.Symbol(i) ||
				SymbolOf(&v.Variant) != p.Symbol(i) {
				t.Errorf("big endian %v: %s: %+v\nwant %+v", big, v.Symbol(), f, p.Funcs[i])
			}
			if v.Loaded.BTF == nil || v.Loaded.LoadTime != p.LoadTime {
				t.Errorf("program %+v", v.Loaded)
			}
		}
	}
}

// TestProgramsWithoutLines have a name and an image. The name in the records is longer than the
// entry's.
func TestProgramsWithoutLines(t *testing.T) {
	built := loadOf(7, 1)
	built.BTFID = 0
	for i := range built.Funcs {
		built.Funcs[i].Lines = nil
	}
	p := decoded(t, false, built)[0]
	p.Funcs[0].Name = "pass_most_of_them" // as ingest finds in the KSYMBOL record
	w, err := db.OpenWriter(t.Context(), t.TempDir(), db.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if s := add(t, w, "", p); s.Lined != 0 || s.Images != 2 {
		t.Errorf("stats %+v", s)
	}
	id := bpf.SymbolIdentity("x86_64", "bpf_prog_aaaaaaaaaaaaaaaa_pass_most_of_them", 40)
	alias := []buildid.ID{bpf.CountIdentity(p.Name, p.XlatedLen/8)}
	if m := find(t, w, id); len(m.Sources) != 1 || !slices.Equal(m.Probable, alias) {
		t.Errorf("manifest %+v", m)
	}
	list, err := Variants(w, id)
	if err != nil || len(list) != 1 || list[0].Symbol() != p.Symbol(0) {
		t.Errorf("variants %+v, %v", list, err)
	}
	res, err := w.Rebuild(t.Context(), rebuildJIT)
	if err != nil || res.Changed != 0 || len(res.Problems) > 0 {
		t.Errorf("rebuild: %+v, %v", res, err)
	}
}

// rebuildJIT is for stores that have sources of programs alone.
var rebuildJIT = db.RebuildOptions{
	Table: func(*store.Manifest, store.SourceInfo, []byte) (*symtab.Encoded, error) {
		return nil, errors.New("a source that is of no program")
	},
	JIT: Rebuild, Producer: func(store.SourceKind) uint32 { return store.Producer },
}

// TestProgramsMissing counts programs without any data to keep.
func TestProgramsMissing(t *testing.T) {
	hidden, omitted, short := loadOf(1, 1), loadOf(2, 2), loadOf(3, 3)
	hidden.Hide = bpfbuild.Jited
	omitted.Omit = bpfbuild.JITedInsns
	short.InfoLen = 100 // from before subprograms: all code is one function, without lines
	programs := decoded(t, false, hidden, omitted, short)
	programs = append(programs, bpf.Program{ID: 5, Missing: bpf.MissingGone,
		Funcs: []bpf.Func{{Name: "gone", Length: 40}}})
	o := store.NewOverlay()
	stats := add(t, o, "", programs...)
	missing := 0
	for _, n := range stats.Missing {
		missing += n
	}
	if missing != 3 || stats.Missing[bpf.MissingGone] != 1 || stats.Missing[bpf.MissingHidden] != 1 {
		t.Errorf("missing %v", stats.Missing)
	}
	// Without code, but with lines: there is a table, and no image.
	p := &programs[1]
	if stats.Programs != 2 || stats.Functions != 3 || stats.Images != 1 || stats.Lined != 2 {
		t.Errorf("stats %+v; lines %v", stats, p.Funcs[0].Lines)
	}
	m := find(t, o, p.Identity(0, "x86_64"))
	if len(m.Sources) != 1 || len(m.Variants) != 1 || !m.Variants[0].Image.IsZero() {
		t.Errorf("manifest %+v", m)
	}
}

// TestProgramsProbable asks for variants by name, tag and length, of one function and
// of two.
func TestProgramsProbable(t *testing.T) {
	o := store.NewOverlay()
	a := loadOf(7, 1)
	p := decoded(t, false, a)[0]
	add(t, o, "", p)
	id := bpf.SymbolIdentity("x86_64", p.Symbol(1), uint64(p.Funcs[1].Length))
	list, err := Variants(o, id)
	if err != nil || len(list) != 1 || !list[0].Probable || list[0].Func != 1 {
		t.Errorf("variants %+v, %v", list, err)
	}
	a.Funcs[1].Lines[0].Line++ // a comment was added to the source
	add(t, o, "", decoded(t, false, a)...)
	if list, err = Variants(o, id); err != nil || len(list) != 0 {
		t.Errorf("of two: variants %+v, %v", list, err)
	}
	id = bpf.SymbolIdentity("x86_64", "nobody", 1)
	if list, err = Variants(o, id); err != nil || len(list) != 0 {
		t.Errorf("of none: variants %+v, %v", list, err)
	}
}

// TestVariantsDamaged has blobs that differ from their manifests.
func TestVariantsDamaged(t *testing.T) {
	p := decoded(t, false, loadOf(7, 1))[0]
	id := p.Identity(1, "x86_64")
	for name, change := range map[string]func(entry, types []byte) ([]byte, []byte, uint32){
		"no entry":    func(_, types []byte) ([]byte, []byte, uint32) { return []byte("x"), types, 1 },
		"entry cut":   func(e, types []byte) ([]byte, []byte, uint32) { return e[:len(e)/2], types, 1 },
		"no types":    func(e, _ []byte) ([]byte, []byte, uint32) { return e, []byte("x"), 1 },
		"no function": func(e, types []byte) ([]byte, []byte, uint32) { return e, types, 2 },
	} {
		o := store.NewOverlay()
		entry, types, number := change(p.Raw, p.BTF.Raw())
		v := store.Variant{Func: number}
		var err error
		if v.Entry, err = o.PutBlob(t.Context(), entry); err == nil {
			v.BTF, err = o.PutBlob(t.Context(), types)
		}
		m := store.Manifest{ID: id, Variants: []store.Variant{v}}
		if err = errors.Join(err, o.Merge(t.Context(), &store.Contribution{Manifest: m})); err != nil {
			t.Fatal(err)
		}
		if list, err := Variants(o, id); err == nil || len(list) > 0 {
			t.Errorf("%s: %d variants, %v", name, len(list), err)
		}
		if _, err := Rebuild(&m, &v, entry, types); err == nil {
			t.Errorf("%s: rebuilt", name)
		}
	}
}

// TestProgramsTooLarge has a name that no store accepts: the other functions are kept.
func TestProgramsTooLarge(t *testing.T) {
	programs := decoded(t, false, loadOf(7, 1), loadOf(8, 2))
	programs[0].Funcs[1].Name = strings.Repeat("x", 4000)
	o := store.NewOverlay()
	stats := add(t, o, "", programs...)
	if len(stats.Problems) != 1 || !errors.Is(stats.Problems[0], store.ErrTooLarge) {
		t.Errorf("problems %v", stats.Problems)
	}
	for i := range 2 {
		find(t, o, programs[1].Identity(i, "x86_64"))
	}
}

// TestProgramsSinkFails ends with the sink's error.
func TestProgramsSinkFails(t *testing.T) {
	s := fullDisk{store.NewOverlay()}
	_, err := Add(t.Context(), s, CaptureInfo{}, decoded(t, false, loadOf(7, 1)))
	if !errors.Is(err, errDisk) {
		t.Errorf("error %v", err)
	}
}

var errDisk = errors.New("disk on fire")

// fullDisk is a sink that keeps no objects.
type fullDisk struct{ *store.Overlay }

func (fullDisk) Merge(context.Context, *store.Contribution) error { return errDisk }

// TestProgramTypes names the kernel's numbers.
func TestProgramTypes(t *testing.T) {
	for n, want := range map[uint32]string{
		2: "kprobe", 5: "tracepoint", 6: "xdp", 7: "perf_event", 17: "raw_tracepoint", 26: "tracing",
		27: "struct_ops", 28: "ext", 29: "lsm", 32: "netfilter", 33: "type 33",
		1 << 31: "type 2147483648",
	} {
		if got := TypeName(n); got != want {
			t.Errorf("type %d is %q, want %q", n, got, want)
		}
	}
}

// BenchmarkAdd keeps 100 loads of programs with three functions.
func BenchmarkAdd(b *testing.B) {
	var built []bpfbuild.Program
	for i := range 100 {
		built = append(built, loadOf(uint32(i), byte(i)))
	}
	programs := decoded(b, false, built...)
	size := 0
	for i := range programs {
		size += len(programs[i].Raw)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		add(b, store.NewOverlay(), "boot", programs...)
	}
}
