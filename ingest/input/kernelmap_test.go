package input

import (
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/sideband"
)

// TestKernelMap: the pointers in each load of a program find the functions of that load, though
// other loads had the same addresses before and after.
func TestKernelMap(t *testing.T) {
	c, err := Open(t.Context(), "../../fixtures/captures/bpf-lines.data", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Profile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // the map needs the file no more
		t.Fatal(err)
	}
	programs, err := c.Programs()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for i := range programs {
		p := &programs[i]
		m, err := c.KernelMap(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for k := range p.Funcs {
			f := &p.Funcs[k]
			if f.Image == nil {
				continue
			}
			o, off, ok := m.Find(f.Start + 3)
			if !ok || off != 3 || o.Symbol != p.Symbol(k) && o.Symbol != p.PerfSymbol(k) {
				t.Errorf("program %d, %#x: %s+%#x, want %s+3", p.ID, f.Start+3, o.Symbol, off,
					p.Symbol(k))
			}
			checked++
		}
	}
	if checked < 10 {
		t.Errorf("only %d functions", checked)
	}
	m, err := c.KernelMap(t.Context(), &programs[0])
	if err != nil {
		t.Fatal(err)
	}
	if o, _, ok := m.Find(0xffffffff8150c300); !ok || o.Kind != ingest.Kernel || o.ID.IsZero() {
		t.Errorf("the kernel: %+v", o)
	}
	for _, pc := range []addr.PC{0, 0x401000, ^addr.PC(0)} {
		if o, off, ok := m.Find(pc); ok {
			t.Errorf("%#x: %s+%#x", pc, o.File.Path, off)
		}
	}
	var none *sideband.KernelMap
	if _, _, ok := none.Find(0xffffffff8150c300); ok {
		t.Error("no map finds something")
	}
}

// TestAllAddresses: recorders that do not know the kernel's address map it at all addresses from 0.
// On 32-bit ARM it runs where it was linked; other kernels may have been relocated.
func TestAllAddresses(t *testing.T) {
	for _, tc := range []struct {
		arch string
		pc   uint64
		want string
	}{
		{arch: "armv7l", pc: 0xc0108010, want: "[kernel.kallsyms]+0xc0108010"},
		{arch: "arm", pc: 0xc0108010, want: "[kernel.kallsyms]+0xc0108010"},
		{arch: "aarch64", pc: 0xffffffc008000010, want: "[kernel.kallsyms]"},
		{arch: "x86_64", pc: 0xffffffff81000010, want: "[kernel.kallsyms]"},
	} {
		for _, big := range []bool{false, true} {
			c := capture{perfbuild.NewOrder(big)}
			c.FeatureString(perfbuild.FeatureArch, tc.arch)
			c.KernelMap("", 0, 0, ^uint64(0))
			c.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.Kernel, ID: sum(8),
				Filename: "[kernel.kallsyms]"})
			c.hit(7, 1, cK, tc.pc)
			p := fold(t, c.Bytes(), Options{})
			if got := frameText(p, p.Stack(nil, p.Samples[0].Stack)[0]); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.arch, got, tc.want)
			}
			if o := objectOf(t, p, "[kernel.kallsyms]"); o.ID.IsZero() ||
				(o.Reason == ingest.KernelHidden) == (tc.want != "[kernel.kallsyms]") {
				t.Errorf("%s: %+v", tc.arch, o)
			}
		}
	}
}
