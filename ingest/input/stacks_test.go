package input

import (
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
)

var stackScenarios = []struct {
	name  string
	build func(c capture)
	want  []string
	cut   uint64
}{
	{name: "return addresses are moved back by one, exact ones are not", build: func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.Comm(7, 7, "app", true, at(1))
		c.lib(7, 0x400000, 0x10000, 0x1000, "/bin/app", 1)
		c.hit(7, 2, cK, 0xffffffff81000100, 0xffffffff81000200, cU, 0x400010, 0x400020)
		c.hit(7, 3, cU, 0x400010, 0x400020)
	}, want: []string{
		"app: /bin/app+0x1010 /bin/app+0x101f 1 1",
		"app: [kernel.kallsyms]+0x100 [kernel.kallsyms]+0x1ff /bin/app+0x1010 /bin/app+0x101f 1 1",
	}},
	{name: "equal stacks of different processes and times fold", build: func(c capture) {
		for pid := int32(7); pid < 10; pid++ {
			c.Comm(pid, pid, "app", true, at(1))
			c.lib(pid, 0x400000+uint64(pid)*0x10000, 0x10000, 0, "/bin/app", 1)
			c.hit(pid, 2, cU, 0x400010+uint64(pid)*0x10000)
		}
	}, want: []string{"app: /bin/app+0x10 3 3"}},
	{name: "a first address recorded twice is kept twice", build: func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, 0x400010)
	}, want: []string{":7: /bin/app+0x10 /bin/app+0xf 1 1"}},
	{name: "a word that is no marker cuts, the good part stays", build: func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, 0x400020, ^uint64(0), 0x400030)
		c.hit(7, 3, cU, 0x400010, 0x400020, ^uint64(99), 0x400040)
	}, want: []string{":7: /bin/app+0x10 /bin/app+0x1f 2 2"}, cut: 2},
	{name: "a tail that cannot be code is cut, one with code behind it is kept",
		build: func(c capture) {
			c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
			c.hit(7, 2, cU, 0x400010, 0x17)
			c.hit(7, 3, cU, 0x400010, 0, 0x99, 0xffffffff81000000, 0x2000)
			c.hit(7, 4, cU, 0x400010, 0x55, 0x400020)
		}, want: []string{":7: /bin/app+0x10 2 2", ":7: /bin/app+0x10 [unmapped] /bin/app+0x1f 1 1"},
		cut: 2},
	{name: "addresses outside every mapping are one place", build: func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, 0x70000, 0x80000)
		c.hit(7, 3, cU, 0x400010, 0x90000, 0x400000)
		c.hit(7, 3, cU, 0x12345678)
		c.hit(8, 3, cU, 0x400010)
	}, want: []string{
		":7: /bin/app+0x10 [unmapped] [unmapped] 2 2",
		":7: [unmapped] 1 1",
		":8: [unmapped] 1 1",
	}},
	{name: "null function pointer: the exact address is no rubbish", build: func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0, 0x400020)
	}, want: []string{":7: [unmapped] /bin/app+0x1f 1 1"}},
	{name: "no chain: the address, by the CPU's mode", build: func(c capture) {
		c.KernelMap("_stext", 0xffffffff81000100, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0xffffffff81000180, Misc: perfbuild.Kernel})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0xffffffff81000180,
			Misc: perfbuild.Hypervisor})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0xffffffff81000180,
			Misc: perfbuild.GuestKernel})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, Misc: perfbuild.GuestUser})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, Misc: 1 << 14}) // mode unknown
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0xffffffff81000180, Misc: 1 << 14})
	}, want: []string{
		":7: /bin/app+0x10 2 2", ":7: [kernel.kallsyms]+0x80 2 2", ":7: [guest] 2 2",
		":7: [hypervisor] 1 1",
	}},
	{name: "chains without a first marker go by the CPU's mode", build: func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, Chain: []uint64{0x400010, 0x400020}})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, Misc: perfbuild.Kernel,
			Chain: []uint64{0xffffffff81000100, 0xffffffff81000200, cU, 0x400010}})
	}, want: []string{
		":7: /bin/app+0x10 /bin/app+0x1f 1 1",
		":7: [kernel.kallsyms]+0x100 [kernel.kallsyms]+0x1ff /bin/app+0x10 1 1",
	}},
	{name: "markers only: the sample's own address; none at all: no stack",
		build: func(c capture) {
			c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
			c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, Chain: []uint64{cU}})
			c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: ^uint64(4), Chain: []uint64{cU, ^uint64(0)}})
		}, want: []string{":7: /bin/app+0x10 1 1", ":7: [no stack] 1 1"}, cut: 1},
	{name: "guest parts of a chain", build: func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, perfbuild.ContextGuestKernel, 0xffffffff81000100, 0xffffffff81000200, cU,
			0x400010)
		c.hit(7, 2, cU, 0x400010, perfbuild.ContextGuestUser, 0x400010)
	}, want: []string{":7: /bin/app+0x10 [guest] 1 1", ":7: [guest] [guest] /bin/app+0x10 1 1"}},
	{name: "user and kernel parts in the other order", build: func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, cK, 0xffffffff81000100, 0xffffffff81000200)
	}, want: []string{":7: /bin/app+0x10 [kernel.kallsyms]+0x100 [kernel.kallsyms]+0x1ff 1 1"}},
	{name: "a deferred user chain is not unwound", build: func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.hit(7, 2, cK, 0xffffffff81000100, ^uint64(639), 12345)
		c.hit(7, 2, cK, 0xffffffff81000100, ^uint64(639), 12346)
	}, want: []string{":7: [kernel.kallsyms]+0x100 [no stack] 2 2"}},
	{name: "vsyscall page, vdso, memory without a file", build: func(c capture) {
		c.lib(7, 0x7fff0000, 0x2000, 0, "[vdso]", 1)
		c.lib(7, 0x10000, 0x1000, 0x10000, "//anon", 1)
		c.lib(7, 0x20000, 0x1000, 0, "[heap]", 1)
		c.lib(7, 0x30000, 0x1000, 0, "/memfd:jit (deleted)", 1)
		c.hit(7, 2, cU, 0x7fff0010, 0xffffffffff600405, 0x10011, 0x20011, 0x30011)
	}, want: []string{":7: [vdso]+0x10 [vsyscall]+0x404 //anon [heap] /memfd:jit 1 1"}},
	{name: "kernel addresses without a kernel map are hidden", build: func(c capture) {
		c.hit(7, 2, cK, 0xffffffff81000100, 0xffffffff81000200)
		c.hit(7, 2, cK, 0x1234)
	}, want: []string{":7: [kernel.kallsyms] [kernel.kallsyms] 1 1", ":7: [unmapped kernel] 1 1"}},
	{name: "a kernel map without its reference is hidden too", build: func(c capture) {
		c.KernelMap("_text", 0, 0, 0xffffffff)
		c.hit(7, 2, cK, 0xffffffff81000100)
	}, want: []string{":7: [kernel.kallsyms] 1 1"}},
	{name: "behind .text the kernel goes on, beyond its image it does not",
		build: func(c capture) {
			c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000)
			c.FeatureString(perfbuild.FeatureArch, "x86_64")
			c.hit(7, 2, cK, 0xffffffff83000000, 0xffffffff80ffffff, 0xffffffffc0000001,
				0xffffffffc0000000)
		}, want: []string{":7: [kernel.kallsyms]+0x2000000 [unmapped kernel] [unmapped kernel] " +
			"[kernel.kallsyms]+0x3effffff 1 1"}},
	{name: "modules, by name or by file", build: func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: 0xffffffffc0100000,
			Len:      0x1000,
			Filename: "[ext4]"}, at(0))
		c.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: 0xffffffffc0200000,
			Len:      0x1000,
			Filename: "/lib/modules/6.1/kernel/xt-state.ko.xz"}, at(0))
		c.hit(7, 2, cK, 0xffffffffc0100010, 0xffffffffc0200010)
	}, want: []string{":7: [ext4]+0x10 [xt_state]+0xf 1 1"}},
	{name: "an old kernel map that starts at 0", build: func(c capture) {
		c.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: 0, Len: 0xffffffff9fffffff,
			PgOff: 0xffffffff81000200, Filename: "[kernel.kallsyms]_text"}, at(0))
		c.hit(7, 2, cK, 0xffffffff81000300)
	}, want: []string{":7: [kernel.kallsyms]+0x100 1 1"}},
}

func TestStacks(t *testing.T) {
	for _, tc := range stackScenarios {
		t.Run(tc.name, func(t *testing.T) {
			c := newCapture()
			tc.build(c)
			p := fold(t, c.Bytes(), Options{})
			got := dump(p)
			want := slices.Clone(tc.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if p.Stats.CutChains != tc.cut {
				t.Errorf("%d chains cut, want %d", p.Stats.CutChains, tc.cut)
			}
		})
	}
}
