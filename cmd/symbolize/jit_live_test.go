//go:build linux

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/symlist"
)

// hotScript keeps some compiled functions busy for a second.
const hotScript = `function fib(n){return n<2?n:fib(n-1)+fib(n-2)}
function mul(a,b){let s=0;for(let i=0;i<a;i++)s=(s+(i^b))|0;return s}
let t=Date.now(),x=0;while(Date.now()-t<1000){x+=fib(18);x^=mul(20000,x)}
`

// jitRun is a directory in which node is recorded.
type jitRun struct {
	t         *testing.T
	dir, self string
}

func (r *jitRun) run(name string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "SYMBOLIZE_STORE="+filepath.Join(r.dir, "store"),
		"SYMBOLIZE_LOCAL=", "DEBUGINFOD_URLS=")
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("%s %q: %v\n%s", name, args, err, messages.String())
	}
	return string(out)
}

// script is the output of perf script, and ours is laid out alike.
func (r *jitRun) script(data string) string {
	return r.run("perf", "script", "-i", data, "--no-inline", "-F", "pid,tid,time,event,ip,sym,symoff,dso")
}

func (r *jitRun) resolve(args ...string) string {
	return r.run(r.self, append([]string{"resolve", "-q", "--no-inlines", "--format", "script"}, args...)...)
}

// jitFrame is a line of a stack: "    7fcb2b7c6357 JS:*fib a.js:1:13+0x97 (/tmp/perf-3464.map)".
var jitFrame = regexp.MustCompile(`^\s+([0-9a-f]+) (.*)\+0x([0-9a-f]+) \(([^()]*)\)$`)

// jitSample is the frames of a sample that are in files of a pattern, leaf first.
type jitSample struct {
	head   string // thread and time
	frames []jitLine
}

type jitLine struct {
	ip, off uint64
	name    string
}

// jitSamples parses the samples with at least one frame in such a file.
func jitSamples(t *testing.T, text string, file *regexp.Regexp) (list []jitSample) {
	t.Helper()
	var s jitSample
	for lines := bufio.NewScanner(strings.NewReader(text + "\n\n")); lines.Scan(); {
		line := lines.Text()
		switch m := jitFrame.FindStringSubmatch(line); {
		case line == "":
			if len(s.frames) > 0 {
				list = append(list, s)
			}
			s = jitSample{}
		case line[0] != '\t' && line[0] != ' ' || !strings.HasPrefix(line, "\t") && s.head == "":
			fields := strings.Fields(line)
			at := slices.IndexFunc(fields, func(f string) bool { return strings.HasSuffix(f, ":") })
			if at < 1 {
				t.Fatalf("no time in %q", line)
			}
			tid := fields[at-1]
			s.head = tid[strings.LastIndexByte(tid, '/')+1:] + " " + fields[at]
		case m != nil && file.MatchString(m[4]):
			ip, _ := strconv.ParseUint(m[1], 16, 64)
			off, _ := strconv.ParseUint(m[3], 16, 64)
			s.frames = append(s.frames, jitLine{ip, off, m[2]})
		}
	}
	return list
}

// compareJIT compares the frames of each sample; same decides about two that are in both.
func compareJIT(t *testing.T, what string, ours, perf []jitSample, same func(a, b jitLine) bool) {
	t.Helper()
	frames := make(map[string][]jitLine)
	for _, s := range ours {
		frames[s.head] = s.frames
	}
	n, differ := 0, 0
	for _, s := range perf {
		n += len(s.frames)
		if !slices.EqualFunc(frames[s.head], s.frames, same) {
			if differ++; differ < 4 {
				t.Errorf("%s: sample %s: %v, with perf %v", what, s.head, frames[s.head], s.frames)
			}
		}
	}
	t.Logf("%s: %d frames in %d samples compared with perf, %d samples differ", what, n, len(perf), differ)
	if n == 0 {
		t.Errorf("%s: perf names no frame", what)
	}
}

// TestLivePerfMap: node's perf map names each frame as perf does.
func TestLivePerfMap(t *testing.T) {
	newJITRun(t).perfMap("node", "--perf-basic-prof", "hot.js")
}

// TestLivePerfMapJava: the same for a JVM, which writes its map when it ends.
func TestLivePerfMapJava(t *testing.T) {
	needLive(t, "keytool")
	newJITRun(t).perfMap("keytool", "-J-XX:+UnlockDiagnosticVMOptions", "-J-XX:+DumpPerfMapAtExit",
		"-J-XX:+PreserveFramePointer", "-genkeypair", "-alias", "a", "-keyalg", "RSA", "-keysize", "4096",
		"-dname", "CN=a", "-keystore", "a.p12", "-storepass", "secret")
}

// perfMap compares the names of a command's perf map with perf's.
func (r *jitRun) perfMap(command ...string) {
	t := r.t
	t.Helper()
	r.run("perf", append([]string{"record", "-q", "-e", "cpu-clock", "-F", "499", "-g", "-o", "perf.data"},
		command...)...)
	pid := regexp.MustCompile(command[0] + `\s+(\d+)`).FindStringSubmatch(r.run("perf", "script", "-i", "perf.data",
		"-F", "comm,pid"))[1]
	path := filepath.Join(os.TempDir(), "perf-"+pid+".map")
	if os.TempDir() != "/tmp" {
		path = "/tmp/perf-" + pid + ".map"
	}
	t.Cleanup(func() { os.Remove(path) })
	b := must.Read(t, path)
	list, err := symlist.ReadPerfMap(path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile(`^/tmp/perf-\d+\.map$`)
	want := jitSamples(t, r.script("perf.data"), file)
	got := jitSamples(t, r.resolve("perf.data"), file)
	compareJIT(t, "perf map", got, want, func(a, b jitLine) bool {
		// For code that shared one address perf chooses any, and for a return address after a
		// function's last call the next function.
		s := list.Find(addr.Addr(b.ip))
		return a == b || s == nil || s.Reused || b.off == 0 || a.ip == b.ip && addr.Addr(b.ip) == s.End
	})
	r.run(r.self, "index", "--for", "perf.data")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if again := jitSamples(t, r.resolve("--no-local", "perf.data"), file); len(again) != len(got) {
		t.Errorf("%d samples have names after index --for, %d before", len(again), len(got))
	}
}

// TestLiveJITDump: node's jitdump file names each frame as perf does after perf inject --jit, and
// resolve reads the injected files alike; and its code is shown.
func TestLiveJITDump(t *testing.T) {
	r := newJITRun(t)
	r.run("perf", "record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", "499", "-g", "-o", "perf.data",
		"node", "--perf-prof", "hot.js")
	r.run("perf", "inject", "--jit", "-i", "perf.data", "-o", "injected.data")
	jitted := regexp.MustCompile(`/jitted-\d+-\d+\.so$`)
	want := jitSamples(t, r.script("injected.data"), jitted)
	got := jitSamples(t, r.resolve("perf.data"), regexp.MustCompile(`/jit-\d+\.dump$`))
	compareJIT(t, "jitdump", got, want, func(a, b jitLine) bool {
		return a.name == b.name && a.off == b.off || b.off == 0
	})
	compareJIT(t, "perf inject --jit", jitSamples(t, r.resolve("injected.data"), jitted), want,
		func(a, b jitLine) bool { return a.name == b.name && a.off == b.off || b.off == 0 })
	folded := r.run(r.self, "resolve", "-q", "--format", "folded", "perf.data")
	r.run(r.self, "index", "--for", "perf.data")
	dumps, _ := filepath.Glob(filepath.Join(r.dir, "jit-*.dump"))
	if len(dumps) != 1 || os.Remove(dumps[0]) != nil {
		t.Fatalf("jitdump files %v", dumps)
	}
	if again := r.run(r.self, "resolve", "-q", "--format", "folded", "perf.data"); again != folded {
		t.Error("after index --for, without the file, the stacks have other names")
	}
	if code := r.run(r.self, "annotate", "-q", "perf.data", "JS:[*]fib .*"); !strings.Contains(code,
		"code: jitdump file") || !strings.Contains(code, "call") {
		t.Errorf("annotate:\n%s", code)
	}
}

func newJITRun(t *testing.T) *jitRun {
	t.Helper()
	needLive(t, "perf", "node")
	r := &jitRun{t: t, dir: t.TempDir(), self: liveBinary(t)}
	must.Write(t, filepath.Join(r.dir, "hot.js"), []byte(hotScript))
	return r
}
