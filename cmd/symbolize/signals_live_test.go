package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
	"symbolize/store/db"
)

// signalsLoad runs programs with signal handlers, in C linked in both ways and in Go, beside
// a load of the kernel; $1 has the programs and $2 is the log.
const signalsLoad = `cd "$1"; ./shared shared "$2" 500; ./static static "$2" 500; ./gosignals 1500
dd if=/dev/zero of=/dev/null bs=64k count=100000 2>/dev/null`

// TestLiveSignals: the caller of a signal handler is the function it returns to, by name and from
// its first byte, as in perf script; the handlers' shares equal the programs' log. Names that
// differ from perf's by the byte are counted, with the cause.
func TestLiveSignals(t *testing.T) {
	needLive(t, "perf", "gcc", "go")
	dir := t.TempDir()
	src, err := filepath.Abs("../../fixtures/src/signals.c")
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
		"-Wl,--build-id"}
	command(t, dir, "gcc", append(flags, "-o", "shared", src)...)
	command(t, dir, "gcc", append(flags, "-static", "-o", "static", src)...)
	command(t, "../../fixtures/src/gosignals", "go", "build", "-o", filepath.Join(dir, "gosignals"), ".")
	log, data := filepath.Join(dir, "log"), filepath.Join(dir, "perf.data")
	cmd := exec.Command("perf", "record", "-q", "-N", "-g", "--buildid-mmap", "-e", "cpu-clock", "-F",
		"1999", "-o", data, "sh", "-c", signalsLoad, "sh", dir, log)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := filepath.Join(dir, "store")
	runMain(t, "index", "--quiet", "--kernel", "--store", path, dir, "/usr/lib/x86_64-linux-gnu",
		"/usr/bin/dd")
	folded := runMain(t, "resolve", "--quiet", "--count", "--store", path, "--format", "folded", data)
	logged := readLogged(t, log)
	for _, comm := range []string{"shared", "static"} {
		checkLogged(t, folded, comm, logged)
	}
	ours := runMain(t, "resolve", "--quiet", "--store", path, "--format", "script", "--no-inlines", data)
	theirs := command(t, dir, "perf", "script", "-i", data, "--no-inline", "-F",
		"comm,pid,tid,time,event,ip,sym,symoff,dso")
	compareFrames(t, ours, theirs)
	countExact(t, path, data)
}

// scriptSymbol is a line of a frame in the layout of perf script.
var scriptSymbol = regexp.MustCompile(`^\s+([0-9a-f]+) (\S.*)\+0x([0-9a-f]+) \((.*)\)$`)

// signalReturnName matches the names of functions that handlers return to.
var signalReturnName = regexp.MustCompile(`^(__restore_rt|runtime\.sigreturn.*)$`)

// compareFrames compares the names of frames, sample by sample.
func compareFrames(t *testing.T, ours, theirs string) {
	t.Helper()
	a, b := strings.Split(ours, "\n\n"), strings.Split(theirs, "\n\n")
	if len(a) != len(b) {
		t.Fatalf("%d samples, perf script has %d", len(a), len(b))
	}
	frames, returns, other := 0, make(map[string]int), 0
	starts := make(map[string]int)
	for i := range a {
		x, y := strings.Split(a[i], "\n"), strings.Split(b[i], "\n")
		for k := 1; k < min(len(x), len(y)); k++ {
			mine, perfs := scriptSymbol.FindStringSubmatch(x[k]), scriptSymbol.FindStringSubmatch(y[k])
			if perfs == nil {
				continue // perf has no name either, or of fewer files
			}
			frames++
			if signalReturnName.MatchString(perfs[2]) && perfs[3] == "0" {
				returns[perfs[2]]++
				if mine == nil || mine[2] != perfs[2] || mine[3] != "0" {
					t.Errorf("sample %d: %q, perf says %q", i, x[k], y[k])
				}
			}
			switch {
			case mine != nil && mine[2] == perfs[2]:
			case perfs[3] == "0":
				starts[strings.TrimSpace(x[k])+", perf says "+perfs[2]]++
			default:
				other++
			}
		}
	}
	t.Logf("%d frames with names by perf: %v are what signals return to; where perf names the function "+
		"behind a call: %v; %d differ in another way", frames, returns, starts, other)
	if returns["__restore_rt"] == 0 { // Go's handler mostly leaves its own out of the chain
		t.Errorf("signals return to %v", returns)
	}
	if other*100 > frames {
		t.Errorf("%d of %d names differ from perf's", other, frames)
	}
}

// countExact counts the frames that symbol tables decide about.
func countExact(t *testing.T, path, data string) {
	t.Helper()
	r, err := db.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	exact := make(map[string]map[addr.Offset]bool)
	find := resolve.Exact(r)
	host, _ := os.Hostname()
	c, err := input.Open(t.Context(), data, input.Options{
		Identify: resolve.Identify(r, resolve.IdentifyOptions{Hostname: host}),
		Exact: func(o *ingest.Object, returns []addr.Offset) []addr.Offset {
			found := find(o, returns)
			exact[o.ID.Hex()] = make(map[addr.Offset]bool)
			for _, off := range found {
				exact[o.ID.Hex()][off] = true
			}
			return found
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := resolve.Resolve(t.Context(), p, r, resolve.Options{}); err != nil {
		t.Fatal(err)
	}
	frames, signals, starts := 0, 0, 0
	err = c.Replay(t.Context(), func(s *input.ReplaySample) error {
		for _, f := range s.Frames {
			frames++
			l := p.Locations[f.Location]
			if !exact[p.Objects[l.Object].ID.Hex()][l.Offset] {
				continue
			}
			named := p.Names.At(f.Location)
			if len(named) > 0 && signalReturnName.MatchString(
				p.Names.Functions[named[len(named)-1].Func].SystemName) {
				signals++
			} else {
				starts++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d frames: exact are %d (%.3f %%) of what signals return to, %d (%.3f %%) other first bytes",
		frames, signals, 100*float64(signals)/float64(frames), starts,
		100*float64(starts)/float64(frames))
	if signals == 0 {
		t.Error("nothing is decided")
	}
}
