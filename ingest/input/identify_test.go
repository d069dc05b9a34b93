package input

import (
	"bytes"
	"slices"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/sideband"
)

func sum(b byte) []byte { return bytes.Repeat([]byte{b}, 20) }

// objectOf returns the only object with a path.
func objectOf(t *testing.T, p *ingest.Profile, path string) *ingest.Object {
	t.Helper()
	var found *ingest.Object
	for i := range p.Objects {
		if p.Objects[i].File.Path == path {
			if found != nil {
				t.Fatalf("two objects %s", path)
			}
			found = &p.Objects[i]
		}
	}
	if found == nil {
		t.Fatalf("no object %s among %+v", path, p.Objects)
	}
	return found
}

// mapped maps a file and adds a sample in it.
func (c capture) mapped(addr uint64, m perfbuild.Mmap) {
	m.PID, m.Addr, m.Len = 7, addr, 0x1000
	c.Mmap2(m, at(1))
	c.hit(7, 2, cU, addr+0x10)
}

func TestIdentify(t *testing.T) {
	c := newCapture()
	entry := func(name string, id byte) perfbuild.BuildIDEntry {
		return perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(id), Filename: name}
	}
	c.BuildIDs(
		entry("/lib/bypath.so", 1), entry("/lib/own.so", 2), entry("/lib/twice.so",
			3), entry("/lib/twice.so", 4),
		entry("/mnt/lib/sibling.so", 5), entry("[vdso]", 6), entry("/bin/gone", 7),
		perfbuild.BuildIDEntry{Misc: perfbuild.Kernel, ID: sum(8), Filename: "[kernel.kallsyms]"},
		perfbuild.BuildIDEntry{Misc: perfbuild.Kernel, ID: sum(9),
			Filename: "/lib/modules/6.1/ext4.ko.xz"},
		entry("/lib/modules/6.1/kvm.ko", 10), entry("/lib/modules/6.1/ext4.ko", 11),
		perfbuild.BuildIDEntry{Misc: perfbuild.GuestKernel, PID: 55, ID: sum(99),
			Filename: "[guest.kernel.kallsyms]"},
	)
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	c.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: 0xffffffffc0100000, Len: 0x1000,
		Filename: "[ext4]"}, at(0))
	c.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: 0xffffffffc0200000, Len: 0x1000,
		Filename: "/lib/modules/6.1/kvm.ko"}, at(0))
	c.hit(7, 2, cK, 0xffffffff81000010, 0xffffffffc0100011)
	c.hit(7, 2, cK, 0xffffffffc0200010)
	c.mapped(0x100000, perfbuild.Mmap{Ino: 1, Filename: "/lib/bypath.so"})
	c.mapped(0x200000, perfbuild.Mmap{BuildID: sum(22), Filename: "/lib/own.so"})
	c.mapped(0x300000, perfbuild.Mmap{Ino: 3, Filename: "/lib/twice.so"})
	c.mapped(0x400000, perfbuild.Mmap{Ino: 5, InoGen: 9, Filename: "/mnt/lib/sibling.so"})
	c.mapped(0x500000, perfbuild.Mmap{Ino: 5, InoGen: 9, Filename: "/lib/sibling.so"})
	c.mapped(0x510000, perfbuild.Mmap{Ino: 5, InoGen: 8, Filename: "/lib/nosibling.so"})
	c.mapped(0x600000, perfbuild.Mmap{Filename: "[vdso]"})
	c.mapped(0x700000, perfbuild.Mmap{Ino: 7, Filename: "/bin/gone (deleted)"})
	c.mapped(0x800000, perfbuild.Mmap{Ino: 10, Filename: "/bin/asked"})
	c.mapped(0x900000, perfbuild.Mmap{Ino: 11, Filename: "/bin/none"})
	c.mapped(0xa00000, perfbuild.Mmap{Ino: 0, Filename: "/memfd:runc (deleted)", BuildID: sum(12)})
	c.lib(7, 0xb00000, 0x1000, 0, "/bin/unhit", 1)
	c.FeatureString(perfbuild.FeatureHostname, "box")

	var asked []string
	opts := Options{Identify: func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		if !q.ByPath.IsZero() {
			return q.ByPath, ingest.IDByPath
		}
		asked = append(asked, pathInRecords(&q.File))
		if q.Host != "box" || !q.Kernel.Matches(buildid.New(sum(8))) ||
			q.EndNanos != 1_700_000_000_000_000_000 {
			t.Errorf("query %+v", q)
		}
		if q.File.Path == "/bin/asked" {
			return buildid.New(sum(10)), ingest.IDProven
		}
		return buildid.ID{}, ingest.IDProven // a zero ID proves nothing
	}}
	p := fold(t, c.Bytes(), opts)
	slices.Sort(asked)
	want := []string{"/bin/asked", "/bin/gone (deleted)", "/bin/none", "/lib/nosibling.so",
		"/lib/twice.so"}
	if !slices.Equal(asked, want) {
		t.Errorf("Identify was asked for %q, want %q", asked, want)
	}
	for _, tc := range []struct {
		path   string
		id     byte
		source ingest.IDSource
		reason ingest.Reason
	}{
		{path: "/lib/bypath.so", id: 1, source: ingest.IDByPath, reason: ingest.ReasonNone},
		{path: "/lib/own.so", id: 22, source: ingest.IDRecorded, reason: ingest.ReasonNone},
		{path: "/lib/twice.so", source: ingest.IDNone, reason: ingest.NoBuildID},
		// one object with /mnt/lib/sibling.so
		{path: "/lib/sibling.so", id: 5, source: ingest.IDSibling, reason: ingest.ReasonNone},
		{path: "/lib/nosibling.so", source: ingest.IDNone, reason: ingest.NoBuildID},
		{path: "[vdso]", id: 6, source: ingest.IDByPath, reason: ingest.ReasonNone},
		{path: "/bin/gone", source: ingest.IDNone, reason: ingest.NoBuildID},
		{path: "/bin/asked", id: 10, source: ingest.IDProven, reason: ingest.ReasonNone},
		{path: "/bin/none", source: ingest.IDNone, reason: ingest.NoBuildID},
		{path: "/memfd:runc", id: 12, source: ingest.IDRecorded, reason: ingest.ReasonNone},
		{path: "[kernel.kallsyms]", id: 8, source: ingest.IDByPath, reason: ingest.ReasonNone},
		{path: "[ext4]", id: 9, source: ingest.IDByPath, reason: ingest.ReasonNone},
		{path: "[kvm]", id: 10, source: ingest.IDByPath, reason: ingest.ReasonNone},
	} {
		o := objectOf(t, p, tc.path)
		id := buildid.ID{}
		if tc.id != 0 {
			id = buildid.New(sum(tc.id))
		}
		if o.ID.Compare(id) != 0 || o.IDSource != tc.source || o.Reason != tc.reason {
			t.Errorf("%s: %s by %d, reason %s; want %s by %d, %s", tc.path, o.ID, o.IDSource,
				o.Reason, id,
				tc.source, tc.reason)
		}
	}
	kernel := objectOf(t, p, "[ext4]").Kernel
	if kernel == ingest.NoObject || p.Objects[kernel].Kind != ingest.Kernel ||
		objectOf(t, p, "[vdso]").Kernel != kernel {
		t.Errorf("the module's kernel is %d", kernel)
	}
}

// TestSiblingAlone finds the ID of a file by another of its names, which has no samples.
func TestSiblingAlone(t *testing.T) {
	c := newCapture()
	c.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(5), Filename: "/a"})
	c.Mmap2(perfbuild.Mmap{PID: 9, Addr: 0x1000, Len: 0x1000, Ino: 5, Filename: "/a"}, at(1))
	c.mapped(0x500000, perfbuild.Mmap{Ino: 5, Filename: "/b"})
	p := fold(t, c.Bytes(), Options{})
	if o := objectOf(t, p, "/b"); o.IDSource != ingest.IDSibling || !o.ID.Matches(buildid.New(sum(5))) {
		t.Errorf("%s by %d", o.ID, o.IDSource)
	}
}

// TestSameObject makes one object of one file under many names and processes.
func TestSameObject(t *testing.T) {
	c := newCapture()
	for i, name := range []string{"/z/lib.so", "/a/lib.so", "/m/lib.so"} {
		pid := int32(7 + i)
		c.Mmap2(perfbuild.Mmap{PID: pid, Addr: 0x100000, Len: 0x2000, PgOff: uint64(i/2) * 0x1000,
			BuildID: sum(1), Filename: name}, at(1))
		c.Mmap2(perfbuild.Mmap{PID: pid, Addr: 0x200000, Len: 0x2000, BuildID: sum(1), Filename: name},
			at(1))
		c.hit(pid, 2, cU, 0x100010)
	}
	for pid := int32(20); pid < 24; pid++ { // without an ID: one file, one object
		c.Mmap2(perfbuild.Mmap{PID: pid, Addr: 0x100000, Len: 0x2000, Maj: 8, Ino: 77,
			Filename: "/lib/x"}, at(1))
		c.hit(pid, 2, cU, 0x100010)
	}
	c.Mmap2(perfbuild.Mmap{PID: 30, Addr: 0x100000, Len: 0x2000, Maj: 8, Ino: 78,
		Filename: "/lib/x"},
		at(1))
	c.hit(30, 2, cU, 0x100010) // the same path, another file
	p := fold(t, c.Bytes(), Options{})
	var paths []string
	for _, o := range p.Objects {
		paths = append(paths, o.File.Path)
	}
	if want := []string{"/a/lib.so", "/lib/x", "/lib/x"}; !slices.Equal(paths, want) {
		t.Fatalf("objects %q, want %q", paths, want)
	}
	if want := []ingest.SegmentRef{{Len: 0x2000}, {Offset: 0x1000, Len: 0x2000}}; !slices.Equal(
		p.Objects[0].Segments, want) {
		t.Errorf("segments %+v, want %+v", p.Objects[0].Segments, want)
	}
	if len(p.Locations) != 4 {
		t.Errorf("locations %+v", p.Locations)
	}
}

func TestSymbolIdentity(t *testing.T) {
	same := bpf.SymbolIdentity("x86_64", "bpf_prog_0123456789abcdef_p", 100)
	if same.Space() != buildid.JIT || same.Len() != 20 || !same.Exact() {
		t.Errorf("ID %v", same)
	}
	if want := "jit:3f7f6c50c821321adb2c843ed1b50abcbc773d21"; same.String() != want {
		t.Errorf("ID %s, want %s: those in stores and captures no longer match", same, want)
	}
	other := []buildid.ID{
		bpf.SymbolIdentity("aarch64", "bpf_prog_0123456789abcdef_p", 100), bpf.SymbolIdentity("x86_64",
			"bpf_prog_0123456789abcdef_q", 100),
		bpf.SymbolIdentity("x86_64", "bpf_prog_0123456789abcdee_p", 100), bpf.SymbolIdentity("x86_64",
			"bpf_prog_0123456789abcdef_p", 101),
		bpf.SymbolIdentity("x86_64", "bpf_prog_0123456789abcdef", 100), bpf.SymbolIdentity("x86_64", "p", 100),
	}
	for i, id := range other {
		if id == same {
			t.Errorf("ID %d is the same", i)
		}
	}
}

// TestBPFObjects makes one object of the loads of one program, and names it.
func TestBPFObjects(t *testing.T) {
	c := newCapture()
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	name := "bpf_prog_0123456789abcdef_p"
	c.KSymbol(0xffffffffc0200b00, 0x100, 1, false, name, at(10))
	c.KSymbol(0xffffffffc0300b40, 0x100, 1, false, name, at(11))
	c.KSymbol(0xffffffffc0400000, 0, 1, false, "bpf_prog_fedcba9876543210_interpreted", at(11))
	c.KSymbol(0xffffffffc0500000, 0x1000, 2, false, "kprobe_insn_page", at(11))
	c.KSymbol(0xffffffffc0600000, 0x10, 1, false, "", at(11))
	c.hit(7, 12, cK, 0xffffffffc0200b20, 0xffffffffc0300b61, 0xffffffffc0500011, 0xffffffffc0400010,
		0xffffffffc0600003)
	p := fold(t, c.Bytes(), Options{})
	o := objectOf(t, p, name)
	if o.Kind != ingest.JIT || o.Symbol != name || o.Length != 0x100 ||
		o.IDSource != ingest.IDDerived ||
		o.ID.IsZero() ||
		o.Domain() != ingest.BPFDomain {
		t.Errorf("object %+v", o)
	}
	if page := objectOf(t, p, "kprobe_insn_page"); page.Domain() != ingest.KernelDomain {
		t.Errorf("object %+v", page)
	}
	if unnamed := objectOf(t, p, ""); unnamed.Reason != ingest.ImageNotCaptured {
		t.Errorf("object %+v", unnamed)
	}
	want := ":7: " + name + "+0x20 " + name +
		"+0x20 kprobe_insn_page+0x10 [unmapped kernel] +0x2 1 1"
	if got := dump(p); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// pathInRecords is a file's path as records have it.
func pathInRecords(f *ingest.FileRef) string {
	if f.Deleted {
		return f.Path + ingest.DeletedSuffix
	}
	return f.Path
}
