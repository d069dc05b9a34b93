package indexer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/object/symlist"
	"symbolize/store"
	"symbolize/store/db"
)

// note is an ELF note with a build ID, as files under /sys have it.
func note(id string) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 4)
	b = le.AppendUint32(b, uint32(len(id)))
	b = le.AppendUint32(b, 3)
	return append(append(b, "GNU\x00"...), id...)
}

const (
	kernelID = "kernel-id-of-20bytes"
	ext4ID   = "module-id-of-20bytes"
)

// fakeSystem makes the files of a running kernel that was loaded at base.
func fakeSystem(t *testing.T, base uint64) sysRoot {
	t.Helper()
	root := t.TempDir()
	var k strings.Builder
	for _, s := range []struct {
		off  uint64
		line string
	}{
		{off: 0, line: "T _text"}, {off: 0, line: "T startup_64"}, {off: 0x100, line: "T _stext"}, {off: 0x100,
			line: "t helper"},
		{off: 0x140, line: "T do_work"}, {off: 0x140, line: "t __do_work"}, {off: 0x140,
			line: "W do_work_weak"}, {off: 0x200, line: "w maybe"},
		{off: 0x280, line: "D some_data"}, {off: 0x300, line: "t after_data"}, {off: 0x310,
			line: "A absolute"},
		{off: 0x5000, line: "T last"},
		{off: 0x20000000, line: "t ext4_read\t[ext4]"}, {off: 0x20000010,
			line: "T ext4_write\t[ext4]"},
		{off: 0x20000040, line: "d ext4_data\t[ext4]"}, {off: 0x20000ff0,
			line: "t ext4_last\t[ext4]"},
		{off: 0x2f000000, line: "t ext4_init\t[ext4]"}, {off: 0x21000000, line: "t other\t[noid]"},
		{off: 0x22000000, line: "t bpf_prog_1234\t[bpf]"},
	} {
		fmt.Fprintf(&k, "%016x %s\n", base+s.off, s.line)
	}
	must.Write(t, filepath.Join(root, "proc/kallsyms"), []byte(k.String()))
	must.Write(t, filepath.Join(root, "proc/modules"), fmt.Appendf(nil,
		"ext4 12288 1 - Live %#016x\nnoid 4096 0 - Live %#016x\nbroken line\n",
		base+0x20000000, base+0x21000000))
	must.Write(t, filepath.Join(root, "sys/kernel/notes"), note(kernelID))
	must.Write(t, filepath.Join(root, "sys/module/ext4/notes/.note.gnu.build-id"), note(ext4ID))
	return sysRoot(root)
}

const (
	kernelWant = "0x0+0x100 startup_64, 0x100+0x40 helper, 0x140+0xc0 do_work_weak, " +
		"0x200+0x80 maybe, 0x300+0x10 after_data, 0x5000+0x1000 last"
	ext4Want = "0x0+0x10 ext4_read, 0x10+0x30 ext4_write, 0xff0+0x1010 ext4_last"
)

// functions lists the only source of an object.
func (m *memory) functions(t *testing.T, id buildid.ID) string {
	t.Helper()
	o := m.object(t, id)
	if len(o.Sources) != 1 {
		t.Fatalf("%s has %d sources", id, len(o.Sources))
	}
	table, err := m.Open(o, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for f, err := range table.All() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%#x+%#x %s", f.Start, f.Size, f.Name))
	}
	return strings.Join(out, ", ")
}

func TestLiveKernel(t *testing.T) {
	const base = 0xffffffff9a000000
	m := newMemory()
	sum := m.index(t, Options{Kernel: true, sys: fakeSystem(t, base)})
	kid, mid := buildid.New([]byte(kernelID)), buildid.New([]byte(ext4ID))
	if got := m.functions(t, kid); got != kernelWant {
		t.Errorf("kernel\n%s\nwant\n%s", got, kernelWant)
	}
	if got := m.functions(t, mid); got != ext4Want {
		t.Errorf("ext4\n%s\nwant\n%s", got, ext4Want)
	}
	k, e := m.object(t, kid), m.object(t, mid)
	if k.Kind != ingest.Kernel || e.Kind != ingest.Module || len(m.ids) != 2 {
		t.Errorf("kinds %v and %v, %d objects", k.Kind, e.Kind, len(m.ids))
	}
	if off, ok := k.RefSymbol("_stext"); !ok || off != 0x100 {
		t.Errorf("_stext at %#x, %v", off, ok)
	}
	if sum.Kernels != 1 || sum.Modules != 1 || len(sum.Problems) != 1 ||
		!strings.Contains(sum.Problems[0].Error(), "noid") {
		t.Errorf("summary %+v", sum)
	}
	// Another boot of the same kernel, at another place: nothing is new.
	m.again(t, Options{Kernel: true, sys: fakeSystem(t, base+0x1400000)})
}

func TestKernelHidden(t *testing.T) {
	sys, m := fakeSystem(t, 0xffffffff81000000), newMemory()
	must.Write(t, sys.path("/proc/kallsyms"), []byte("0000000000000000 T _text\n0000000000000000 t x\n"))
	sum := m.index(t, Options{Kernel: true, sys: sys})
	if len(sum.Problems) != 1 || !errors.Is(sum.Problems[0], symlist.ErrRestricted) ||
		!strings.Contains(sum.Problems[0].Hint, "kptr_restrict") || !sum.Problems[0].Named {
		t.Errorf("problems %+v", sum.Problems)
	}
	if len(m.ids) != 0 {
		t.Errorf("objects %v", m.ids)
	}
	if err := os.Remove(sys.path("/sys/kernel/notes")); err != nil {
		t.Fatal(err)
	}
	if sum := m.index(t, Options{Kernel: true, sys: sys}); len(sum.Problems) != 1 ||
		!errors.Is(sum.Problems[0], os.ErrNotExist) {
		t.Errorf("no notes: %+v", sum.Problems)
	}
}

// TestKeptKallsyms reads copies of the text where perf, a copy of /sys, and the user give the build
// ID.
func TestKeptKallsyms(t *testing.T) {
	const base = 0xffffffff81000000
	text := must.Read(t, fakeSystem(t, base).path("/proc/kallsyms"))
	id := buildid.New([]byte(kernelID))
	tests := []struct {
		name, file string
		tree       bool // the directory is given, not the file
		opts       Options
		packed     string
	}{
		{name: "packed by xz", file: id.Hex() + "/kallsyms.xz", tree: true, packed: "xz"},
		{name: "packed by gzip", file: id.Hex() + "/kallsyms.gz", tree: true, packed: "gzip"},
		{name: "packed by zstd", file: "x/System.map.zst", opts: Options{KallsymsID: id}, packed: "zstd"},
		{name: "perf's cache", file: "[kernel.kallsyms]/" + id.Hex() + "/kallsyms", tree: true,
			opts: Options{}},
		{name: "notes beside it", file: "kernel/kallsyms", tree: true, opts: Options{}},
		{name: "told by the user", file: "x/System.map", opts: Options{KallsymsID: id}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, m := realDir(t), newMemory()
			path := filepath.Join(root, tt.file)
			if tt.packed != "" {
				must.Write(t, path, elfbuild.Pack(tt.packed, text))
			} else {
				must.Write(t, path, text)
			}
			if filepath.Base(filepath.Dir(path)) == "kernel" {
				must.Write(t, filepath.Join(filepath.Dir(path), "notes"), note(kernelID))
			}
			settle()
			if tt.tree {
				path = root
			}
			m.index(t, tt.opts, path)
			if got := m.functions(t, id); got != kernelWant {
				t.Errorf("got\n%s\nwant\n%s", got, kernelWant)
			}
			m.again(t, tt.opts, path)
		})
	}
	t.Run("cut in a line", func(t *testing.T) {
		root, m := realDir(t), newMemory()
		must.Write(t, filepath.Join(root, id.Hex(), "kallsyms"), text[:200])
		sum := m.index(t, Options{}, root)
		if len(m.ids) != 1 {
			t.Errorf("objects %v, problems %v", m.ids, sum.Problems)
		}
	})
	t.Run("packed and cut", func(t *testing.T) {
		root, m := realDir(t), newMemory()
		must.Write(t, filepath.Join(root, id.Hex(), "kallsyms.gz"), elfbuild.Pack("gzip", text)[:200])
		if sum := m.index(t, Options{}, root); len(sum.Problems) != 1 || len(m.ids) != 0 {
			t.Errorf("objects %v, problems %v", m.ids, sum.Problems)
		}
	})
	t.Run("no _text", func(t *testing.T) {
		root, m := realDir(t), newMemory()
		must.Write(t, filepath.Join(root, id.Hex(), "kallsyms"), []byte("ffffffff81000000 T other\n"))
		sum := m.index(t, Options{}, root)
		if len(sum.Problems) != 1 || !errors.Is(sum.Problems[0], errNoText) {
			t.Errorf("problems %v", sum.Problems)
		}
	})
}

// TestRebuild makes the same table anew from the stored input.
func TestRebuild(t *testing.T) {
	sys := fakeSystem(t, 0xffffffff81000000)
	w, err := db.OpenWriter(t.Context(), t.TempDir(), db.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	open := func() (store.Sink, error) { return w, nil }
	opts := Options{Kernel: true, sys: sys, DebugRoots: []string{}}
	if _, err := Index(t.Context(), nil, w, open, opts); err != nil {
		t.Fatal(err)
	}
	res, err := w.Rebuild(t.Context(), db.RebuildOptions{
		Table: Rebuild, Producer: func(store.SourceKind) uint32 { return Producer },
	})
	if err != nil || res.Sources != 2 || res.Changed != 0 || len(res.Problems) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	info := store.SourceInfo{Kind: store.Symtab}
	if _, err := Rebuild(nil, info, nil); err == nil {
		t.Error("a symtab was made of nothing")
	}
}

// TestRecordedKernel reads the kallsyms kept with the recorded captures.
func TestRecordedKernel(t *testing.T) {
	m := newMemory()
	m.index(t, Options{}, "../../fixtures/kernel")
	if len(m.ids) != 1 {
		t.Fatalf("objects %v", m.ids)
	}
	for id := range m.ids {
		if names := m.names(t, id, store.Kallsyms); !slices.Contains(names, "asm_exc_page_fault") {
			t.Errorf("no asm_exc_page_fault among %d names", len(names))
		}
	}
}

func TestOwnVDSO(t *testing.T) {
	image, err := sysRoot("").ownVDSO()
	if err != nil {
		t.Fatal(err)
	}
	if image == nil {
		t.Skip("no vdso in this process")
	}
	m := newMemory()
	ix := &index{ctx: t.Context(), view: m, output: output{open: m.open}, results: newResults()}
	ix.ctx, ix.cancel = contextWithCause(t)
	id, err := newFileReader(ix).vdso("[vdso]", image)
	if err != nil {
		t.Fatal(err)
	}
	o := m.object(t, id)
	if o.Kind != ingest.VDSO || len(o.Layout) == 0 || len(o.Sources) == 0 {
		t.Errorf("vdso %+v", o)
	}
	names := m.names(t, id, store.Dynsym)
	isClock := func(n string) bool { return strings.Contains(n, "clock_gettime") }
	if !slices.ContainsFunc(names, isClock) {
		t.Errorf("functions of the vdso: %q", names)
	}
}

func TestVDSOProblems(t *testing.T) {
	root := sysRoot(t.TempDir())
	if image, err := root.ownVDSO(); image != nil || err != nil {
		t.Errorf("no /proc: %d bytes, %v", len(image), err)
	}
	for _, line := range []string{
		"7ffd00000000-7ffd40000000 r-xp 00000000 00:00 0 [vdso]\n", // too large
		"7ffd00001000-7ffd00000000 r-xp 00000000 00:00 0 [vdso]\n", // the wrong way round
		"zz-7ffd00000000 r-xp 00000000 00:00 0 [vdso]\n",
		"7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0 [vdso]\n", // no mem to read
	} {
		maps := "00400000-00500000 r-xp 0 0:0 1 /bin/x\n" + line
		must.Write(t, root.path("/proc/self/maps"), []byte(maps))
		if image, err := root.ownVDSO(); err == nil {
			t.Errorf("%q gives %d bytes", line, len(image))
		}
	}
}

func TestProcKallsymsMeansTheKernel(t *testing.T) {
	root := realDir(t)
	sys := sysRoot(filepath.Join(root, "sys"))
	if err := os.CopyFS(string(sys), os.DirFS(string(fakeSystem(t, 0xffffffff81000000)))); err != nil {
		t.Fatal(err)
	}
	m := newMemory()
	m.index(t, Options{sys: sys}, sys.path("/proc/kallsyms"))
	if len(m.ids) != 2 {
		t.Errorf("objects %v", m.ids)
	}
}
