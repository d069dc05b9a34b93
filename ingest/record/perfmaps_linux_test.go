package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPerfMapsOfOthers: a perf map that an earlier process with the same number has left is not
// taken, whether the process is there or has ended, and counted once.
func TestPerfMapsOfOthers(t *testing.T) {
	r := newTestRoot(t)
	s := &session{opts: &Options{}, summary: &Summary{}}
	p, err := newProcesses(s, r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	var boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.manifest.Begin.Realtime = uint64(now.Add(-time.Minute).UnixNano())
	want := map[string]string{}
	for _, tc := range []struct {
		pid     int32
		began   time.Duration // ago; 0: nobody saw it begin
		written time.Duration // ago
		ended   bool
		taken   bool
	}{
		{pid: 50, began: 10 * time.Second, written: 5 * time.Second, taken: true},
		{pid: 51, began: 10 * time.Second, written: 15 * time.Second},
		{pid: 52, began: 10 * time.Second, written: 5 * time.Second, ended: true, taken: true},
		{pid: 53, began: 10 * time.Second, written: 15 * time.Second, ended: true},
		{pid: 54, written: 30 * time.Second, ended: true, taken: true},
		{pid: 55, written: time.Hour, ended: true},
		{pid: 56, began: time.Hour, written: 30 * time.Minute, taken: true},
	} {
		dir := fmt.Sprintf("proc/%d", tc.pid)
		r.write(dir+"/maps", "1000-2000 r-xp 0 08:01 9 /bin/a\n")
		if tc.began > 0 {
			ticks := (time.Duration(boot.Nano()) - tc.began) / tick
			r.write(dir+"/stat", fmt.Sprintf("%d (a) S%s %d%s\n", tc.pid, strings.Repeat(" 1", 18),
				int64(ticks), strings.Repeat(" 2", 30)))
		}
		p.follow(tc.pid)
		readAll(t, p)
		name := fmt.Sprintf("tmp/perf-%d.map", tc.pid)
		r.write(name, "10 20 f\n")
		at := now.Add(-tc.written)
		if err := os.Chtimes(filepath.Join(r.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
		if tc.ended {
			os.RemoveAll(filepath.Join(r.dir, dir))
		}
		want[fmt.Sprintf("proc/%d/maps", tc.pid)] = "1000-2000 r-xp 0 08:01 9 /bin/a\n"
		if tc.taken {
			want[fmt.Sprintf("proc/%d/perf.map", tc.pid)] = "10 20 f\n"
		}
	}
	p.stop()
	for range 2 {
		if got := entriesOf(t, bundleOf(t, p.add)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q, want %q", got, want)
		}
		p.again()
	}
	if n := s.summary.Lost["perf maps: of earlier processes with the same number"]; n != 3 {
		t.Errorf("lost %v", s.summary.Lost)
	}
	p.forget(p.gone())
	if len(p.starts) != 3 || len(p.stale) != 1 {
		t.Errorf("starts %v, stale %v", p.starts, p.stale)
	}
}
