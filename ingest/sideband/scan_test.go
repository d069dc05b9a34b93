package sideband

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
)

// Kernel addresses of the tests.
const (
	text   = 0xffffffff81000000
	module = 0xffffffffc0800000
	slot   = 0xffffffffc0100000
)

func at(t uint64) perfbuild.At { return perfbuild.At{Time: t} }

// by is the trailer of a record of a thread.
func by(tid int32, t uint64) perfbuild.At { return perfbuild.At{PID: tid, TID: tid, Time: t} }

// sum is a build ID of 20 equal bytes.
func sum(b byte) []byte { return bytes.Repeat([]byte{b}, 20) }

// exe is a mapping of a file at 0x1000 with an inode.
func exe(pid int32, name string, inode uint64) perfbuild.Mmap {
	return perfbuild.Mmap{PID: pid, Addr: 0x1000, Len: 0x1000, Ino: inode, Maj: 8, Filename: name}
}

// scan makes the State of a built recording.
func scan(t *testing.T, f *perfbuild.File, opts ScanOptions) *State {
	t.Helper()
	return scanBytes(t, f.Bytes(), opts)
}

func scanBytes(t *testing.T, data []byte, opts ScanOptions) *State {
	t.Helper()
	f, err := perfdata.Open("built", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	sb, err := Scan(t.Context(), f, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// user describes the mapping of an address of a process: "/bin/a+0x10", "-" for none.
func user(sb *State, pid int32, time, pc uint64) string {
	m := sb.Spaces.User(sb.Spaces.Process(pid, time).Version(), addr.PC(pc))
	if m == nil {
		return "-"
	}
	return fmt.Sprintf("%s+%#x", recordedName(&sb.Objects.List[m.Object].File), m.Offset(addr.PC(pc)))
}

// kernel describes the mapping of an address of the kernel.
func kernel(sb *State, time, pc uint64) string {
	m := sb.Spaces.InKernel(sb.Spaces.Kernel(time).Version(), addr.PC(pc))
	if m == nil {
		return "-"
	}
	o := &sb.Objects.List[m.Object]
	name := o.File.Path
	if o.Symbol != "" {
		name = o.Symbol
	}
	return fmt.Sprintf("%s+%#x", name, m.Offset(addr.PC(pc)))
}

// look is an expected mapping.
type look struct {
	pid      int32 // −1 for the kernel
	time, pc uint64
	want     string
}

func check(t *testing.T, sb *State, looks []look) {
	t.Helper()
	for _, l := range looks {
		got := ""
		if l.pid == -1 {
			got = kernel(sb, l.time, l.pc)
		} else {
			got = user(sb, l.pid, l.time, l.pc)
		}
		if got != l.want {
			t.Errorf("process %d at time %d, address %#x: %s, want %s", l.pid, l.time, l.pc, got, l.want)
		}
	}
}

// TestMappings: records of user mappings, forks and execs become address spaces over time.
func TestMappings(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(f *perfbuild.File)
		looks []look
	}{
		{name: "before the recording", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a", 1), perfbuild.At{})
		}, looks: []look{{7, 0, 0x1010, "/bin/a+0x10"}, {7, 99, 0x1fff, "/bin/a+0xfff"},
			{7, 99, 0x2000, "-"}, {8, 99, 0x1010, "-"}}},
		{name: "text moved to huge pages", build: func(f *perfbuild.File) {
			const huge = 2 << 20
			code := exe(7, "/usr/bin/node", 1)
			code.Addr, code.Len, code.PgOff = huge-0x1000, 3*huge, 0x1000
			f.Mmap2(code, at(1))
			anon := perfbuild.Mmap{PID: 7, Addr: huge, Len: 2 * huge, Filename: "//anon"}
			f.Mmap2(anon, at(5))
			f.Mmap2(anon, at(6)) // its protection changed
			anon.Addr, anon.Len = huge, huge
			f.Mmap2(anon, at(7))
		}, looks: []look{{7, 4, 2<<20 + 5, "/usr/bin/node+0x2005"}, {7, 5, 2<<20 - 1, "/usr/bin/node+0x1fff"},
			{7, 5, 2 << 20, "[anon:/usr/bin/node]+0x0"}, {7, 6, 5 << 20, "[anon:/usr/bin/node]+0x300000"},
			{7, 7, 3 << 20, "[anon:/usr/bin/node]+0x100000"}, {7, 7, 6 << 20, "/usr/bin/node+0x402000"}}},
		{name: "other memory without a file", build: func(f *perfbuild.File) {
			const huge = 2 << 20
			code := exe(7, "/lib/gone.so", 1)
			code.Addr, code.Len = huge, 2*huge
			f.Mmap2(code, at(1))
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: huge, Len: huge - 0x1000, Filename: "//anon"}, at(2)) // its size
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 2 * huge, Len: 2 * huge, Filename: "//anon"}, at(3))  // beyond the code
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 8 * huge, Len: huge, Filename: "//anon"}, at(4))      // no code
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 9 * huge, Len: huge, Filename: "[anon:name]"}, at(5)) // in use
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 9 * huge, Len: huge, Filename: "//anon"}, at(6))
		}, looks: []look{{7, 9, 2 << 20, "//anon+0x0"}, {7, 9, 4 << 20, "//anon+0x0"}, {7, 9, 16 << 20, "//anon+0x0"},
			{7, 9, 18 << 20, "//anon+0x0"}}},
		{name: "from its own time on", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a", 1), at(5))
		}, looks: []look{{7, 4, 0x1010, "-"}, {7, 5, 0x1010, "/bin/a+0x10"}}},
		{name: "records of several CPUs are not in order of time", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/late", 2), at(9))
			f.Mmap2(exe(7, "/bin/early", 1), at(5))
		}, looks: []look{{7, 6, 0x1010, "/bin/early+0x10"}, {7, 9, 0x1010, "/bin/late+0x10"}}},
		{name: "at one time the order of the file decides", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/first", 1), at(5))
			f.Mmap2(exe(7, "/bin/second", 2), at(5))
		}, looks: []look{{7, 5, 0x1010, "/bin/second+0x10"}}},
		{name: "a later mapping covers a part", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a", 1), at(5))
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x1400, Len: 0x400, PgOff: 0x8000, Ino: 2,
				Filename: "/bin/b"}, at(6))
		}, looks: []look{{7, 6, 0x13ff, "/bin/a+0x3ff"}, {7, 6, 0x1400, "/bin/b+0x8000"},
			{7, 6, 0x1800, "/bin/a+0x800"}, {7, 5, 0x1400, "/bin/a+0x400"}}},
		{name: "data is not code", build: func(f *perfbuild.File) {
			m := exe(7, "/bin/a", 1)
			m.Misc = perfbuild.User | 1<<13
			f.Mmap2(m, at(5))
		}, looks: []look{{7, 9, 0x1010, "-"}}},
		{name: "an exec removes all mappings", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a", 1), at(5))
			f.Comm(7, 7, "b", true, at(6))
			m := exe(7, "/bin/b", 2)
			m.Addr = 0x5000
			f.Mmap2(m, at(7))
		}, looks: []look{{7, 5, 0x1010, "/bin/a+0x10"}, {7, 7, 0x1010, "-"},
			{7, 7, 0x5010, "/bin/b+0x10"}}},
		{name: "another name removes nothing", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a", 1), at(5))
			f.Comm(7, 7, "worker", false, at(6))
		}, looks: []look{{7, 7, 0x1010, "/bin/a+0x10"}}},
		{name: "a child has the mappings of its parent", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a", 1), at(5))
			f.Fork(8, 7, 8, 7, at(6))
			m := exe(7, "/bin/b", 2)
			m.Addr = 0x5000
			f.Mmap2(m, at(7))
		}, looks: []look{{8, 6, 0x1010, "/bin/a+0x10"}, {8, 5, 0x1010, "-"}, {8, 7, 0x5010, "-"},
			{7, 7, 0x5010, "/bin/b+0x10"}}},
		{name: "a later process of the same number", build: func(f *perfbuild.File) {
			f.Mmap2(exe(8, "/bin/old", 1), at(3))
			f.Exit(8, 7, 8, 7, at(4))
			f.Mmap2(exe(7, "/bin/a", 2), at(5))
			f.Fork(8, 7, 8, 7, at(6))
		}, looks: []look{{8, 5, 0x1010, "/bin/old+0x10"}, {8, 6, 0x1010, "/bin/a+0x10"}}},
		{name: "the maps of a synthesized fork follow", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a", 1), perfbuild.At{})
			f.ForkSynthesized(8, 7, 8, 7)
		}, looks: []look{{8, 9, 0x1010, "-"}}},
		{name: "a deleted file is another object", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a (deleted)", 1), at(5))
			f.Mmap2(exe(8, "/bin/a", 2), at(5))
		}, looks: []look{{7, 5, 0x1010, "/bin/a (deleted)+0x10"}, {8, 5, 0x1010, "/bin/a+0x10"}}},
		{name: "without times positions decide", build: func(f *perfbuild.File) {
			f.Events[0].SampleType &^= perfbuild.Time
			f.Mmap2(exe(7, "/bin/a", 1), perfbuild.At{})
			f.Sample(perfbuild.Sample{PID: 7})
			f.Mmap2(exe(7, "/bin/b", 2), perfbuild.At{})
		}, looks: []look{{7, 0, 0x1010, "/bin/a+0x10"}, {7, 1 << 20, 0x1010, "/bin/b+0x10"}}},
		{name: "names of memory without a file", build: func(f *perfbuild.File) {
			for i, name := range []string{"//anon", "[stack:12]", "/SYSV00000000 (deleted)", "[heap]",
				"anon_inode:[perf_event]"} {
				f.Mmap2(perfbuild.Mmap{PID: 7, Addr: uint64(i+1) << 12, Len: 0x1000, Filename: name}, at(5))
			}
		}, looks: []look{{7, 5, 0x1010, "//anon+0x10"}, {7, 5, 0x2000, "[stack]+0x0"},
			{7, 5, 0x3000, "/SYSV+0x0"}, {7, 5, 0x4000, "[heap]+0x0"},
			{7, 5, 0x5000, "anon_inode:[perf_event]+0x0"}}},
		{name: "the vdso of a 32-bit process", build: func(f *perfbuild.File) {
			f.FeatureString(perfbuild.FeatureArch, "x86_64")
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0xf7f00000, Len: 0x1000, Filename: "[vdso]"}, at(5))
			f.Mmap2(perfbuild.Mmap{PID: 8, Addr: 0x7fff00000000, Len: 0x1000, Filename: "[vdso]"}, at(5))
		}, looks: []look{{7, 5, 0xf7f00010, "[vdso32]+0x10"}, {8, 5, 0x7fff00000010, "[vdso]+0x10"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			tc.build(f)
			check(t, scan(t, f, ScanOptions{}), tc.looks)
		})
	}
}

// TestKernelMappings: the kernel, its modules and its JITed code over time.
func TestKernelMappings(t *testing.T) {
	const program = "bpf_prog_a0a0a0a0a0a0a0a0_f"
	tag := [8]byte(sum(0xa0))
	for _, tc := range []struct {
		name  string
		build func(f *perfbuild.File)
		looks []look
	}{
		{name: "the kernel from its reference symbol", build: func(f *perfbuild.File) {
			f.KernelMap("_stext", text+0x100, text, 0x1000000)
		}, looks: []look{{-1, 5, text + 0x110, "[kernel.kallsyms]+0x10"}}},
		{name: "after the end of the recorded map", build: func(f *perfbuild.File) {
			f.FeatureString(perfbuild.FeatureArch, "x86_64")
			f.KernelMap("_text", text, text, 0x1000)
		}, looks: []look{{-1, 5, text + 0x2000000, "[kernel.kallsyms]+0x2000000"},
			{-1, 5, 0xffffffffc0000000, "-"}}},
		{name: "hidden addresses", build: func(f *perfbuild.File) {
			f.KernelMap("_text", 0, 0, ^uint64(0))
		}, looks: []look{{-1, 5, text, "-"}}},
		{name: "modules by name and by file", build: func(f *perfbuild.File) {
			f.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: module, Len: 0x1000,
				Filename: "[ext4]"}, at(5))
			f.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: module + 0x1000, Len: 0x1000,
				Filename: "/lib/modules/6/nf-nat.ko.xz"}, at(5))
		}, looks: []look{{-1, 5, module + 0x10, "[ext4]+0x10"}, {-1, 5, module + 0x1010, "[nf_nat]+0x10"},
			{-1, 4, module, "-"}}},
		{name: "a program comes and goes", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 64, 1, false, program, by(3, 5))
			f.BPFEvent(1, 41, tag, by(3, 5))
			f.KSymbol(slot, 64, 1, true, program, by(3, 8))
		}, looks: []look{{-1, 4, slot, "-"}, {-1, 5, slot + 4, program + "+0x4"},
			{-1, 5, slot + 64, "-"}, {-1, 8, slot, "-"}}},
		{name: "two programs at one address", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 64, 1, false, program, by(3, 5))
			f.BPFEvent(1, 41, tag, by(3, 5))
			f.KSymbol(slot, 64, 1, true, program, by(3, 6))
			f.KSymbol(slot, 64, 1, false, program+"2", by(3, 7))
			f.BPFEvent(1, 42, tag, by(3, 7))
		}, looks: []look{{-1, 5, slot, program + "+0x0"}, {-1, 7, slot, program + "2+0x0"}}},
		{name: "a program wins over the page of a trampoline", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 64, 1, false, program, by(3, 5))
			f.BPFEvent(1, 41, tag, by(3, 5))
			f.KSymbol(slot, 4096, 1, false, "bpf_trampoline_1", by(3, 6))
		}, looks: []look{{-1, 6, slot, program + "+0x0"}, {-1, 6, slot + 64, "bpf_trampoline_1+0x40"}}},
		{name: "not JITed", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 0, 1, false, program, by(3, 5))
		}, looks: []look{{-1, 5, slot, "-"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			tc.build(f)
			check(t, scan(t, f, ScanOptions{}), tc.looks)
		})
	}
}

// TestThreadNames: names of threads over time.
func TestThreadNames(t *testing.T) {
	f := perfbuild.New()
	f.Comm(7, 7, "shell", false, perfbuild.At{})
	f.Fork(8, 7, 8, 7, at(5))
	f.Comm(8, 8, "ls", true, at(6))
	f.Fork(8, 8, 9, 8, at(7))
	f.Comm(8, 9, "helper", false, at(8))
	sb := scan(t, f, ScanOptions{})
	for _, tc := range []struct {
		tid  int32
		time uint64
		want string
	}{{0, 5, "swapper"}, {7, 1, "shell"}, {8, 4, ":8"}, {8, 5, "shell"}, {8, 6, "ls"}, {9, 7, "ls"},
		{9, 8, "helper"}, {8, 8, "ls"}, {1 << 22, 8, ":4194304"}} {
		name := sb.Spaces.Thread(tc.tid, tc.time)
		if got := sb.Threads.CommName(CommCode(name.Value, tc.tid)); got != tc.want {
			t.Errorf("thread %d at time %d: %q, want %q", tc.tid, tc.time, got, tc.want)
		}
	}
}

// TestBuildIDs: which build ID the objects of a recording get, and from where.
func TestBuildIDs(t *testing.T) {
	listed := func(name string, id byte) perfbuild.BuildIDEntry {
		return perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(id), Filename: name}
	}
	kernelEntry := func(name string, id byte) perfbuild.BuildIDEntry {
		return perfbuild.BuildIDEntry{Misc: perfbuild.Kernel, ID: sum(id), Filename: name}
	}
	mod := func(name string, id byte) perfbuild.Mmap {
		m := perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Len: 0x1000, Filename: name,
			Addr: module + uint64(len(name))<<12}
		if id != 0 {
			m.BuildID = sum(id)
		}
		return m
	}
	withID := func(m perfbuild.Mmap, id byte) perfbuild.Mmap {
		m.BuildID, m.Ino, m.Maj = sum(id), 0, 0
		return m
	}
	for _, tc := range []struct {
		name  string
		maps  []perfbuild.Mmap // at times 1, 2, …
		lists []perfbuild.BuildIDEntry
		want  string // of the objects: "name ID source", sorted
	}{
		{name: "recorded", maps: []perfbuild.Mmap{withID(exe(7, "/a", 1), 1)}, want: "/a 01 recorded"},
		{name: "by path", maps: []perfbuild.Mmap{exe(7, "/a", 1)},
			lists: []perfbuild.BuildIDEntry{listed("/a", 1)}, want: "/a 01 listed for the path"},
		{name: "of another path", maps: []perfbuild.Mmap{exe(7, "/a", 1)},
			lists: []perfbuild.BuildIDEntry{listed("/b", 1)}, want: "/a no build ID"},
		{name: "by another name of the file", maps: []perfbuild.Mmap{exe(7, "/a", 1), exe(8, "/b", 1)},
			lists: []perfbuild.BuildIDEntry{listed("/b", 1)},
			want:  "/a 01 recorded for the same file, /b 01 listed for the path"},
		{name: "two IDs of one path", maps: []perfbuild.Mmap{exe(7, "/a", 1)},
			lists: []perfbuild.BuildIDEntry{listed("/a", 1), listed("/a", 2)}, want: "/a no build ID"},
		{name: "of a virtual machine", maps: []perfbuild.Mmap{exe(7, "/a", 1)},
			lists: []perfbuild.BuildIDEntry{{PID: 9, Misc: perfbuild.GuestUser, ID: sum(1), Filename: "/a"}},
			want:  "/a no build ID"},
		{name: "replaced: the last file has it", maps: []perfbuild.Mmap{exe(7, "/a", 1), exe(8, "/a", 2)},
			lists: []perfbuild.BuildIDEntry{listed("/a", 1)},
			want:  "/a 01 listed for the path, /a no build ID"},
		{name: "files of two containers",
			maps:  []perfbuild.Mmap{exe(7, "/a", 1), exe(8, "/a", 2), exe(9, "/a", 1)},
			lists: []perfbuild.BuildIDEntry{listed("/a", 1)}, want: "/a no build ID, /a no build ID"},
		{name: "deleted: not the file at the path",
			maps: []perfbuild.Mmap{exe(7, "/a (deleted)", 1), exe(8, "/a", 2)},
			lists: []perfbuild.BuildIDEntry{listed("/a", 1),
				listed("/a (deleted)", 2)},
			want: "/a (deleted) 02 listed for the path, /a 01 listed for the path"},
		{name: "files of other content share an ID", maps: []perfbuild.Mmap{withID(exe(7, "/a", 1), 1),
			{PID: 8, Addr: 0x1000, Len: 0x1000, PgOff: 0x7000, BuildID: sum(1), Filename: "/b"}},
			want: "/a ambiguous, /b ambiguous"},
		{name: "copies of a file share an ID",
			maps: []perfbuild.Mmap{withID(exe(7, "/a", 1), 1), withID(exe(8, "/b", 2), 1)},
			want: "/a 01 recorded, /b 01 recorded"},
		{name: "modules", maps: []perfbuild.Mmap{mod("[ext4]", 1), mod("[nf_nat]", 0)},
			lists: []perfbuild.BuildIDEntry{kernelEntry("/lib/nf-nat.ko", 2)},
			want:  "[ext4] 01 recorded, [nf_nat] 02 listed for the path"},
		{name: "modules share an ID", maps: []perfbuild.Mmap{mod("[a]", 1), mod("[bc]", 1)},
			want: "[a] ambiguous, [bc] ambiguous"},
		{name: "a module listed as a file of user mode", maps: []perfbuild.Mmap{mod("[kvm]", 0)},
			lists: []perfbuild.BuildIDEntry{listed("/lib/kvm.ko", 1)}, want: "[kvm] 01 listed for the path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			f.BuildIDs(tc.lists...)
			for i, m := range tc.maps {
				f.Mmap2(m, at(uint64(i+1)))
			}
			sb := scan(t, f, ScanOptions{})
			x := NewIdentifier(sb, ObjectQuery{}, nil)
			var got []string
			for _, o := range sb.Objects.List[NumFixed:] {
				x.Identify(&o)
				text := o.Reason.String()
				if !o.ID.IsZero() {
					text = o.ID.Hex()[:2] + " " + o.IDSource.String()
				}
				got = append(got, recordedName(&o.File)+" "+text)
			}
			slices.Sort(got)
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
		})
	}
}

// TestIdentifyQuery: the queries for files without a recorded build ID, and the use of their
// answers.
func TestIdentifyQuery(t *testing.T) {
	f := perfbuild.New()
	f.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(1), Filename: "/listed"})
	f.Mmap2(exe(7, "/listed", 1), at(100))
	f.Mmap2(exe(8, "/unknown", 2), at(100))
	sb := scan(t, f, ScanOptions{})
	answers := map[string]buildid.ID{"/unknown": buildid.New(sum(2))}
	x := NewIdentifier(sb, ObjectQuery{Host: "h", EndNanos: 1000},
		func(q ObjectQuery) (buildid.ID, ingest.IDSource) {
			if q.Host != "h" || q.MappedNanos != 1000-(500-100) || q.Shared {
				t.Errorf("query %+v", q)
			}
			if q.File.Path == "/listed" && q.ByPath.Hex()[:2] != "01" {
				t.Errorf("%s: by path %s", q.File.Path, q.ByPath)
			}
			return answers[q.File.Path], ingest.IDProven
		})
	x.From, x.To = 50, 500
	for _, o := range sb.Objects.List[NumFixed:] {
		x.Identify(&o)
		want := answers[o.File.Path] // a zero answer refutes the ID of the path
		if o.ID.Compare(want) != 0 {
			t.Errorf("%s: %s, want %s", o.File.Path, o.ID, want)
		}
	}
	if !slices.Equal(x.Disowned, []string{"/listed"}) {
		t.Errorf("disowned %q", x.Disowned)
	}
}

// TestProcessMaps: copies of /proc/PID/maps.
func TestProcessMaps(t *testing.T) {
	sb := New()
	found := sb.AddProcessMaps(7, strings.NewReader("1000-2000 r--p 00000000 08:01 5 /bin/a\n"+
		"2000-3000 r-xp 00001000 08:01 5 /bin/a\n"+
		"3000-4000 r-xp 00000000 00:00 0 \n"+
		"not a line of maps\n"))
	if !found || sb.AddProcessMaps(8, strings.NewReader("1000-2000 rw-p 00000000 00:00 0\n")) {
		t.Error("code was not found, or found where there is none")
	}
	sb.Build()
	check(t, sb, []look{{7, 0, 0x1010, "-"}, {7, 0, 0x2010, "/bin/a+0x1010"}, {7, 0, 0x3010, "//anon+0x10"}})
}

// TestSpaceOf: programs of a process after the first have address spaces of their own.
func TestSpaceOf(t *testing.T) {
	sb := New()
	sb.SeparatePrograms()
	first, second, other := sb.SpaceOf(7, 0), sb.SpaceOf(7, 1), sb.SpaceOf(8, 1)
	if first != 7 || second >= 0 || other >= 0 || second == other || sb.SpaceOf(7, 1) != second {
		t.Errorf("spaces %d, %d, %d", first, second, other)
	}
}

// TestSimpleperfFiles: functions that simpleperf lists, of the kernel, of perf maps and of files
// without a build ID.
func TestSimpleperfFiles(t *testing.T) {
	f := perfbuild.New()
	f.Files(
		perfbuild.SymbolFile{Path: "[kernel.kallsyms]", Type: 0, NoOffset: true,
			Symbols: []perfbuild.FileSymbol{{Addr: text, Size: 0x100, Name: "do_work"}}},
		perfbuild.SymbolFile{Path: "/tmp/perf-7.map", Type: 4, NoOffset: true,
			Symbols: []perfbuild.FileSymbol{{Addr: 0x9000, Size: 0x10, Name: "js"}}},
		perfbuild.SymbolFile{Path: "/bin/a", Type: 2, Symbols: []perfbuild.FileSymbol{
			{Addr: 0x10, Size: 8, Name: "main"}}},
		perfbuild.SymbolFile{Path: "/app.dex", Type: 3, NoOffset: true,
			Symbols: []perfbuild.FileSymbol{{Addr: 0x20, Size: 8, Name: "App.run"}}})
	f.Mmap2(exe(7, "/bin/a", 1), at(1))
	dex := exe(7, "/app.dex", 2)
	dex.Addr = 0x5000
	f.Mmap2(dex, at(1))
	f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x9000, Len: 0x1000, Filename: "//anon"}, at(3))
	sb := scan(t, f, ScanOptions{})
	check(t, sb, []look{{-1, 0, text + 8, "do_work+0x8"}, {-1, 0, text + 0x100, "-"},
		{7, 3, 0x9008, "/tmp/perf-7.map+0x9008"}, {7, 3, 0x9010, "//anon+0x10"}})
	x := NewIdentifier(sb, ObjectQuery{}, nil)
	for i, o := range sb.Objects.List {
		if o.Kind != ingest.ELF || o.File.Path != "/bin/a" && o.File.Path != "/app.dex" {
			continue
		}
		if x.Identify(&o); o.IDSource != ingest.IDDerived {
			t.Errorf("%s: ID %s, %s", o.File.Path, o.ID, o.IDSource)
		}
		if exact := sb.ExactAddresses(uint32(i)); exact != (o.File.Path == "/app.dex") {
			t.Errorf("%s: exact addresses %v", o.File.Path, exact)
		}
	}
}

// TestCompiledCode: for which processes compiled code is queried, and where it is mapped.
func TestCompiledCode(t *testing.T) {
	f := perfbuild.New()
	f.FeatureString(perfbuild.FeatureHostname, "h")
	anon := perfbuild.Mmap{PID: 7, Addr: 0x9000, Len: 0x1000, Filename: "//anon"}
	f.Mmap2(exe(7, "/bin/node", 1), at(1))
	f.Mmap2(anon, at(2))
	f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x7fff00000000, Len: 0x1000, Filename: "[vdso]"}, at(1))
	f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x20000, Len: 0x1000, Ino: 9, Filename: "/tmp/jit-7.dump"}, at(3))
	f.Mmap2(exe(8, "/bin/plain", 2), at(1))
	f.Mmap2(anon, at(5)) // its protection changed: functions stay
	var asked []string
	sb := scan(t, f, ScanOptions{JIT: func(q *JITQuery) JITCode {
		asked = append(asked, fmt.Sprint(q.PID, q.Host, q.Memory, q.Dump, q.VDSO))
		return JITCode{Map: buildid.Make(buildid.JIT, sum(1)), Dump: buildid.Make(buildid.JIT, sum(2)),
			File: &jitdump.File{Loads: []jitdump.Load{{Size: 0x10, Code: 0x300}},
				Placed: []jitdump.Placement{{Addr: 0x9100, Load: 0}}}}
	}})
	want := []string{fmt.Sprint(7, "h", []addr.Range{{Start: 0x9000, End: 0xa000}}, "/tmp/jit-7.dump",
		addr.PC(0x7fff00000000))}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	check(t, sb, []look{{7, 9, 0x9008, "/tmp/perf-7.map+0x9008"}, {7, 9, 0x9104, "/tmp/jit-7.dump+0x304"},
		{7, 9, 0x9110, "/tmp/perf-7.map+0x9110"}, {8, 9, 0x1010, "/bin/plain+0x10"}})
}

// TestModuleLists: functions of a module without a build ID, by kallsyms of the same boot alone.
func TestModuleLists(t *testing.T) {
	for _, tc := range []struct {
		name string
		text uint64 // of _text in the list
		want string
	}{
		{name: "of the boot", text: text, want: "mod_work+0x4"},
		{name: "of another boot", text: text + 0x200000, want: "[worker]+0x104"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kallsyms")
			list := fmt.Sprintf("%x T _text\n%x t mod_init\t[worker]\n%x t mod_work\t[worker]\n", tc.text,
				uint64(module), uint64(module+0x100))
			must.Write(t, path, []byte(list))
			f := perfbuild.New()
			f.KernelMap("_text", text, text, 0x1000000)
			f.Mmap2(perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: module, Len: 0x1000,
				Filename: "[worker]"}, at(5))
			check(t, scan(t, f, ScanOptions{Kallsyms: []string{path}}),
				[]look{{-1, 6, module + 0x104, tc.want}})
		})
	}
}

// TestBundles: what a bundle adds to a recording of its boot, and why one of another boot adds
// nothing.
func TestBundles(t *testing.T) {
	for _, tc := range []struct {
		name  string
		alter func(h *bundlebuild.Host) // of the bundle
		lacks int                       // of the recording
		want  string
	}{
		{name: "all is recorded", want: "taken from b: the place of 1 kernel module"},
		{name: "no information of programs", lacks: bundlebuild.NoInfo,
			want: "taken from b: code and lines of 2 BPF programs, the place of 1 kernel module"},
		{name: "no records of programs", lacks: bundlebuild.NoInfo | bundlebuild.NoSymbols,
			want: "taken from b: code and lines of 2 BPF programs, names of 3 BPF functions, " +
				"the place of 1 kernel module"},
		{name: "no mappings", lacks: bundlebuild.NoProcess,
			want: "taken from b: the place of 1 kernel module, the mappings of 1 process"},
		{name: "no address of the kernel", lacks: bundlebuild.NoKernel,
			want: "taken from b: the place of 1 kernel module, the address of the kernel"},
		{name: "another kernel", alter: func(h *bundlebuild.Host) { h.Kernel[0]++ },
			want: "nothing taken from b: it comes from another kernel"},
		{name: "another boot", alter: func(h *bundlebuild.Host) { h.Text += 0x200000 },
			want: "nothing taken from b: it comes from another boot"},
		{name: "another time", alter: func(h *bundlebuild.Host) { h.Shift = 1 << 40 },
			want: "nothing taken from b: no time in common"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := bundlebuild.NewHost()
			data := h.PerfData(tc.lacks)
			if tc.alter != nil {
				tc.alter(h)
			}
			packed := h.Bundle()
			b, err := bundle.Open("b", bytes.NewReader(packed), int64(len(packed)))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			r, size, err := b.Entry(bundle.PerfDataName)
			if err != nil {
				t.Fatal(err)
			}
			records, err := perfdata.Open("b", r, size)
			if err != nil {
				t.Fatal(err)
			}
			sb := scanBytes(t, data, ScanOptions{Bundles: []Bundle{{Path: "b", Bundle: b, Records: records,
				Programs: func() ([]bpf.Program, error) { return ReadPrograms(records) }}}})
			list := sb.Contributions()
			if len(list) != 1 || !strings.HasPrefix(list[0].String(), tc.want) {
				t.Errorf("%d contributions, %s\nwant %s", len(list), list[0].String(), tc.want)
			}
		})
	}
}

// TestContainment: control groups and namespaces of threads over time.
func TestContainment(t *testing.T) {
	f := perfbuild.New()
	f.Cgroup(5, "/a.slice", at(1))
	f.Namespaces(7, 7, [][2]uint64{{4, 100}}, at(5))
	f.Namespaces(7, 7, [][2]uint64{{4, 90}}, at(2))
	sb := scan(t, f, ScanOptions{})
	if got := sb.Threads.CgroupPath(5) + sb.Threads.CgroupPath(6); got != "/a.slice" {
		t.Errorf("paths %q", got)
	}
	for time, want := range map[uint64]uint64{1: 0, 2: 90, 4: 90, 5: 100, 9: 100} {
		if got := sb.Threads.Namespace(7, time, 0); got != want {
			t.Errorf("time %d: namespace %d, want %d", time, got, want)
		}
	}
}

// TestChunks: every record is in one chunk, and a counter continues across chunks.
func TestChunks(t *testing.T) {
	f := perfbuild.New()
	f.Events[0].SampleType |= perfbuild.Read
	f.Events[0].ReadFormat = 1 << 2 // ID
	for i := range uint64(100) {
		f.Sample(perfbuild.Sample{PID: 7, Time: i + 1, Read: []uint64{10 * (i + 1), 11}})
	}
	sb := scan(t, f, ScanOptions{ChunkSize: 500})
	x := &sb.Records
	if x.NumChunks() < 5 {
		t.Fatalf("%d chunks", x.NumChunks())
	}
	total, samples := uint64(0), 0
	var r *perfdata.RecordReader
	var s perfdata.Sample
	for i := range x.NumChunks() {
		counters := x.CountersFrom(x.Chunk(i))
		for r = x.Read(r, x.Chunk(i)); r.Next(); {
			if err := x.File.DecodeSample(r.Record(), &s); err != nil {
				t.Fatal(err)
			}
			samples++
			for _, n := range counters.Counts(&s, nil) {
				if n.Lower || n.Event != 0 {
					t.Errorf("count %+v", n)
				}
				total += n.Count
			}
		}
	}
	if samples != 100 || total != 1000 {
		t.Errorf("%d samples with %d counts, want 100 with 1000", samples, total)
	}
}

// TestPaddedIDs: all build IDs of a list by perf 6.12.0 are used, with one warning.
func TestPaddedIDs(t *testing.T) {
	f := perfbuild.New()
	f.BuildIDs(perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(1), Filename: "/a", Zeros: 36},
		perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: sum(2), Filename: "/b", Zeros: 36})
	f.Mmap2(exe(7, "/a", 1), at(1))
	f.Mmap2(exe(7, "/b", 2), at(1))
	sb := scan(t, f, ScanOptions{})
	if got := identified(sb, NewIdentifier(sb, ObjectQuery{}, nil)); strings.Count(got, "listed for the path") != 2 {
		t.Error(got)
	}
	if w := warnings(sb); len(w) != 1 || !strings.Contains(w[0], "perf 6.12.0") {
		t.Errorf("warnings %q", w)
	}
}
