package indexer

import (
	"bytes"
	"compress/gzip"
	stdelf "debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest"
)

// section and symbol are the parts of an image.
type section struct {
	name  string
	kind  stdelf.SectionType
	flags stdelf.SectionFlag
	addr  uint64
	data  []byte
}

type symbol struct {
	name    string
	section int // index among the sections given, from 1
	value   uint64
	size    uint64
	kind    stdelf.SymType
}

// image makes a 64-bit little-endian ELF file of sections and a .symtab, without
// program headers: kernel images and modules need no more.
func image(typ stdelf.Type, sections []section, symbols []symbol) []byte {
	le := binary.LittleEndian
	strs := []byte{0}
	symtab := make([]byte, 24)
	for _, s := range symbols {
		symtab = le.AppendUint32(symtab, uint32(len(strs)))
		symtab = append(symtab, byte(stdelf.STB_GLOBAL)<<4|byte(s.kind), 0)
		symtab = le.AppendUint16(symtab, uint16(s.section))
		symtab = le.AppendUint64(symtab, s.value)
		symtab = le.AppendUint64(symtab, s.size)
		strs = append(append(strs, s.name...), 0)
	}
	n := len(sections)
	all := append(slices.Clone(sections),
		section{name: ".symtab", kind: stdelf.SHT_SYMTAB, data: symtab},
		section{name: ".strtab", kind: stdelf.SHT_STRTAB, data: strs},
		section{name: ".shstrtab", kind: stdelf.SHT_STRTAB})
	names := []byte{0}
	at := make([]uint32, len(all))
	for i := range all {
		at[i] = uint32(len(names))
		names = append(append(names, all[i].name...), 0)
	}
	all[n+2].data = names
	out := make([]byte, 64)
	headers := make([]byte, 64)
	for i, s := range all {
		for len(out)%16 != 0 {
			out = append(out, 0)
		}
		var h stdelf.Section64
		h.Name, h.Type, h.Flags, h.Addr = at[i], uint32(s.kind), uint64(s.flags), s.addr
		h.Off, h.Size, h.Addralign = uint64(len(out)), uint64(len(s.data)), 4
		if s.kind == stdelf.SHT_SYMTAB {
			h.Link, h.Info, h.Entsize = uint32(n+2), 1, 24
		}
		headers, _ = binary.Append(headers, le, h)
		if s.kind != stdelf.SHT_NOBITS {
			out = append(out, s.data...)
		}
	}
	h := stdelf.Header64{
		Type: uint16(typ), Machine: uint16(stdelf.EM_X86_64), Version: 1, Shoff: uint64(len(out)),
		Ehsize: 64, Phentsize: 56, Shentsize: 64, Shnum: uint16(len(all) + 1), Shstrndx: uint16(n + 3),
	}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	binary.Encode(out, le, h)
	return append(out, headers...)
}

const code = stdelf.SHF_ALLOC | stdelf.SHF_EXECINSTR

// module makes a kernel module of two sections of code.
func module(kind stdelf.SectionType) []byte {
	return image(stdelf.ET_REL, []section{
		{name: ".text", kind: kind, flags: code, data: make([]byte, 0x40)},
		{name: ".init.text", kind: kind, flags: code, data: make([]byte, 0x20)},
		{name: ".exit.text", kind: kind, flags: code, data: make([]byte, 0x10)},
		{name: ".modinfo", kind: stdelf.SHT_PROGBITS, data: []byte("license=GPL\x00")},
		{name: ".note.gnu.build-id", kind: stdelf.SHT_NOTE, flags: stdelf.SHF_ALLOC, data: note(ext4ID)},
	}, []symbol{
		{name: "ext4_read", section: 1, value: 0, size: 0x10, kind: stdelf.STT_FUNC}, {name: "ext4_write",
			section: 1, value: 0x10, size: 0x30, kind: stdelf.STT_FUNC},
		{name: "init_module", section: 2, value: 0, size: 0x20, kind: stdelf.STT_FUNC}, {name: "cleanup_module",
			section: 3, value: 0, size: 0x10, kind: stdelf.STT_FUNC},
	})
}

// pack compresses as the formats of modules do.
func pack(t *testing.T, w io.WriteCloser, out *bytes.Buffer, data []byte) []byte {
	t.Helper()
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestModules(t *testing.T) {
	plain := module(stdelf.SHT_PROGBITS)
	var gz, zs bytes.Buffer
	zw, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"ext4.ko": plain, "ext4.ko.gz": pack(t, gzip.NewWriter(&gz), &gz, plain),
		"ext4.ko.zst": pack(t, zw, &zs, plain), "debug.ko": module(stdelf.SHT_NOBITS),
	}
	id, want := buildid.New([]byte(ext4ID)), ""
	for _, name := range []string{"ext4.ko", "ext4.ko.gz", "ext4.ko.zst"} {
		root, m := realDir(t), newMemory()
		must.Write(t, filepath.Join(root, name), files[name])
		settle()
		sum := m.index(t, Options{}, root)
		o := m.object(t, id)
		if sum.Modules != 1 || o.Kind != ingest.Module || len(o.Sections) != 3 || len(o.Layout) != 0 {
			t.Fatalf("%s: %+v, %+v", name, sum, o)
		}
		got := m.functions(t, id)
		if want == "" {
			want = got
		}
		const first = "0x0+0x10 ext4_read, 0x10+0x30 ext4_write, 0x40+0x10"
		if got != want || !strings.HasPrefix(got, first) {
			t.Errorf("%s:\n%s", name, got)
		}
		m.again(t, Options{}, root)
	}
	root, m := realDir(t), newMemory()
	must.Write(t, filepath.Join(root, "ext4.ko"), files["debug.ko"])
	sum := m.index(t, Options{}, root)
	if o := m.object(t, id); len(o.Sections) != 0 || m.functions(t, id) != want || sum.Debug != 1 {
		t.Errorf("debug file of a module: sections %v, functions %s", o.Sections, m.functions(t, id))
	}
	must.Write(t, filepath.Join(root, "bad.ko.gz"), files["ext4.ko.gz"][:30])
	if sum := m.index(t, Options{}, root); len(sum.Problems) != 1 {
		t.Errorf("a cut module: %v", sum.Problems)
	}
}

func TestVmlinux(t *testing.T) {
	const base = 0xffffffff81000000
	sections := []section{
		{name: ".text", kind: stdelf.SHT_PROGBITS, flags: code, addr: base, data: make([]byte, 0x1000)},
		{name: ".init.text", kind: stdelf.SHT_PROGBITS, flags: code, addr: base + 0x2000,
			data: make([]byte, 0x100)},
		{name: "__ksymtab", kind: stdelf.SHT_PROGBITS, flags: stdelf.SHF_ALLOC, data: make([]byte, 8)},
		{name: "__ex_table", kind: stdelf.SHT_PROGBITS, flags: stdelf.SHF_ALLOC, data: make([]byte, 8)},
		{name: ".notes", kind: stdelf.SHT_NOTE, flags: stdelf.SHF_ALLOC, data: note(kernelID)},
	}
	symbols := []symbol{
		{name: "_text", section: 1, value: base, size: 0, kind: stdelf.STT_NOTYPE}, {name: "startup_64",
			section: 1, value: base, size: 0x50, kind: stdelf.STT_FUNC},
		{name: "_stext", section: 1, value: base + 0x100, size: 0, kind: stdelf.STT_NOTYPE},
		{name: "do_work", section: 1, value: base + 0x140, size: 0xc0, kind: stdelf.STT_FUNC},
		{name: "start_kernel", section: 2, value: base + 0x2000, size: 0x100,
			kind: stdelf.STT_FUNC},
	}
	root, m := realDir(t), newMemory()
	path := filepath.Join(root, "vmlinux")
	must.Write(t, path, image(stdelf.ET_EXEC, sections, symbols))
	sum := m.index(t, Options{}, path)
	id := buildid.New([]byte(kernelID))
	o := m.object(t, id)
	if sum.Kernels != 1 || o.Kind != ingest.Kernel || len(sum.Problems) != 0 {
		t.Fatalf("%+v\n%+v", sum, o)
	}
	if off, ok := o.RefSymbol("_stext"); !ok || off != 0x100 {
		t.Errorf("_stext at %#x, %v", off, ok)
	}
	got := m.functions(t, id)
	want := "0x0+0x50 startup_64, 0x100+0x40 _stext, 0x140+0xc0 do_work, 0x2000+0x100 start_kernel"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, ok := o.RefSymbol(ingest.LinkedAddresses); ok {
		t.Error("a kernel that is relocated has the address that it was linked to")
	}
	must.Write(t, path, image(stdelf.ET_EXEC, sections, symbols[1:2]))
	settle()
	if sum := m.index(t, Options{}, path); len(sum.Problems) != 1 ||
		!strings.Contains(sum.Problems[0].Error(), "_text") {
		t.Errorf("without _text: %v", sum.Problems)
	}
	arm := image(stdelf.ET_EXEC, sections, symbols)
	binary.LittleEndian.PutUint16(arm[18:], uint16(stdelf.EM_ARM)) // e_machine
	must.Write(t, path, arm)
	settle()
	m = newMemory()
	m.index(t, Options{}, path)
	if at, ok := m.object(t, id).RefSymbol(ingest.LinkedAddresses); !ok || base+0x140+at != 0x140 {
		t.Errorf("address 0 of an ARM kernel lies at %#x, %v", at, ok)
	}
}

// TestLiveVDSO has the image of a vdso in the memory of this process, and another
// beside the kernel's modules.
func TestLiveVDSO(t *testing.T) {
	vdso := func(id string) []byte {
		return image(stdelf.ET_DYN, []section{
			{name: ".text", kind: stdelf.SHT_PROGBITS, flags: code, addr: 0x400, data: make([]byte, 64)},
			{name: ".note", kind: stdelf.SHT_NOTE, flags: stdelf.SHF_ALLOC, data: note(id)},
		}, []symbol{{name: "__vdso_time", section: 1, value: 0x400, size: 64,
			kind: stdelf.STT_FUNC}})
	}
	sys, m := fakeSystem(t, 0xffffffff81000000), newMemory()
	mem := slices.Concat(make([]byte, 0x10000), vdso("vdso64"), make([]byte, 0x2000))
	must.Write(t, sys.path("/proc/self/mem"), mem)
	must.Write(t, sys.path("/proc/self/maps"), []byte("10000-12000 r-xp 00000000 00:00 0 [vdso]\n"))
	must.Write(t, sys.path("/proc/sys/kernel/osrelease"), []byte("6.1.0-test\n"))
	must.Write(t, sys.path("/lib/modules/6.1.0-test/vdso/vdso32.so"), vdso("vdso32"))
	m.index(t, Options{Kernel: true, sys: sys})
	own, shipped := buildid.New([]byte("vdso64")), buildid.New([]byte("vdso32"))
	k := m.object(t, buildid.New([]byte(kernelID)))
	if !slices.Equal(k.VDSO, []buildid.ID{shipped, own}) {
		t.Errorf("the kernel's vdsos are %v", k.VDSO)
	}
	for _, id := range k.VDSO {
		if o := m.object(t, id); o.Kind != ingest.VDSO || m.functions(t, id) != "0x400+0x40 __vdso_time" {
			t.Errorf("vdso %s: kind %v, %s", id, o.Kind, m.functions(t, id))
		}
	}
	m.again(t, Options{Kernel: true, sys: sys})
	// The same file in perf's cache is the same object.
	root := realDir(t)
	must.Write(t, filepath.Join(root, "[vdso]", "0011223344556677", "vdso"), vdso("vdso64"))
	before := m.dump(t, "")
	m.index(t, Options{}, root)
	if o := m.object(t, own); o.Kind != ingest.VDSO || len(o.Sources) != 1 {
		t.Errorf("after perf's cache: %+v, before\n%s", o, before)
	}
}

func TestSkippedKinds(t *testing.T) {
	text := section{name: ".text", kind: stdelf.SHT_PROGBITS, flags: code, data: make([]byte, 16)}
	root, m := realDir(t), newMemory()
	must.Write(t, filepath.Join(root, "crt1.o"), image(stdelf.ET_REL, []section{text}, nil))
	must.Write(t, filepath.Join(root, "core"), image(stdelf.ET_CORE, nil, nil))
	settle()
	sum := m.index(t, Options{}, root)
	want := map[string]uint64{SkipRelocatable: 1, SkipCore: 1}
	if fmt.Sprint(sum.Skipped) != fmt.Sprint(want) || len(m.ids) != 0 || len(sum.Problems) != 0 {
		t.Errorf("skipped %v, objects %v, problems %v", sum.Skipped, m.ids, sum.Problems)
	}
	m.again(t, Options{}, root)
	sum = newMemory().index(t, Options{}, filepath.Join(root, "crt1.o"))
	if got := problems(sum, root); got != "crt1.o: no object: "+SkipRelocatable {
		t.Errorf("named by the user: %q", got)
	}
}

// TestNoSymbols has an object without a single name: known all the same, so that the reason is
// "stripped" and not "not indexed".
func TestNoSymbols(t *testing.T) {
	root, m := realDir(t), newMemory()
	must.Write(t, filepath.Join(root, "x"), image(stdelf.ET_DYN, []section{
		{name: ".text", kind: stdelf.SHT_PROGBITS, flags: code, addr: 0x1000, data: make([]byte, 16)},
		{name: ".note.gnu.build-id", kind: stdelf.SHT_NOTE, data: note("0123456789")},
	}, nil))
	sum := m.index(t, Options{}, root)
	if sum.Nameless != 1 || len(m.object(t, buildid.New([]byte("0123456789"))).Sources) != 0 {
		t.Errorf("%+v", sum)
	}
}

// FuzzFile indexes free content: never a panic, and every table that comes of it holds together.
func FuzzFile(f *testing.F) {
	f.Add(fixture(f, "lib/libkernels.so"))
	f.Add(module(stdelf.SHT_PROGBITS))
	f.Add([]byte("ffffffff81000000 T _text\nffffffff81000100 t x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, m := t.TempDir(), newMemory()
		path := filepath.Join(root, "0011223344556677", "kallsyms")
		must.Write(t, path, data)
		m.index(t, Options{Workers: 1}, path)
		m.dump(t, root)
	})
}

// BenchmarkIndex reads the recorded programs; BenchmarkUnchanged sees that they are the same.
func BenchmarkIndex(b *testing.B) {
	root := tree(b)
	for b.Loop() {
		m := newMemory()
		b.SetBytes(int64(m.index(b, Options{}, root).Raw))
	}
}

func BenchmarkUnchanged(b *testing.B) {
	root, m := realDir(b), newMemory()
	for d := range 50 {
		for i := range 100 {
			must.Write(b, filepath.Join(root, fmt.Sprint(d), fmt.Sprint(i, ".txt")), []byte("some text"))
		}
	}
	settle()
	m.index(b, Options{}, root)
	b.ReportAllocs()
	for b.Loop() {
		if sum := m.again(b, Options{}, root); sum.Unchanged != 5000 {
			b.Fatal(sum.Unchanged)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/5000, "us/file")
}
