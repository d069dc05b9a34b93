package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/perfdata"
)

// openBytes writes a capture to a file and opens it.
func openBytes(t testing.TB, data []byte, opts Options) (*Capture, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perf.data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	end := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(path, end, end); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), path, opts)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// fold gives the profile of a capture that must be readable.
func fold(t testing.TB, data []byte, opts Options) *Profile {
	t.Helper()
	c, err := openBytes(t, data, opts)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	return p
}

// frameText is a location in words: object and offset.
func frameText(p *Profile, l LocationID) string {
	loc := p.Locations[l]
	o := &p.Objects[loc.Object]
	if o.Kind.Collapsed() || o.Reason == KernelHidden {
		if loc.Offset != 0 {
			return fmt.Sprintf("%s NOT COLLAPSED %#x", o.File.Path, loc.Offset)
		}
		return o.File.Path
	}
	return fmt.Sprintf("%s+%#x", o.File.Path, uint64(loc.Offset))
}

// dump is a profile in words, a line a sample.
func dump(p *Profile) []string {
	var out []string
	for _, s := range p.Samples {
		var frames []string
		for _, l := range p.Stack(s.Stack) {
			frames = append(frames, frameText(p, l))
		}
		line := p.Strings[s.Comm] + ": " + strings.Join(frames, " ")
		if len(p.Events) > 1 {
			line = p.Events[s.Event].Name + " " + line
		}
		if s.PID != -1 || s.TID != -1 || s.CPU != -1 {
			line = fmt.Sprintf("%d/%d@%d ", s.PID, s.TID, s.CPU) + line
		}
		out = append(out, fmt.Sprintf("%s %d %d", line, s.Count, s.Weight))
	}
	return out
}

// checkProfile holds what the doc comment of Profile promises.
func checkProfile(t testing.TB, p *Profile) {
	t.Helper()
	for i := 1; i < len(p.Objects); i++ {
		if CompareObjects(&p.Objects[i-1], &p.Objects[i]) >= 0 {
			t.Errorf("objects %d and %d are not in order", i-1, i)
		}
	}
	for i := range p.Objects {
		if k := p.Objects[i].Kernel; k != NoObject && (int(k) >= len(p.Objects) || p.Objects[k].Kind != Kernel) {
			t.Errorf("object %d has the kernel %d, which is none", i, k)
		}
	}
	for i, l := range p.Locations {
		if int(l.Object) >= len(p.Objects) || i > 0 && compareLocations(p.Locations[i-1], l) >= 0 {
			t.Errorf("location %d is not in order or of no object", i)
		}
	}
	for i := range p.StackEnds {
		if i > 0 && slices.Compare(p.Stack(StackID(i-1)), p.Stack(StackID(i))) >= 0 {
			t.Errorf("stacks %d and %d are not in order", i-1, i)
		}
		for _, l := range p.Stack(StackID(i)) {
			if int(l) >= len(p.Locations) {
				t.Fatalf("stack %d has no location %d", i, l)
			}
		}
	}
	if !slices.IsSorted(p.Strings) || len(p.Strings) == 0 || p.Strings[0] != "" {
		t.Errorf("strings are not in order, or the first is not empty: %q", p.Strings)
	}
	var count, weight, frames uint64
	for i, s := range p.Samples {
		if int(s.Event) >= len(p.Events) || int(s.Comm) >= len(p.Strings) || int(s.Stack) >= len(p.StackEnds) {
			t.Fatalf("sample %d refers to what is not there: %+v", i, s)
		}
		if i > 0 && compareSamples(p.Samples[i-1], s) >= 0 {
			t.Errorf("samples %d and %d are not in order", i-1, i)
		}
		count += s.Count
		weight += s.Weight
		frames += s.Count * uint64(len(p.Stack(s.Stack)))
	}
	if st := &p.Stats; st.Samples != count || st.Weight != weight || st.Frames != frames {
		t.Errorf("statistics say %d samples, weight %d, %d frames; the samples add up to %d, %d and %d",
			st.Samples, st.Weight, st.Frames, count, weight, frames)
	}
}

const (
	cK = perfbuild.ContextKernel
	cU = perfbuild.ContextUser
)

// Shorthands of the scenarios.
type capture struct{ *perfbuild.File }

func at(t uint64) perfbuild.At { return perfbuild.At{Time: t} }

func (c capture) lib(pid int32, addr, length, pgoff uint64, name string, t uint64) {
	c.Mmap2(perfbuild.Mmap{PID: pid, Addr: addr, Len: length, PgOff: pgoff, Maj: 8, Min: 1, Ino: uint64(len(name)), Filename: name}, at(t))
}

func (c capture) hit(pid int32, t uint64, chain ...uint64) {
	c.Sample(perfbuild.Sample{PID: pid, TID: pid, Time: t, Chain: chain})
}

func newCapture() capture { return capture{perfbuild.New()} }

var stackScenarios = []struct {
	name  string
	build func(c capture)
	want  []string
	cut   uint64
}{
	{"return addresses are moved back by one, exact ones are not", func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.Comm(7, 7, "app", true, at(1))
		c.lib(7, 0x400000, 0x10000, 0x1000, "/bin/app", 1)
		c.hit(7, 2, cK, 0xffffffff81000100, 0xffffffff81000200, cU, 0x400010, 0x400020)
		c.hit(7, 3, cU, 0x400010, 0x400020)
	}, []string{
		"app: /bin/app+0x1010 /bin/app+0x101f 1 1",
		"app: [kernel.kallsyms]+0x100 [kernel.kallsyms]+0x1ff /bin/app+0x1010 /bin/app+0x101f 1 1",
	}, 0},
	{"equal stacks of different processes and times fold", func(c capture) {
		for pid := int32(7); pid < 10; pid++ {
			c.Comm(pid, pid, "app", true, at(1))
			c.lib(pid, 0x400000+uint64(pid)*0x10000, 0x10000, 0, "/bin/app", 1)
			c.hit(pid, 2, cU, 0x400010+uint64(pid)*0x10000)
		}
	}, []string{"app: /bin/app+0x10 3 3"}, 0},
	{"a first address recorded twice is kept twice", func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, 0x400010)
	}, []string{":7: /bin/app+0x10 /bin/app+0xf 1 1"}, 0},
	{"a word that is no marker cuts, the good part stays", func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, 0x400020, ^uint64(0), 0x400030)
		c.hit(7, 3, cU, 0x400010, 0x400020, ^uint64(99), 0x400040)
	}, []string{":7: /bin/app+0x10 /bin/app+0x1f 2 2"}, 2},
	{"a tail that cannot be code is cut, one with code behind it is kept", func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, 0x17)
		c.hit(7, 3, cU, 0x400010, 0, 0x99, 0xffffffff81000000, 0x2000)
		c.hit(7, 4, cU, 0x400010, 0x55, 0x400020)
	}, []string{":7: /bin/app+0x10 2 2", ":7: /bin/app+0x10 [unmapped] /bin/app+0x1f 1 1"}, 2},
	{"addresses outside every mapping are one place", func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, 0x70000, 0x80000)
		c.hit(7, 3, cU, 0x400010, 0x90000, 0x400000)
		c.hit(7, 3, cU, 0x12345678)
		c.hit(8, 3, cU, 0x400010)
	}, []string{
		":7: /bin/app+0x10 [unmapped] [unmapped] 2 2",
		":7: [unmapped] 1 1",
		":8: [unmapped] 1 1",
	}, 0},
	{"null function pointer: the exact address is no rubbish", func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0, 0x400020)
	}, []string{":7: [unmapped] /bin/app+0x1f 1 1"}, 0},
	{"no chain: the address, by the CPU's mode", func(c capture) {
		c.KernelMap("_stext", 0xffffffff81000100, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0xffffffff81000180, Misc: perfbuild.Kernel})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0xffffffff81000180, Misc: perfbuild.Hypervisor})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0xffffffff81000180, Misc: perfbuild.GuestKernel})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, Misc: perfbuild.GuestUser})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, Misc: 1 << 14}) // mode unknown
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0xffffffff81000180, Misc: 1 << 14})
	}, []string{
		":7: /bin/app+0x10 2 2", ":7: [kernel.kallsyms]+0x80 2 2", ":7: [guest] 2 2", ":7: [hypervisor] 1 1",
	}, 0},
	{"chains without a first marker go by the CPU's mode", func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, Chain: []uint64{0x400010, 0x400020}})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, Misc: perfbuild.Kernel,
			Chain: []uint64{0xffffffff81000100, 0xffffffff81000200, cU, 0x400010}})
	}, []string{
		":7: /bin/app+0x10 /bin/app+0x1f 1 1",
		":7: [kernel.kallsyms]+0x100 [kernel.kallsyms]+0x1ff /bin/app+0x10 1 1",
	}, 0},
	{"markers only: the sample's own address; none at all: no stack", func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, Chain: []uint64{cU}})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: ^uint64(4), Chain: []uint64{cU, ^uint64(0)}})
	}, []string{":7: /bin/app+0x10 1 1", ":7: [no stack] 1 1"}, 1},
	{"guest parts of a chain", func(c capture) {
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, perfbuild.ContextGuestKernel, 0xffffffff81000100, 0xffffffff81000200, cU, 0x400010)
		c.hit(7, 2, cU, 0x400010, perfbuild.ContextGuestUser, 0x400010)
	}, []string{":7: /bin/app+0x10 [guest] 1 1", ":7: [guest] [guest] /bin/app+0x10 1 1"}, 0},
	{"user and kernel parts in the other order", func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		c.hit(7, 2, cU, 0x400010, cK, 0xffffffff81000100, 0xffffffff81000200)
	}, []string{":7: /bin/app+0x10 [kernel.kallsyms]+0x100 [kernel.kallsyms]+0x1ff 1 1"}, 0},
	{"a deferred user chain is not unwound", func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.hit(7, 2, cK, 0xffffffff81000100, ^uint64(639), 12345)
		c.hit(7, 2, cK, 0xffffffff81000100, ^uint64(639), 12346)
	}, []string{":7: [kernel.kallsyms]+0x100 [no stack] 2 2"}, 0},
	{"vsyscall page, vdso, memory without a file", func(c capture) {
		c.lib(7, 0x7fff0000, 0x2000, 0, "[vdso]", 1)
		c.lib(7, 0x10000, 0x1000, 0x10000, "//anon", 1)
		c.lib(7, 0x20000, 0x1000, 0, "[heap]", 1)
		c.lib(7, 0x30000, 0x1000, 0, "/memfd:jit (deleted)", 1)
		c.hit(7, 2, cU, 0x7fff0010, 0xffffffffff600405, 0x10011, 0x20011, 0x30011)
	}, []string{":7: [vdso]+0x10 [vsyscall]+0x404 //anon [heap] /memfd:jit 1 1"}, 0},
	{"kernel addresses without a kernel map are hidden", func(c capture) {
		c.hit(7, 2, cK, 0xffffffff81000100, 0xffffffff81000200)
		c.hit(7, 2, cK, 0x1234)
	}, []string{":7: [kernel.kallsyms] [kernel.kallsyms] 1 1", ":7: [unmapped kernel] 1 1"}, 0},
	{"a kernel map without its reference is hidden too", func(c capture) {
		c.KernelMap("_text", 0, 0, 0xffffffff)
		c.hit(7, 2, cK, 0xffffffff81000100)
	}, []string{":7: [kernel.kallsyms] 1 1"}, 0},
	{"behind .text the kernel goes on, beyond its image it does not", func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000)
		c.FeatureString(perfbuild.FeatureArch, "x86_64")
		c.hit(7, 2, cK, 0xffffffff83000000, 0xffffffff80ffffff, 0xffffffffc0000001, 0xffffffffc0000000)
	}, []string{":7: [kernel.kallsyms]+0x2000000 [unmapped kernel] [unmapped kernel] [kernel.kallsyms]+0x3effffff 1 1"}, 0},
	{"modules, by name or by file", func(c capture) {
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: 0xffffffffc0100000, Len: 0x1000, Filename: "[ext4]"}, at(0))
		c.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: 0xffffffffc0200000, Len: 0x1000,
			Filename: "/lib/modules/6.1/kernel/xt-state.ko.xz"}, at(0))
		c.hit(7, 2, cK, 0xffffffffc0100010, 0xffffffffc0200010)
	}, []string{":7: [ext4]+0x10 [xt_state]+0xf 1 1"}, 0},
	{"an old kernel map that starts at 0", func(c capture) {
		c.Mmap(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: 0, Len: 0xffffffff9fffffff,
			PgOff: 0xffffffff81000200, Filename: "[kernel.kallsyms]_text"}, at(0))
		c.hit(7, 2, cK, 0xffffffff81000300)
	}, []string{":7: [kernel.kallsyms]+0x100 1 1"}, 0},
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

// TestTime plays state changes around samples.
func TestTime(t *testing.T) {
	const text, jit = 0xffffffff81000000, 0xffffffffc0200b00
	for _, tc := range []struct {
		name  string
		build func(c capture)
		want  []string
	}{
		{"file order does not matter, time does", func(c capture) {
			c.hit(7, 5, cU, 0x400010)
			c.hit(7, 15, cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/new", 10)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/old", 3)
		}, []string{":7: /bin/new+0x10 1 1", ":7: /bin/old+0x10 1 1"}},
		{"at equal time state comes first", func(c capture) {
			c.hit(7, 5, cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/x", 5)
		}, []string{":7: /bin/x+0x10 1 1"}},
		{"time 0 is before everything", func(c capture) {
			c.lib(7, 0x400000, 0x1000, 0, "/bin/late", 10)
			c.hit(7, 5, cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/early", 0)
		}, []string{":7: /bin/early+0x10 1 1"}},
		{"time ~0 is the place in the file", func(c capture) {
			c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 3)
			c.hit(7, ^uint64(0), cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/b", 6)
			c.hit(7, ^uint64(0), cU, 0x400010)
			c.hit(7, 4, cU, 0x400010)
			c.lib(7, 0x400000, 0x1000, 0, "/bin/c", ^uint64(0))
			c.hit(7, 9, cU, 0x400010)
		}, []string{":7: /bin/a+0x10 2 2", ":7: /bin/b+0x10 1 1", ":7: /bin/c+0x10 1 1"}},
		{"fork, exec, exit, late samples, and the number used again", func(c capture) {
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
		}, []string{
			"server: /bin/server+0x10 2 2", "server: [unmapped] 1 1", "tool: /bin/tool+0x10 3 3", "tool: [unmapped] 1 1",
		}},
		{"data mappings are no code", func(c capture) {
			c.lib(7, 0x400000, 0x1000, 0, "/bin/x", 1)
			c.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x400000, Len: 0x1000, Misc: perfbuild.User | 1<<13, Filename: "/data"}, at(2))
			c.hit(7, 3, cU, 0x400010)
		}, []string{":7: /bin/x+0x10 1 1"}},
		{"programs come and go, and win over a trampoline", func(c capture) {
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
		}, []string{
			":7: [kernel.kallsyms]+0x0 [unmapped kernel] 1 1",
			":7: [kernel.kallsyms]+0x0 bpf_prog_0123456789abcdef_one+0x4f 1 1",
			":7: [kernel.kallsyms]+0x0 bpf_prog_0123456789abcdef_one+0xff 1 1",
			":7: [kernel.kallsyms]+0x0 bpf_trampoline_7+0xc00 1 1",
			":7: [kernel.kallsyms]+0x0 bpf_prog_fedcba9876543210_two+0x3f 1 1",
		}},
		{"the idle task has a name", func(c capture) {
			c.KernelMap("_text", text, text, 0x1000000)
			c.hit(0, 9, cK, text)
		}, []string{"swapper: [kernel.kallsyms]+0x0 1 1"}},
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
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, IP: 0x400010, UserRegs: regs, UserStack: make([]byte, 16)})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, Chain: []uint64{cK, 0xffffffff81000100},
			UserRegs: regs, UserStack: make([]byte, 16)})
		c.Sample(perfbuild.Sample{PID: 7, Time: 2, Chain: []uint64{cK, 0xffffffff81000100}}) // a kernel thread
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

// manyThings is a capture with several of everything.
func manyThings(bigEndian bool) []byte {
	c := capture{perfbuild.NewOrder(bigEndian)}
	c.Events[0].SampleType |= perfbuild.CPU | perfbuild.Identifier
	c.Events = append(c.Events, c.Events[0])
	c.Events[1].Name, c.Events[1].Config, c.Events[1].IDs = "page-faults", 2, []uint64{21, 22}
	c.EventDesc()
	c.FeatureString(perfbuild.FeatureHostname, "box")
	c.FeatureString(perfbuild.FeatureArch, "x86_64")
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	for i := range uint64(400) {
		pid := int32(100 + i%17)
		t := 10 + i
		switch i % 40 {
		case 0:
			c.Fork(pid, 100, pid, 100, at(t))
		case 1:
			c.Comm(pid, pid, fmt.Sprintf("app%d", i%3), true, at(t))
		case 2:
			c.KSymbol(0xffffffffc0200000+i%5*0x80, 0x100, 1, i%80 == 2, fmt.Sprintf("bpf_prog_%016x_p", i%5), at(t))
		}
		base := 0x400000 + uint64(pid%5)*0x100000
		if i%9 == 0 {
			c.lib(pid, base, 0x80000, 0, fmt.Sprintf("/lib/%d.so", i%4), t)
		}
		var chain []uint64
		if i%2 == 0 {
			chain = append(chain, cK, 0xffffffff81000000+i%13, 0xffffffffc0200010+i%50*4, 0xffffffff81000100)
		}
		if i%3 != 0 {
			chain = append(chain, cU, base+i%11, base+i%7*16)
			if i%5 == 0 {
				chain = append(chain, 0x99999000+i, 0x10)
			}
		}
		c.Sample(perfbuild.Sample{Event: int(i % 2), PID: pid, TID: pid + int32(i%2), Time: t, CPU: uint32(i % 3),
			Period: 1 + i%4, IP: base, Chain: chain})
	}
	return c.Bytes()
}

func TestSameForAnyWorkers(t *testing.T) {
	for _, big := range []bool{false, true} {
		data := manyThings(big)
		opts := Options{Keep: Keep{PID: true, CPU: true}}
		opts.Workers = 1
		want := fold(t, data, opts)
		if len(want.Samples) < 100 || len(want.StackEnds) < 50 {
			t.Fatalf("only %d samples of %d stacks: a poor test", len(want.Samples), len(want.StackEnds))
		}
		for _, workers := range []int{1, 2, 4, 7} {
			for _, size := range []int64{200, 5000, chunkSize} {
				opts.Workers = workers
				got := foldChunks(t, data, opts, size)
				got.Meta, want.Meta = Meta{}, Meta{} // the path
				if !reflect.DeepEqual(got, want) {
					t.Errorf("big-endian %v: %d workers, chunks of %d bytes: another profile", big, workers, size)
				}
			}
		}
	}
	if a, b := dump(fold(t, manyThings(false), Options{})), dump(fold(t, manyThings(true), Options{})); !slices.Equal(a, b) {
		t.Error("the byte orders give different profiles")
	}
}

// foldChunks is fold with chunks of another size.
func foldChunks(t *testing.T, data []byte, opts Options, size int64) *Profile {
	t.Helper()
	c, err := openBytes(t, data, opts)
	if err != nil {
		t.Fatal(err)
	}
	c.chunkSize = size
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	return p
}

// refold folds a replay in the plainest way.
func refold(t *testing.T, c *Capture, p *Profile, keep Keep) []string {
	t.Helper()
	type sum struct{ count, weight uint64 }
	sums := map[string]sum{}
	last := uint64(0)
	err := c.Replay(t.Context(), func(s *ReplaySample) error {
		var frames []string
		for _, f := range s.Frames {
			frames = append(frames, frameText(p, f.Location))
		}
		line := s.Comm + ": " + strings.Join(frames, " ")
		if len(p.Events) > 1 {
			line = p.Events[s.Event].Name + " " + line
		}
		pid, tid, cpu := int32(-1), int32(-1), int32(-1)
		if keep.PID {
			pid = s.PID
		}
		if keep.TID {
			tid = s.TID
		}
		if keep.CPU {
			cpu = s.CPU
		}
		if keep != (Keep{}) {
			line = fmt.Sprintf("%d/%d@%d ", pid, tid, cpu) + line
		}
		old := sums[line]
		sums[line] = sum{old.count + 1, old.weight + s.Period}
		last = s.Time
		return nil
	})
	if err != nil || last == 0 {
		t.Fatalf("replay: %v, last time %d", err, last)
	}
	var out []string
	for line, s := range sums {
		out = append(out, fmt.Sprintf("%s %d %d", line, s.count, s.weight))
	}
	slices.Sort(out)
	return out
}

func TestReplayIsTheProfile(t *testing.T) {
	for _, opts := range []Options{
		{}, {Keep: Keep{PID: true, TID: true, CPU: true}}, {Event: "page-faults"}, {PIDs: []int32{101, 105}},
		{Comms: []string{"app1", ":104"}}, {Workers: 3},
	} {
		c, err := openBytes(t, manyThings(false), opts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := dump(p)
		slices.Sort(want)
		if got := refold(t, c, p, opts.Keep); !slices.Equal(got, want) {
			t.Errorf("%+v: replay folds to %d lines, the profile has %d", opts, len(got), len(want))
		}
	}
	for _, name := range []string{"mixed", "bpf", "dwarf", "spawn", "go", "killed"} {
		c := openFixture(t, name, Options{})
		p, err := c.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkProfile(t, p)
		want := dump(p)
		slices.Sort(want)
		if got := refold(t, c, p, Keep{}); !slices.Equal(got, want) {
			t.Errorf("%s: replay folds to %d lines, the profile has %d", name, len(got), len(want))
		}
	}
}

func TestReplayStops(t *testing.T) {
	c, err := openBytes(t, manyThings(false), Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	n := 0
	if err := c.Replay(t.Context(), func(*ReplaySample) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("replay went on to %d samples and returned %v", n, err)
	}
}

func TestReplayAddresses(t *testing.T) {
	c := newCapture()
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	c.hit(7, 5, cU, 0x400010, 0x400020, 0x77777000, 3)
	cp, err := openBytes(t, c.Bytes(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	if err := cp.Replay(t.Context(), func(s *ReplaySample) error {
		for _, f := range s.Frames {
			got = append(got, uint64(f.PC))
		}
		if s.Comm != ":7" || s.PID != 7 || s.TID != 7 || s.Time != 5 || s.Period != 1 {
			t.Errorf("sample %+v", s)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{0x400010, 0x400020, 0x77777000}; !slices.Equal(got, want) {
		t.Errorf("addresses %#x, want %#x as recorded", got, want)
	}
}

func TestFilters(t *testing.T) {
	data := manyThings(false)
	all := fold(t, data, Options{})
	for _, opts := range []Options{{Event: "cpu-clock"}, {Comms: []string{"app0"}}, {PIDs: []int32{103}}} {
		p := fold(t, data, opts)
		if p.Stats.Samples == 0 || p.Stats.FilteredOut == 0 || p.Stats.Samples+p.Stats.FilteredOut != all.Stats.Samples {
			t.Errorf("%+v: %d samples, %d left out, of %d", opts, p.Stats.Samples, p.Stats.FilteredOut, all.Stats.Samples)
		}
		for _, s := range p.Samples {
			if opts.Comms != nil && p.Strings[s.Comm] != "app0" || opts.Event != "" && p.Events[s.Event].Name != opts.Event {
				t.Errorf("%+v let through %+v", opts, s)
			}
		}
		if opts.Event != "" && len(p.Events) != 1 {
			t.Errorf("events %+v, want %s alone", p.Events, opts.Event)
		}
	}
	c, err := openBytes(t, data, Options{Event: "cycles"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Profile(t.Context()); err == nil || !strings.Contains(err.Error(), `no event "cycles" in it, only cpu-clock, page-faults`) {
		t.Errorf("unknown event: %v", err)
	}
	if p := fold(t, data, Options{PIDs: []int32{9999}}); len(p.Samples) != 0 || len(p.Events) == 0 {
		t.Errorf("nothing passes the filter: %d samples, %d events", len(p.Samples), len(p.Events))
	}
}

func TestEventsAndPeriods(t *testing.T) {
	c := newCapture()
	c.Events[0].SampleType &^= perfbuild.Period
	c.Events[0].Period = 250
	c.Events[0].SampleType |= perfbuild.Identifier
	mk := func(name string, config uint64, id uint64, flags uint64) {
		ev := c.Events[0]
		ev.Name, ev.Config, ev.IDs, ev.Flags = name, config, []uint64{id}, perfbuild.SampleIDAll|flags
		c.Events = append(c.Events, ev)
	}
	mk("page-faults", 2, 31, perfbuild.Freq)
	mk("dummy:HG", 9, 41, 0)
	mk("cpu-clock", 0, 51, 0)
	c.EventDesc()
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	for i, id := range []uint64{11, 31, 51} {
		c.Sample(perfbuild.Sample{Event: []int{0, 1, 3}[i], ID: id, PID: 7, Time: 5, Chain: []uint64{cU, 0x400010}})
	}
	p := fold(t, c.Bytes(), Options{})
	want := []Event{{Name: "cpu-clock", Unit: "nanoseconds", Period: 250}, {Name: "page-faults", Unit: "count"}}
	if !reflect.DeepEqual(p.Events, want) {
		t.Errorf("events %+v, want %+v", p.Events, want)
	}
	if got, want := dump(p), []string{"cpu-clock :7: /bin/a+0x10 2 500", "page-faults :7: /bin/a+0x10 1 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKeep(t *testing.T) {
	c := newCapture()
	c.Events[0].SampleType |= perfbuild.CPU
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	for i := range 4 {
		c.Sample(perfbuild.Sample{PID: 7, TID: 7 + int32(i/2), CPU: uint32(i % 2), Time: 5, Chain: []uint64{cU, 0x400010}})
	}
	for _, tc := range []struct {
		keep Keep
		want int
	}{{Keep{}, 2}, {Keep{PID: true}, 2}, {Keep{TID: true}, 2}, {Keep{CPU: true}, 4}, {Keep{TID: true, CPU: true}, 4}} {
		if p := fold(t, c.Bytes(), Options{Keep: tc.keep}); len(p.Samples) != tc.want {
			t.Errorf("%+v: %d samples, want %d: %q", tc.keep, len(p.Samples), tc.want, dump(p))
		}
	}
}

func TestCounts(t *testing.T) {
	c := newCapture()
	c.Lost(11, 5, at(1))
	c.LostSamples(7, false, at(2))
	c.LostSamples(100, true, at(2)) // a filter's work is no loss
	c.Throttle(false, 11, 0, at(3))
	c.Throttle(true, 11, 0, at(3))
	c.Record(200, 0, make([]byte, 16))
	c.Record(70000, 0, make([]byte, 16))
	c.Record(3, 0, make([]byte, 4)) // a COMM that is too short
	c.hit(7, 5, cU, 0x400010)
	p := fold(t, c.Bytes(), Options{})
	st := p.Stats
	if st.Lost != 12 || st.Throttled != 1 || st.UnknownRecords != 2 || st.BadRecords != 1 || st.Records != 9 {
		t.Errorf("lost %d, throttled %d, unknown %d, bad %d, records %d", st.Lost, st.Throttled, st.UnknownRecords, st.BadRecords, st.Records)
	}
	want := map[string]uint64{"LOST": 1, "LOST_SAMPLES": 2, "THROTTLE": 1, "UNTHROTTLE": 1, "UNKNOWN_200": 1,
		"UNKNOWN_70000": 1, "COMM": 1, "SAMPLE": 1}
	if !reflect.DeepEqual(st.RecordTypes, want) {
		t.Errorf("record types %v, want %v", st.RecordTypes, want)
	}
	if len(st.Warnings) != 1 || !st.Warnings[0].Partial || !strings.Contains(st.Warnings[0].Text, "COMM") &&
		!strings.Contains(st.Warnings[0].Text, "offset") {
		t.Errorf("warnings %+v", st.Warnings)
	}
}

func TestMeta(t *testing.T) {
	c := newCapture()
	c.FeatureString(perfbuild.FeatureHostname, "box")
	c.FeatureString(perfbuild.FeatureOSRelease, "6.1.0")
	c.FeatureString(perfbuild.FeatureArch, "x86_64")
	c.FeatureString(perfbuild.FeatureVersion, "6.1.192")
	c.CmdLine("perf", "record", "-g")
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	c.lib(7, 0x500000, 0x1000, 0, "/lib/libc.so.6", 1)
	c.hit(7, 1000, cU, 0x500010)
	c.hit(7, 1500, cU, 0x500010)
	c.hit(7, 3000, cU, 0x400010)
	m := fold(t, c.Bytes(), Options{}).Meta
	m.Captures = nil
	want := Meta{Host: "box", OSRelease: "6.1.0", Arch: "x86_64", Recorder: "perf 6.1.192", Command: "perf record -g",
		Duration: 2000, MainProgram: "/bin/a", StartNanos: 1_700_000_000_000_000_000 - 2000}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("meta %+v\nwant %+v", m, want)
	}
	c.ClockData(1, 5_000_000, 900)
	if m := fold(t, c.Bytes(), Options{}).Meta; m.StartNanos != 5_000_100 {
		t.Errorf("start %d by CLOCK_DATA, want 5000100", m.StartNanos)
	}
}

// TestTruncated cuts a capture at every length: an error or a profile of what was
// whole, never a panic, and the more bytes the more samples.
func TestTruncated(t *testing.T) {
	c := newCapture()
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	for i := range uint64(4) {
		c.hit(7, 5+i, cU, 0x400010+i, 0x400020)
	}
	c.FeatureString(perfbuild.FeatureHostname, "box")
	data := c.Bytes()
	end := c.DataOffset() + c.Len()
	samples, refused := uint64(0), 0
	for n := range len(data) + 1 {
		cp, err := openBytes(t, data[:n], Options{})
		if err != nil {
			refused++
			continue
		}
		p, err := cp.Profile(t.Context())
		if err != nil {
			t.Errorf("%d bytes: %v", n, err)
			continue
		}
		checkProfile(t, p)
		if p.Stats.Samples < samples {
			t.Errorf("%d bytes: %d samples, with fewer bytes %d", n, p.Stats.Samples, samples)
		}
		samples = p.Stats.Samples
		partial := slices.ContainsFunc(p.Stats.Warnings, func(w Warning) bool { return w.Partial })
		if int64(n) < end && !partial {
			t.Errorf("%d of %d bytes: no partial warning, only %+v", n, end, p.Stats.Warnings)
		}
		if n == len(data) && len(p.Stats.Warnings) > 0 {
			t.Errorf("the whole file: %+v", p.Stats.Warnings)
		}
		cp.Close()
	}
	if samples != 4 || refused < 16 {
		t.Errorf("%d samples of the whole file, %d prefixes refused", samples, refused)
	}
}

func TestDamage(t *testing.T) {
	c := newCapture()
	c.lib(7, 0x400000, 0x1000, 0, "/bin/a", 1)
	c.hit(7, 5, cU, 0x400010)
	before := c.Len()
	c.Damage([]byte{9, 0, 0, 0, 2, 0, 4, 0}) // size 4
	c.hit(7, 6, cU, 0x400020)
	p := fold(t, c.Bytes(), Options{})
	if got := dump(p); !slices.Equal(got, []string{":7: /bin/a+0x10 1 1"}) {
		t.Errorf("samples %q", got)
	}
	want := fmt.Sprintf("offset %#x", c.DataOffset()+before)
	if len(p.Stats.Warnings) != 1 || !p.Stats.Warnings[0].Partial || !strings.Contains(p.Stats.Warnings[0].Text, want) {
		t.Errorf("warnings %+v, want one with %q", p.Stats.Warnings, want)
	}
}

func TestManyWarnings(t *testing.T) {
	c := newCapture()
	for range 100 {
		c.Record(9, perfbuild.User, make([]byte, 8)) // samples too short for their fields
	}
	c.hit(7, 6, cU, 0x400020)
	p := fold(t, c.Bytes(), Options{})
	if p.Stats.BadRecords != 100 || len(p.Stats.Warnings) > maxWarnings+1 || p.Stats.Samples != 1 {
		t.Errorf("%d bad records, %d warnings, %d samples", p.Stats.BadRecords, len(p.Stats.Warnings), p.Stats.Samples)
	}
}

func TestUnknownIDs(t *testing.T) {
	c := newCapture()
	c.Events[0].SampleType |= perfbuild.Identifier
	c.Events = append(c.Events, c.Events[0])
	c.Events[1].IDs = []uint64{77}
	c.EventDesc()
	c.hit(7, 6, cU, 0x400020)
	c.Sample(perfbuild.Sample{ID: 1234, PID: 7, Time: 7, Chain: []uint64{cU, 0x400020}})
	p := fold(t, c.Bytes(), Options{})
	if p.Stats.UnknownIDs != 1 || p.Stats.Samples != 1 || len(p.Stats.Warnings) != 1 {
		t.Errorf("%d unknown, %d samples, warnings %+v", p.Stats.UnknownIDs, p.Stats.Samples, p.Stats.Warnings)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(filepath.Join(dir, "rec"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("rec/data", "PERFILE2")
	for _, tc := range []struct {
		path, want string
		is         error
	}{
		{filepath.Join(dir, "absent"), "no such file", os.ErrNotExist},
		{write("empty", ""), "it is empty", ErrNotCapture},
		{write("text", "hello, world\n"), "not a capture", ErrNotCapture},
		{write("elf", "\x7fELF\x02\x01\x01"), "index reads those", ErrNotCapture},
		{write("zst", "\x28\xb5\x2f\xfd...."), "compressed", ErrNotCapture},
		{dir, "it is a directory", ErrNotCapture},
		{filepath.Join(dir, "rec"), "directories are not supported yet", perfdata.ErrDirectory},
		{write("pipe", "PERFILE2\x10\x00\x00\x00\x00\x00\x00\x00"), "pipe mode", perfdata.ErrPipe},
		{write("short", "PERFILE2"), "", nil},
		{write("gz", "\x1f\x8b\x08garbage"), "", nil},
	} {
		_, err := Open(t.Context(), tc.path, Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%s: %v, want %q", tc.path, err, tc.want)
			continue
		}
		var h interface{ Hint() string }
		if tc.is != nil && tc.is != os.ErrNotExist && (!errors.As(err, &h) || h.Hint() == "") {
			t.Errorf("%s: no hint in %v", tc.path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Open(ctx, write("ok", string(manyThings(false))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := c.Profile(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
	if p, err := c.Profile(t.Context()); err != nil || p.Stats.Samples == 0 {
		t.Errorf("again after cancel: %v", err)
	}
	c.Close()
}

func TestOpenPprof(t *testing.T) {
	p := fold(t, manyThings(false), Options{})
	var b bytes.Buffer
	if err := WritePprof(&b, p, PprofOptions{}); err != nil {
		t.Fatal(err)
	}
	raw, err := unzipPprof("x", b.Bytes(), 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{b.Bytes(), raw} {
		c, err := openBytes(t, data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Profile(t.Context())
		if err != nil || got.Stats.Samples != p.Stats.Samples || c.Kind() != "pprof" || c.PerfData() != nil {
			t.Errorf("%s: %v, %d samples, want %d", c.Kind(), err, got.Stats.Samples, p.Stats.Samples)
		}
		if err := c.Replay(t.Context(), nil); !errors.Is(err, ErrNoReplay) {
			t.Errorf("replay of a pprof file: %v", err)
		}
	}
}

// TestHiddenKernelID keeps the kernel's build ID of a map whose addresses are
// hidden: the reason is what matters.
func TestHiddenKernelID(t *testing.T) {
	c := newCapture()
	id := bytes.Repeat([]byte{7}, 20)
	c.KernelMap2("_text", 0, 0, 0x1000, id)
	c.hit(7, 2, cK, 0xffffffff81000100)
	p := fold(t, c.Bytes(), Options{})
	if o := p.Objects[0]; len(p.Objects) != 1 || o.Kind != Kernel || o.Reason != KernelHidden || !o.ID.Matches(buildid.New(id)) {
		t.Errorf("objects %+v", p.Objects)
	}
}
