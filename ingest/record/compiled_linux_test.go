package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
)

// TestPerfMapsOfOthers: a perf map left by an earlier process with the same ID is not copied, and
// counted once, whether the process lives or has ended, and at any uptime.
func TestPerfMapsOfOthers(t *testing.T) {
	for _, up := range []time.Duration{time.Minute, 10 * 365 * 24 * time.Hour} {
		t.Run(up.String(), func(t *testing.T) { perfMapsOfOthers(t, up) })
	}
}

func perfMapsOfOthers(t *testing.T, up time.Duration) {
	r := newTestRoot(t)
	r.now.Boottime = uint64(up)
	s := r.recording(&Options{})
	p := r.processes(s)
	s.manifest.Begin.Realtime = uint64(r.at(time.Minute).UnixNano())
	began := map[int32]uint64{}
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
		// It may have begun before its time namespace did.
		{pid: 56, began: time.Hour, written: 30 * time.Minute, taken: true},
	} {
		dir := fmt.Sprintf("proc/%d", tc.pid)
		r.write(dir+"/maps", "1000-2000 r-xp 0 08:01 9 /bin/a\n")
		if tc.began > 0 {
			ticks := (uint64(up) - uint64(tc.began)) / uint64(tick) // as the kernel computes it
			r.write(dir+"/stat", fmt.Sprintf("%d (a) S%s %d%s\n", tc.pid, strings.Repeat(" 1", 18),
				ticks, strings.Repeat(" 2", 30)))
			began[tc.pid] = uint64(r.at(tc.began).UnixNano())
		}
		p.follow(tc.pid)
		readAll(t, p)
		name := fmt.Sprintf("tmp/perf-%d.map", tc.pid)
		r.write(name, "10 20 f\n")
		r.written(name, tc.written)
		if tc.ended {
			os.RemoveAll(filepath.Join(r.dir, dir))
		}
		want[fmt.Sprintf("proc/%d/maps", tc.pid)] = "1000-2000 r-xp 0 08:01 9 /bin/a\n"
		if tc.taken {
			want[fmt.Sprintf("proc/%d/perf.map", tc.pid)] = "10 20 f\n"
			want[bundle.CompiledName(tc.pid)] = "" // compared below
		}
	}
	p.stop()
	for range 2 {
		b := bundleOf(t, p.add)
		got := entriesOf(t, b)
		for _, pid := range []int32{50, 52, 54, 56} {
			c, err := b.Compiled(pid)
			if err != nil || c.PerfMap == nil || c.PerfMap.Path != fmt.Sprintf("/tmp/perf-%d.map", pid) ||
				c.PerfMap.Written == 0 || c.JITDump != nil || began[pid]-c.Began >= uint64(tick) {
				t.Errorf("process %d: %+v, %+v, %v, want %d", pid, c, c.PerfMap, err, began[pid])
			}
			got[bundle.CompiledName(pid)] = ""
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q, want %q", got, want)
		}
		p.newFile()
	}
	if n := s.summary.Lost["perf maps: of earlier processes with the same ID"]; n != 3 {
		t.Errorf("lost %v", s.summary.Lost)
	}
	p.forget(p.gone())
	if len(p.starts) != 3 || len(p.stale) != 1 {
		t.Errorf("starts %v, stale %v", p.starts, p.stale)
	}
}

// TestCompiledFiles: a process's perf map and jitdump file are found in its own root, by the number
// that it has there; a file that is being written is left out, and so is a file that it has not
// mapped.
func TestCompiledFiles(t *testing.T) {
	r := newTestRoot(t)
	s := r.recording(&Options{})
	p := r.processes(s)
	r.write("proc/60/status", "Name:\tx\nNSpid:\t60\t3\n")
	r.write("proc/60/root/tmp/perf-3.map", "10 20 f\n30 20 half")
	r.write("proc/60/root/tmp/jit-3.dump", "code")
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(r.dir, "proc/60/root/tmp/jit-3.dump"), &st); err != nil {
		t.Fatal(err)
	}
	maps := fmt.Sprintf("1000-2000 r-xp 0 00:00 %d /tmp/jit-3.dump\n"+
		"7f0000001000-7f0000003000 r-xp 00000000 00:00 0 [vdso]\n", st.Ino)
	r.write("proc/60/maps", maps)
	r.write("proc/61/root/tmp/jit-61.dump", "of another")
	r.write("proc/61/maps", "1000-2000 r-xp 0 00:00 1 /tmp/jit-61.dump\n")
	for _, pid := range []int32{60, 61} {
		p.follow(pid)
	}
	readAll(t, p)
	p.stop()
	b := bundleOf(t, p.add)
	got := entriesOf(t, b)
	for name, want := range map[string]string{bundle.PerfMapName(60): "10 20 f\n",
		bundle.JITDumpName(60): "code", bundle.MapsName(60): maps} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	c, err := b.Compiled(60)
	if err != nil || c.VDSO != 0x7f0000001000 || c.PerfMap == nil || c.PerfMap.Path != "/tmp/perf-3.map" ||
		c.JITDump == nil || c.JITDump.Path != "/tmp/jit-3.dump" {
		t.Errorf("%+v, %v", c, err)
	}
	if b.Has(bundle.JITDumpName(61)) || b.Has(bundle.CompiledName(61)) {
		t.Errorf("entries %q", b.Names())
	}
}

// TestContained: files of a process in another mount namespace are opened while it runs, and copied
// as they are when it has ended.
func TestContained(t *testing.T) {
	r := newTestRoot(t)
	link := func(pid, to string) {
		r.write("proc/"+pid+"/ns/x", "")
		if err := os.Symlink(to, filepath.Join(r.dir, "proc/"+pid+"/ns/mnt")); err != nil {
			t.Fatal(err)
		}
	}
	link("self", "mnt:[1]")
	link("80", "mnt:[2]")
	link("81", "mnt:[1]")
	s := r.recording(&Options{})
	s.manifest.Begin.Realtime = uint64(r.at(time.Minute).UnixNano())
	p := r.processes(s)
	for _, pid := range []string{"80", "81"} {
		r.write("proc/"+pid+"/status", "Name:\tx\nNSpid:\t"+pid+"\t1\n")
		r.write("proc/"+pid+"/maps", "1000-2000 r-xp 0 08:01 9 /bin/a\n")
		r.write("proc/"+pid+"/root/tmp/perf-1.map", "10 20 f\n")
	}
	p.follow(80)
	p.follow(81)
	readAll(t, p)
	if again := p.openContained(); again <= 0 || again > firstLook || p.held != 0 || p.contained[81] != nil {
		t.Errorf("looks again in %v, %d files held, %+v", again, p.held, p.contained)
	}
	r.now.Monotonic += uint64(firstLook)
	if again := p.openContained(); p.held != 1 || p.contained[80].inner != 1 || again <= firstLook {
		t.Errorf("%d files held, %+v, again in %v", p.held, p.contained[80], again)
	}
	if again := p.openContained(); again != 0 {
		t.Errorf("again in %v, where all is there", again)
	}
	r.write("proc/80/root/tmp/perf-1.map", "10 20 f\n30 20 g\n") // in the same file
	os.RemoveAll(filepath.Join(r.dir, "proc/80"))
	os.RemoveAll(filepath.Join(r.dir, "proc/81"))
	p.stop()
	b := bundleOf(t, p.add)
	if got := entriesOf(t, b)[bundle.PerfMapName(80)]; got != "10 20 f\n30 20 g\n" {
		t.Errorf("perf map %q", got)
	}
	if c, err := b.Compiled(80); err != nil || c.PerfMap == nil || c.PerfMap.Path != "/tmp/perf-1.map" {
		t.Errorf("%+v, %v", c, err)
	}
	if p.forget(p.gone()); p.held != 0 || len(p.contained) != 0 {
		t.Errorf("%d files held, %v", p.held, p.contained)
	}
}
