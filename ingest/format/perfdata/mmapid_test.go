package perfdata

import (
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
)

// TestMmapIDs: device and inode are not read as a build ID if the kernel set its bit for another
// recorder, and IDs written by perf inject are kept.
func TestMmapIDs(t *testing.T) {
	const asks, plain = 11, 12 // IDs of the events
	const flagged = User | MiscMmapBuildID
	file := func(major, minor uint32, inode, generation uint64) perfbuild.Mmap {
		return perfbuild.Mmap{Misc: flagged, Maj: major, Min: minor, Ino: inode, InoGen: generation}
	}
	with := func(id ...byte) perfbuild.Mmap { return perfbuild.Mmap{BuildID: id} }
	short := []byte{2, 0, 0, 0, 9, 1, 0, 0} // as minor number 2 and inode 265
	sha := perfbuild.Mmap{BuildID: id20}
	for _, tc := range []struct {
		name  string
		event uint64
		mmap  perfbuild.Mmap
		lists bool // the recording lists short
		want  Mmap
	}{
		{name: "asked for", event: asks, mmap: sha, want: Mmap{BuildID: buildid.New(id20)}},
		{name: "asked for, short", event: asks, mmap: with(short...),
			want: Mmap{BuildID: buildid.New(short)}},
		{name: "by perf inject", event: plain, mmap: sha, want: Mmap{BuildID: buildid.New(id20)}},
		{name: "by perf inject, short", event: plain, mmap: with(id20[:8]...),
			want: Mmap{BuildID: buildid.New(id20[:8])}},
		{name: "short and listed", event: plain, mmap: with(short...), lists: true,
			want: Mmap{BuildID: buildid.New(short)}},
		{name: "by perf itself", event: 0, mmap: with(short...), want: Mmap{BuildID: buildid.New(short)}},
		{name: "major number 0", event: plain, mmap: file(0, 45, 12814747, 0),
			want: Mmap{Min: 45, Ino: 12814747}},
		{name: "major number of disks", event: plain, mmap: file(8, 2, 265, 0),
			want: Mmap{Maj: 8, Min: 2, Ino: 265}},
		{name: "major number of arrays", event: plain, mmap: file(9, 1, 1<<33, 0),
			want: Mmap{Maj: 9, Min: 1, Ino: 1 << 33}},
		{name: "with generation", event: plain, mmap: file(8, 1, 300, 0xfedcba98),
			want: Mmap{Maj: 8, Min: 1, Ino: 300, InoGen: 0xfedcba98}},
		{name: "major number above IDs", event: plain, mmap: file(259, 1, 300, 7),
			want: Mmap{Maj: 259, Min: 1, Ino: 300, InoGen: 7}},
		{name: "major number of 20", event: plain, mmap: file(20, 1, 300, 7),
			want: Mmap{Maj: 20, Min: 1, Ino: 300, InoGen: 7}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bothOrders(t, func(t *testing.T, b *perfbuild.File) {
				b.Events = []perfbuild.Event{
					{SampleType: allTrailer, Flags: perfbuild.SampleIDAll, IDs: []uint64{plain}},
					{SampleType: allTrailer, Flags: perfbuild.SampleIDAll | uint64(FlagBuildID),
						IDs: []uint64{asks}},
				}
				m := tc.mmap
				m.PID, m.Filename = 7, "/lib/a"
				if b.BigEndian && m.BuildID != nil && string(m.BuildID) == string(short) {
					m.BuildID = []byte{0, 0, 0, 2, 0, 0, 0, 0}
					tc.want.BuildID = buildid.New(m.BuildID)
				}
				if tc.lists {
					b.BuildIDs(perfbuild.BuildIDEntry{Misc: User, ID: m.BuildID, Filename: "/lib/a"})
				}
				at := perfbuild.At{Time: 5, ID: tc.event}
				if tc.event == 0 {
					at.Time = 0
				}
				b.Mmap2(m, at)
				f := openBuilt(t, b)
				recs := records(t, f)
				var got Mmap
				if err := f.Mmap(&recs[0], &got); err != nil {
					t.Fatal(err)
				}
				if got.BuildID.Compare(tc.want.BuildID) != 0 || got.Maj != tc.want.Maj ||
					got.Min != tc.want.Min || got.Ino != tc.want.Ino || got.InoGen != tc.want.InoGen {
					t.Errorf("%+v, want %+v", got, tc.want)
				}
			})
		})
	}
}
