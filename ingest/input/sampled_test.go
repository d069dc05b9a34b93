package input

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	elffile "symbolize/ingest/object/elf"
)

const (
	sampledOnCPU  = "../../fixtures/sampled/stacks.data"
	sampledOffCPU = "../../fixtures/sampled/offcpu.data"
)

// weights adds up the samples of a comm by their results of name; "" is left out.
func weights(p *ingest.Profile, comm string,
	name func(stack []ingest.LocationID) string) map[string]uint64 {
	sums := make(map[string]uint64)
	for _, s := range p.Samples {
		if p.Strings[s.Comm] != comm {
			continue
		}
		if n := name(p.Stack(nil, s.Stack)); n != "" {
			sums[n] += s.Weight
		}
	}
	return sums
}

// idOf returns the build ID of a file of fixtures.
func idOf(t *testing.T, path string) buildid.ID {
	t.Helper()
	b := must.Read(t, path)
	f, err := elffile.Open(path, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f.ID
}

// functionsOf returns the function that names file offsets by an object's own symbols.
func functionsOf(t *testing.T, path string) func(offset uint64) string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return func(offset uint64) string {
		for _, s := range symbols {
			text := f.Section(".text")
			at := offset - text.Offset + text.Addr
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value <= at && at < s.Value+s.Size {
				return s.Name
			}
		}
		return "?"
	}
}

// TestSampled: the stacks of `capture --stacks` fold into objects of every kind, whether the
// kernel recorded build IDs or addresses.
func TestSampled(t *testing.T) {
	c, p := foldPath(t, sampledOnCPU, Options{})
	if !c.HasSamples() || len(p.Events) != 1 || p.Events[0].Name != "cpu-clock" ||
		p.Events[0].Unit != "nanoseconds" {
		t.Fatalf("samples %v, events %+v", c.HasSamples(), p.Events)
	}
	set, st := c.With(Options{}).Stacks(), &p.Stats
	var counted uint64
	for i := range set.Samples {
		counted += set.Samples[i].Count
	}
	period := p.Events[0].Period
	if period != 2_004_008 || counted < 300 || st.Samples != counted ||
		st.Weight != counted*period {
		t.Errorf("period %d, %d samples of %d, weight %d", period, st.Samples, counted, st.Weight)
	}
	for path, file := range map[string]string{
		"/srv/app/bin/mixed":                  "objects/bin/mixed",
		"/srv/app/bin/fixed":                  "objects/bin/fixed",
		"/srv/app/bin/gone":                   "objects/bin/gone", // deleted while it ran
		"/srv/app/lib/libkernels.so":          "objects/lib/libkernels.so",
		"/srv/app/bin/plain":                  "sampled/bin/plain", // has none
		"/srv/app/bin/bpfrun":                 "",                  // unseen by the kernel
		"/usr/lib/x86_64-linux-gnu/libc.so.6": "",
	} {
		o := objectOf(t, p, path)
		id := o.ID.Hex()
		if id == "" && file == "" || file != "" && id != idOf(t, "../../fixtures/"+file).Hex() {
			t.Errorf("%s: build ID %q", path, id)
		}
		if unseen := o.Reason == ingest.NoBuildID && o.Unseen; unseen != (path == "/srv/app/bin/plain") {
			t.Errorf("%s: reason %s, unseen %v", path, o.Reason, o.Unseen)
		}
	}
	kinds := make(map[ingest.ObjectKind]int)
	for _, l := range p.Locations {
		if int64(l.Offset) < 0 {
			t.Errorf("%s at %d", p.Objects[l.Object].File.Path, int64(l.Offset))
		}
		kinds[p.Objects[l.Object].Kind]++
	}
	if kinds[ingest.Kernel] < 50 || kinds[ingest.JIT] < 3 || kinds[ingest.ELF] < 50 {
		t.Errorf("locations of %v", kinds)
	}
	for _, w := range st.Warnings {
		if w.Partial {
			t.Errorf("warning %+v", w)
		}
	}
}

// TestSampledPlaces: the leaf functions of the load are the functions where its programs spent
// their time, and addresses in code without a build ID and in the vdso are inside it.
func TestSampledPlaces(t *testing.T) {
	c, p := foldPath(t, sampledOnCPU, Options{})
	object := func(l ingest.LocationID) *ingest.Object { return &p.Objects[p.Locations[l].Object] }
	vdso := func() (id string) {
		for _, name := range c.Bundle().Names() {
			if rest, ok := strings.CutPrefix(name, "vdso/"); ok {
				id = strings.TrimSuffix(rest, ".so")
			}
		}
		return id
	}()
	for _, x := range []struct {
		comm, path, file string
		leaf             string
		share            float64 // at least, of the comm's weight
		entered          string  // a function that is no leaf
	}{
		{comm: "fixed", path: "/srv/app/bin/fixed", file: "objects/bin/fixed", leaf: "collatz",
			share: 0.9, entered: "main"},
		{comm: "gone", path: "/srv/app/bin/gone", file: "objects/bin/gone", leaf: "collatz",
			share: 0.9, entered: "main"},
		{comm: "plain", path: "/srv/app/bin/plain", file: "sampled/bin/plain",
			leaf: "hash_numbers", share: 0.4, entered: "main"},
	} {
		name := functionsOf(t, "../../fixtures/"+x.file)
		function := func(l ingest.LocationID) string {
			if object(l).File.Path != x.path {
				return ""
			}
			return name(uint64(p.Locations[l].Offset))
		}
		all := weights(p, x.comm, func([]ingest.LocationID) string { return "all" })["all"]
		leaves := weights(p, x.comm, func(s []ingest.LocationID) string { return function(s[0]) })
		if float64(leaves[x.leaf]) < x.share*float64(all) {
			t.Errorf("%s: of %d ns in leaves %v", x.comm, all, leaves)
		}
		entered := weights(p, x.comm, func(s []ingest.LocationID) string {
			if slices.ContainsFunc(s,
				func(l ingest.LocationID) bool { return function(l) == x.entered }) {
				return x.entered
			}
			return ""
		})
		if entered[x.entered] == 0 {
			t.Errorf("%s: nothing in %s", x.comm, x.entered)
		}
	}
	inVDSO := weights(p, "plain", func(s []ingest.LocationID) string {
		if id := object(s[0]).ID; !id.IsZero() && id.Hex() == vdso {
			return object(s[0]).File.Path
		}
		return ""
	})
	if vdso == "" || inVDSO["[vdso]"] == 0 {
		t.Errorf("vdso %q: nothing in it: %v", vdso, inVDSO)
	}
}

// TestSampledOffCPU: the weights are the times that threads waited, as the load reports them.
func TestSampledOffCPU(t *testing.T) {
	const ms = 1_000_000
	_, p := foldPath(t, sampledOffCPU, Options{})
	if e := p.Events[0]; e.Name != "off-cpu" || e.Unit != "nanoseconds" || e.Period != 0 {
		t.Errorf("event %+v", e)
	}
	all := func([]ingest.LocationID) string { return "all" }
	of := func(comm string) uint64 { return weights(p, comm, all)["all"] }
	var total uint64
	for _, comm := range []string{"sh", "sleep", "cat", "mixed"} {
		total += of(comm)
	}
	if total != p.Stats.Weight {
		t.Errorf("%d ns of %d are of the load", total, p.Stats.Weight)
	}
	for _, x := range []struct {
		comm        string
		least, most uint64
	}{
		{comm: "sleep", least: 400 * ms, most: 500 * ms}, // 0.3 and 0.1 s
		{comm: "cat", least: 90 * ms, most: 200 * ms},    // while the second of them sleeps
		{comm: "mixed", least: 90 * ms, most: 300 * ms},  // its main, for a thread of 0.2 s
		{comm: "sh", least: 600 * ms, most: 1200 * ms},   // for all of them
	} {
		if w := of(x.comm); w < x.least || w > x.most {
			t.Errorf("%s waited for %d ms", x.comm, w/ms)
		}
	}
	for _, s := range p.Samples { // threads stop in the kernel
		if leaf := p.Stack(nil, s.Stack)[0]; p.Objects[p.Locations[leaf].Object].Kind != ingest.Kernel {
			t.Errorf("%s stopped in %+v", p.Strings[s.Comm], p.Objects[p.Locations[leaf].Object])
		}
	}
}

// entriesOf returns the manifest and entries of a bundle.
func entriesOf(t *testing.T, path string) (manifest []byte, entries map[string][]byte) {
	t.Helper()
	b := must.Read(t, path)
	x, err := bundle.Open(path, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	entries = make(map[string][]byte)
	for _, name := range x.Names() {
		if entries[name], err = x.ReadEntry(name, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if manifest, err = bundle.EncodeManifest(&x.Manifest); err != nil {
		t.Fatal(err)
	}
	return manifest, entries
}

// TestSampledLacks: without one of its entries a bundle's other ones are used, with a warning.
func TestSampledLacks(t *testing.T) {
	manifest, entries := entriesOf(t, sampledOnCPU)
	_, whole := foldPath(t, sampledOnCPU, Options{})
	path := filepath.Join(t.TempDir(), "stacks.data")
	load := func(lacks func(name string) bool) (*Capture, *ingest.Profile) {
		some := maps.Clone(entries)
		maps.DeleteFunc(some, func(name string, _ []byte) bool { return lacks(name) })
		must.Write(t, path, bundlebuild.Tar(manifest, some))
		c, p := foldPath(t, path, Options{})
		if !slices.ContainsFunc(p.Stats.Warnings,
			func(w ingest.Warning) bool { return w.Partial }) {
			t.Errorf("no warning of damage: %+v", p.Stats.Warnings)
		}
		return c, p
	}
	count := func(p *ingest.Profile, is func(o *ingest.Object) bool) (n int) {
		for _, l := range p.Locations {
			if is(&p.Objects[l.Object]) {
				n++
			}
		}
		return n
	}
	inKernel := func(o *ingest.Object) bool { return o.Kind == ingest.Kernel }
	unmapped := func(o *ingest.Object) bool { return o.Reason == ingest.MapsNotSaved }
	for _, x := range []struct {
		lacks   string
		samples bool                        // all of them are there
		kernel  bool                        // and located
		lost    func(o *ingest.Object) bool // locations that there are more of
	}{
		{lacks: "proc/", samples: true, kernel: true, lost: unmapped},
		{lacks: "vdso/", samples: true, kernel: true},
		{lacks: "kernel/", samples: true, kernel: true},
		{lacks: "perf.data", samples: true, kernel: true},
		{lacks: bundle.DumpName("kernel_stacks")},
		{lacks: bundle.DumpName("stacks")},
		{lacks: bundle.DumpName("counts")},
	} {
		t.Run(strings.ReplaceAll(x.lacks, "/", "_"), func(t *testing.T) {
			c, p := load(func(name string) bool { return strings.HasPrefix(name, x.lacks) })
			all := p.Stats.Weight == whole.Stats.Weight
			if all != x.samples || c.HasSamples() != x.samples {
				t.Errorf("weight %d of %d", p.Stats.Weight, whole.Stats.Weight)
			}
			if n := count(p, inKernel); n > 0 != x.kernel {
				t.Errorf("%d locations in the kernel", n)
			}
			if x.lost != nil && count(p, x.lost) <= count(whole, x.lost) {
				t.Error("no warning")
			}
		})
	}
}

// TestSampledCut: of a bundle that is cut off anywhere behind its manifest something is left, the
// more the later it is cut, and it reports the cut.
func TestSampledCut(t *testing.T) {
	manifest, entries := entriesOf(t, sampledOnCPU)
	tar := bundlebuild.Tar(manifest, entries)
	packed := must.Read(t, sampledOnCPU)
	path := filepath.Join(t.TempDir(), "stacks.data")
	for name, b := range map[string][]byte{"tar": tar, "packed": packed} {
		before, opened, full := uint64(0), false, 0
		for n := 0; n < len(b); n += max(len(b)/150, 1) {
			must.Write(t, path, b[:n])
			c, err := Open(t.Context(), path, Options{})
			if err != nil {
				if opened {
					t.Fatalf("%s of %d bytes: %v, and opened when shorter", name, n, err)
				}
				continue
			}
			opened = true
			p, err := c.Profile(t.Context())
			c.Close()
			if err != nil {
				t.Fatalf("%s of %d bytes: %v", name, n, err)
			}
			checkProfile(t, p)
			if p.Stats.Weight < before {
				t.Errorf("%s of %d bytes: weight %d, and %d when shorter", name, n, p.Stats.Weight,
					before)
			}
			before = p.Stats.Weight
			if before > 0 {
				full++
			}
			// The end of a tar is two empty blocks, which nobody misses.
			if n < len(b)-1<<12 &&
				!slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
					return w.Partial
				}) {
				t.Errorf("%s of %d bytes: no warning", name, n)
			}
		}
		if !opened || name == "tar" && full == 0 {
			t.Error(fmt.Sprint(name, ": nothing was kept of any"))
		}
	}
}
