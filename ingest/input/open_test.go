package input

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/sideband"
)

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
	if st.Lost != 12 || st.Throttled != 1 || st.UnknownRecords != 2 || st.BadRecords != 1 ||
		st.Records != 9 {
		t.Errorf("lost %d, throttled %d, unknown %d, bad %d, records %d", st.Lost, st.Throttled,
			st.UnknownRecords, st.BadRecords, st.Records)
	}
	want := map[string]uint64{"LOST": 1, "LOST_SAMPLES": 2, "THROTTLE": 1, "UNTHROTTLE": 1,
		"UNKNOWN_200":   1,
		"UNKNOWN_70000": 1, "COMM": 1, "SAMPLE": 1}
	if !reflect.DeepEqual(st.RecordTypes, want) {
		t.Errorf("record types %v, want %v", st.RecordTypes, want)
	}
	if len(st.Warnings) != 2 || !st.Warnings[0].Partial || !strings.Contains(st.Warnings[0].Text,
		"COMM") &&
		!strings.Contains(st.Warnings[0].Text, "offset") {
		t.Errorf("warnings %+v", st.Warnings)
	}
	if w := st.Warnings[1]; !w.Partial || !strings.Contains(w.Text,
		"92.31% of the records were lost (12; 1 samples were recorded)") {
		t.Errorf("warning %+v", w)
	}
}

// TestLostWarning: losses are reported from one in a hundred records on, and make results partial
// from one in twenty on.
func TestLostWarning(t *testing.T) {
	for _, tc := range []struct {
		name          string
		lost, samples uint64
		want, partial bool
	}{
		{name: "nothing"},
		{name: "none lost", samples: 100},
		{name: "few", lost: 9, samples: 991},
		{name: "one in a hundred", lost: 10, samples: 990, want: true},
		{name: "fewer than one in twenty", lost: 49, samples: 951, want: true},
		{name: "one in twenty", lost: 50, samples: 950, want: true, partial: true},
		{name: "all", lost: 1, want: true, partial: true},
	} {
		st := ingest.Stats{Lost: tc.lost}
		if w, got := st.LostWarning(tc.samples); got != tc.want || w.Partial != tc.partial {
			t.Errorf("%s: %t, partial %t", tc.name, got, w.Partial)
		}
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
	want := ingest.Meta{Host: "box", OSRelease: "6.1.0", Arch: "x86_64", Recorder: "perf 6.1.192",
		Command:  "perf record -g",
		Duration: 2000, MainProgram: "/bin/a"} // when is not in the file
	if !reflect.DeepEqual(m, want) {
		t.Errorf("meta %+v\nwant %+v", m, want)
	}
	c.ClockData(1, 5_000_000, 900)
	if m := fold(t, c.Bytes(), Options{}).Meta; m.StartNanos != 5_000_100 {
		t.Errorf("start %d by CLOCK_DATA, want 5000100", m.StartNanos)
	}
	c.Events[0].Flags |= perfbuild.BuildID
	if m := fold(t, c.Bytes(), Options{}).Meta; !m.MapsIDs {
		t.Error("no sign that build IDs of mappings were asked for")
	}
}

// TestTruncated cuts a capture at every length: an error, or a profile of the records that are
// whole. Never a panic, and the more bytes the more samples.
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
		partial := slices.ContainsFunc(p.Stats.Warnings,
			func(w ingest.Warning) bool { return w.Partial })
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
	if len(p.Stats.Warnings) != 1 || !p.Stats.Warnings[0].Partial ||
		!strings.Contains(p.Stats.Warnings[0].Text, want) {
		t.Errorf("warnings %+v, want one with %q", p.Stats.Warnings, want)
	}
}

// TestManyWarnings: the number of warnings does not depend on how many workers found them.
func TestManyWarnings(t *testing.T) {
	for _, bad := range []int{sideband.MaxWarnings, sideband.MaxWarnings + 1, 100} {
		c := newCapture()
		for range bad {
			c.Record(9, perfbuild.User, make([]byte, 8)) // samples too short for their fields
		}
		c.hit(7, 6, cU, 0x400020)
		for _, workers := range []int{1, 3} {
			cp, err := openReader(c.Bytes(), workers)
			if err != nil {
				t.Fatal(err)
			}
			p, err := cp.Profile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := min(bad, sideband.MaxWarnings+1)
			if st := &p.Stats; st.BadRecords != uint64(bad) || len(st.Warnings) != want || st.Samples != 1 {
				t.Errorf("%d workers: %d bad records, %d warnings, %d samples; want %d, %d, 1", workers,
					st.BadRecords, len(st.Warnings), st.Samples, bad, want)
			}
		}
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
		t.Errorf("%d unknown, %d samples, warnings %+v", p.Stats.UnknownIDs, p.Stats.Samples,
			p.Stats.Warnings)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		must.Write(t, path, []byte(content))
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
		{path: filepath.Join(dir, "absent"), want: "no such file", is: os.ErrNotExist},
		{path: write("empty", ""), want: "it is empty", is: ErrNotCapture},
		{path: write("text", "hello, world\n"), want: "not a capture", is: ErrNotCapture},
		{path: write("elf", "\x7fELF\x02\x01\x01"), want: "index reads those", is: ErrNotCapture},
		{path: write("zst", "\x28\xb5\x2f\xfd...."), want: "compressed", is: ErrNotCapture},
		{path: dir, want: "it is a directory, but not a perf.data directory", is: ErrNotCapture},
		{path: filepath.Join(dir, "rec"),
			want: "data: offset 0x8: 8 bytes wanted, 0 left: a recording " +
				"cut off at its header",
			is: perfdata.ErrCutHeader},
		{path: write("lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 5\n"),
			want: "it is a pointer of Git LFS", is: ErrNotCapture},
		{path: write("short", "PERFILE2"), want: "cut off at its header",
			is: perfdata.ErrCutHeader},
		{path: write("gz", "\x1f\x8b\x08garbage")},
	} {
		_, err := Open(t.Context(), tc.path, Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil &&
			!errors.Is(err, tc.is) {
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
	if err := pprof.Write(&b, p, pprof.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{b.Bytes(), raw} {
		c, err := openBytes(t, data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Profile(t.Context())
		if err != nil || got.Stats.Samples != p.Stats.Samples || c.Kind() != "pprof" ||
			c.PerfData() != nil {
			t.Errorf("%s: %v, %d samples, want %d", c.Kind(), err, got.Stats.Samples,
				p.Stats.Samples)
		}
		if err := c.Replay(t.Context(), nil); !errors.Is(err, ErrNoReplay) {
			t.Errorf("replay of a pprof file: %v", err)
		}
	}
}

// TestHiddenKernelID keeps the kernel's build ID of a mapping with hidden addresses, for the
// reason.
func TestHiddenKernelID(t *testing.T) {
	c := newCapture()
	id := bytes.Repeat([]byte{7}, 20)
	c.KernelMap2("_text", 0, 0, 0x1000, id)
	c.hit(7, 2, cK, 0xffffffff81000100)
	p := fold(t, c.Bytes(), Options{})
	if o := p.Objects[0]; len(p.Objects) != 1 || o.Kind != ingest.Kernel ||
		o.Reason != ingest.KernelHidden ||
		!o.ID.Matches(buildid.New(id)) {
		t.Errorf("objects %+v", p.Objects)
	}
}
