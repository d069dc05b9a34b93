package input

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

// The bits of branch_sample_type.
const (
	branchUser      = 1 << 0
	branchAny       = 1 << 3
	branchCallStack = 1 << 11
)

// branchCapture is a capture of samples with chains and branch stacks.
func branchCapture(big bool, kind uint64) capture {
	b := perfbuild.NewOrder(big)
	b.Events[0].SampleType |= perfbuild.BranchStack
	b.Events[0].BranchSampleType = kind
	c := capture{b}
	c.KernelMap("_text", 0xffffffff81000000, 0xffffffff81000000, 0x1000000)
	c.lib(7, 0x400000, 0x100000, 0, "/bin/x", 0)
	return c
}

// TestCallStacks joins chains with the calls in branch stacks.
func TestCallStacks(t *testing.T) {
	calls := []perfbuild.Branch{{From: 0x401000, To: 0x402000}, {From: 0x400500, To: 0x400f00}}
	for _, tc := range []struct {
		name     string
		kind     uint64
		ip       uint64
		chain    []uint64
		branches []perfbuild.Branch
		want     string
	}{
		{name: "in user mode the precise address", kind: branchUser | branchCallStack, ip: 0x402010,
			chain: []uint64{cU, 0x402018, 0x123}, branches: calls,
			want: "/bin/x+0x2010 /bin/x+0x1000 /bin/x+0x500"},
		{name: "without a marker", kind: branchCallStack, ip: 0x402010,
			chain: []uint64{0x402018, 0x123}, branches: calls,
			want: "/bin/x+0x2010 /bin/x+0x1000 /bin/x+0x500"},
		{name: "kernel frames from the chain", kind: branchCallStack,
			chain:    []uint64{cK, 0xffffffff81000010, 0xffffffff81000101, cU, 0x402018, 0x123},
			branches: calls, want: "[kernel.kallsyms]+0x10 [kernel.kallsyms]+0x100 " +
				"/bin/x+0x2018 /bin/x+0x1000 /bin/x+0x500"},
		{name: "the start of the function, if the chain has no user address",
			kind:     branchCallStack,
			chain:    []uint64{cK, 0xffffffff81000010, cU},
			branches: calls, want: "[kernel.kallsyms]+0x10 /bin/x+0x2000 /bin/x+0x1000 /bin/x+0x500"},
		{name: "calls in the kernel, which the chain has", kind: branchCallStack,
			chain: []uint64{cK, 0xffffffff81000010, 0xffffffff81000101, cU, 0x402018, 0x123},
			branches: slices.Concat([]perfbuild.Branch{{From: 0xffffffff81000100, To: 0xffffffff81000008},
				{From: 0xffffffff81000200, To: 0xffffffff810000f0}}, calls),
			want: "[kernel.kallsyms]+0x10 [kernel.kallsyms]+0x100 /bin/x+0x2018 /bin/x+0x1000 /bin/x+0x500"},
		{name: "calls in the kernel, and no user address", kind: branchCallStack,
			chain: []uint64{cK, 0xffffffff81000010, cU},
			branches: slices.Concat([]perfbuild.Branch{{From: 0xffffffff81000100, To: 0xffffffff81000008}},
				calls),
			want: "[kernel.kallsyms]+0x10 /bin/x+0x2000 /bin/x+0x1000 /bin/x+0x500"},
		{name: "calls in the kernel alone", kind: branchCallStack,
			chain:    []uint64{cK, 0xffffffff81000010, cU},
			branches: []perfbuild.Branch{{From: 0xffffffff81000100, To: 0xffffffff81000008}},
			want:     "[kernel.kallsyms]+0x10"},
		{name: "no user part in the chain", kind: branchCallStack,
			chain: []uint64{cK, 0xffffffff81000010}, branches: calls,
			want: "[kernel.kallsyms]+0x10"},
		{name: "no calls", kind: branchCallStack, ip: 0x402018,
			chain: []uint64{cU, 0x402018, 0x400101}, want: "/bin/x+0x2018 /bin/x+0x100"},
		{name: "entries that were never filled", kind: branchCallStack, ip: 0x402018,
			chain: []uint64{cU, 0x402018}, branches: append(slices.Clone(calls), perfbuild.Branch{}),
			want: "/bin/x+0x2018 /bin/x+0x1000 /bin/x+0x500"},
		{name: "other branches are no calls", kind: branchUser | branchAny, ip: 0x402018,
			chain: []uint64{cU, 0x402018, 0x400101}, branches: calls,
			want: "/bin/x+0x2018 /bin/x+0x100"},
	} {
		for _, big := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, big endian %t", tc.name, big), func(t *testing.T) {
				c := branchCapture(big, tc.kind)
				for range 2 { // the second has the chain of a sample before it
					c.Sample(perfbuild.Sample{PID: 7, Time: 1, IP: tc.ip, Chain: tc.chain,
						Branches: tc.branches})
				}
				want := []string{":7: " + tc.want + " 2 2"}
				p := fold(t, c.Bytes(), Options{})
				if got := dump(p); !slices.Equal(got, want) {
					t.Errorf("got  %q\nwant %q", got, want)
				}
				if calls := tc.kind&branchCallStack != 0; p.Stats.NoReturns != calls {
					t.Errorf("NoReturns %t", p.Stats.NoReturns)
				}
			})
		}
	}
}

// TestBranches makes samples of the entries of branch stacks.
func TestBranches(t *testing.T) {
	const text = 0xffffffff81000000
	for _, big := range []bool{false, true} {
		c := branchCapture(big, branchAny)
		for range 2 {
			c.Sample(perfbuild.Sample{PID: 7, Time: 1, IP: 0x402010, Period: 999,
				Chain: []uint64{cU, 0x402010, 0x400101},
				Branches: []perfbuild.Branch{
					{From: 0x401000, To: 0x402000, Flags: branchPredicted},
					{From: 0x401000, To: text + 0x10, Flags: branchMispredicted},
					{From: text + 0x20, To: 0x401000},
					{From: 0x300000, To: 0x401000, Flags: branchPredicted},
					{}, {From: cU, To: 0x401000},
				}})
		}
		p := fold(t, c.Bytes(), Options{Selection: Selection{Branches: BranchEntries}})
		want := []string{
			":7: /bin/x+0x1000 [kernel.kallsyms]+0x20 2 2",
			":7: /bin/x+0x1000 [unmapped] 2 2", ":7: /bin/x+0x2000 /bin/x+0x1000 2 2",
			":7: [kernel.kallsyms]+0x10 /bin/x+0x1000 2 2",
		}
		got := dump(p)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		tags := []string{" 2", "prediction=mispredicted 2", "prediction=predicted 4"}
		if got := tagLines(p); !slices.Equal(got, tags) {
			t.Errorf("%q, want %q", got, tags)
		}
	}
	c := newCapture()
	c.hit(7, 1, cU, 0x400010)
	cp, err := openBytes(t, c.Bytes(), Options{Selection: Selection{Branches: BranchEntries}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cp.Profile(t.Context()); err == nil || hintText(err) == "" {
		t.Errorf("samples without branch stacks: %v", err)
	}
}

// branchLines returns a line for each sample, sorted: its locations, and a text.
func branchLines(p *ingest.Profile, text func(*ingest.Sample) string) (lines []string) {
	for i := range p.Samples {
		s := &p.Samples[i]
		line := ""
		for _, l := range p.Stack(nil, s.Stack) {
			o := &p.Objects[p.Locations[l].Object]
			line += fmt.Sprintf("%s+%#x ", strings.TrimSuffix(o.File.Path, "_text"), p.Locations[l].Offset)
		}
		lines = append(lines, line+text(s))
	}
	slices.Sort(lines)
	return lines
}

// TestRuns: branch stacks give the sampled addresses, the branches, and the code that ran between
// two of them.
func TestRuns(t *testing.T) {
	const wrongPath, text = branchWrongPath << branchSpecShift, 0xffffffff81000000
	type list = []perfbuild.Branch
	for _, tc := range []struct {
		name     string
		branches list
		want     []string
	}{
		{name: "none", want: []string{"/bin/x+0x2010 part=sampled"}},
		{name: "one", branches: list{{From: 0x401000, To: 0x402000}},
			want: []string{"/bin/x+0x2000 /bin/x+0x1000 part=taken", "/bin/x+0x2010 part=sampled"}},
		{name: "code between two, and a source of kernel code",
			branches: list{{From: 0x401040, To: 0x402000}, {From: text, To: 0x401000}},
			want: []string{"/bin/x+0x1000 /bin/x+0x1040 part=run",
				"/bin/x+0x1000 [kernel.kallsyms]+0x0 part=taken", "/bin/x+0x2000 /bin/x+0x1040 part=taken",
				"/bin/x+0x2010 part=sampled"}},
		{name: "not taken, and never filled",
			branches: list{{From: 0x401040, To: 0x402000}, {From: 0x401020, To: 0x401030, Flags: wrongPath},
				{From: 0x401800, To: 0x401000}, {}},
			want: []string{"/bin/x+0x1000 /bin/x+0x1040 part=run", "/bin/x+0x1000 /bin/x+0x1800 part=taken",
				"/bin/x+0x2000 /bin/x+0x1040 part=taken", "/bin/x+0x2010 part=sampled"}},
		{name: "backwards, and the code before that",
			branches: list{{From: 0x401040, To: 0x402000}, {From: 0x401900, To: 0x401800},
				{From: 0x401010, To: 0x4018f0}},
			want: []string{"/bin/x+0x1800 /bin/x+0x1040 part=bogus", "/bin/x+0x18f0 /bin/x+0x1010 part=taken",
				"/bin/x+0x18f0 /bin/x+0x1900 part=run", "/bin/x+0x2000 /bin/x+0x1040 part=taken",
				"/bin/x+0x2010 part=sampled"}},
		{name: "the newest twice: a short loop", branches: list{{From: 0x401040, To: 0x401000}, {From: 0x401040, To: 0x401000}},
			want: []string{"/bin/x+0x1000 /bin/x+0x1040 part=run", "/bin/x+0x1000 /bin/x+0x1040 part=taken",
				"/bin/x+0x2010 part=sampled"}},
		{name: "the newest twice: no loop", branches: list{{From: 0x403040, To: 0x401000}, {From: 0x403040, To: 0x401000}},
			want: []string{"/bin/x+0x1000 /bin/x+0x3040 part=bogus", "/bin/x+0x1000 /bin/x+0x3040 part=taken",
				"/bin/x+0x2010 part=sampled"}},
	} {
		for _, big := range []bool{false, true} {
			c := branchCapture(big, branchAny)
			c.Sample(perfbuild.Sample{PID: 7, Time: 1, IP: 0x402010, Period: 999, Branches: tc.branches})
			p := fold(t, c.Bytes(), Options{Selection: Selection{Branches: BranchRuns}})
			got := branchLines(p, func(s *ingest.Sample) string { return "part=" + p.Tag(s, ingest.BranchTag) })
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
			}
		}
	}
}

// TestBranchTraces: each branch has the source of the next one in its mode, user code or the kernel.
func TestBranchTraces(t *testing.T) {
	const wrongPath, text = branchWrongPath << branchSpecShift, 0xffffffff81000000
	type list = []perfbuild.Branch
	for _, tc := range []struct {
		name     string
		branches list
		want     []string
	}{
		{name: "none", want: []string{"/bin/x+0x2010 part=sampled prediction="}},
		{name: "one", branches: list{{From: 0x401000, To: 0x402000, Flags: branchMispredicted}},
			want: []string{"/bin/x+0x2000 /bin/x+0x1000 part=taken prediction=mispredicted"}},
		{name: "an interrupt between two", branches: list{{From: 0x401040, To: 0x402000},
			{From: text + 0x20, To: 0x401010}, {From: text + 4, To: text + 0x10}, {From: text, To: text + 2},
			{From: 0x401010, To: text}, {From: 0x403000, To: 0x401000, Flags: branchPredicted}},
			want: []string{"/bin/x+0x1040 /bin/x+0x1000 /bin/x+0x3000 part=trace prediction=predicted",
				"/bin/x+0x2000 /bin/x+0x1040 part=taken prediction=",
				"[kernel.kallsyms]+0x10 [kernel.kallsyms]+0x4 part=taken prediction=",
				"[kernel.kallsyms]+0x4 [kernel.kallsyms]+0x2 [kernel.kallsyms]+0x0 part=trace prediction="}},
		{name: "not taken, and never filled",
			branches: list{{From: 0x401040, To: 0x402000}, {From: 0x401020, To: 0x401030, Flags: wrongPath},
				{From: 0x401800, To: 0x401000}, {}},
			want: []string{"/bin/x+0x1040 /bin/x+0x1000 /bin/x+0x1800 part=trace prediction=",
				"/bin/x+0x2000 /bin/x+0x1040 part=taken prediction="}},
	} {
		for _, big := range []bool{false, true} {
			c := branchCapture(big, branchAny)
			c.Sample(perfbuild.Sample{PID: 7, Time: 1, IP: 0x402010, Period: 999, Branches: tc.branches})
			p := fold(t, c.Bytes(), Options{Selection: Selection{Branches: BranchTraces}})
			got := branchLines(p, func(s *ingest.Sample) string {
				return "part=" + p.Tag(s, ingest.BranchTag) + " prediction=" + p.Tag(s, ingest.PredictionTag)
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
			}
		}
	}
	c := newCapture()
	c.hit(7, 1, cU, 0x400010)
	if p := fold(t, c.Bytes(), Options{Selection: Selection{Branches: BranchTraces}}); len(p.Samples) != 1 {
		t.Errorf("without branch stacks %d samples", len(p.Samples))
	}
}
