package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/procmaps"
	"symbolize/ingest/record/sampler"
)

// withPlaces has the mappings of process 50 saved, which has a file with a build ID, one
// that is no object, a device, a vdso and code of no file; 51 is a program of 32 bits.
func withPlaces(t *testing.T) (p *processes, id buildid.ID) {
	t.Helper()
	r := newTestRoot(t)
	p = r.processes(r.session(&Options{}))
	p.identify(buildid.New([]byte("vdso")))
	object, err := os.ReadFile("../../fixtures/objects/bin/fixed")
	if err != nil {
		t.Fatal(err)
	}
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
		p.hurry(pid)
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
	if all, err := p.wanted(50, nil); err != nil || strings.Count(string(all), "\n") != 6 {
		t.Errorf("of a process that is followed %q are kept, %v", all, err)
	}
}

// TestFiles lists paths of the build IDs that are asked for, one for each.
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
