package indexer

import (
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/object/symlist"
)

// bundleHost is the system of fakeSystem as a bundle holds it.
func bundleHost(t *testing.T, base uint64) *Host {
	t.Helper()
	text := must.Read(t, fakeSystem(t, base).path("/proc/kallsyms"))
	return &Host{Path: "capture.data", Kernel: buildid.New([]byte(kernelID)),
		Kallsyms: strings.NewReader(string(text)),
		Modules: []HostModule{
			{Name: "ext4", ID: buildid.New([]byte(ext4ID)), Base: base + 0x20000000, Size: 12288},
			{Name: "noid", Base: base + 0x21000000, Size: 4096},
			{Name: "gone", ID: buildid.New([]byte("another")), Base: base + 0x23000000, Size: 4096},
		}}
}

// TestHost must give the table of the running kernel.
func TestHost(t *testing.T) {
	const base = 0xffffffff9a000000
	m := newMemory()
	sum := m.index(t, Options{Hosts: []*Host{bundleHost(t, base)}})
	kid, mid := buildid.New([]byte(kernelID)), buildid.New([]byte(ext4ID))
	if got := m.functions(t, kid); got != kernelWant {
		t.Errorf("kernel\n%s\nwant\n%s", got, kernelWant)
	}
	if got := m.functions(t, mid); got != ext4Want {
		t.Errorf("ext4\n%s\nwant\n%s", got, ext4Want)
	}
	if k := m.object(t, kid); k.Kind != ingest.Kernel || len(m.ids) != 2 {
		t.Errorf("kind %v, %d objects", k.Kind, len(m.ids))
	}
	if sum.Kernels != 1 || sum.Modules != 1 || len(sum.Problems) != 0 {
		t.Errorf("summary %+v", sum)
	}
	// Another boot, and the running kernel itself: nothing is new.
	m.again(t, Options{Hosts: []*Host{bundleHost(t, base+0x1400000)}})
	m.again(t, Options{Kernel: true, sys: fakeSystem(t, base)})
}

func TestHostProblems(t *testing.T) {
	hidden := &Host{Path: "a.data", Kernel: buildid.New([]byte(kernelID)),
		Kallsyms: strings.NewReader("0000000000000000 T _text\n0000000000000000 t x\n")}
	unknown := &Host{Path: "b.data", Kallsyms: strings.NewReader("ffffffff81000000 T _text\n")}
	rubbish := &Host{Path: "c.data", VDSO: [][]byte{[]byte("no ELF")}}
	m := newMemory()
	sum := m.index(t, Options{Hosts: []*Host{hidden, unknown, rubbish, {Path: "d.data"}}})
	if len(sum.Problems) != 3 || len(m.ids) != 0 {
		t.Fatalf("problems %+v, objects %v", sum.Problems, m.ids)
	}
	for i, want := range []string{symlist.ErrRestricted.Error(), "unknown kernel", "c.data: vdso"} {
		if got := sum.Problems[i].Error(); !strings.Contains(got, want) {
			t.Errorf("problem %q, want %q", got, want)
		}
	}
	if !strings.Contains(sum.Problems[0].Hint, "CAP_SYSLOG") {
		t.Errorf("hint %q", sum.Problems[0].Hint)
	}
}
