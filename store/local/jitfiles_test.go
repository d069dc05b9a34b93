//go:build unix

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"symbolize/fixtures/must"
	"symbolize/ingest/addr"
	"symbolize/ingest/sideband"
	"symbolize/store/indexer"
)

// TestContainedFiles: the files of a process in a container are found in its own root, by its own
// number, while it runs the recorded program.
func TestContainedFiles(t *testing.T) {
	proc := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		must.Write(t, path, []byte(text))
		return path
	}
	const pid, vdso = 999999, 0x7f0000001000
	write("999999/maps", fmt.Sprintf("1000-2000 r-xp 0 08:01 9 /bin/a\n%x-%x r-xp 00000000 00:00 0 [vdso]\n",
		vdso, vdso+0x1000))
	write("999999/status", "Name:\tx\nNSpid:\t999999\t7\n")
	perfMap := write("999999/root/tmp/perf-7.map", "10 20 f\n")
	dump := write("999999/root/srv/jit-7.dump", "code")
	for _, tt := range []struct {
		name string
		here bool
		vdso addr.PC
		pid  int32
		want bool
	}{
		{name: "of the process", here: true, vdso: vdso, pid: pid, want: true},
		{name: "another host", vdso: vdso, pid: pid},
		{name: "another program", here: true, vdso: vdso + 0x1000, pid: pid},
		{name: "unknown program", here: true, pid: pid},
		{name: "ended", here: true, vdso: vdso, pid: pid - 1},
	} {
		p := JITPlaces{Here: tt.here, proc: proc}
		q := &sideband.JITQuery{PID: tt.pid, VDSO: tt.vdso, Dump: "/srv/jit-7.dump"}
		for want, f := range map[string]*JITFile{perfMap: p.PerfMap(q), dump: p.Dump(q)} {
			if (f != nil) != tt.want {
				t.Errorf("%s: %+v", tt.name, f)
			}
			if f != nil && (f.Path != want || !f.owned || f.PID != pid) {
				t.Errorf("%s: %+v", tt.name, f)
			}
			if f != nil {
				f.Close()
			}
		}
	}
}

func TestRefuseBundled(t *testing.T) {
	const second = int64(time.Second)
	q := sideband.JITQuery{VDSO: 0x1000, BeginNanos: 100 * second, EarliestNanos: 100 * second,
		EndNanos: 200 * second}
	for _, tt := range []struct {
		name   string
		file   sideband.BundledFile
		refuse bool
	}{
		{name: "the same", file: sideband.BundledFile{VDSO: 0x1000, Began: 99 * second, Written: 150 * second}},
		{name: "nothing known", file: sideband.BundledFile{Written: 150 * second}},
		{name: "of another program", file: sideband.BundledFile{VDSO: 0x2000, Written: 150 * second}, refuse: true},
		{name: "later", file: sideband.BundledFile{Began: 206 * second, Written: 207 * second}, refuse: true},
		{name: "earlier", file: sideband.BundledFile{Written: 94 * second}, refuse: true},
		{name: "by the clocks' error", file: sideband.BundledFile{Began: 204 * second, Written: 96 * second}},
	} {
		if why := RefuseBundled(&tt.file, &q); (why != "") != tt.refuse {
			t.Errorf("%s: %q", tt.name, why)
		}
	}
	q.BeginNanos = 0
	if why := RefuseBundled(&sideband.BundledFile{Written: second}, &q); why != "" {
		t.Errorf("of a process that was there before: %q", why)
	}
}

// TestTimes: a file that was written before its process began is refused, and doubted where that is
// known by when perf closed the recording.
func TestTimes(t *testing.T) {
	const second = int64(time.Second)
	for _, tt := range []struct {
		name                     string
		begin, earliest, written int64
		refused, doubted         bool
	}{
		{name: "after", begin: 100, earliest: 100, written: 101},
		{name: "by the clocks' error", begin: 100, earliest: 100, written: 96},
		{name: "before", begin: 100, earliest: 100, written: 94, refused: true, doubted: true},
		{name: "maybe before", begin: 100, earliest: 70, written: 80, doubted: true},
		{name: "before that, too", begin: 100, earliest: 70, written: 64, refused: true, doubted: true},
		{name: "of a process that was there before", written: 1},
	} {
		q := sideband.JITQuery{BeginNanos: tt.begin * second, EarliestNanos: tt.earliest * second}
		f := indexer.JITFile{Written: tt.written * second}
		if why := RefuseTime(&f, &q); (why != "") != tt.refused {
			t.Errorf("%s: refused: %q", tt.name, why)
		}
		if doubt := DoubtTime(&f, &q); (doubt != "") != tt.doubted {
			t.Errorf("%s: doubt: %q", tt.name, doubt)
		}
	}
}
