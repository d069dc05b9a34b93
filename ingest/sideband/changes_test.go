package sideband

import (
	"slices"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/addrspace"
)

// TestNeededProcesses: what is known of processes with samples is kept, and of their parents.
func TestNeededProcesses(t *testing.T) {
	records := func(f *perfbuild.File) {
		f.Fork(8, 7, 8, 7, at(4)) // of another CPU: before its parent's fork in the file
		f.Mmap2(exe(6, "/bin/a", 1), at(1))
		f.Fork(7, 6, 7, 6, at(3))
		f.Comm(9, 9, "other", false, at(1))
		f.Mmap2(exe(9, "/bin/other", 2), at(2))
	}
	inherited := []look{{6, 5, 0x1010, "/bin/a+0x10"}, {7, 5, 0x1010, "/bin/a+0x10"}, {8, 5, 0x1010, "/bin/a+0x10"}}
	for _, tt := range []struct {
		name     string
		build    func(*perfbuild.File)
		other    string // code of the process 9
		comm     string // of its thread
		switches bool
	}{
		{name: "with samples", other: "-", build: func(f *perfbuild.File) {
			records(f)
			f.Sample(perfbuild.Sample{PID: 8, Time: 6})
		}},
		{name: "samples before the records", other: "-", build: func(f *perfbuild.File) {
			f.Sample(perfbuild.Sample{PID: 8, Time: 6})
			records(f)
		}},
		{name: "with context switches", other: "-", comm: "other", switches: true, build: func(f *perfbuild.File) {
			records(f)
			f.Sample(perfbuild.Sample{PID: 8, Time: 6})
			f.Switch(true, false, perfbuild.At{PID: 9, TID: 9, Time: 6})
		}},
		{name: "without samples", other: "/bin/other+0x10", comm: "other", build: records},
		{name: "samples without processes", other: "/bin/other+0x10", comm: "other", build: func(f *perfbuild.File) {
			f.Events[0].SampleType &^= perfbuild.TID
			records(f)
			f.Sample(perfbuild.Sample{Time: 6})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := perfbuild.New()
			tt.build(f)
			sb := scan(t, f, ScanOptions{Switches: tt.switches})
			check(t, sb, append(slices.Clone(inherited), look{9, 5, 0x1010, tt.other}))
			name := ""
			if comm := sb.Spaces.Thread(9, 5).Value; comm != addrspace.NoComm {
				name = sb.Threads.CommNames()[comm]
			}
			if name != tt.comm {
				t.Errorf("the name %q, want %q", name, tt.comm)
			}
			// Of every file it is known when it was mapped first.
			for i, o := range sb.Objects.List {
				if span := sb.Objects.mappedAt(uint32(i)); o.File.Path == "/bin/other" && span.first != 2 {
					t.Errorf("%s: %+v", o.File.Path, span)
				}
			}
		})
	}
}

func TestProcessChanges(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    int
		fail int // the file system is full there; 0: never
	}{
		{name: "none"}, {name: "one", n: 1}, {name: "a buffer", n: changesAtOnce}, {name: "more", n: 3*changesAtOnce + 7},
		{name: "a full disk", n: 3 * changesAtOnce, fail: 2 * changesAtOnce},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var x processChanges
			defer x.close()
			var want, kept []change
			for i := range tt.n {
				e := change{kind: uint8(i % 3), time: uint64(i), a: 1 << 40, b: 2 << 40, c: uint64(i) << 50,
					pid: int32(-i), tid: int32(3 * i), ref: uint32(2 * i), seq: uint32(i + 1), layer: 1,
					flag: i%2 > 0}
				if want = append(want, e); tt.fail > 0 && i == tt.fail {
					x.spool.Bound(x.spool.Size()) // the next write fails
				}
				if !x.add(&e) {
					kept = append(kept, e)
				}
			}
			var got []change
			if err := x.each(func(e *change) { got = append(got, *e) }); err != nil {
				t.Fatal(err)
			}
			if got = append(got, kept...); !slices.Equal(got, want) || (len(kept) > 0) != (tt.fail > 0) {
				t.Errorf("%d mappings and %d kept, want %d", len(got)-len(kept), len(kept), len(want))
			}
		})
	}
}
