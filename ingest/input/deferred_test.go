package input

import (
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// TestDeferredChains joins user chains, which come in records of their own, with the samples
// before them.
func TestDeferredChains(t *testing.T) {
	for _, big := range []bool{false, true} {
		c := newCapture()
		c.File = perfbuild.NewOrder(big)
		c.FeatureString(perfbuild.FeatureArch, "x86_64")
		c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
		c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
		const deferred = perfbuild.ContextDeferred
		sample := func(tid int32, ip uint64, chain ...uint64) {
			c.Sample(perfbuild.Sample{PID: 7, TID: tid, Time: 2, IP: ip, Chain: chain})
		}
		kernel := uint64(0xffffffff81000100)
		sample(7, kernel, cK, kernel, deferred, 5)
		sample(7, kernel+0x10, cK, kernel+0x10, deferred, 5) // without a return to user mode
		sample(8, kernel, cK, kernel, deferred, 5)           // another thread
		sample(7, 0x400010, deferred, 6)
		sample(7, kernel, cK, kernel, deferred, 7) // never delivered
		sample(7, kernel, cK, kernel, deferred, 8) // delivered empty
		sample(7, kernel, cK, kernel, deferred)    // cut off
		at := func(tid int32) perfbuild.At { return perfbuild.At{PID: 7, TID: tid, Time: 3} }
		c.DeferredChain(6, []uint64{cU, 0x400010, 0x400301}, at(7))
		c.DeferredChain(5, []uint64{cU, 0x400020, 0x400401}, at(8))
		c.DeferredChain(5, []uint64{cU, 0x400020, 0x400201}, at(7))
		c.DeferredChain(8, []uint64{cU}, at(7))
		p := fold(t, c.Bytes(), Options{})
		got := dump(p)
		want := []string{
			":7: [kernel.kallsyms]+0x100 /bin/app+0x20 /bin/app+0x200 1 1",
			":7: [kernel.kallsyms]+0x110 /bin/app+0x20 /bin/app+0x200 1 1",
			":8: [kernel.kallsyms]+0x100 /bin/app+0x20 /bin/app+0x400 1 1",
			":7: /bin/app+0x10 /bin/app+0x300 1 1",
			":7: [kernel.kallsyms]+0x100 [no stack] 3 3",
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("big-endian %v: %q\nwant %q", big, got, want)
		}
		for i := range p.Objects {
			if o := &p.Objects[i]; o.Kind == ingest.NoStack && o.Reason != ingest.StackNotUnwound {
				t.Errorf("%s has the reason %s", o.File.Path, o.Reason)
			}
		}
	}
}

// TestLinkRegister completes chains of frame pointers of arm64.
func TestLinkRegister(t *testing.T) {
	c := newCapture()
	c.Events[0].SampleType |= perfbuild.RegsUser
	c.Events[0].RegsUser = 1 << 30
	c.FeatureString(perfbuild.FeatureArch, "aarch64")
	c.lib(7, 0x400000, 0x10000, 0, "/bin/app", 1)
	sample := func(abi, lr uint64, chain ...uint64) {
		s := perfbuild.Sample{PID: 7, Time: 2, IP: chain[len(chain)-1], Chain: chain}
		if s.UserRegs.ABI = abi; abi != 0 {
			s.UserRegs.Values = []uint64{lr}
		}
		c.Sample(s)
	}
	const leaf, framed = 0x400404, 0x400504
	sample(2, 0x400101|0x2a<<48, cU, leaf, 0x400201)                // a signed address
	sample(2, 0x400101, cU, framed, 0x400201)                       // it has a frame
	sample(2, 0x1234, cU, leaf, 0x400201)                           // no code
	sample(0, 0, cU, leaf, 0x400301)                                // no registers
	sample(2, 0x400101, cK, 0xffffffff81000100, cU, leaf, 0x400201) // in a system call
	sample(2, 0x400101, cU, leaf)                                   // no other frame
	got := dump(fold(t, c.Bytes(), Options{Unwinder: func(o []ingest.Object) Unwinder { return scripted{o} }}))
	want := []string{
		":7: /bin/app+0x404 /bin/app+0x100 /bin/app+0x200 1 1",
		":7: /bin/app+0x504 /bin/app+0x200 1 1",
		":7: /bin/app+0x404 /bin/app+0x200 1 1",
		":7: /bin/app+0x404 /bin/app+0x300 1 1",
		":7: [kernel.kallsyms] /bin/app+0x404 /bin/app+0x100 /bin/app+0x200 1 1",
		":7: /bin/app+0x404 /bin/app+0x100 1 1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
