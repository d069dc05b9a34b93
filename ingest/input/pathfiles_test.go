package input

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/sideband"
)

// TestPathFiles: if several files were at one path, the build ID read at the end of the recording
// belongs to the last file, or to none.
func TestPathFiles(t *testing.T) {
	by := func(t int32, inode uint64, name string) perfbuild.Mmap {
		return perfbuild.Mmap{PID: t, Addr: 0x100000, Len: 0x1000, Maj: 8, Ino: inode, InoGen: 5,
			Filename: name}
	}
	generation := func(m perfbuild.Mmap, gen uint64) perfbuild.Mmap {
		m.InoGen = gen
		return m
	}
	device := func(m perfbuild.Mmap, minor uint32) perfbuild.Mmap {
		m.Min = minor
		return m
	}
	for _, tc := range []struct {
		name    string
		maps    []perfbuild.Mmap // at time PID, by a process of its own
		entries map[string]byte
		want    string // "inode name id" of each object
		warned  bool
	}{
		{name: "one file, mapped twice", maps: []perfbuild.Mmap{by(1, 10, "/x"), by(2, 10, "/x")},
			entries: map[string]byte{"/x": 1}, want: "10 /x 01"},
		{name: "replaced", maps: []perfbuild.Mmap{by(1, 10, "/x"), by(2, 11, "/x")},
			entries: map[string]byte{"/x": 1}, want: "10 /x -, 11 /x 01", warned: true},
		{name: "replaced, mapped often",
			maps: []perfbuild.Mmap{by(1, 10, "/x"), by(2, 10, "/x"), by(3, 11, "/x"),
				by(4, 11, "/x")}, entries: map[string]byte{"/x": 1}, want: "10 /x -, 11 /x 01",
			warned: true},
		{name: "replaced twice",
			maps:    []perfbuild.Mmap{by(1, 10, "/x"), by(2, 11, "/x"), by(3, 12, "/x")},
			entries: map[string]byte{"/x": 1}, want: "10 /x -, 11 /x -, 12 /x 01", warned: true},
		{name: "inode used again",
			maps:    []perfbuild.Mmap{by(1, 10, "/x"), generation(by(2, 10, "/x"), 6)},
			entries: map[string]byte{"/x": 1}, want: "10 /x -, 10 /x 01", warned: true},
		{name: "one after the other, on two devices", maps: []perfbuild.Mmap{by(1, 10, "/x"),
			device(by(2, 11, "/x"), 9)}, entries: map[string]byte{"/x": 1}, want: "10 /x -, 11 /x -",
			warned: true},
		{name: "turns of two containers",
			maps:    []perfbuild.Mmap{by(1, 10, "/x"), by(2, 11, "/x"), by(3, 10, "/x")},
			entries: map[string]byte{"/x": 1}, want: "10 /x -, 11 /x -", warned: true},
		{name: "both from before the recording",
			maps:    []perfbuild.Mmap{by(0, 10, "/x"), by(0, 11, "/x")},
			entries: map[string]byte{"/x": 1}, want: "10 /x -, 11 /x -", warned: true},
		{name: "moved away, proven by its new name",
			maps: []perfbuild.Mmap{by(1, 10, "/x"), by(2, 11, "/x"),
				by(3, 10, "/old")}, entries: map[string]byte{"/x": 1, "/old": 2},
			want: "10 /old 02, 10 /x 02, 11 /x 01"},
		{name: "moved away, the new one not mapped",
			maps:    []perfbuild.Mmap{by(1, 10, "/x"), by(3, 10, "/old")},
			entries: map[string]byte{"/x": 1, "/old": 2}, want: "10 /old -, 10 /x -",
			warned: true},
		{name: "deleted while mapped",
			maps:    []perfbuild.Mmap{by(1, 10, "/x"), by(2, 10, "/x (deleted)")},
			entries: map[string]byte{"/x": 1}, want: "10 /x (deleted) -, 10 /x -", warned: true},
		{name: "no ID at all", maps: []perfbuild.Mmap{by(1, 10, "/x"), by(2, 11, "/x")},
			want: "10 /x -, 11 /x -"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCapture()
			var entries []perfbuild.BuildIDEntry
			for name, id := range tc.entries {
				entries = append(entries, perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(id),
					Filename: name})
			}
			c.BuildIDs(entries...)
			for i, m := range tc.maps {
				m.PID += int32(10 * i)
				c.Mmap2(m, at(uint64(m.PID%10)))
				c.hit(m.PID, 9, cU, 0x100010)
			}
			p := fold(t, c.Bytes(), Options{})
			var got []string
			for i := range p.Objects {
				o := &p.Objects[i]
				id := "-"
				if !o.ID.IsZero() {
					id = o.ID.Hex()[:2]
				} else if o.Reason != ingest.NoBuildID {
					t.Errorf("%s: reason %s", o.File.Path, o.Reason)
				}
				got = append(got, fmt.Sprint(o.File.Inode, " ", pathInRecords(&o.File), " ", id))
			}
			slices.Sort(got)
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
			warned := slices.ContainsFunc(p.Stats.Warnings, func(w ingest.Warning) bool {
				return strings.Contains(w.Text, "containers")
			})
			if warned != tc.warned {
				t.Errorf("warnings %v", p.Stats.Warnings)
			}
		})
	}
}

// TestPathFilesAsked: Identify hears of other files at a path, and of the ID of the path
// only for the file that it is of.
func TestPathFilesAsked(t *testing.T) {
	c := newCapture()
	c.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(1), Filename: "/x"})
	for inode := uint64(10); inode < 12; inode++ {
		c.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x100000 * inode, Len: 0x1000, Ino: inode, Filename: "/x"},
			at(inode))
		c.hit(7, 20, cU, 0x100000*inode+0x10)
	}
	c.mapped(0x900000, perfbuild.Mmap{Ino: 3, Filename: "/y"})
	var asked []string
	wantBefore := map[uint64]int64{10: 10, 11: 9, 3: 18} // since the first sample at least
	fold(t, c.Bytes(), Options{Identify: func(q sideband.ObjectQuery) (buildid.ID, ingest.IDSource) {
		asked = append(asked, fmt.Sprint(q.File.Inode, q.Shared, !q.ByPath.IsZero()))
		if before, want := q.EndNanos-q.MappedNanos, wantBefore[q.File.Inode]; before != want {
			t.Errorf("inode %d was first mapped %d ns before the end, want %d", q.File.Inode, before,
				want)
		}
		return q.ByPath, ingest.IDByPath
	}})
	slices.Sort(asked)
	if want := []string{"10 true false", "11 true true", "3 false false"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}
