package input

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/intern"
)

// repeatedSamples is a capture of the given number of rounds of samples that differ in one thing
// each, with the same chains.
func repeatedSamples(rounds int) []byte {
	c := newCapture()
	c.FeatureString(perfbuild.FeatureArch, "x86_64")
	c.Events[0].SampleType |= perfbuild.Identifier
	c.Events = append(c.Events, c.Events[0])
	c.Events[0].IDs, c.Events[1].IDs = []uint64{11, 12}, []uint64{13}
	c.Events[1].Name, c.Events[1].Config = "page-faults", 2
	c.EventDesc()
	c.IDIndex([]perfbuild.IDEntry{{ID: 11}, {ID: 12, Machine: 55}, {ID: 13}})
	const text, app = 0xffffffff81000000, 0x400000
	c.KernelMap("_text", text, text, 0x1000000)
	for _, pid := range []int32{7, 8} {
		c.Comm(pid, pid, "app", false, at(0))
		c.lib(pid, app, 0x1000, 0, fmt.Sprintf("/bin/app%d", pid), 0)
	}
	c.Comm(8, 9, "app", false, at(0))
	c.lib(7, app, 0x1000, 0x2000, "/bin/later", 50)
	c.Comm(7, 7, "renamed", false, at(60))
	for range rounds {
		for _, tid := range []int32{7, 8, 9} {
			pid := min(tid, 8)
			for _, time := range []uint64{10, 55, 65} {
				for _, id := range []uint64{11, 12, 13} {
					for k, chain := range [][]uint64{
						{cK, text + 0x10, cU, app + 0x10, app + 0x20},
						{cK, text + 0x10}, {cU, app + 0x10, 1, 2}, {app + 0x10, app + 0x20},
						{cK, 5, 6, cU}, {cK, cU, 0xfffffffffffff123}, {},
						{cK, text + 0x10, perfbuild.ContextDeferred, 5},
					} {
						for _, ip := range []uint64{app + 0x30, text + 0x40} {
							misc := uint16(perfbuild.User)
							if ip >= text {
								misc = perfbuild.Kernel
							}
							c.Sample(perfbuild.Sample{ID: id, PID: pid, TID: tid, Time: time, IP: ip,
								Misc: misc, Chain: chain, Period: time + uint64(k)})
						}
					}
				}
			}
		}
	}
	c.DeferredChain(5, []uint64{cU, app + 0x20}, perfbuild.At{PID: 7, TID: 7, Time: 70, ID: 11})
	c.DeferredChain(5, []uint64{cU, app + 0x40}, perfbuild.At{PID: 8, TID: 8, Time: 70, ID: 11})
	c.DeferredChain(5, []uint64{cU, app + 0x60}, perfbuild.At{PID: 8, TID: 9, Time: 70, ID: 11})
	return c.Bytes()
}

// TestRepeatedSamples: samples that come often count as often as they come, whatever distinguishes
// them from others with the same chain.
func TestRepeatedSamples(t *testing.T) {
	const rounds = 9 // of which the first two are not repetitions
	inChunks := func(data []byte, opts Options) *ingest.Profile {
		c, err := openBytes(t, data, opts)
		if err != nil {
			t.Fatal(err)
		}
		c.setChunkSize(20 << 10)
		p, err := c.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, opts := range []Options{{Workers: 1}, {Workers: 3}, {Workers: 1, Selection: Selection{Keep: ingest.Keep{PID: true}}},
		{Workers: 1, Selection: Selection{Event: "page-faults"}}, {Workers: 1, Selection: Selection{Comms: []string{"app"}}}} {
		p, once := inChunks(repeatedSamples(rounds), opts), inChunks(repeatedSamples(1), opts)
		checkProfile(t, p)
		if p.Stats.Samples != rounds*once.Stats.Samples || p.Stats.Frames != rounds*once.Stats.Frames ||
			p.Stats.CutChains != rounds*once.Stats.CutChains ||
			p.Stats.FilteredOut != rounds*once.Stats.FilteredOut {
			t.Errorf("%+v:\n%+v, and in one round\n%+v", opts, p.Stats, once.Stats)
		}
		for i := range once.Samples {
			once.Samples[i].Count *= rounds
			once.Samples[i].Weight *= rounds
		}
		if got, want := dump(p), dump(once); !slices.Equal(got, want) {
			t.Errorf("%+v: %d rounds are\n%q, one is\n%q", opts, rounds, got, want)
		}
		// The same chain and cookie, in two threads.
		if got := strings.Join(dump(p), "\n"); opts.Event == "" && !strings.Contains(got,
			"cpu-clock app: [kernel.kallsyms]+0x10 /bin/app8+0x60 54 2718") {
			t.Errorf("%+v: no chain of the thread 9:\n%s", opts, got)
		}
		if p.Meta.Duration != once.Meta.Duration {
			t.Errorf("lasted %d ns, one round %d", p.Meta.Duration, once.Meta.Duration)
		}
	}
}

// TestRepeats: a sample must come three times to be counted in its slot, and twice as often as the
// present one to replace it; if few samples repeat, all are skipped for a time.
func TestRepeats(t *testing.T) {
	r, seed := repeats{}, intern.MakeSeed()
	recorded := binary.LittleEndian.AppendUint64(nil, 1<<40)
	m := message{weight: 3, count: 1, label: 4}
	look := func(recorded []byte) (*repeat, bool) {
		m.weight, m.count = 3, 1
		return r.find(seed.Hash(recorded), &m)
	}
	if s, found := look(recorded); s != nil || found {
		t.Fatal("the first sample takes a slot")
	}
	slot, found := look(recorded)
	if slot == nil || found {
		t.Fatal("the second sample takes no slot")
	}
	w := worker{reader: &reader{split: new(splitter)}}
	w.slot, w.sample.Chain = slot, recorded
	if !w.remember(&m, newChain(nil, []byte("kernel"), []byte("user"))) {
		t.Fatal("the sample is not kept")
	}
	for range 5 {
		if _, found := look(recorded); !found {
			t.Fatal("a further sample is not found")
		}
	}
	if k, u := slot.chain.parts(); slot.count != 6 || slot.weight != 18 || string(k) != "kernel" || string(u) != "user" {
		t.Errorf("%d samples of weight %d, %q, %q", slot.count, slot.weight, k, u)
	}
	m.user++
	if _, found := look(recorded); found {
		t.Error("a sample of another address space is found")
	}
	m.user--
	slot.count = maxRepeats
	if _, found := look(recorded); found {
		t.Error("a full count grows")
	}
	// All chains differ.
	for n := uint64(0); ; n++ {
		if off, starts := r.pause(); off {
			if !starts || n != repeatWindow-uint64(9) {
				t.Errorf("after %d look-ups: starts %t", n, starts)
			}
			break
		}
		if n > repeatWindow {
			t.Fatal("no pause")
		}
		look(binary.LittleEndian.AppendUint64(nil, n))
	}
	for n := range repeatPause {
		if off, starts := r.pause(); !off || starts {
			t.Fatalf("sample %d of the pause: %t, %t", n, off, starts)
		}
	}
	if off, _ := r.pause(); off {
		t.Error("the pause does not end")
	}
}
