package record

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

// withPlaces returns processes with saved mappings of process 50: a file with a build ID, one that
// is not an object, a device, a vdso and anonymous code; 51 is a 32-bit program.
func withPlaces(t *testing.T) (p *processes, id buildid.ID) {
	t.Helper()
	r := newTestRoot(t)
	p = r.processes(r.recording(&Options{}))
	p.identify(buildid.New([]byte("vdso")))
	object := must.Read(t, "../../fixtures/objects/bin/fixed")
	r.write("proc/50/map_files/400000-402000", string(object))
	r.write("proc/50/map_files/500000-501000", "no object")
	if err := unix.Mkfifo(filepath.Join(r.dir, "proc/50/map_files/600000-601000"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.write("proc/50/maps", "00400000-00402000 r-xp 00001000 08:01 7  /bin/fixed\n"+
		"00402000-00403000 r--p 00003000 08:01 7  /bin/fixed\n"+
		"00500000-00501000 r-xp 00000000 08:01 8  /bin/script\n"+
		"00600000-00601000 r-xs 00000000 00:05 9  /dev/pipe\n"+
		"7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"+
		"7fff00000000-7fff00002000 r-xp 00000000 00:00 0  [vdso]\n")
	r.write("proc/51/maps", "f7f00000-f7f02000 r-xp 00000000 00:00 0  [vdso]\n")
	r.run(50, 1)
	r.run(51, 1)
	for _, pid := range []int32{50, 51, 52} {
		p.readNow(pid)
	}
	readAll(t, p)
	file := procmaps.File{Major: 8, Minor: 1, Inode: 7, Path: "/bin/fixed"}
	if id = p.ids[file]; id.Len() != 20 || len(p.ids) != 3 {
		t.Fatalf("build IDs %v", p.ids)
	}
	return p, id
}

func TestPlaces(t *testing.T) {
	p, id := withPlaces(t)
	x := newPlaces(p)
	in := func(id buildid.ID, offset uint64) sampler.Place {
		place := sampler.Place{Kind: sampler.InFile, Offset: offset}
		copy(place.BuildID[:], id.Bytes())
		return place
	}
	mapped, outside := sampler.Place{Kind: sampler.Mapped}, sampler.Place{Kind: sampler.Outside}
	for _, c := range []struct {
		pid  int32
		at   uint64
		want sampler.Place
	}{
		{pid: 50, at: 0x400000, want: in(id, 0x1000)},
		{pid: 50, at: 0x401fff, want: in(id, 0x2fff)},
		{pid: 50, at: 0x402000, want: outside}, // data
		{pid: 50, at: 0x3fffff, want: outside},
		{pid: 50, at: 0x500010, want: mapped},
		{pid: 50, at: 0x600010, want: mapped},
		{pid: 50, at: 0x7f0000000010, want: mapped},
		{pid: 50, at: 0x7f0000000020, want: mapped},
		{pid: 50, at: 0x7fff00000123, want: in(p.vdso, 0x123)},
		{pid: 50, at: 0xffffffffff600000, want: sampler.Place{Kind: sampler.Vsyscall}},
		{pid: 50, at: 0xffffffffff601000, want: outside},
		{pid: 50, at: 12, want: outside},
		{pid: 51, at: 0xf7f00010, want: mapped}, // not our vdso
		{pid: 52, at: 0x400000, want: sampler.Place{Kind: sampler.Gone}},
		{pid: 52, at: 12, want: outside},
		{pid: 50, at: 0x400001, want: in(id, 0x1001)},
	} {
		of := p.ofNow(c.pid)
		got := x.Locate(of, c.at)
		if got.Kind == sampler.Mapped && x.Number(of, []int{got.Mapping}) != 0 {
			t.Errorf("%#x in %d is in other mappings than the process's", c.at, c.pid)
		}
		if got.Mapping, got.Unproven = 0, false; got != c.want {
			t.Errorf("%#x in %d: %+v, want %+v", c.at, c.pid, got, c.want)
		}
	}
	p.places = x
	entries := entriesOf(t, bundleOf(t, p.add))
	if len(entries) != 2 || strings.Count(entries["proc/50/maps"], "\n") != 3 ||
		!strings.HasPrefix(entries["proc/50/maps"], "00500000-00501000 r-xp") ||
		strings.Count(entries["proc/51/maps"], "\n") != 1 || p.s.summary.Processes != 2 {
		t.Errorf("%d processes with mappings: %q", p.s.summary.Processes, entries)
	}
	p.follow(50)
	readAll(t, p)
	if all, err := p.neededMappings(50, nil); err != nil || strings.Count(string(all), "\n") != 6 {
		t.Errorf("of a process that is followed %q are kept, %v", all, err)
	}
}

// TestFiles lists one path for each requested build ID.
func TestFiles(t *testing.T) {
	p, id := withPlaces(t)
	p.ids[procmaps.File{Major: 8, Minor: 1, Inode: 9, Path: "/bin/also fixed"}] = id
	p.ids[procmaps.File{Major: 8, Minor: 1, Inode: 9, Path: "/bin/other"}] = buildid.New([]byte("other"))
	got := p.files(func(b []byte) bool { return slices.Equal(b, id.Bytes()) })
	want := []bundle.File{{BuildID: id.Hex(), Path: "/bin/also fixed"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestHungDevice: a file without a response delays neither the caller nor files of other devices,
// and the end of a recording only for a limited time. Its device is reported.
func TestHungDevice(t *testing.T) {
	r := newTestRoot(t)
	s := r.recording(&Options{})
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
		p.readNow(int32(50 + i%2))
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
	s := r.recording(&Options{})
	p := &processes{s: s, host: &s.host}
	object := must.Read(t, "../../fixtures/objects/bin/fixed")
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

// TestVersions: addresses of each program of a process are found in the program's own mappings, of
// which the newest are kept. An address with two explanations is ambiguous. Of sampled processes
// only code is kept.
func TestVersions(t *testing.T) {
	r := newTestRoot(t)
	p := r.processes(r.recording(&Options{PIDs: []int{60}}))
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
			p.readNow(pid)
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
		list = append(evicted(list, i), mapsCopy{program: i})
	}
	if len(list) != maxCopies || list[0].program != 3 {
		t.Errorf("%d copies, the first of program %d", len(list), list[0].program)
	}
}

// TestWholeTables: the mappings of a process that is kept whole are all in its table, and mappings
// of records come behind them.
func TestWholeTables(t *testing.T) {
	p := remapped(t)
	p.whole[50] = true
	const all = "1000-2000 r-xp 00000000 08:01 97  /a\n2000-3000 rw-p 00000000 00:00 0  [heap]\n"
	p.keep(50, 2, []byte("5000-6000 r-xp 00000000 08:01 98  /old\n"), readTime{110, 115})
	p.keep(50, 1, []byte(all), readTime{200, 210})
	p.mapped.record(&sys.Ring{}, mmapRecord(50, 300, 0x9000, 0x1000, 99, "/later"))
	x := newPlaces(p)
	of := sampler.Process{PID: 50, Program: 1, Time: 350}
	var numbers []int
	for _, at := range []uint64{0x1000, 0x9000} {
		place := x.Locate(of, at)
		if place.Kind != sampler.Mapped {
			t.Fatalf("%#x: %+v", at, place)
		}
		numbers = append(numbers, place.Mapping)
	}
	if n := x.Number(of, numbers); n != 0 {
		t.Errorf("table %d", n)
	}
	entries := entriesOf(t, bundleOf(t, func(w *bundle.Writer) error { return p.addMappings(w, x) }))
	text := entries["proc/50/maps"]
	if !strings.HasPrefix(text, all) || !strings.Contains(text[len(all):], "/later") || strings.Contains(text, "/old") {
		t.Errorf("mappings %q", text)
	}
	if layout := p.layoutOf(50, 3); len(layout.Lines()) > 0 || layout.Text() != nil {
		t.Errorf("of a program without copies: %q", layout.Text())
	}
}
