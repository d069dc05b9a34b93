package input

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/perfrepair"
	"symbolize/ingest"
	"symbolize/ingest/object/bpf"
)

// liveFunc is a function as the kernel showed it while it lived (bpfrun -dump).
type liveFunc struct {
	id, start, length uint64
	name, sum         string
	lines             []liveLine
}

type liveLine struct {
	offset, line, column uint64
	file, source         string
}

// TestLivePrograms records programs that are loaded, run and unloaded meanwhile. Of the recording
// alone, code and lines of all functions are those that the kernel showed while they lived, by
// another decoder, and leaf counts per function those of perf report, which reads a repaired copy
// if another recorder listened.
func TestLivePrograms(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SYMBOLIZE_LIVE is not set: needs root, perf, clang and BPF")
	}
	dir := t.TempDir()
	liveRun(t, dir, "../../fixtures/src/bpf/build.sh", dir)
	loader := filepath.Join(dir, "bpfrun")
	liveRun(t, dir, "go", "build", "-o", loader, "../../fixtures/bpfrun")
	data := filepath.Join(dir, "perf.data")
	shown := liveRun(t, dir, "perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", "999",
		"-o", data, "--", loader, "-dump", "-rounds", "2", "-run", "200ms", "-pause", "300ms",
		filepath.Join(dir, "bpf/count.bpf.o"), filepath.Join(dir, "bpf/tally.bpf.o"))
	want := parseLive(t, shown)
	if len(want) != 10 {
		t.Fatalf("%d functions were loaded:\n%s", len(want), shown)
	}
	c, err := Open(t.Context(), data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	programs, err := c.Programs()
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		compareLive(t, programs, &want[i])
	}
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := leafCounts(p)
	repaired := filepath.Join(dir, "repaired.data")
	n, err := perfrepair.File(data, repaired)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(perfrepair.Report(n))
	printed := perfLeafCounts(t, liveRun(t, dir, "perf", "report", "-i", repaired, "-n",
		"--no-children",
		"-g", "none", "--sort", "sym"))
	if len(printed) < 4 || !maps.Equal(got, printed) {
		t.Errorf("samples by function: %v, perf report has %v", got, printed)
	}
	t.Logf("%d functions with their lines, samples %v", len(want), got)
}

// liveRun runs a command that has to work, and returns its standard output.
func liveRun(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PERF_BUILDID_DIR="+dir)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.Bytes())
	}
	return out.String()
}

func parseLive(t *testing.T, text string) (out []liveFunc) {
	t.Helper()
	number := func(s string, base int) uint64 {
		n, err := strconv.ParseUint(s, base, 64)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		return n
	}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 6)
		switch {
		case f[0] == "func":
			out = append(out, liveFunc{id: number(f[1], 10), name: f[2], start: number(f[3], 16),
				length: number(f[4], 10), sum: f[5]})
		case f[0] == "line" && len(out) > 0:
			fn := &out[len(out)-1]
			fn.lines = append(fn.lines, liveLine{number(f[1], 16) - fn.start, number(f[3], 10),
				number(f[4], 10), f[2], f[5]})
		}
	}
	return out
}

// compareLive wants a function as it was shown, and for each byte of its code the line that the
// last record up to there gives, records of line 0 left out.
func compareLive(t *testing.T, programs []bpf.Program, w *liveFunc) {
	t.Helper()
	for i := range programs {
		for k := range programs[i].Funcs {
			f := &programs[i].Funcs[k]
			if uint64(programs[i].ID) != w.id || uint64(f.Start) != w.start {
				continue
			}
			if f.Name != w.name || uint64(f.Length) != w.length ||
				fmt.Sprintf("%x", sha1.Sum(f.Image)) != w.sum {
				t.Errorf("program %d, %s: %d bytes; the kernel showed %s, %d bytes", w.id, f.Name,
					f.Length,
					w.name, w.length)
			}
			var last *liveLine
			next := 0
			for at := range w.length {
				for ; next < len(w.lines) && w.lines[next].offset <= at; next++ {
					if w.lines[next].line != 0 {
						last = &w.lines[next]
					}
				}
				l := f.LineAt(uint32(at))
				if l == nil || last == nil || uint64(l.Line) != last.line ||
					uint64(l.Column) != last.column || l.File != last.file ||
					l.Source != last.source {
					t.Fatalf("program %d, %s+%#x: line %+v, the kernel showed %+v", w.id, w.name,
						at, l, last)
				}
			}
			return
		}
	}
	t.Errorf("program %d at %#x is not in the capture", w.id, w.start)
}

// leafCounts counts samples by the BPF function of their leaf. Names are without
// the tags: perf makes up another one for programs loaded before the recording.
func leafCounts(p *ingest.Profile) map[string]uint64 {
	counts := make(map[string]uint64)
	for i := range p.Samples {
		s := &p.Samples[i]
		stack := p.Stack(nil, s.Stack)
		if o := &p.Objects[p.Locations[stack[0]].Object]; o.Kind == ingest.JIT {
			if _, name, ok := bpf.SplitSymbol(o.Symbol); ok {
				counts[name] += s.Count
			}
		}
	}
	return counts
}

var reportLine = regexp.MustCompile(`(?m)^\s*[\d.]+%\s+(\d+)\s+\[k\] (bpf_prog_[0-9a-f]{16}\S*)`)

func perfLeafCounts(t *testing.T, report string) map[string]uint64 {
	t.Helper()
	counts := make(map[string]uint64)
	for _, m := range reportLine.FindAllStringSubmatch(report, -1) {
		n, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := bpf.SplitSymbol(m[2])
		counts[name] += n
	}
	return counts
}
