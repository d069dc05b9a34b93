package input

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/bpf"
)

// openBuilt opens a built bundle.
func openBuilt(t *testing.T, data []byte) *Capture {
	t.Helper()
	c, err := openBytes(t, data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withBundles folds a recording with bundles of its boot.
func withBundles(t *testing.T, data []byte, from ...*Capture) (*Capture, *ingest.Profile) {
	t.Helper()
	c, err := openBytes(t, data, Options{Bundles: from})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	return c, p
}

func TestOpenBundle(t *testing.T) {
	h := bundlebuild.NewHost()
	h.Manifest = map[string]any{"lost": map[string]int{"ring full": 3, "a vanished": 1},
		"warnings": []string{"no right to see modules"}, "command": []string{"perf", "record"}}
	c := openBuilt(t, h.Bundle())
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfile(t, p)
	if c.Kind() != "bundle" || c.Bundle() == nil || c.PerfData() == nil || len(p.Samples) != 0 {
		t.Errorf("kind %q, bundle %v, %d samples", c.Kind(), c.Bundle(), len(p.Samples))
	}
	m := p.Meta
	if m.Host != h.Name || m.OSRelease != h.Release || m.Arch != "x86_64" ||
		m.Recorder != "symbolize test" || m.Command != "perf record" ||
		m.StartNanos != bundlebuild.Begin+1_700_000_000_000_000_000 ||
		m.Duration != bundlebuild.EndOfAll-bundlebuild.Begin {
		t.Errorf("meta %+v", m)
	}
	all := fmt.Sprint(p.Stats.Warnings)
	for _, want := range []string{"1 a vanished, 3 ring full", "no right to see modules",
		"holds no samples", "symbolize resolve perf.data "} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %v", want, all)
		}
	}
	if slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool { return w.Partial }) {
		t.Errorf("a whole bundle is partial: %v", all)
	}
	programs, err := c.Programs()
	if err != nil || len(programs) != 2 || programs[0].Symbol(1) != bundlebuild.Symbol(&h.A, 1) ||
		len(programs[1].Funcs[0].Image) != 64 {
		t.Errorf("programs %+v, %v", programs, err)
	}
}

// TestOpenBundleWithoutSideband reads the remains of a damaged bundle.
func TestOpenBundleWithoutSideband(t *testing.T) {
	for _, sideband := range [][]byte{nil, []byte("rubbish"), {}} {
		h := bundlebuild.NewHost()
		h.Entries = map[string][]byte{bundle.PerfDataName: sideband}
		c := openBuilt(t, h.Bundle())
		p, err := c.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkProfile(t, p)
		if len(p.Stats.Warnings) != 2 || !p.Stats.Warnings[0].Partial || p.Meta.Host != h.Name {
			t.Errorf("%q: %+v, host %q", sideband, p.Stats.Warnings, p.Meta.Host)
		}
		if programs, err := c.Programs(); len(programs) > 0 || err != nil {
			t.Errorf("programs %v, %v", programs, err)
		}
		_, q := withBundles(t, h.PerfData(bundlebuild.NoInfo), c)
		if len(q.Samples) == 0 {
			t.Error("no samples")
		}
	}
}

// TestTaken omits more and more from the recording: with the bundle the profile equals the profile
// of a complete recording.
func TestTaken(t *testing.T) {
	const none = ": the capture has all that the bundle has"
	for _, tt := range []struct {
		name  string
		lacks int
		want  string
	}{
		{name: "everything is there", want: "the place of 1 kernel module"},
		{name: "no information", lacks: bundlebuild.NoInfo,
			want: "code and lines of 2 BPF programs, " +
				"the place of 1 kernel module"},
		{name: "no symbols", lacks: bundlebuild.NoSymbols,
			want: "code and lines of 2 BPF programs, " +
				"names of 3 BPF functions, the place of 1 kernel module"},
		{name: "another clock", lacks: bundlebuild.NoSymbols | bundlebuild.MonotonicClock,
			want: "code and lines of 2 BPF programs, names of 3 BPF functions, the place of 1 kernel module"},
		{name: "no kernel",
			lacks: bundlebuild.NoKernel, want: "the place of 1 kernel module, the address of the kernel"},
		{name: "no process", lacks: bundlebuild.NoProcess,
			want: "the place of 1 kernel module, the mappings of 1 process"},
		{name: "nothing",
			lacks: bundlebuild.NoInfo | bundlebuild.NoSymbols | bundlebuild.NoProcess |
				bundlebuild.NoKernelID, want: "code and lines of 2 BPF programs, names of 3 BPF functions, " +
				"the place of 1 kernel module, the mappings of 1 process"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := bundlebuild.NewHost()
			h.Drift = 1000
			_, want := withBundles(t, h.PerfData(0), openBuilt(t, h.Bundle()))
			c, got := withBundles(t, h.PerfData(tt.lacks), openBuilt(t, h.Bundle()))
			taken := c.Contributions()
			if len(taken) != 1 || taken[0].Refused != "" ||
				taken[0].String() != "taken from "+taken[0].From+": "+tt.want {
				t.Errorf("taken %+v, want %q", taken, tt.want)
			}
			sameStacks(t, got, want)
			programs, err := c.Programs()
			if err != nil || len(programs) != 2 || len(programs[0].Funcs[1].Image) != 48 ||
				programs[0].Missing != "" || programs[1].Missing != "" {
				t.Errorf("programs %+v, %v", programs, err)
			}
		})
	}
	h := bundlebuild.NewHost()
	h.Entries = map[string][]byte{bundle.ModulesName: nil}
	c, _ := withBundles(t, h.PerfData(0), openBuilt(t, h.Bundle()))
	if b := c.Contributions()[0]; b.String() != "nothing taken from "+b.From+none {
		t.Errorf("taken %q, want %q", b.String(), none)
	}
}

// sameStacks compares the objects and offsets of samples, not the sources of build IDs.
func sameStacks(t *testing.T, got, want *ingest.Profile) {
	t.Helper()
	text := func(p *ingest.Profile) string {
		var b strings.Builder
		for _, s := range p.Samples {
			for _, l := range p.Stack(nil, s.Stack) {
				loc := p.Locations[l]
				o := &p.Objects[loc.Object]
				fmt.Fprintf(&b, "%s %s %q %s+%#x %v %v;", o.ID, o.File.Path, o.Symbol, o.RefSymbol,
					loc.Offset, o.NoImage, o.Reason)
			}
			fmt.Fprintln(&b, s.Count)
		}
		return b.String()
	}
	if g, w := text(got), text(want); g != w || !strings.Contains(w, "bpf_prog_") ||
		!strings.Contains(w, "[worker_mod]") {
		t.Errorf("stacks\n%swant\n%s", g, w)
	}
}

// TestTakenNothing refuses bundles of other boots.
func TestTakenNothing(t *testing.T) {
	const second = 1_000_000_000
	tests := []struct {
		name   string
		lacks  int
		change func(*bundlebuild.Host)
		want   string
	}{
		{name: "other kernel", change: func(h *bundlebuild.Host) { h.Kernel[0]++ },
			want: "it comes from another kernel: 6c"},
		{name: "other address", change: func(h *bundlebuild.Host) { h.Text += 0x200000 },
			want: "it comes from another boot: _text at 0xffffffff81200000, in the capture at 0xffffffff81000000"},
		{name: "later", change: func(h *bundlebuild.Host) { h.Shift = 20 * second },
			want: "no time in common: the capture ends 16s before the bundle begins"},
		{name: "later, another clock", lacks: bundlebuild.MonotonicClock,
			change: func(h *bundlebuild.Host) { h.Shift = 20 * second },
			want:   "no time in common: the capture ends 16s before the bundle begins"},
		{name: "no time", lacks: bundlebuild.NoTimes, change: func(*bundlebuild.Host) {},
			want: "have no times"},
		{name: "no end", change: func(h *bundlebuild.Host) {
			h.Manifest = map[string]any{"begin": map[string]int{}, "end": map[string]int{}}
		}, want: "no creation time"},
		{name: "nothing to go by", lacks: bundlebuild.NoKernel | bundlebuild.NoKernelID,
			change: func(*bundlebuild.Host) {},
			want:   "neither the kernel's build ID nor its address"},
		{name: "no build ID, other release", lacks: bundlebuild.NoKernelID,
			change: func(h *bundlebuild.Host) { h.Release = "5.10" },
			want:   "does not name its kernel"},
		{name: "no address, other host", lacks: bundlebuild.NoKernel,
			change: func(h *bundlebuild.Host) { h.Name = "other" },
			want:   "the hosts differ"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := bundlebuild.NewHost()
			lacks := tt.lacks | bundlebuild.NoInfo
			_, want := withBundles(t, h.PerfData(lacks))
			other := bundlebuild.NewHost()
			tt.change(other)
			c, got := withBundles(t, h.PerfData(lacks), openBuilt(t, other.Bundle()))
			taken := c.Contributions()
			if len(taken) != 1 || !strings.Contains(taken[0].Refused, tt.want) ||
				taken[0].String() != "nothing taken from "+taken[0].From+": "+taken[0].Refused {
				t.Errorf("taken %+v, want %q", taken, tt.want)
			}
			a, err1 := json.Marshal(got.Objects)
			b, err2 := json.Marshal(want.Objects)
			if err1 != nil || err2 != nil || string(a) != string(b) {
				t.Errorf("objects\n%s\nwant\n%s", a, b)
			}
			if programs, _ := c.Programs(); slices.ContainsFunc(programs, func(p bpf.Program) bool {
				return p.Missing == ""
			}) {
				t.Errorf("programs %+v", programs)
			}
		})
	}
}

// TestTakenTwice uses each fact of the first bundle that has it, and nothing of other files.
func TestTakenTwice(t *testing.T) {
	h := bundlebuild.NewHost()
	data := h.PerfData(bundlebuild.NoSymbols)
	plain := openBuilt(t, h.PerfData(0))
	c, got := withBundles(t, data, plain, openBuilt(t, h.Bundle()), openBuilt(t, h.Bundle()))
	_, want := withBundles(t, h.PerfData(0), openBuilt(t, h.Bundle()))
	sameStacks(t, got, want)
	taken := c.Contributions()
	if len(taken) != 3 || taken[0].Refused != "it is not a bundle" || taken[1].Programs != 2 ||
		taken[1].Symbols != 3 || !strings.HasPrefix(taken[2].String(), "nothing taken from ") {
		t.Errorf("taken %+v", taken)
	}
}

// TestTakenChangesNobody: the bundle's own programs stay as they are.
func TestTakenChangesNobody(t *testing.T) {
	h := bundlebuild.NewHost()
	from := openBuilt(t, h.Bundle())
	before, err := from.Programs()
	if err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprintf("%+v", before)
	withBundles(t, h.PerfData(bundlebuild.NoInfo), from)
	after, err := from.Programs()
	if err != nil || fmt.Sprintf("%+v", after) != first {
		t.Errorf("programs\n%+v\nbefore\n%s\n%v", after, first, err)
	}
}

// TestBundleModuleIDs gives modules of the recording the build IDs that the bundle has.
func TestBundleModuleIDs(t *testing.T) {
	h := bundlebuild.NewHost()
	_, p := withBundles(t, h.PerfData(0), openBuilt(t, h.Bundle()))
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Kind == ingest.Module && (o.ID != buildid.New(h.ModuleID[:]) ||
			p.Objects[o.Kernel].ID != buildid.New(h.Kernel[:])) {
			t.Errorf("module %+v", o)
		}
	}
}

// FuzzTaken lets a damaged bundle serve a whole recording.
func FuzzTaken(f *testing.F) {
	h := bundlebuild.NewHost()
	data := h.Bundle()
	f.Add(data)
	f.Add(data[:len(data)/2])
	recording := h.PerfData(bundlebuild.NoSymbols)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "capture.data")
		must.Write(t, path, data)
		from, err := Open(t.Context(), path, Options{})
		if err != nil {
			return
		}
		defer from.Close()
		if _, err := from.Profile(t.Context()); err != nil {
			t.Skip(err)
		}
		withBundles(t, recording, from)
	})
}
