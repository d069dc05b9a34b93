package record

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/procmaps"
)

// TestForgetGone: of processes that have ended nothing is kept once it is in a bundle, but of
// one that has the number of another since its mappings are.
func TestForgetGone(t *testing.T) {
	r := newTestRoot(t)
	s := r.recording(&Options{PIDs: []int{53}})
	p := r.processes(s)
	const maps = "1000-2000 r-xp 0 08:01 9 /bin/a\n"
	for _, pid := range []string{"50", "51", "52", "53"} {
		r.write("proc/"+pid+"/maps", maps)
		r.write("proc/"+pid+"/stat", "")
	}
	for _, pid := range []uint32{50, 51, 52, 53} {
		p.record(mapping(pid))
	}
	readAll(t, p)
	for _, pid := range []string{"51", "52", "53"} {
		if err := os.RemoveAll(filepath.Join(r.dir, "proc", pid)); err != nil {
			t.Fatal(err)
		}
	}
	g := p.gone()
	if len(g.pids) != 3 || !g.pids[51] || g.pids[50] {
		t.Errorf("gone: %v", g.pids)
	}
	r.write("proc/52/maps", strings.Replace(maps, "/bin/a", "/bin/b", 1))
	r.write("proc/52/stat", "")
	p.record(mapping(52))
	readAll(t, p)
	p.forget(g)
	if len(p.kept) != 2 || len(p.kept[50]) != 1 || len(p.kept[52]) != 1 || len(p.seen) != 2 ||
		p.whole[51] || !p.whole[53] {
		t.Errorf("kept %v, seen %v, whole %v", p.kept, p.seen, p.whole)
	}
	b := bundleOf(t, p.add)
	if text := entriesOf(t, b)[bundle.MapsName(52)]; !strings.Contains(text, "/bin/b") {
		t.Errorf("mappings %q", text)
	}
}

// TestPartTimes: a part begins where the one before ends: where the samples of the next begin.
func TestPartTimes(t *testing.T) {
	clocks := func(n uint64) bundle.Clocks {
		return bundle.Clocks{Perf: 100 + n, Monotonic: 200 + n, Boottime: 300 + n, Realtime: 400 + n}
	}
	f := &flusher{s: newTestRoot(t).recording(&Options{}), last: clocks(0), lost: make(map[string]uint64)}
	for _, c := range []struct{ read, turned, begin, end uint64 }{
		{read: 10, turned: 25, begin: 0, end: 25}, // the sampler turns some time after it was asked to
		{read: 30, turned: 30, begin: 25, end: 30},
	} {
		m := f.manifest(nil, atMonotonic(clocks(c.read), 200+c.turned))
		if m.Begin != clocks(c.begin) || m.End != clocks(c.end) {
			t.Errorf("from %+v to %+v", m.Begin, m.End)
		}
	}
	if c := atMonotonic(clocks(5), 0); c != (bundle.Clocks{}) {
		t.Errorf("without a time %+v", c)
	}
}

// TestCompact: the spool of mappings does not grow with forgotten processes, and kept mappings
// are still there.
func TestCompact(t *testing.T) {
	r := newTestRoot(t)
	p := r.processes(r.recording(&Options{}))
	line := "1000-2000 r-xp 0 08:01 9 /bin/" + strings.Repeat("a", 1<<20) + "\n"
	r.write("proc/1/stat", "")
	for pid := range int32(40) {
		p.keep(pid+1, 0, []byte(line), readTime{})
	}
	p.forget(p.gone())
	if p.maps.size > 2<<20 || len(p.kept) != 1 || len(p.maps.entries) != 0 {
		t.Errorf("%d bytes, %d processes", p.maps.size, len(p.kept))
	}
	if b, err := p.neededMappings(1, nil); err != nil || string(b) != line {
		t.Errorf("%d bytes of mappings, %v", len(b), err)
	}
}

// TestProgramsCut: a part contains the programs that were read during it. Missing programs wait for
// the next part if the kernel copies programs.
func TestProgramsCut(t *testing.T) {
	x := newTestSideband(t, newFakeKernel(3))
	p := x.programs
	p.load(3, bpf.Tag{3, 1})
	p.load(9, bpf.Tag{9, 1}) // gone
	for n, want := range []struct{ part, next int }{{part: 1, next: 1}, {part: 1, next: 0}, {part: 0,
		next: 0}} {
		part, err := p.cut(true)
		if err != nil {
			t.Fatal(err)
		}
		if len(part.seen) != want.part || len(p.seen) != want.next {
			t.Errorf("part %d: %d programs, %d stay", n, len(part.seen), len(p.seen))
		}
		part.close()
	}
	p.load(9, bpf.Tag{9, 1})
	part, err := p.cut(false)
	if err != nil {
		t.Fatal(err)
	}
	defer part.close()
	if len(part.seen) != 1 || len(p.seen) != 0 {
		t.Errorf("without copies: %d programs, %d stay", len(part.seen), len(p.seen))
	}
}

// TestFlushPause: the time to the next flush, which a new file can shorten.
func TestFlushPause(t *testing.T) {
	for _, tc := range []struct {
		name     string
		next     time.Duration // before the limits
		every    time.Duration // of tests
		rotate   time.Duration
		since    time.Duration // the start of the file
		min, max time.Duration
	}{
		{name: "usual", next: 2 * flushEvery, min: flushEvery, max: flushEvery},
		{name: "the first", next: firstFlush, min: firstFlush, max: firstFlush},
		{name: "the fourth", next: 8 * firstFlush, min: 8 * firstFlush, max: 8 * firstFlush},
		{name: "the fifth", next: 16 * firstFlush, min: flushEvery, max: flushEvery},
		{name: "of tests", every: time.Second, min: time.Second, max: time.Second},
		{name: "files are longer", next: flushEvery, rotate: time.Hour, min: flushEvery, max: flushEvery},
		{name: "the file ends before", next: flushEvery, rotate: time.Hour, since: time.Hour - 5*time.Second, max: 5 * time.Second},
		{name: "the file is due", rotate: time.Hour, since: 2 * time.Hour},
	} {
		opts := &Options{flushEvery: tc.every, Rotate: Rotation{Every: tc.rotate}}
		f := &flusher{s: newTestRoot(t).recording(opts), next: tc.next, begun: time.Now().Add(-tc.since)}
		if got := f.pause(); got < tc.min || got > tc.max {
			t.Errorf("%s: %v, want %v to %v", tc.name, got, tc.min, tc.max)
		}
	}
}

// TestFileNames: files have the time in their names, and a number where it is not enough.
func TestFileNames(t *testing.T) {
	dir := t.TempDir()
	var written []string
	r := newTestRoot(t)
	r.now.Realtime += 250_000_000
	s := r.recording(&Options{Rotate: Rotation{Size: 1}, Written: func(path string) { written = append(written, filepath.Base(path)) }})
	for range 3 {
		w, err := bundle.Create(filepath.Join(dir, "c.data"))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		f := newFlusher(s, nil, w)
		if err := f.end(&bundle.Manifest{}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"c.data.2023111422132025", "c.data.2023111422132025-1", "c.data.2023111422132025-2"}
	if !slices.Equal(written, want) {
		t.Errorf("names %q, want %q", written, want)
	}
}

// TestForgetFiles: build IDs of files that no kept process maps are forgotten once there are many.
func TestForgetFiles(t *testing.T) {
	for _, tc := range []struct {
		name        string
		files, want int
	}{
		{name: "few", files: maxFiles/2 - 2, want: maxFiles/2 - 1},
		{name: "many", files: maxFiles / 2, want: 1},
	} {
		r := newTestRoot(t)
		p := r.processes(r.recording(&Options{}))
		p.identify(buildid.ID{})
		p.readID = func(int32, *procmaps.Mapping, uint64) (buildid.ID, bool) { return buildid.New([]byte("id")), true }
		p.keep(50, 1, []byte("1000-2000 r-xp 00000000 08:01 9  /kept\n"), readTime{1, 2})
		readAll(t, p)
		for i := range tc.files {
			file := procmaps.File{Inode: uint64(100 + i), Path: "/gone"}
			p.ids[file], p.requestedIDs[file] = buildid.New([]byte("id")), true
		}
		p.forget(gone{})
		if len(p.ids) != tc.want || len(p.requestedIDs) != tc.want {
			t.Errorf("%s: %d build IDs of %d files, want %d", tc.name, len(p.ids), len(p.requestedIDs), tc.want)
		}
	}
}
