package input

import (
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// TestTime plays state changes around samples.
func TestTime(t *testing.T) {
	const text, jit = 0xffffffff81000000, 0xffffffffc0200b00
	for _, tc := range []struct {
		name  string
		build func(c capture)
		want  []string
	}{
		{name: "file order does not matter, time does", build: func(c capture) {
			c.hit(7, 5, cU, 0x400010)
			c.hit(7, 15, cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/new", 10)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/old", 3)
		}, want: []string{":7: /bin/new+0x10 1 1", ":7: /bin/old+0x10 1 1"}},
		{name: "at equal time state comes first", build: func(c capture) {
			c.hit(7, 5, cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/x", 5)
		}, want: []string{":7: /bin/x+0x10 1 1"}},
		{name: "time 0 is before everything", build: func(c capture) {
			c.lib(7, 0x400000, 0x1000, 0, "/bin/late", 10)
			c.hit(7, 5, cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/early", 0)
		}, want: []string{":7: /bin/early+0x10 1 1"}},
		{name: "time ~0 is the place in the file", build: func(c capture) {
			c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 3)
			c.hit(7, ^uint64(0), cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/b", 6)
			c.hit(7, ^uint64(0), cU, 0x400010)
			c.hit(7, 4, cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/c", ^uint64(0))
			c.hit(7, 9, cU, 0x400010)
		}, want: []string{":7: /bin/a+0x10 2 2", ":7: /bin/b+0x10 1 1", ":7: /bin/c+0x10 1 1"}},
		{name: "fork, exec, exit, late samples, and the number used again",
			build: func(c capture) {
				c.Comm(7, 7, "server", false, at(0))
				c.lib(7, 0x400000, 0x1000, 0, "/bin/server", 0)
				c.Fork(8, 7, 8, 7, at(10))
				c.hit(8, 11, cU, 0x400010)
				c.Comm(8, 8, "tool", true, at(12))
				c.hit(8, 12, cU, 0x400010)
				c.lib(8, 0x500000, 0x1000, 0, "/bin/tool", 13)
				c.hit(8, 14, cU, 0x500010)
				c.Exit(8, 7, 8, 7, at(15))
				c.hit(8, 15, cU, 0x500010)
				c.hit(8, 16, cU, 0x500010)
				c.Fork(8, 7, 8, 7, at(20))
				c.hit(8, 21, cU, 0x500010)
				c.hit(8, 21, cU, 0x400010)
			}, want: []string{
				"server: /bin/server+0x10 2 2", "server: [unmapped] 1 1", "tool: /bin/server+0x10 1 1",
				"tool: /bin/tool+0x10 3 3",
			}},
		{name: "while the kernel executes a program, the old one's entry into the kernel",
			build: func(c capture) {
				c.lib(7, 0x400000, 0x1000, 0, "/bin/server", 0)
				c.Comm(7, 7, "tool", true, at(12))
				c.hit(7, 13, cK, 0xffffffff81000010, cU, 0x400010, 0x400020)
				c.lib(7, 0x500000, 0x1000, 0, "/bin/tool", 14)
				c.lib(7, 0x7ff000, 0x1000, 0, "[vdso]", 15)
				c.hit(7, 16, cK, 0xffffffff81000010, cU, 0x400010)
				c.lib(7, 0x600000, 0x1000, 0, "/lib/libc.so", 17)
				c.hit(7, 18, cK, 0xffffffff81000010, cU, 0x400010)
			}, want: []string{"tool: [kernel.kallsyms] /bin/server+0x10 1 1",
				"tool: [kernel.kallsyms] /bin/server+0x10 [unmapped] 1 1",
				"tool: [kernel.kallsyms] [unmapped] 1 1"}},
		{name: "data mappings are no code", build: func(c capture) {
			c.lib(7, 0x400000, 0x1000, 0, "/bin/x", 1)
			c.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x400000, Len: 0x1000,
				Misc:     perfbuild.User | 1<<13,
				Filename: "/data"}, at(2))
			c.hit(7, 3, cU, 0x400010)
		}, want: []string{":7: /bin/x+0x10 1 1"}},
		{name: "programs come and go, and win over a trampoline", build: func(c capture) {
			c.KernelMap("_text", text, text, 0x1000000)
			c.KSymbol(jit, 0x100, 1, false, "bpf_prog_0123456789abcdef_one", at(10))
			c.KSymbol(jit&^0xfff, 0x1000, 1, false, "bpf_trampoline_7", at(11))
			c.hit(7, 9, cK, text, jit+0x50)
			c.hit(7, 12, cK, text, jit+0x50)
			c.hit(7, 12, cK, text, jit+0x100) // returns to its very end
			c.hit(7, 12, cK, text, jit+0x101)
			c.KSymbol(jit, 0x100, 1, true, "bpf_prog_0123456789abcdef_one", at(20))
			c.KSymbol(jit&^0xfff, 0x1000, 1, true, "bpf_trampoline_7", at(21))
			c.KSymbol(jit+0x10, 0x200, 1, false, "bpf_prog_fedcba9876543210_two", at(22))
			c.hit(7, 23, cK, text, jit+0x50)
		}, want: []string{
			":7: [kernel.kallsyms]+0x0 [unmapped kernel] 1 1",
			":7: [kernel.kallsyms]+0x0 bpf_prog_0123456789abcdef_one+0x4f 1 1",
			":7: [kernel.kallsyms]+0x0 bpf_prog_0123456789abcdef_one+0xff 1 1",
			":7: [kernel.kallsyms]+0x0 bpf_trampoline_7+0xc00 1 1",
			":7: [kernel.kallsyms]+0x0 bpf_prog_fedcba9876543210_two+0x3f 1 1",
		}},
		{name: "the idle task has a name", build: func(c capture) {
			c.KernelMap("_text", text, text, 0x1000000)
			c.hit(0, 9, cK, text)
		}, want: []string{"swapper: [kernel.kallsyms]+0x0 1 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCapture()
			tc.build(c)
			got, want := dump(fold(t, c.Bytes(), Options{})), slices.Clone(tc.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// TestNoTime orders by position where records have no time.
func TestNoTime(t *testing.T) {
	for _, flags := range []uint64{perfbuild.SampleIDAll, 0} {
		c := newCapture()
		if flags != 0 {
			c.Events[0].SampleType &^= perfbuild.Time
		}
		c.Events[0].Flags = flags
		c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 100)
		c.hit(7, 50, cU, 0x400010)
		c.lib(7, 0x400000, 0x1000, 0, "/bin/b", 20)
		c.hit(7, 10, cU, 0x400010)
		got := dump(fold(t, c.Bytes(), Options{}))
		want := []string{":7: /bin/a+0x10 1 1", ":7: /bin/b+0x10 1 1"}
		if !slices.Equal(got, want) {
			t.Errorf("flags %#x: got %q, want %q", flags, got, want)
		}
	}
}

// TestUserStackNotUnwound is about perf record --call-graph dwarf.
func TestUserStackNotUnwound(t *testing.T) {
	build := func(arch string) []string {
		c := newCapture()
		c.Events[0].SampleType |= perfbuild.RegsUser | perfbuild.StackUser
		c.Events[0].RegsUser = 1<<8 | 1<<7
		c.Events[0].StackUser = 16
		if arch != "" {
			c.FeatureString(perfbuild.FeatureArch, arch)
		}
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		regs := perfbuild.Regs{ABI: 2, Values: []uint64{0x7fff0000, 0x400020}}
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, UserRegs: regs,
			UserStack: make([]byte, 16)})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, Chain: []uint64{cK, 0xffffffff81000100},
			UserRegs: regs, UserStack: make([]byte, 16)})
		// a kernel thread
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, Chain: []uint64{cK, 0xffffffff81000100}})
		return dump(fold(t, c.Bytes(), Options{}))
	}
	want := []string{
		":7: /bin/app+0x10 [no stack] 1 1", ":7: [kernel.kallsyms]+0x100 1 1",
		":7: [kernel.kallsyms]+0x100 /bin/app+0x20 [no stack] 1 1",
	}
	for arch, want := range map[string][]string{"x86_64": want, "": {want[0], want[1],
		":7: [kernel.kallsyms]+0x100 [no stack] 1 1"}} {
		got := build(arch)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("arch %q: got %q, want %q", arch, got, want)
		}
	}
}
