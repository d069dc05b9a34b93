package input

import (
	"fmt"
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// busyHost is a day on a host in little: a server that forks children, each of which loads a
// library of its own; shells that fork and exec; BPF programs that come and go all the time; and
// the same stacks again and again.
func busyHost(events int) []byte {
	c := newCapture()
	const text = 0xffffffff81000000
	c.FeatureString(perfbuild.FeatureArch, "x86_64")
	c.KernelMap("_text", text, text, 0x1000000)
	c.Comm(1, 1, "server", false, at(0))
	c.lib(1, 0x400000, 0x100000, 0, "/bin/server", 0)
	c.lib(1, 0x7f0000000000, 0x200000, 0, "/lib/libc.so", 0)
	t := uint64(1)
	stack := func(i int) []uint64 {
		var chain []uint64
		if i%2 == 0 {
			chain = append(chain, cK, text+uint64(i%40), text+0x1000+uint64(i%7))
			if i%6 == 0 {
				chain = append(chain, 0xffffffffc0200010+uint64(i%5)*0x100)
			}
		}
		return append(chain, cU, 0x7f0000000000+uint64(i%60), 0x400000+uint64(i%11)*16, 0x400800)
	}
	for i := range events {
		pid := int32(100 + i)
		t++
		c.Fork(pid, 1, pid, 1, at(t))
		switch i % 4 {
		case 0: // loads a plug-in; two kinds at one place
			c.lib(pid, 0x7f0001000000, 0x10000, 0, fmt.Sprintf("/lib/plugin%d.so", i%8/4), t+1)
		case 1:
			c.Comm(pid, pid, "tool", true, at(t+1))
			c.lib(pid, 0x400000, 0x100000, 0, "/bin/tool", t+1)
			c.lib(pid, 0x7f0000000000, 0x200000, 0, "/lib/libc.so", t+1)
		case 2: // a run-time compiler: protection to and fro
			c.lib(pid, 0x20000000, 0x10000, 0x20000000, "//anon", t+1)
			c.lib(pid, 0x20000000, 0x10000, 0x20000000, "//anon", t+2)
		}
		prog := uint64(i % 5)
		c.KSymbol(0xffffffffc0200000+prog*0x100, 0x100, 1, false,
			fmt.Sprintf("bpf_prog_%016x_p", prog),
			at(t+2))
		for k := range 12 {
			chain := stack((i*12 + k) % 660)
			if i%4 == 0 && k == 3 {
				chain = append([]uint64{cU, 0x7f0001000010}, chain[len(chain)-1])
			}
			c.hit(pid, t+3, chain...)
			c.hit(1, t+3, stack((i*12+k)%660)...)
		}
		t += 4
		c.KSymbol(0xffffffffc0200000+prog*0x100, 0x100, 1, true, "", at(t))
		c.Exit(pid, 1, pid, 1, at(t))
	}
	return c.Bytes()
}

// chainsOf returns the numbers of distinct chains and of nodes of their stacks in the tables of a
// single worker, which reads a capture.
func chainsOf(t *testing.T, data []byte) (chains, nodes int) {
	c, err := openBytes(t, data, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := c.source.(*perfSource)
	sb, err := s.scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	col, err := newCollector(sb, &s.opts)
	if err != nil {
		t.Fatal(err)
	}
	workers, err := collect(t.Context(), col)
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range workers[0].chains.stacks.Trees() {
		nodes += tree.Len()
	}
	return workers[0].chains.chains.Len(), nodes
}

// TestKeysStayFew checks that the tables have the distinct chains and their results: they do not
// grow with forks, loads and time.
func TestKeysStayFew(t *testing.T) {
	chains, nodes := chainsOf(t, busyHost(400))
	more, moreNodes := chainsOf(t, busyHost(4000))
	t.Logf("%d chains, %d nodes, ten times the forks and loads: %d, %d", chains, nodes, more, moreNodes)
	if more > chains*11/10 || moreNodes > nodes*11/10 {
		t.Errorf("ten times the forks and loads: %d chains and %d nodes instead of %d and %d", more,
			moreNodes, chains, nodes)
	}
}

// TestSharedChains is the case where nothing but time and process differ: the table has each
// chain once.
func TestSharedChains(t *testing.T) {
	c := newCapture()
	const text = 0xffffffff81000000
	c.KernelMap("_text", text, text, 0x1000000)
	c.lib(1, 0x400000, 0x100000, 0, "/bin/server", 0)
	for i := range uint64(3000) {
		pid := int32(2 + i)
		c.Fork(pid, 1, pid, 1, at(10*i+1))
		c.lib(pid, 0x600000+i%7*0x10000, 0x1000, 0, fmt.Sprintf("/lib/%d.so", i%7), 10*i+2)
		c.KSymbol(0xffffffffc0200000+i%9*0x1000, 0x100, 1, false,
			fmt.Sprintf("bpf_prog_%016x_p", i),
			at(10*i+3))
		for k := range uint64(4) {
			c.hit(pid, 10*i+4, cK, text+k, text+0x1000, cU, 0x400010+k, 0x400020)
			c.hit(1, 10*i+5, cK, text+k, text+0x2000, cU, 0x400010+k, 0x400020)
		}
	}
	if chains, nodes := chainsOf(t, c.Bytes()); chains != 8 || nodes > 1+5+2*8 {
		t.Errorf("%d chains of %d nodes, want 8 of at most 22", chains, nodes)
	}
}

// TestResultsOverWorkers has one chain with three results, whichever workers read the chain.
func TestResultsOverWorkers(t *testing.T) {
	c := newCapture()
	for i := range uint64(600) {
		c.lib(7, 0x400000, 0x1000, 0, fmt.Sprintf("/lib/%d.so", i%3), 10*i)
		c.hit(7, 10*i+1, cU, 0x400010, 0x400020)
		c.hit(7, 10*i+1, cU, 0x500010)
	}
	for _, workers := range []int{1, 2, 5} {
		p := foldChunks(t, c.Bytes(), Options{Workers: workers}, 2000)
		want := []string{":7: /lib/0.so+0x10 /lib/0.so+0x1f 200 200",
			":7: /lib/1.so+0x10 /lib/1.so+0x1f 200 200",
			":7: /lib/2.so+0x10 /lib/2.so+0x1f 200 200", ":7: [unmapped] 600 600"}
		if got := dump(p); !slices.Equal(got, want) {
			t.Errorf("%d workers: got %q, want %q", workers, got, want)
		}
	}
}
