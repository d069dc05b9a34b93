package sideband

import (
	"bytes"
	"strings"
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
)

// TestContribution: the line about a bundle.
func TestContribution(t *testing.T) {
	for _, tc := range []struct {
		want string
		c    Contribution
	}{
		{want: "nothing taken from b: it is not a bundle", c: Contribution{Refused: "it is not a bundle", Programs: 1}},
		{want: "nothing taken from b: the capture has all that the bundle has"},
		{want: "taken from b: the address of the kernel", c: Contribution{Kernel: true}},
		{want: "taken from b: code and lines of 1 BPF program, the name of 1 BPF function, the place of 1 kernel " +
			"module, the mappings of 1 process, 1 list of code compiled at run time",
			c: Contribution{Programs: 1, Symbols: 1, Modules: 1, Processes: 1, Compiled: 1}},
		{want: "taken from b: code and lines of 2 BPF programs, names of 3 BPF functions, places of 4 kernel modules, " +
			"mappings of 5 processes, 6 lists of code compiled at run time, the address of the kernel",
			c: Contribution{Programs: 2, Symbols: 3, Modules: 4, Processes: 5, Compiled: 6, Kernel: true}},
	} {
		if tc.c.From = "b"; tc.c.String() != tc.want {
			t.Errorf("%s\nwant %s", &tc.c, tc.want)
		}
	}
}

// TestClockOf: the clock of a recording by its options.
func TestClockOf(t *testing.T) {
	for _, tc := range []struct {
		name string
		ev   perfdata.Attr
		none bool
		want clockKind
	}{
		{name: "perf's own", ev: perfdata.Attr{SampleType: perfdata.SampleTime}, want: perfClock},
		{name: "without times", want: noClock},
		{name: "no event", none: true, want: noClock},
		{name: "-k CLOCK_REALTIME", ev: perfdata.Attr{SampleType: perfdata.SampleTime, Flags: perfdata.FlagUseClockID},
			want: realtimeClock},
		{name: "-k mono", ev: perfdata.Attr{SampleType: perfdata.SampleTime, Flags: perfdata.FlagUseClockID, ClockID: 1},
			want: monotonicClock},
		{name: "-k boottime", ev: perfdata.Attr{SampleType: perfdata.SampleTime, Flags: perfdata.FlagUseClockID, ClockID: 7},
			want: boottimeClock},
		{name: "-k tai", ev: perfdata.Attr{SampleType: perfdata.SampleTime, Flags: perfdata.FlagUseClockID, ClockID: 11},
			want: noClock},
	} {
		f := &perfdata.File{Events: []perfdata.Event{{Attr: tc.ev}}}
		if tc.none {
			f.Events = nil
		}
		if got := clockOf(f); got != tc.want {
			t.Errorf("%s: clock %d, want %d", tc.name, got, tc.want)
		}
	}
	if clockOf(nil) != noClock {
		t.Error("no file has a clock")
	}
}

// TestConverter: times between the two readings of a bundle's clocks.
func TestConverter(t *testing.T) {
	m := &bundle.Manifest{
		Begin: bundle.Clocks{Perf: 1000, Monotonic: 5000, Boottime: 7000, Realtime: 9000},
		End:   bundle.Clocks{Perf: 2000, Monotonic: 6100, Boottime: 8000, Realtime: 10_000}}
	backwards := *m
	backwards.End.Perf = 500
	for _, tc := range []struct {
		name     string
		m        *bundle.Manifest
		from, to clockKind
		time     uint64
		want     uint64
	}{
		{name: "the same clock", m: m, from: perfClock, to: perfClock, time: 1234, want: 1234},
		{name: "at the first reading", m: m, from: perfClock, to: monotonicClock, time: 1000, want: 5000},
		{name: "at the last reading", m: m, from: perfClock, to: monotonicClock, time: 2000, want: 6100},
		{name: "between them", m: m, from: perfClock, to: monotonicClock, time: 1500, want: 5550},
		{name: "before them", m: m, from: perfClock, to: boottimeClock, time: 900, want: 6900},
		{name: "back", m: m, from: realtimeClock, to: perfClock, time: 9500, want: 1500},
		{name: "the start of all", m: m, from: perfClock, to: realtimeClock, time: 0, want: 0},
		{name: "the order of the file", m: m, from: perfClock, to: realtimeClock, time: NoTime, want: NoTime},
		{name: "a clock that goes back", m: &backwards, from: perfClock, to: boottimeClock, time: 1500, want: 7500},
	} {
		if got := converter(tc.m, tc.from, tc.to)(tc.time); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// openBundle opens a built bundle.
func openBundle(t *testing.T, h *bundlebuild.Host) Bundle {
	t.Helper()
	packed := h.Bundle()
	b, err := bundle.Open("b", bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	r, size, err := b.Entry(bundle.PerfDataName)
	if err != nil {
		t.Fatal(err)
	}
	records, err := perfdata.Open("b", r, size)
	if err != nil {
		t.Fatal(err)
	}
	return Bundle{Path: "b", Bundle: b, Records: records,
		Programs: func() ([]bpf.Program, error) { return ReadPrograms(records) }}
}

// TestRefusals: the reasons why a bundle is not of a recording's boot, and what proves that it is.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name  string
		alter func(h *bundlebuild.Host) // of the bundle
		lacks int                       // of the recording
		want  string                    // why it is refused, "" if it is not
	}{
		{name: "the same"},
		{name: "by the build ID alone", lacks: bundlebuild.NoKernel},
		{name: "by the address alone", lacks: bundlebuild.NoKernelID},
		{name: "by neither", lacks: bundlebuild.NoKernel | bundlebuild.NoKernelID,
			want: "they have neither the kernel's build ID nor its address in common"},
		{name: "by the address, of another release", lacks: bundlebuild.NoKernelID,
			alter: func(h *bundlebuild.Host) { h.Manifest = map[string]any{"os_release": "5.0"} },
			want:  "the capture does not name its kernel"},
		{name: "by the build ID, of another host", lacks: bundlebuild.NoKernel,
			alter: func(h *bundlebuild.Host) { h.Manifest = map[string]any{"host": "other"} },
			want:  "the kernel's address is hidden, and the hosts differ"},
		{name: "a recording without times", lacks: bundlebuild.NoTimes,
			want: "the capture's records have no times to compare with the bundle"},
		{name: "a bundle without times", alter: func(h *bundlebuild.Host) {
			h.Manifest = map[string]any{"end": map[string]uint64{}}
		}, want: "the bundle has no creation time"},
		{name: "before", alter: func(h *bundlebuild.Host) { h.Shift = 10_000_000_000 },
			want: "no time in common: the capture ends 6s before the bundle begins"},
		{name: "by another clock", lacks: bundlebuild.MonotonicClock},
		{name: "by another clock, at another time", lacks: bundlebuild.MonotonicClock,
			alter: func(h *bundlebuild.Host) { h.Shift = 10_000_000_000 }, want: "no time in common"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := bundlebuild.NewHost()
			data := h.PerfData(tc.lacks)
			if tc.alter != nil {
				tc.alter(h)
			}
			sb := scanBytes(t, data, ScanOptions{Bundles: []Bundle{openBundle(t, h)}})
			got := sb.Contributions()[0].Refused
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("refused: %q, want %q", got, tc.want)
			}
		})
	}
	h := bundlebuild.NewHost()
	sb := scanBytes(t, h.PerfData(0), ScanOptions{Bundles: []Bundle{{Path: "x"}}})
	if got := sb.Contributions()[0].String(); got != "nothing taken from x: it is not a bundle" {
		t.Errorf("another file: %s", got)
	}
	if (*State)(nil).Contributions() != nil {
		t.Error("no state has contributions")
	}
}

// TestWallClocks: the wall clocks of recording and bundle tell boots apart with equal other clocks.
func TestWallClocks(t *testing.T) {
	for _, tc := range []struct {
		name string
		step uint64
		want string
	}{
		{name: "the same", want: ""},
		{name: "set meanwhile", step: maxClockStep, want: ""},
		{name: "another boot", step: maxClockStep + 1e9, want: "it comes from another boot: the wall clocks are 1h0m1s apart"},
	} {
		h := bundlebuild.NewHost()
		f := perfbuild.New()
		f.FeatureString(perfbuild.FeatureHostname, h.Name)
		f.FeatureString(perfbuild.FeatureOSRelease, h.Release)
		f.ClockData(0, bundlebuild.Begin+h.Realtime+tc.step, bundlebuild.Begin)
		f.KernelMap("_text", h.Text, h.Text, 0x1000)
		f.Sample(perfbuild.Sample{PID: 7, Time: bundlebuild.SampleA})
		sb := scan(t, f, ScanOptions{Bundles: []Bundle{openBundle(t, h)}})
		if got := sb.Contributions()[0].Refused; got != tc.want {
			t.Errorf("%s: refused %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestAddedBundle: all facts of a bundle, without a comparison, as for a stack map.
func TestAddedBundle(t *testing.T) {
	h := bundlebuild.NewHost()
	h.Entries = map[string][]byte{bundle.VDSOName(strings.Repeat("ab", 20)): []byte("x"),
		bundle.ProgramMapsName(bundlebuild.Process, 1): []byte("3000-4000 r-xp 00000000 08:01 5 /srv/second\n")}
	sb := New()
	sb.SeparatePrograms()
	sb.AddSampled(bundlebuild.Process)
	sb.AddBundle(openBundle(t, h))
	sb.Build()
	subprogram := bundlebuild.Symbol(&h.A, 1)
	check(t, sb, []look{{-1, bundlebuild.SampleA, h.Text + 0x150, "[kernel.kallsyms]+0x150"},
		{-1, bundlebuild.SampleA, bundlebuild.SlotSub + 4, subprogram + "+0x4"},
		{-1, bundlebuild.SampleB, bundlebuild.SlotSub + 4, "-"},
		{-1, bundlebuild.SampleA, bundlebuild.Module + 0x10, "-"},
		{-1, bundlebuild.SampleB, bundlebuild.Module + 0x10, "[worker_mod]+0x10"},
		{bundlebuild.Process, 0, bundlebuild.UserText + 0x10, bundlebuild.Program + "+0x1010"},
		{78, 0, 0x1010, "-"}, {sb.SpaceOf(bundlebuild.Process, 1), 0, 0x3010, "/srv/second+0x10"},
		{bundlebuild.Process, 0, 0x3010, "-"}})
	if sb.Host.Arch != "x86_64" || len(sb.Programs.List) != 2 || sb.Programs.List[0].Missing != "" {
		t.Errorf("host %+v, %d programs", sb.Host, len(sb.Programs.List))
	}
}
