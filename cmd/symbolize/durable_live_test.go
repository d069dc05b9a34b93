//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/input"
)

// sampledIn returns how many samples a bundle has, and how many it reports as lost.
func sampledIn(t *testing.T, path string) (samples, lost uint64) {
	t.Helper()
	c, err := input.Open(t.Context(), path, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Stats.Warnings {
		if w.Partial {
			t.Errorf("%s: %s", path, w.Text)
		}
	}
	return p.Stats.Samples, p.Stats.Lost
}

// awaitBundle waits until a file has grown to this size.
func awaitBundle(t *testing.T, path string, size int64) int64 {
	t.Helper()
	for range 6000 {
		if fi, err := os.Stat(path); err == nil && fi.Size() > size {
			return fi.Size()
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: no %d bytes after a minute", path, size)
	return 0
}

// TestLiveKilled: a recorder that is killed leaves a bundle up to its last flush, which every
// command reads, with a note, and nothing else.
func TestLiveKilled(t *testing.T) {
	needLive(t)
	t.Parallel() // it waits, as do others, for what is written every 10 seconds
	dir := t.TempDir()
	path := filepath.Join(dir, "stacks.data")
	cmd := exec.Command(liveBinary(t), "capture", "-o", path, "--stacks", "-F", "499")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := awaitBundle(t, path, 0)
	awaitBundle(t, path, first) // a second part
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("it left %v, %v", list, err)
	}
	if n, _ := sampledIn(t, path); n == 0 {
		t.Error("there are no samples")
	}
	store := filepath.Join(t.TempDir(), "store")
	for _, args := range [][]string{{"info", path}, {"top", "-v", "--store", store, path},
		{"resolve", "--store", store, "--format", "folded", path},
		{"missing", "--store", store, path}, {"index", "--store", store, path}} {
		env, stdout, stderr := inProcess(args...)
		if status := Main(t.Context(), env); status != cli.OK {
			t.Errorf("%v: exit status %d\n%s", args, status, stderr)
		}
		said := stdout.String() + stderr.String()
		if args[0] != "index" && !strings.Contains(said,
			"the recording was cut off: the bundle is "+
				"complete to ") {
			t.Errorf("%v does not say that it is cut off:\n%s", args, said)
		}
	}
}

// soakTime is how long TestLiveSoak runs; see make soak.
const (
	soakTime  = "SYMBOLIZE_SOAK"
	soakShort = 40 * time.Second
	soakLong  = 10 * time.Minute // from which on memory is compared
	soakRate  = 150              // new processes a second
)

// soak is a recorder beside a load, for a long time.
type soak struct {
	dir, bin string
	length   time.Duration
	anon     []int // RssAnon in KB, at equal intervals
}

// load starts processes, and loads BPF programs, until the end. It returns how many processes
// it started.
func (s *soak) load(t *testing.T, end time.Time) (started int) {
	bpf := exec.Command(filepath.Join(s.dir, "bpfrun"), "-rounds", "1000000", "-run", "30ms",
		"-pause",
		"70ms", filepath.Join(s.dir, "bpf/count.bpf.o"), filepath.Join(s.dir, "bpf/tally.bpf.o"))
	bpf.Stdout, bpf.Stderr = nil, nil
	if err := bpf.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		bpf.Process.Kill()
		bpf.Wait()
	}()
	names := []string{"pie", "noid", "gotiny"}
	running := make(chan struct{}, 16)
	for begin := time.Now(); time.Now().Before(end); {
		// On a slow machine there are fewer.
		for float64(started) < time.Since(begin).Seconds()*soakRate && time.Now().Before(end) {
			running <- struct{}{}
			c := exec.Command(filepath.Join(s.dir, names[started%len(names)]), "0.001")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			started++
			go func() {
				c.Wait()
				<-running
			}()
		}
		time.Sleep(5 * time.Millisecond)
	}
	return started
}

// watch notes the memory of a process until it ends.
func (s *soak) watch(pid int, every time.Duration) {
	field := regexp.MustCompile(`(?m)^RssAnon:\s+([0-9]+) kB`)
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		m := field.FindSubmatch(b)
		if err != nil || m == nil {
			return
		}
		n, _ := strconv.Atoi(string(m[1]))
		s.anon = append(s.anon, n)
		time.Sleep(every)
	}
}

func mean(list []int) float64 {
	sum := 0
	for _, n := range list {
		sum += n
	}
	return float64(sum) / float64(max(len(list), 1))
}

// build makes the programs of the load.
func (s *soak) build(t *testing.T) {
	t.Helper()
	src, err := filepath.Abs("../../fixtures/src/fixed.c")
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string]string{"pie": "-O2", "noid": "-Wl,--build-id=none"} {
		command(t, s.dir, "gcc", "-g", flags, "-o", name, src)
	}
	tiny := "package main\n\nfunc main() {\n\tx := 0\n" +
		"\tfor i := range 1000000 {\n\t\tx ^= i * x\n\t}\n\tif x == 1 {\n\t\tprintln(x)\n\t}\n}\n"
	must.Write(t, filepath.Join(s.dir, "tiny.go"), []byte(tiny))
	command(t, s.dir, "go", "build", "-o", "gotiny", "tiny.go")
	command(t, ".", "go", "build", "-o", filepath.Join(s.dir, "bpfrun"), "../../fixtures/bpfrun")
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	command(t, s.dir, "sh", filepath.Join(fixtures, "src", "bpf", "build.sh"), s.dir)
}

// TestLiveSoak records for a long time, in one file after another, while processes and BPF
// programs come and go all the time: every file resolves, their counts together are those
// sampled, and the memory of the recorder does not grow.
func TestLiveSoak(t *testing.T) {
	needLive(t, "gcc", "clang", "llvm-strip")
	s := &soak{dir: t.TempDir(), bin: liveBinary(t), length: soakShort}
	if text := os.Getenv(soakTime); text != "" {
		var err error
		if s.length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s.build(t)
	out := filepath.Join(s.dir, "stacks.data")
	files := time.Duration(6)
	if s.length >= soakLong { // so many that each third of the time has as many
		files = 18
	}
	cmd := exec.Command(s.bin, "capture", "-o", out, "--stacks", "-F", "199", "--rotate",
		(s.length / files).String())
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(cmd.Process.Pid, s.length/1000)
	}()
	started := s.load(t, time.Now().Add(s.length))
	cmd.Process.Signal(syscall.SIGINT)
	err := cmd.Wait()
	<-watched
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	s.check(t, said.String())
	first, last := mean(s.anon[:len(s.anon)/3]), mean(s.anon[len(s.anon)*2/3:])
	t.Logf("%v, %d processes started; RssAnon: %.1f MB in the first third, %.1f MB in the last, at "+
		"most %.1f MB\n%s", s.length, started, first/1e3, last/1e3,
		float64(slices.Max(s.anon))/1e3, said.String())
	for i := range 10 {
		n := len(s.anon)
		t.Logf("tenth %d: RssAnon %.1f MB", i+1, mean(s.anon[n*i/10:n*(i+1)/10])/1e3)
	}
	if s.length >= soakLong && last > 1.1*first {
		t.Errorf("memory grows: %.1f MB, then %.1f MB", first/1e3, last/1e3)
	}
}

// check looks at the files that the recorder has written.
func (s *soak) check(t *testing.T, said string) {
	t.Helper()
	m := regexp.MustCompile(`note: ([0-9]+) samples,`).FindStringSubmatch(said)
	files, err := filepath.Glob(filepath.Join(s.dir, "stacks.data.*"))
	const leastSamples = 1000
	const leastFiles = 3 // of 6: the duration of a rotation depends on the machine
	if err != nil || m == nil || len(files) < leastFiles {
		t.Fatalf("files %q, %v\n%s", files, err, said)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "stacks.data")); err == nil {
		t.Error("the last file has not got its name")
	}
	total, _ := strconv.ParseUint(m[1], 10, 64)
	var counted, lost uint64
	store := filepath.Join(s.dir, "store")
	for _, path := range files {
		n, l := sampledIn(t, path)
		counted, lost = counted+n, lost+l
		// The clock gives each CPU so many samples at most; parts are turned within milliseconds.
		lasted := lastedOf(t, path) + 200*time.Millisecond
		if most := lasted.Seconds() * 199 * float64(runtime.NumCPU()); float64(n) > most {
			t.Errorf("%s: %d samples in %v", path, n, lasted)
		}
		folded := runMain(t, "resolve", "--quiet", "--store", store, "--with", s.dir,
			"--trust-paths",
			"--format", "folded", path)
		const enough = 200 // each is in a tenth of the samples; the last file may be short
		for _, name := range []string{"main.main", "longest_below", "entry_SYSCALL"} {
			if n >= enough && !strings.Contains(folded, name) {
				t.Errorf("%s: no %s in it", path, name)
			}
		}
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes, %d samples, %d lost", filepath.Base(path), fi.Size(), n, l)
	}
	if counted+lost != total || counted < leastSamples {
		t.Errorf("%d samples were taken; the files have %d, and say that %d are lost\n%s", total,
			counted, lost, said)
	}
}

// lastedOf returns from when to when a bundle is.
func lastedOf(t *testing.T, path string) time.Duration {
	t.Helper()
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return time.Duration(b.Manifest.End.Monotonic - b.Manifest.Begin.Monotonic)
}

// TestLiveCaptureFull: a disk that gets full while it records ends the recording, in one line that
// names the file with all before, which is a bundle.
func TestLiveCaptureFull(t *testing.T) {
	needLive(t, "mount", "dd")
	t.Parallel()
	dir := t.TempDir()
	command(t, ".", "mount", "-t", "tmpfs", "-o", "size=64m", "none", dir)
	defer exec.Command("umount", dir).Run()
	path := filepath.Join(dir, "stacks.data")
	cmd := exec.Command(liveBinary(t), "capture", "-o", path, "--stacks", "-F", "499")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitBundle(t, path, 0)
	exec.Command("dd", "if=/dev/zero", "of="+filepath.Join(dir, "filler"), "bs=4k").Run()
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.Failed ||
		!strings.Contains(said.String(), "no space left on device; "+path+
			" contains the data recorded before") || strings.Count(said.String(), "\n") != 2 { // a hint
		t.Errorf("%v\n%s", err, said.String())
	}
	if n, _ := sampledIn(t, path); n == 0 {
		t.Error("there are no samples")
	}
}
