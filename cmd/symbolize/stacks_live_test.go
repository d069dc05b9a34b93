package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/advice"
	"symbolize/analyze/calltree"
	"symbolize/analyze/inspect"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input"
)

// liveLoad runs one program after another. Those of $1 are copies of one source, linked in
// every way that matters to build IDs; "gone" is deleted while it runs; goext and goint
// are of Go, and end after 400 ms however little they got of a busy machine; dd works in
// the kernel.
const liveLoad = `cd "$1"
for p in pie nopie stripped id8 id16 noid; do ./$p 0.5; done
cp pie.gone gone
./gone 0.5 & sleep 0.2; rm gone; wait
for i in 1 2 3; do ./goint; ./goext; done
dd if=/dev/zero of=/dev/null bs=64k count=250000 2>/dev/null
`

// liveStacks is a load that was profiled by a stack map and by perf record at once.
type liveStacks struct {
	dir    string
	inputs []string // of resolve: the options that belong to the dump
	ids    map[string]string
}

func (l *liveStacks) in(name string) string { return filepath.Join(l.dir, name) }

// buildLive compiles the programs.
func (l *liveStacks) buildLive(t *testing.T) {
	t.Helper()
	src, err := filepath.Abs("../../fixtures/src/fixed.c")
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string]string{
		"pie": "-fPIE -pie", "nopie": "-fno-pie -no-pie", "stripped": "-fPIE -pie -DSTRIPPED",
		"id8":      "-fPIE -pie -Wl,--build-id=0x1122334455667788",
		"id16":     "-fPIE -pie -Wl,--build-id=0x99aabbccddeeff001122334455667700",
		"noid":     "-fPIE -pie -Wl,--build-id=none",
		"pie.gone": "-fPIE -pie -O2",
	} {
		args := append([]string{"-O1", "-g", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer",
			"-fno-optimize-sibling-calls", "-fno-inline"}, strings.Fields(flags)...)
		command(t, l.dir, "gcc", append(args, "-o", name, src)...)
		if name != "noid" {
			l.ids[name] = framed(objectID(t, l.in(name)))
		}
	}
	if len(l.ids["id8"]) != 16 || len(l.ids["id16"]) != 30 {
		t.Fatalf("build IDs %v", l.ids)
	}
	id := objectID(t, l.in("stripped"))
	debug := l.in("debug/.build-id/" + id[:2])
	if err := os.MkdirAll(debug, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, l.dir, "objcopy", "--only-keep-debug", "stripped", filepath.Join(debug,
		id[2:]+".debug"))
	command(t, l.dir, "objcopy", "--strip-all", "stripped")
	gowork := "../../fixtures/src/gowork"
	command(t, gowork, "go", "build", "-o", l.in("goint"), ".")
	cgo := exec.Command("go", "build", "-ldflags=-linkmode=external -B gobuildid", "-o",
		l.in("goext"), ".")
	cgo.Dir, cgo.Env = gowork, append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cgo.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.ids["goext"] = framed(objectID(t, l.in("goext")))
}

// framed returns the part of a build ID in a frame: its field is padded with zeros if the build ID
// is short, and the build ID itself may end with zeros.
func framed(id string) string {
	for strings.HasSuffix(id, "00") {
		id = id[:len(id)-2]
	}
	return id
}

func objectID(t *testing.T, path string) string {
	t.Helper()
	var info struct {
		BuildID string `json:"build_id"`
	}
	if err := json.Unmarshal([]byte(runMain(t, "info", "--format", "json", path)), &info); err != nil {
		t.Fatal(err)
	}
	return info.BuildID
}

// record profiles the load with both.
func (l *liveStacks) record(t *testing.T) {
	t.Helper()
	command(t, ".", "go", "build", "-o", l.in("stackrun"), "../../fixtures/stackrun")
	must.Write(t, l.in("load.sh"), []byte(liveLoad))
	command(t, l.dir, "perf", "record", "-q", "-N", "--buildid-mmap", "-g", "-e", "cpu-clock", "-F",
		"997",
		"-o", l.in("perf.data"), "./stackrun", "-o", l.dir, "-freq", "997", "-depth", "64", "-buckets",
		"65536", "sh", "load.sh", l.dir)
	// Saved once: other programs come and go on this machine between two readings.
	kallsyms := must.Read(t, "/proc/kallsyms")
	must.Write(t, l.in("kallsyms"), kallsyms)
	maps, err := filepath.Glob(l.in("*.maps"))
	if err != nil || len(maps) == 0 {
		t.Fatal(maps, err)
	}
	l.inputs = []string{"--counts", l.in("counts.raw"), "--btf", l.in("counts.btf"),
		"--kallsyms", l.in("kallsyms")}
	for _, m := range maps {
		pid := strings.TrimSuffix(filepath.Base(m), ".maps")
		l.inputs = append(l.inputs, "--maps", pid+"="+m)
	}
}

// TestLiveStackMap: of a plain stack map that bpf_get_stackid filled, dumped by bpftool and
// raw, every frame with a build ID has a name where its object is indexed, whether PIE or
// not, stripped, of short build IDs, deleted or of Go; addresses have one by the saved
// maps; and the shares of functions agree with those of perf record in the same run.
//
// Shares: in each program the share of samples per function, of two samplings of one run at the
// same rate, differs by less than 4.5 standard errors of the difference of two proportions, and
// half a percent: with 60 comparisons that fails once in 2,000 runs if both are right. A stack
// whose bucket another one took is lost with all its samples, which may be a quarter of a
// program's: samples reported as lost may be missing of any function. Left out is
// finish_task_switch: the clock of perf record is a thread's, is set anew when that goes on, for 10
// µs at least (perf_swevent_start_hrtimer), and so rings there more often than a CPU's own, 15 % to
// 5 % of a Go program's samples on a busy machine. Where others run BPF programs meanwhile, by as
// much as is sampled in these by perf alone.
func TestLiveStackMap(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: live tests run with SYMBOLIZE_LIVE=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: not root")
	}
	for _, tool := range []string{"perf", "gcc", "objcopy", "bpftool", "dd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
	}
	l := &liveStacks{dir: t.TempDir(), ids: make(map[string]string)}
	l.buildLive(t)
	l.record(t)
	store := l.in("store")
	runMain(t, "index", "--quiet", "--store", store, "--kernel", "--debug-root", l.in("debug"), l.dir)

	want := l.run(t, "resolve", "--quiet", "--store", store, "--format", "folded",
		"--trust-paths", l.in("stacks.raw"))
	for _, form := range []string{"json", "pretty", "txt"} {
		got := l.run(t, "resolve", "--quiet", "--store", store, "--format", "folded",
			"--trust-paths", l.in("stacks."+form))
		if got != want {
			t.Errorf("stacks.%s gives other stacks than stacks.raw", form)
		}
	}
	l.checkNamed(t, store)
	l.checkGo(t, store)
	for _, comm := range []string{"pie", "nopie", "stripped", "id8", "id16", "noid", "gone", "goext",
		"goint", "dd"} {
		l.checkShares(t, store, comm)
	}
}

// run runs a command with the options that belong to the dump.
func (l *liveStacks) run(t *testing.T, args ...string) string {
	t.Helper()
	return runMain(t, slices.Concat(args, l.inputs)...)
}

// checkNamed wants no frame of a program of ours without a name, and build IDs of all
// lengths among the frames.
//
// A chain of frame pointers ends in rubbish where code keeps something else in that
// register, as the start code of C programs does. Rubbish can lie in the data of an object, or
// in the padding before a function that it points to; it is distinguished from a return address by
// there being no call before it.
func (l *liveStacks) checkNamed(t *testing.T, store string) {
	t.Helper()
	frames, rubbish := l.frames(t)
	for name, id := range l.ids {
		if frames[id] == 0 {
			t.Errorf("no frame has the build ID of %s, %s", name, id)
		}
	}
	var x advice.Coverage
	out := l.run(t, "missing", "--store", store, "--trust-paths", "--format", "json",
		l.in("stacks.raw"))
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatal(err)
	}
	for _, m := range x.Missing {
		m.BuildID = framed(m.BuildID)
		ours := strings.HasPrefix(m.Object, l.dir)
		for _, id := range l.ids {
			ours = ours || m.BuildID == id
		}
		switch {
		case !ours || m.Reason == ingest.OutsideObject.String() ||
			m.Object == l.in("goint") || m.Object == l.in("noid"): // rubbish of these is not counted
		case m.Places <= rubbish[m.BuildID]:
			t.Logf("rubbish without a name: %+v", m)
		default:
			t.Errorf("without a name: %+v, %d places of the object are rubbish", m, rubbish[m.BuildID])
		}
	}
	if len(x.Domains) == 0 || x.NamedFrames < 50 {
		t.Errorf("%v%% named\n%s", x.NamedFrames, out)
	}
}

// frames returns how many frames of stacks have each build ID, and how many places in each
// of our programs are met as return addresses with no call before them.
func (l *liveStacks) frames(t *testing.T) (frames, rubbish map[string]int) {
	t.Helper()
	c, err := input.Open(t.Context(), l.in("stacks.raw"), input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	code := make(map[string]*liveCode)
	for name, id := range l.ids {
		code[id] = readLiveCode(t, l.in(name))
	}
	mapped := l.mapped(t)
	frames, rubbish = make(map[string]int), make(map[string]int)
	seen := make(map[place]bool)
	set := c.Stacks()
	for n := range set.NumStacks() {
		for i, f := range set.Stack(uint32(n)) {
			var at place
			switch f.Status {
			case stackmap.Valid:
				at = place{set.IDs[f.Ref].Hex(), f.Offset}
				frames[at.id]++
			case stackmap.IP: // of a process with locked mappings
				at = mapped(f.Offset)
			}
			if i > 0 && !seen[at] && code[at.id] != nil && !code[at.id].behindCall(at.offset) {
				rubbish[at.id]++
				seen[at] = true
			}
		}
	}
	return frames, rubbish
}

// place is a place in a file.
type place struct {
	id     string // the build ID
	offset uint64
}

// mapped returns a function that locates addresses in our programs, by the saved mappings
// of all processes.
func (l *liveStacks) mapped(t *testing.T) func(pc uint64) place {
	t.Helper()
	type mapping struct{ start, end, offset uint64 }
	mappings := make(map[mapping]string)
	paths, err := filepath.Glob(l.in("*.maps"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text := must.Read(t, path)
		for row := range strings.Lines(string(text)) {
			var m mapping
			var skip, name string
			if n, _ := fmt.Sscanf(row, "%x-%x %s %x %s %s %s", &m.start, &m.end, &skip, &m.offset, &skip,
				&skip, &name); n == 7 && filepath.Dir(name) == l.dir {
				base := filepath.Base(name)
				if base == "gone" {
					base = "pie.gone"
				}
				mappings[m] = l.ids[base]
			}
		}
	}
	return func(pc uint64) place {
		for m, id := range mappings {
			if m.start <= pc && pc < m.end {
				return place{id, pc - m.start + m.offset}
			}
		}
		return place{}
	}
}

// checkGo checks that `index --explain` is right about the kernel's build IDs: none of the program
// of Go's own linker, which has frames with addresses.
func (l *liveStacks) checkGo(t *testing.T, store string) {
	t.Helper()
	var x inspect.InvisibleIDs
	if err := json.Unmarshal([]byte(runMain(t, "index", "--explain", "--format", "json", l.in("goint"),
		l.in("goext"), l.in("pie"))), &x); err != nil {
		t.Fatal(err)
	}
	if x.Objects != 3 || len(x.Files) != 1 || x.Files[0].Path != l.in("goint") {
		t.Errorf("--explain: %+v", x)
	}
	folded := l.run(t, "resolve", "--quiet", "--store", store, "--format", "folded",
		"--comm", "goint", "--trust-paths", l.in("stacks.raw"))
	if !strings.Contains(folded, "main.sortWords") {
		t.Errorf("addresses of a Go program have no names:\n%s", folded)
	}
}

// checkShares compares the shares of a program's functions in both samplings.
func (l *liveStacks) checkShares(t *testing.T, store, comm string) {
	t.Helper()
	// Below a BPF program that others run at each system call no program is sampled by a clock.
	var below float64
	var said []string
	top := func(args ...string) (map[string]float64, float64) {
		var x calltree.Top
		out := runMain(t, slices.Concat([]string{"top", "--store", store, "--format", "json",
			"--count", "-n",
			"0", "--comm", comm, "--trust-paths"}, args)...)
		if err := json.Unmarshal([]byte(out), &x); err != nil {
			t.Fatal(err)
		}
		flat, total := make(map[string]float64), float64(x.Total)
		for _, r := range x.Rows {
			if strings.HasPrefix(r.Name, "finish_task_switch") {
				total -= float64(r.Flat)
				said = append(said, fmt.Sprintf("left out: %d in %s", r.Flat, r.Name))
				continue
			}
			flat[r.Name] += float64(r.Flat)
			if strings.HasPrefix(r.Name, "bpf_prog_") {
				below = max(below, float64(r.Cum)/float64(x.Total))
			}
		}
		return flat, total
	}
	ours, n := top(append(l.inputs, l.in("stacks.raw"))...)
	perf, m := top(l.in("perf.data"))
	const few = 50 // there are 400 and more, but of Go's on a busy machine
	if n < few || m < few {
		t.Errorf("%s: %v and %v samples", comm, n, m)
		return
	}
	var lost float64
	for name, v := range ours {
		if strings.HasPrefix(name, "[lost") {
			lost += v / n
		}
	}
	names := make(map[string]bool)
	for _, flat := range []map[string]float64{ours, perf} {
		for name, v := range flat {
			names[name] = names[name] || v > 0.02*max(n, m)
		}
	}
	for name, compare := range names {
		p, q := ours[name]/n, perf[name]/m
		// Objects that are not indexed have a build ID here and by a path there. Plain stack maps
		// have no times, so that addresses of BPF programs that others had are ambiguous.
		if !compare || strings.HasPrefix(name, "[") || strings.HasPrefix(name, "bpf_prog_") {
			if compare {
				said = append(said, fmt.Sprintf("not compared: %s %.1f%% and %.1f%%", name, 100*p, 100*q))
			}
			continue
		}
		both := (ours[name] + perf[name]) / (n + m)
		bound := 4.5*math.Sqrt(both*(1-both)*(1/n+1/m)) + 0.005 + below
		said = append(said, fmt.Sprintf("%s %.1f%% and %.1f%%", name, 100*p, 100*q))
		if p-q > bound || q-p > bound+lost {
			t.Errorf("%s: %s has %.2f%% of %v samples, of perf's %v %.2f%%: more than %.2f%% apart", comm,
				name,
				100*p, n, m, 100*q, 100*bound)
		}
	}
	t.Logf("%s: %v and %v samples, %.1f%% below BPF programs: %s", comm, n, m, 100*below,
		strings.Join(said, ", "))
}
