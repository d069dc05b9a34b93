package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/record/sampler"
)

// TestHungDevice: a file that nobody answers for holds up neither the caller nor files of
// other devices, and the end of a recording for so long only. Its device is reported.
func TestHungDevice(t *testing.T) {
	r := newTestRoot(t)
	s := r.session(&Options{})
	p := r.processes(s)
	p.patience = 1 // ns
	p.identify(buildid.ID{})
	hung := make(chan struct{})
	var answered atomic.Int32
	p.readID = func(_ int32, m *procmaps.Mapping, _ uint64) (buildid.ID, bool) {
		if m.File.Minor == 0x99 {
			<-hung
			answered.Add(1)
		}
		return buildid.New([]byte(m.File.Path)), true
	}
	r.write("proc/50/maps", "1000-2000 r-xp 00000000 00:99 7  /net/a\n"+
		"2000-3000 r-xp 00000000 00:99 8  /net/b\n")
	r.write("proc/51/maps", "1000-2000 r-xp 00000000 08:01 7  /bin/a\n")
	r.run(50, 1)
	r.run(51, 1)
	for i := range 100 { // reads that hang do not add up
		p.hurry(int32(50 + i%2))
	}
	if left := p.reads.wait(1 << 40); left != nil {
		t.Fatalf("processes %d are still being read", left)
	}
	id := func(path string) string {
		p.mu.Lock()
		defer p.mu.Unlock()
		for f, id := range p.ids {
			if f.Path == path {
				return id.String()
			}
		}
		return ""
	}
	for id("/bin/a") == "" {
		p.opens.wait(1 << 20)
	}
	p.stop()
	w := strings.Join(s.summary.Warnings, "\n")
	if !strings.Contains(w, "device 0:153 could not") || len(s.summary.Warnings) != 1 {
		t.Errorf("warnings %q", w)
	}
	x := newPlaces(p)
	if got, want := x.Locate(p.ofNow(51), 0x1010).Kind, x.Locate(p.ofNow(50), 0x1010).Kind; got == want {
		t.Errorf("places of kind %v in a file that was read and in one that was not", got)
	}
	close(hung)
	p.opens.wait(1 << 40)
	if got := id("/net/a"); got != "" || answered.Load() != 2 {
		t.Errorf("build ID %s was taken in after the end, of %d files", got, answered.Load())
	}
	p.close()
}

// ofNow returns a process with the program that it runs.
func (p *processes) ofNow(pid int32) sampler.Process {
	return sampler.Process{PID: pid, Program: p.program(pid)}
}

// TestFileOfPath: of a process that has ended the file at the path is read, if it is the one
// that was mapped.
func TestFileOfPath(t *testing.T) {
	r := newTestRoot(t)
	p := &processes{s: r.session(&Options{})}
	object, err := os.ReadFile("../../fixtures/objects/bin/fixed")
	if err != nil {
		t.Fatal(err)
	}
	r.write("bin/fixed", string(object))
	path := filepath.Join(r.dir, "bin/fixed")
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	same := procmaps.File{Major: unix.Major(st.Dev), Minor: unix.Minor(st.Dev), Inode: st.Ino,
		Path: "/bin/fixed"}
	for _, c := range []struct {
		what   string
		change func(f *procmaps.File)
		want   bool
	}{
		{what: "the file", change: func(*procmaps.File) {}, want: true},
		{what: "of another number", change: func(f *procmaps.File) { f.Inode++ }},
		{what: "of another device", change: func(f *procmaps.File) { f.Minor++ }},
		{what: "of another device", change: func(f *procmaps.File) { f.Major++ }},
		{what: "a deleted one", change: func(f *procmaps.File) { f.Path += " (deleted)" }},
	} {
		f := same
		c.change(&f)
		id, ok := p.fileID(77, &procmaps.Mapping{Start: 1 << 12, End: 1 << 13, File: f}, 0)
		if ok != c.want || ok != (id.Len() == 20) {
			t.Errorf("%s: build ID %v, %t", c.what, id, ok)
		}
	}
}

// TestVersions: addresses of each program that a process ran are found in its own mappings,
// the newest of which are kept; an address with two explanations is ambiguous. Only code is
// kept of who is only sampled.
func TestVersions(t *testing.T) {
	r := newTestRoot(t)
	p := r.processes(r.session(&Options{PIDs: []int{60}}))
	p.identify(buildid.ID{})
	p.readID = func(_ int32, m *procmaps.Mapping, _ uint64) (buildid.ID, bool) {
		return buildid.New([]byte(m.File.Path)), true
	}
	const data = "9000-a000 rw-p 00000000 00:00 0  [heap]\n"
	const many = 2 * maxVersions
	programs := map[int32][]uint64{}
	for i := range many {
		text := fmt.Sprintf("%x000-%x000 r-xp 00000000 08:01 7  /bin/%d\n"+
			"1000-2000 r-xp 00000000 08:01 %d  /bin/all%d\n", 2*i+16, 2*i+17, i, i+8, i)
		for pid, program := range map[int32]int{50: 1, 60: i + 1} {
			r.run(int(pid), uint64(program))
			r.write(fmt.Sprintf("proc/%d/maps", pid), text+data)
			p.hurry(pid)
			programs[pid] = append(programs[pid], p.program(pid))
		}
		readAll(t, p)
	}
	p.stop()
	x := newPlaces(p)
	for i := range many {
		locate := func(pid int32, at uint64) string {
			place := x.Locate(sampler.Process{PID: pid, Program: programs[pid][i]}, at)
			if place.Kind != sampler.InFile {
				return fmt.Sprint(place.Kind)
			}
			return strings.TrimRight(string(place.BuildID[:]), "\x00")
		}
		own, at := fmt.Sprintf("/bin/%d", i), uint64(2*i+16)<<12
		of50 := own
		if i < maxVersions {
			of50 = fmt.Sprint(sampler.Outside)
		}
		for _, c := range [][2]string{{locate(50, at), of50}, {locate(60, at), own},
			{locate(60, at+0x2000), fmt.Sprint(sampler.Outside)},
			{locate(50, 0x1000), fmt.Sprint(sampler.Ambiguous)},
			{locate(60, 0x1000), fmt.Sprintf("/bin/all%d", i)}} {
			if c[0] != c[1] {
				t.Errorf("copy %d: an address is found in %q, want %q", i, c[0], c[1])
			}
		}
	}
	for pid, want := range map[int32]bool{50: false, 60: true} {
		copies := p.kept[pid]
		text, err := p.maps.read(copies[len(copies)-1].spooled, nil)
		if err != nil || strings.Contains(string(text), data) != want ||
			pid == 60 && len(copies) != many {
			t.Errorf("%d: %d copies, the last is %q, %v", pid, len(copies), text, err)
		}
	}
	if n := len(p.kept[50]); n != maxVersions {
		t.Errorf("%d copies of one program", n)
	}
}

// TestCopiesBound: a process ID that many programs have had has a bound.
func TestCopiesBound(t *testing.T) {
	var list []mapsCopy
	for i := range uint64(maxCopies + 3) {
		list = append(withRoom(list, i), mapsCopy{program: i})
	}
	if len(list) != maxCopies || list[0].program != 3 {
		t.Errorf("%d copies, the first of program %d", len(list), list[0].program)
	}
}
