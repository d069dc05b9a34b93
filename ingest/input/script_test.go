package input

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/ingest"
)

// perfSample is a sample as perf script printed it.
type perfSample struct {
	comm     string
	pid, tid int32
	time     string // seconds with six decimals, "" if the capture has none
	period   string // "" if it was not asked for
	event    string
	pcs      []string
	dsos     []string
}

var scriptHead = regexp.MustCompile(
	`^ *(\S.*?) +(-?\d+)/(-?\d+) +(?:([\d.]+): +)?(?:(\d+) +)?(\S+): (.*)$`)

// gunzip returns the content of a packed file.
func gunzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readScript parses the output of perf script for a recorded capture.
func readScript(t *testing.T, name string) []perfSample {
	t.Helper()
	return parseScript(gunzip(t, filepath.Join(fixtureDir(name), name+".script.gz")))
}

// parseScript parses the output of perf script.
func parseScript(text []byte) (out []perfSample) {
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		line := sc.Text()
		if m := scriptHead.FindStringSubmatch(line); m != nil {
			pid, _ := strconv.Atoi(m[2])
			tid, _ := strconv.Atoi(m[3])
			out = append(out,
				perfSample{comm: strings.TrimSpace(m[1]), pid: int32(pid), tid: int32(tid),
					time: m[4], period: m[5], event: strings.TrimSuffix(m[6], ":")})
			line = m[7] // without a chain the address is here
		}
		object := strings.TrimSuffix(line, ingest.DeletedSuffix+")") // has parentheses, too
		if i := strings.LastIndex(object, " ("); i >= 0 && strings.HasSuffix(line, ")") && len(out) > 0 {
			s := &out[len(out)-1]
			s.pcs = append(s.pcs, strings.Fields(line)[0])
			s.dsos = append(s.dsos, line[i+2:len(line)-1])
		}
	}
	return out
}

// dsoOf is the name that perf prints for an object.
func dsoOf(o *ingest.Object) string {
	if strings.HasPrefix(o.File.Path, "/memfd:") { // anonymous memory: perf prints its name
		return o.File.Path + ingest.DeletedSuffix
	}
	switch o.Kind {
	case ingest.Unmapped, ingest.Guest, ingest.Hypervisor, ingest.NoStack, ingest.Anonymous,
		ingest.PerfMap:
		return "[unknown]"
	}
	if o.File.Deleted {
		return o.File.Path + ingest.DeletedSuffix
	}
	return o.File.Path
}

// fixtureDir returns the directory of a recorded capture.
func fixtureDir(name string) string {
	dir := "../../fixtures/perfcontainers"
	if _, err := os.Stat(filepath.Join(dir, name+".data")); err == nil {
		return dir
	}
	return "../../fixtures/captures"
}

func openFixture(t testing.TB, name string, opts Options) *Capture {
	t.Helper()
	c, err := Open(t.Context(), filepath.Join(fixtureDir(name), name+".data"), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// replayed returns all samples of a capture in the order of its replay.
func replayed(t *testing.T, c *Capture) ([]ReplaySample, *ingest.Profile) {
	t.Helper()
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []ReplaySample
	err = c.Replay(t.Context(), func(s *ReplaySample) error {
		cp := *s
		cp.Frames = slices.Clone(s.Frames)
		all = append(all, cp)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, p
}

// TestLikePerfScript compares the thread and the objects of each sample of the recorded
// captures with those of perf script. Function names are not this package's business.
func TestLikePerfScript(t *testing.T) {
	for _, name := range []string{"mixed", "mixed-buildid", "per-thread", "events", "bpf",
		"bpf-lines", "spawn",
		"deleted", "deleted-buildid", "fixed", "nochain", "tracepoint", "clock", "pipe", "zstd",
		"threads", "threads-zstd", "zstd-pipe", "series1", "series2"} {
		t.Run(name, func(t *testing.T) {
			compareScript(t, openFixture(t, name, Options{}), readScript(t, name), 0)
		})
	}
}

// compareScript compares the samples of a capture one by one with the samples that perf printed.
// Besides a thousandth of the frames, this many may differ.
func compareScript(t *testing.T, c *Capture, want []perfSample, others int) {
	t.Helper()
	got, p := replayed(t, c)
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%d samples, perf prints %d", len(got), len(want))
	}
	frames, differ, longer := 0, 0, 0
	for i := range want {
		// Samples of one time have no order: perf has that of the files of its threads.
		if k := i + 1; k < len(want) && got[i].Time == got[k].Time && got[i].TID != got[k].TID &&
			got[i].TID == want[k].tid && got[k].TID == want[i].tid {
			want[i], want[k] = want[k], want[i]
		}
		g, w := &got[i], &want[i]
		if g.Comm != w.comm || g.PID != w.pid || g.TID != w.tid {
			t.Errorf("sample %d: %s %d/%d, perf says %s %d/%d", i, g.Comm, g.PID, g.TID,
				w.comm, w.pid, w.tid)
		}
		if w.time != "" {
			us := (g.Time + 500) / 1000
			if s := strconv.FormatFloat(float64(us)/1e6, 'f', 6, 64); s != w.time && g.Time/1000 != us-1 {
				t.Errorf("sample %d: time %d, perf says %s", i, g.Time, w.time)
			}
		}
		if s := strconv.FormatUint(g.Period, 10); w.period != "" && s != w.period {
			t.Errorf("sample %d: period %s, perf says %s", i, s, w.period)
		}
		if e := p.Events[g.Event].Name; e != w.event {
			t.Errorf("sample %d: event %s, perf says %s", i, e, w.event)
		}
		if len(g.Frames) > len(w.dsos) {
			longer++
		}
		for k := range min(len(g.Frames), len(w.dsos)) {
			l := p.Locations[g.Frames[k].Location]
			if p.Objects[l.Object].Kind == ingest.NoStack {
				break // nothing unwinds copied stacks here
			}
			frames++
			dso := dsoOf(&p.Objects[l.Object])
			if dso != w.dsos[k] || !sameAddress(&g.Frames[k], l, strings.HasPrefix(dso, "/memfd:"), w.pcs[k]) {
				differ++
				if differ < 5 {
					t.Logf("sample %d frame %d: %#x %s, perf says %s %s", i, k, g.Frames[k].PC, dso,
						w.pcs[k], w.dsos[k])
				}
			}
		}
	}
	t.Logf("%d samples, %d frames, %d with another object, %d chains longer than perf's",
		len(want), frames, differ, longer)
	if frames == 0 || (differ-others)*1000 > frames {
		t.Errorf("%d of %d frames are not those of perf", differ, frames)
	}
}

// sameAddress reports whether perf printed the address of a frame: the recorded address in the
// kernel, the offset in the file in a program, where a Location is the byte before a return
// address.
func sameAddress(f *ReplayFrame, l ingest.Location, anonymous bool, printed string) bool {
	n, err := strconv.ParseUint(printed, 16, 64)
	offset := uint64(l.Offset)
	const page = 1<<12 - 1 // anonymous memory has no offsets here: the place in the page counts
	return err == nil && (n == uint64(f.PC) || n == offset || n == offset+1 ||
		anonymous && n&page == uint64(f.PC)&page)
}

// TestRefusedCaptures opens files that are no capture.
func TestRefusedCaptures(t *testing.T) {
	if _, err := Open(t.Context(), "script_test.go", Options{}); !errors.Is(err, ErrNotCapture) {
		t.Errorf("a text file: %v", err)
	}
}
