package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

// testRoot is a machine of its own: a directory that replaces / before /proc and /sys, and clocks,
// which only the test moves. It was booted a minute ago.
type testRoot struct {
	t   *testing.T
	dir string
	now *bundle.Clocks
}

func newTestRoot(t *testing.T) testRoot {
	return testRoot{t, t.TempDir(), &bundle.Clocks{Monotonic: uint64(50 * time.Second),
		Boottime: uint64(time.Minute), Realtime: 1_700_000_000_000_000_000}}
}

// ownPID is the number of the recorder on that machine.
const ownPID = 99

// recording is one on that machine.
func (r testRoot) recording(opts *Options) *recording {
	s := newRecording(opts)
	s.host = sys.Host{Root: r.dir, OwnPID: ownPID, Clocks: func() bundle.Clocks { return *r.now }}
	return s
}

// processes returns the processes of a recording.
func (r testRoot) processes(s *recording) *processes {
	r.t.Helper()
	p, err := newProcesses(s)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(p.close)
	return p
}

// at is the time so long ago.
func (r testRoot) at(ago time.Duration) time.Time {
	return time.Unix(0, int64(r.now.Realtime)).Add(-ago)
}

func (r testRoot) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.written(name, 0)
}

// written sets for how long a file was not written.
func (r testRoot) written(name string, ago time.Duration) {
	r.t.Helper()
	if err := os.Chtimes(filepath.Join(r.dir, name), r.at(ago), r.at(ago)); err != nil {
		r.t.Fatal(err)
	}
}

// run has a process run a program, identified by the start of its stack.
func (r testRoot) run(pid int, stack uint64) {
	r.t.Helper()
	r.write(fmt.Sprintf("proc/%d/stat", pid), fmt.Sprintf("%d (a) b) S%s 777%s 4096 8192 %d%s 12288 0\n",
		pid, strings.Repeat(" 1", 18), strings.Repeat(" 2", 3), stack, strings.Repeat(" 3", 18)))
}

// bundleOf commits the entries of add, and opens the bundle.
func bundleOf(t *testing.T, add func(w *bundle.Writer) error) *bundle.Bundle {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := add(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(&bundle.Manifest{}); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// entriesOf returns the entries of a bundle.
func entriesOf(t *testing.T, b *bundle.Bundle) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, name := range b.Names() {
		data, err := b.ReadEntry(name, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}

// readAll drains the recorder, and waits for its pending reads.
func readAll(t *testing.T, p *processes) {
	t.Helper()
	p.drain()
	if left, files := p.reads.wait(time.Hour), p.opens.wait(time.Hour); left != nil || files != nil {
		t.Fatalf("processes %d and devices %v are still being read", left, files)
	}
}

func mapping(pid uint32) []byte { return binary.NativeEndian.AppendUint32(nil, pid) }

// TestProcesses: the newest mappings of each process in the records are kept, also of ended
// processes, and perf maps, by process ID.
func TestProcesses(t *testing.T) {
	r := newTestRoot(t)
	s := r.recording(&Options{PIDs: []int{70, 71}})
	p := r.processes(s)
	const first, second = "1000-2000 r-xp 0 08:01 9 /bin/a\n", "1000-2000 r-xp 0 08:01 9 /bin/b\n"
	r.write("proc/50/maps", first)
	r.write("proc/51/maps", first)
	r.write("proc/52/maps", "") // a kernel thread
	r.write("proc/70/maps", second)
	for _, pid := range []uint32{50, 51, 52, 53, 0, 1 << 31, ownPID} {
		p.record(mapping(pid))
	}
	p.record([]byte{1, 2})
	readAll(t, p)
	r.write("proc/50/maps", second)
	p.record(mapping(50))
	os.RemoveAll(filepath.Join(r.dir, "proc/51"))
	p.record(mapping(51))
	p.record(mapping(50)) // twice the same
	readAll(t, p)
	size := p.maps.size
	p.record(mapping(50))
	readAll(t, p)
	if p.maps.size != size {
		t.Error("mappings that did not change were kept again")
	}
	r.write("proc/50/status", "Name:\tx\nNSpid:\t50\t4\n")
	r.write("proc/50/root/tmp/perf-4.map", "10 20 f\n")
	r.write("tmp/perf-51.map", "30 40 g\n")
	if err := unix.Mkfifo(filepath.Join(r.dir, "tmp/perf-53.map"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "tmp/perf-70.map")); err != nil {
		t.Fatal(err)
	}
	p.stop()
	got := entriesOf(t, bundleOf(t, p.add))
	delete(got, bundle.CompiledName(50)) // see TestPerfMapsOfOthers
	delete(got, bundle.CompiledName(51))
	want := map[string]string{"proc/50/maps": second, "proc/51/maps": first, "proc/70/maps": second,
		"proc/50/perf.map": "10 20 f\n", "proc/51/perf.map": "30 40 g\n"}
	if fmt.Sprint(got) != fmt.Sprint(want) || s.summary.Processes != 3 {
		t.Errorf("%q, want %q; %+v", got, want, s.summary)
	}
	if w := s.summary.Warnings; len(w) != 1 || !strings.Contains(w[0], "no process 71") {
		t.Errorf("warnings %q", w)
	}
}

// TestProcessesBound: beyond the bounds processes are counted, and their number is.
func TestProcessesBound(t *testing.T) {
	r := newTestRoot(t)
	s := r.recording(&Options{AllProcesses: true})
	p := r.processes(s)
	for pid := range maxProcesses - 1 {
		p.seen[int32(100000+pid)] = true
	}
	r.write("proc/5/maps", "1000-2000 r-xp 0 08:01 9 /bin/a\n")
	r.write("proc/6/maps", "1000-2000 r-xp 0 08:01 9 /bin/a\n")
	r.write("proc/self/maps", "")
	r.write("proc/"+strconv.Itoa(ownPID)+"/maps", "mine")
	p.stop()
	p.record(mapping(7))
	if len(p.seen) != maxProcesses || s.summary.Lost["processes beyond the limit"] != 2 ||
		len(p.kept) != 1 {
		t.Errorf("%d processes, %d with mappings, lost %v", len(p.seen), len(p.kept), s.summary.Lost)
	}
	delete(p.seen, 100000)
	p.maps.size, p.closed = maxProcessBytes, false
	r.write("proc/8/maps", "1000-2000 r-xp 0 08:01 9 /bin/a\n")
	p.read(8)
	if s.summary.Lost["mappings of processes: too large"] != 1 || len(p.kept[8]) != 0 {
		t.Errorf("lost %v", s.summary.Lost)
	}
}

// TestKernel records the kernel of a host with all its files.
func TestKernel(t *testing.T) {
	r := newTestRoot(t)
	order := binary.NativeEndian
	note := order.AppendUint32(nil, 4)
	note = order.AppendUint32(note, 20)
	note = order.AppendUint32(note, 3) // NT_GNU_BUILD_ID
	note = append(append(note, "GNU\x00"...), bytes.Repeat([]byte{0xab}, 20)...)
	const list = "ffffffff81000000 T _text\nffffffff82000000 T _etext\n"
	r.write("proc/sys/kernel/random/boot_id", "b00t-1d\n")
	r.write("sys/kernel/notes", string(note))
	r.write("sys/devices/system/cpu/possible", "0-5\n")
	r.write("proc/kallsyms", list)
	s := r.recording(&Options{})
	mods := newModules(s)
	r.write("proc/modules", "gone 4096 0 - Live 0xffffffffc0000000\n")
	r.write("proc/kallsyms", list+"ffffffffc0000010 t f\t[gone]\n")
	r.write("sys/module/gone/notes/.note.gnu.build-id", string(note))
	if err := mods.start(); err != nil {
		t.Fatal(err)
	}
	r.write("proc/modules", "")
	r.write("proc/kallsyms", list)
	mods.RelistSince(0)
	k := &kernel{s: s, modules: mods}
	if err := k.start(); err != nil {
		t.Fatal(err)
	}
	b := bundleOf(t, k.add)
	m := &s.manifest
	if m.BootID != "b00t-1d" || m.CPUs != 6 || m.KernelBuildID != strings.Repeat("ab", 20) ||
		m.Text != 0xffffffff81000000 || m.Machine == "" || m.PageSize == 0 {
		t.Errorf("%+v", m)
	}
	got := entriesOf(t, b)
	if got[bundle.KallsymsName] != list+"ffffffffc0000010 t f\t[gone]\n" ||
		got[bundle.NotesName] != string(note) || len(got) != 2 {
		t.Errorf("%q", got)
	}
	if w := s.summary.Warnings; len(w) != 1 || !strings.Contains(w[0], "vdso") {
		t.Errorf("warnings %q", w) // there is no mapping in that /proc
	}
}

// TestKernelHidden reports the missing files, and records the rest.
func TestKernelHidden(t *testing.T) {
	r := newTestRoot(t)
	r.write("proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T _etext\n")
	s := r.recording(&Options{})
	k := &kernel{s: s, modules: newModules(s)}
	if err := k.start(); err != nil {
		t.Fatal(err)
	}
	got := entriesOf(t, bundleOf(t, k.add))
	w := strings.Join(s.summary.Warnings, "\n")
	if s.manifest.Text != 0 || s.manifest.CPUs != 0 || !strings.Contains(w, "kptr_restrict") ||
		!strings.Contains(w, "build ID is not known") || got[bundle.KallsymsName] == "" {
		t.Errorf("%+v, warnings %q, entries %q", s.manifest, w, got)
	}
	long := "ffffffff81000000 T " + strings.Repeat("x", 2*maxSymbolLine) + "\n"
	r.write("proc/kallsyms", long)
	got = entriesOf(t, bundleOf(t, k.add))
	if got[bundle.KallsymsName] != long {
		t.Errorf("of a long line %d bytes were kept", len(got[bundle.KallsymsName]))
	}
}

// TestOwnVDSO rejects mappings that are not a vdso.
func TestOwnVDSO(t *testing.T) {
	for maps, want := range map[string]string{
		"":                                    "not mapped",
		"7ff0-zz r-xp 0 00:00 0 [vdso]\n":     "invalid mapping",
		"0-ffffffffff r-xp 0 00:00 0 [vdso]":  "invalid mapping",
		"2000-1000 r-xp 0 00:00 0 [vdso]":     "invalid mapping",
		"1000-2000 r-xp 0 00:00 0 /lib/x.so ": "not mapped",
	} {
		r := newTestRoot(t)
		r.write("proc/self/maps", maps)
		if _, _, err := ownVDSO(&r.recording(nil).host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", maps, err, want)
		}
	}
	r := newTestRoot(t)
	want := must.Read(t, "../../fixtures/objects/bin/fixed")
	const at = 0x1000
	r.write("proc/self/maps", fmt.Sprintf("%x-%x r-xp 0 00:00 0 [vdso]\n", at, at+len(want)))
	r.write("proc/self/mem", strings.Repeat("\x00", at)+string(want))
	image, id, err := ownVDSO(&r.recording(nil).host)
	if err != nil || !bytes.Equal(image, want) || id.Len() != 20 {
		t.Errorf("%d bytes, build ID %s, %v", len(image), id, err)
	}
}

// TestHostProc: the directory given as the host's /proc is checked before anything is recorded.
func TestHostProc(t *testing.T) {
	for _, tt := range []struct {
		name, dir string
		want      error
	}{
		{name: "none"},
		{name: "no /proc", dir: t.TempDir(), want: ErrHostProc},
		{name: "no directory", dir: "/nowhere", want: ErrHostProc},
	} {
		s := newRecording(&Options{HostProc: tt.dir})
		if err := s.checkHostProc(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for status, want := range map[string]bool{"Name:\tx\nNSpid:\t50\t4\nNSpgid:\t1\n": true,
		"Name:\tx\nNSpid:\t50\n": false, "": false} {
		if outerNumber(status) != want {
			t.Errorf("%q: %v", status, !want)
		}
	}
}

func TestParseStat(t *testing.T) {
	const whole = "77 (a) b (c)) S 1 77 77 0 -1 4194560 111 222 0 0 3 4 0 0 20 0 1 0 5555 666 77 " +
		"18446744073709551615 4096 8192 140000 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 9000 9100 12288 1 2 3 4 0\n"
	want := sampler.ProgramFacts{StartTicks: 5555, EndCode: 8192, StartStack: 140000, StartBrk: 12288}
	if got, ok := parseStat([]byte(whole)); !ok || got != want {
		t.Errorf("%+v, %v, want %+v", got, ok, want)
	}
	last := strings.Index(whole, " 12288") + len(" 12288")
	for n := range last {
		if got, ok := parseStat([]byte(whole[:n])); ok && got == want {
			t.Errorf("the first %d bytes: %+v", n, got)
		}
	}
	for _, text := range []string{"", "77 (", strings.Replace(whole, "5555", "-1", 1)} {
		if got, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
	r := newTestRoot(t)
	p := r.processes(r.recording(&Options{}))
	r.write("proc/77/stat", whole)
	r.run(1, 1)
	if own := p.program(77); own == 0 || own != p.program(77) || own == p.program(1) {
		t.Errorf("its program %#x, that of process 1 %#x", own, p.program(1))
	}
	if gone := p.program(78); gone != 0 {
		t.Errorf("no process has the program %#x", gone)
	}
}

func TestBootTicks(t *testing.T) {
	r := newTestRoot(t)
	for text, want := range map[string]uint64{
		"monotonic           0         0\nboottime           12 340000000\n": 1234,
		"monotonic 5 0\nboottime -1 500000000\n":                             ^uint64(49),
		"boottime 1\n":                                                       0, "": 0,
	} {
		r.write("offsets", text)
		if got := bootTicks(r.dir + "/offsets"); got != want {
			t.Errorf("%q: %d, want %d", text, int64(got), int64(want))
		}
	}
}

// TestReadOf: mappings that were read while a process ran one program and then another are of
// neither.
func TestReadOf(t *testing.T) {
	r := newTestRoot(t)
	p := r.processes(r.recording(&Options{}))
	p.identify(buildid.ID{})
	r.write("proc/50/maps", "1000-2000 r-xp 00000000 00:00 0 \n")
	r.run(50, 1)
	first := p.program(50)
	if p.readOf(50, first, func() bool { return false }) || len(p.kept[50]) != 0 {
		t.Errorf("mappings of two programs are kept: %v", p.kept[50])
	}
	p.read(50)
	r.run(50, 2)
	x := newPlaces(p)
	for _, c := range []struct {
		program uint64
		want    sampler.PlaceKind
	}{{program: first, want: sampler.Mapped}, {program: p.program(50), want: sampler.Unread}, {program: 0,
		want: sampler.Ambiguous}} {
		if got := x.Locate(sampler.Process{PID: 50, Program: c.program}, 0x1010).Kind; got != c.want {
			t.Errorf("program %#x: %v, want %v", c.program, got, c.want)
		}
	}
	p.read(50) // the text is the same, the program another
	x = newPlaces(p)
	for i, program := range []uint64{p.program(50), first} {
		of := sampler.Process{PID: 50, Program: program}
		if n := x.Number(of, []int{x.Locate(of, 0x1010).Mapping}); n != uint32(i) || len(p.kept[50]) != 2 {
			t.Errorf("copies %v, of program %d number %d", p.kept[50], i, n)
		}
	}
}

// TestLanes: jobs of a key run in order; a job that hangs blocks only its key, and is reported.
func TestLanes(t *testing.T) {
	l := newLanes[string](2)
	if left := l.wait(time.Hour); left != nil {
		t.Errorf("%q are left of nothing", left)
	}
	hung, done := make(chan struct{}), make(chan struct{})
	l.run("hung", func() { <-hung })
	var order []int
	var others atomic.Int32
	for i := range 100 {
		l.run("a", func() { order = append(order, i) })
		l.run("hung", func() {})
		for _, key := range []string{"b", "c", "d"} {
			l.run(key, func() { others.Add(1) })
		}
	}
	l.run("e", func() { close(done) }) // the last key to wait for a lane
	<-done
	left := l.wait(0)
	for ; !slices.Equal(left, []string{"hung"}); left = l.wait(time.Millisecond) {
		if !slices.Contains(left, "hung") {
			t.Fatalf("left: %q", left)
		}
	}
	close(hung)
	if left = l.wait(time.Hour); len(left) != 0 || others.Load() != 300 || len(order) != 100 ||
		!slices.IsSorted(order) || l.running != 0 {
		t.Errorf("left %q, %d jobs of others, order %d, %d run", left, others.Load(), order, l.running)
	}
}

// TestStop: which processes are read at the end of a recording.
func TestStop(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts Options
		want []int32 // with kept mappings
		warn int
	}{
		{name: "none"},
		{name: "named", opts: Options{PIDs: []int{50}}, want: []int32{50}},
		{name: "named, and gone", opts: Options{PIDs: []int{50, 52}}, want: []int32{50}, warn: 1},
		{name: "all but the recorder", opts: Options{AllProcesses: true}, want: []int32{50, 51}},
	} {
		r := newTestRoot(t)
		for _, pid := range []int{50, 51, ownPID} {
			r.write(fmt.Sprintf("proc/%d/maps", pid), "1000-2000 r-xp 00000000 08:01 9 /bin/a\n")
			r.run(pid, 1)
		}
		r.write("proc/self/maps", "no number of a process\n")
		s := r.recording(&tc.opts)
		p := r.processes(s)
		p.patience = time.Hour
		p.stop()
		got := slices.Sorted(maps.Keys(p.kept))
		if !slices.Equal(got, tc.want) || len(s.summary.Warnings) != tc.warn {
			t.Errorf("%s: processes %v, warnings %q", tc.name, got, s.summary.Warnings)
		}
		p.keep(53, 0, []byte("1000-2000 r-xp 00000000 08:01 9 /late\n"), readTime{})
		if p.kept[53] != nil {
			t.Errorf("%s: mappings are kept after the end", tc.name)
		}
	}
}

// TestMoved: only a process with bare addresses is read again after it moved a mapping.
func TestMoved(t *testing.T) {
	r := newTestRoot(t)
	p := r.processes(r.recording(&Options{}))
	p.bare[50] = true
	p.moved(50)
	p.moved(51)
	if !p.dirty[50] || p.dirty[51] {
		t.Errorf("to be read: %v", p.dirty)
	}
}

// TestEvicted: the oldest copy of a program, or of the process, gives way to a new one.
func TestEvicted(t *testing.T) {
	copies := func(programs ...uint64) (list []mapsCopy) {
		for i, program := range programs {
			list = append(list, mapsCopy{program: program, spooled: spooled{at: int64(i)}})
		}
		return list
	}
	many := func(n int, program func(i int) uint64) (list []uint64) {
		for i := range n {
			list = append(list, program(i))
		}
		return list
	}
	for _, tc := range []struct {
		name     string
		programs []uint64
		left     int
		gone     int64 // the copy that is no longer there, −1 for none
	}{
		{name: "none", gone: -1},
		{name: "few", programs: []uint64{1, 1, 2}, left: 3, gone: -1},
		{name: "a program has many", programs: append([]uint64{2}, many(maxVersions, func(int) uint64 { return 1 })...),
			left: maxVersions, gone: 1},
		{name: "another program has many", programs: many(maxVersions, func(int) uint64 { return 2 }), left: maxVersions, gone: -1},
		{name: "many programs", programs: many(maxCopies, func(i int) uint64 { return uint64(i + 10) }), left: maxCopies - 1, gone: 0},
	} {
		left := evicted(copies(tc.programs...), 1)
		there := tc.gone < 0 || !slices.ContainsFunc(left, func(m mapsCopy) bool { return m.at == tc.gone })
		if len(left) != tc.left || !there {
			t.Errorf("%s: %d copies left, want %d without number %d", tc.name, len(left), tc.left, tc.gone)
		}
	}
}

// TestReadSome: at most as many bytes as asked for, behind the ones that are there.
func TestReadSome(t *testing.T) {
	r := newTestRoot(t)
	r.write("file", "0123456789")
	for _, tc := range []struct {
		name, path, want string
		limit            int
		err              error
	}{
		{name: "whole", path: "file", limit: 100, want: "ab0123456789"},
		{name: "limited", path: "file", limit: 6, want: "ab0123"},
		{name: "no file", path: "none", limit: 100, want: "ab", err: os.ErrNotExist},
		{name: "a directory", path: ".", limit: 100, want: "ab", err: unix.EISDIR},
	} {
		got, err := readSome(filepath.Join(r.dir, tc.path), []byte("ab"), tc.limit)
		if string(got) != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
	}
}
