package sideband

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/jitdump"
)

// anon is anonymous memory of a process, with code.
func anon(pid int32) perfbuild.Mmap {
	return perfbuild.Mmap{PID: pid, Addr: 0x9000, Len: 0x1000, Filename: "//anon"}
}

// jitID is an ID of a list of compiled code.
func jitID(b byte) buildid.ID { return buildid.Make(buildid.JIT, sum(b)) }

// TestProcessIdentity: processes differ by host, number and the address of the vdso.
func TestProcessIdentity(t *testing.T) {
	same := (&JITQuery{Host: "h", PID: 7, VDSO: 0x7fff0000}).Process()
	if same.IsZero() || ProcessIdentity("h", 7, 0x7fff0000).Compare(same) != 0 {
		t.Error("equal processes differ")
	}
	for _, tc := range []struct {
		name string
		pid  int32
		host string
		vdso addr.PC
	}{
		{name: "number", pid: 8, host: "h", vdso: 0x7fff0000},
		{name: "host", pid: 7, host: "g", vdso: 0x7fff0000},
		{name: "vdso", pid: 7, host: "h", vdso: 0x7fff1000},
	} {
		if ProcessIdentity(tc.host, tc.pid, tc.vdso).Compare(same) == 0 {
			t.Errorf("another %s gives the same process", tc.name)
		}
	}
	if !ProcessIdentity("h", 7, 0).IsZero() {
		t.Error("a process without a vdso has an identity")
	}
}

// TestPerfMaps: which memory gets the names of a perf map, and for which process.
func TestPerfMaps(t *testing.T) {
	for _, tc := range []struct {
		name   string
		build  func(f *perfbuild.File)
		files  []addr.Range // with functions of the map
		reused []addr.Range
		looks  []look
	}{
		{name: "memory from its mapping on", build: func(f *perfbuild.File) { f.Mmap2(anon(7), at(2)) },
			looks: []look{{7, 1, 0x9010, "-"}, {7, 2, 0x9010, "/tmp/perf-7.map+0x9010"}, {7, 2, 0xa000, "-"}}},
		{name: "code that was replaced", build: func(f *perfbuild.File) { f.Mmap2(anon(7), at(2)) },
			reused: []addr.Range{{Start: 0x8000, End: 0x9010}, {Start: 0x9100, End: 0x9110}, {Start: 0xb000, End: 0xb010}},
			looks: []look{{7, 2, 0x900f, "[ambiguous JIT]+0xf"}, {7, 2, 0x9010, "/tmp/perf-7.map+0x9010"},
				{7, 2, 0x9100, "[ambiguous JIT]+0x0"}, {7, 2, 0x9110, "/tmp/perf-7.map+0x9110"}}},
		{name: "a child has a map of its own", build: func(f *perfbuild.File) {
			f.Mmap2(anon(7), at(2))
			f.Fork(8, 7, 8, 7, at(3))
		}, looks: []look{{7, 4, 0x9010, "/tmp/perf-7.map+0x9010"}, {8, 4, 0x9010, "/tmp/perf-8.map+0x9010"}}},
		{name: "a thread is no child", build: func(f *perfbuild.File) {
			f.Mmap2(anon(7), at(2))
			f.Fork(7, 7, 9, 7, at(3))
		}, looks: []look{{7, 4, 0x9010, "/tmp/perf-7.map+0x9010"}, {9, 4, 0x9010, "-"}}},
		{name: "the memory before an exec is another program's", build: func(f *perfbuild.File) {
			f.Mmap2(anon(7), at(2))
			f.Comm(7, 7, "b", true, at(3))
			later := anon(7)
			later.Addr = 0x20000
			f.Mmap2(later, at(4))
		}, looks: []look{{7, 2, 0x9010, "//anon+0x10"}, {7, 4, 0x9010, "-"},
			{7, 4, 0x20010, "/tmp/perf-7.map+0x20010"}}},
		{name: "a later process of the same number", build: func(f *perfbuild.File) {
			f.Mmap2(anon(8), at(2))
			f.Mmap2(exe(7, "/bin/a", 1), at(2))
			f.Exit(8, 7, 8, 7, at(3))
			f.Fork(8, 7, 8, 7, at(4))
		}, looks: []look{{8, 2, 0x9010, "//anon+0x10"}, {8, 4, 0x9010, "-"}, {8, 4, 0x1010, "/bin/a+0x10"}}},
		{name: "a process without such memory", build: func(f *perfbuild.File) {
			f.Mmap2(exe(7, "/bin/a", 1), at(2))
		}, looks: []look{{7, 2, 0x1010, "/bin/a+0x10"}}},
		{name: "functions in a file", build: func(f *perfbuild.File) {
			for _, pid := range []int32{7, 8} {
				program, library := exe(pid, "/bin/app", 3), exe(pid, "/lib/libx.so.1", 4)
				program.Addr, library.Addr = 0x20000, 0x30000
				f.Mmap2(program, at(1))
				f.Mmap2(library, at(1))
				f.Mmap2(exe(pid, "/srv/a.dll", 1), at(2))
			}
			f.Mmap2(anon(7), at(2))
			f.Fork(9, 7, 9, 7, at(3))
			m := exe(7, "/bin/b", 2)
			m.BuildID = bytes.Repeat([]byte{3}, 20)
			f.Mmap2(m, at(5))
		}, files: []addr.Range{{Start: 0x800, End: 0x1010}, {Start: 0x1020, End: 0x1030}, {Start: 0x20000, End: 0x40000}},
			reused: []addr.Range{{Start: 0x1028, End: 0x1030}},
			looks: []look{{7, 4, 0x100f, "/tmp/perf-7.map+0x100f"}, {7, 4, 0x1010, "/srv/a.dll+0x10"},
				{7, 4, 0x1020, "/tmp/perf-7.map+0x1020"}, {7, 4, 0x1028, "[ambiguous JIT]+0x0"},
				{8, 4, 0x1020, "/tmp/perf-8.map+0x1020"}, {9, 4, 0x1020, "/tmp/perf-9.map+0x1020"},
				{9, 4, 0x1010, "/srv/a.dll+0x10"}, {7, 4, 0x20010, "/bin/app+0x10"}, {7, 4, 0x30010, "/lib/libx.so.1+0x10"}, {7, 6, 0x1020, "/bin/b+0x20"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			tc.build(f)
			check(t, scan(t, f, ScanOptions{JIT: func(q *JITQuery) JITCode {
				return JITCode{Map: jitID(byte(q.PID)), InFiles: tc.files, Reused: tc.reused}
			}}), tc.looks)
		})
	}
}

// TestJITDumps: functions of a jitdump file, of which one replaces another, with and without times
// by the clock of the recording.
func TestJITDumps(t *testing.T) {
	const monotonic = 1
	for _, tc := range []struct {
		name      string
		monotonic bool // the recording's clock
		arch      bool // the file's clock is the machine's
		looks     []look
		reused    string // by JITReused at 0x9100 and 0x9200
	}{
		{name: "times of one clock", monotonic: true, looks: []look{{7, 4, 0x9100, "//anon+0x100"},
			{7, 5, 0x9104, "/tmp/jit-7.dump+0x104"}, {7, 8, 0x9104, "/tmp/jit-7.dump+0x204"},
			{7, 8, 0x9204, "/tmp/jit-7.dump+0x304"}}, reused: "true true, false false"},
		{name: "the recording has another clock", looks: []look{{7, 8, 0x9104, "[ambiguous JIT]+0x4"},
			{7, 8, 0x9204, "/tmp/jit-7.dump+0x304"}}, reused: "true false, false false"},
		{name: "the file has another clock", monotonic: true, arch: true,
			looks:  []look{{7, 8, 0x9104, "[ambiguous JIT]+0x4"}, {7, 8, 0x9204, "/tmp/jit-7.dump+0x304"}},
			reused: "true false, false false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			if tc.monotonic {
				f.Events[0].Flags |= perfbuild.UseClockID
				f.Events[0].ClockID = monotonic
			}
			f.Mmap2(anon(7), at(2))
			f.Mmap2(perfbuild.Mmap{PID: 7, Addr: 0x20000, Len: 0x1000, Ino: 9, Filename: "/tmp/jit-7.dump"}, at(3))
			dump := &jitdump.File{ArchTime: tc.arch,
				Loads: []jitdump.Load{{Size: 0x10, Code: 0x100}, {Size: 0x10, Code: 0x200}, {Size: 0x10, Code: 0x300}},
				Placed: []jitdump.Placement{{Time: 5, Addr: 0x9100, Load: 0}, {Time: 8, Addr: 0x9100, Load: 1},
					{Time: 6, Addr: 0x9200, Load: 2}}}
			sb := scan(t, f, ScanOptions{JIT: func(*JITQuery) JITCode { return JITCode{Dump: jitID(2), File: dump} }})
			check(t, sb, tc.looks)
			a, aTimed := sb.Compiled.Reused(7, 0x9104)
			b, bTimed := sb.Compiled.Reused(7, 0x9204)
			if got := fmt.Sprintf("%v %v, %v %v", a, aTimed, b, bTimed); got != tc.reused {
				t.Errorf("reused %s, want %s", got, tc.reused)
			}
			if again, _ := sb.Compiled.Reused(8, 0x9104); again {
				t.Error("reused in a process without a file")
			}
		})
	}
}

// TestJITQueryTimes: the wall clock of a process's start and of the recording, by what is recorded.
func TestJITQueryTimes(t *testing.T) {
	const end, born = 1_000_000, 999_000 // ns since 1970
	for _, tc := range []struct {
		name  string
		build func(f *perfbuild.File)
		want  string // FirstNanos, EndNanos, BeginNanos, EarliestNanos
	}{
		{name: "by the file's time", build: func(f *perfbuild.File) {
			f.Words64(perfbuild.FeatureSampleTime, 100, 500)
		}, want: "999600 1000000 999800 999200"},
		{name: "by both clocks", build: func(f *perfbuild.File) {
			f.Words64(perfbuild.FeatureSampleTime, 100, 500)
			f.ClockData(1, 5000, 50)
		}, want: "5050 5450 5250 5250"},
		{name: "without the time of samples", build: func(*perfbuild.File) {}, want: "0 0 0 0"},
		{name: "without times", build: func(f *perfbuild.File) {
			f.Words64(perfbuild.FeatureSampleTime, 100, 500)
			f.Events[0].SampleType &^= perfbuild.Time
		}, want: "0 0 0 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			tc.build(f)
			f.Comm(7, 7, "node", true, at(300))
			f.Mmap2(anon(7), at(400))
			got := ""
			scan(t, f, ScanOptions{File: FileTimes{end, born}, JIT: func(q *JITQuery) JITCode {
				got = fmt.Sprint(q.FirstNanos, q.EndNanos, q.BeginNanos, q.EarliestNanos)
				return JITCode{}
			}})
			if got != tc.want {
				t.Errorf("times %s, want %s", got, tc.want)
			}
		})
	}
}

// TestBundledCode: the files of run-time compilers in bundles, with the facts about their process.
func TestBundledCode(t *testing.T) {
	const pid = bundlebuild.Process
	facts := bundle.Compiled{Began: 5, VDSO: 0x7fff0000, PerfMap: &bundle.ForeignFile{Path: "/tmp/x", Written: 6}}
	encoded, err := facts.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		entries map[string][]byte
		want    string // maps and dumps: size, begin, time of writing and vdso
	}{
		{name: "none", want: "[] []"},
		{name: "with facts", entries: map[string][]byte{bundle.PerfMapName(pid): []byte("100 10 f\n"),
			bundle.JITDumpName(pid): []byte("dump"), bundle.CompiledName(pid): encoded},
			want: "[9 5 6 0x7fff0000] [4 5 end 0x7fff0000]"},
		{name: "without facts", entries: map[string][]byte{bundle.PerfMapName(pid): []byte("100 10 f\n")},
			want: "[9 0 end 0x0] []"},
		{name: "with damaged facts", entries: map[string][]byte{bundle.PerfMapName(pid): []byte("100 10 f\n"),
			bundle.CompiledName(pid): []byte("{")}, want: "[9 0 end 0x0] []"},
		{name: "of another process", entries: map[string][]byte{bundle.PerfMapName(pid + 1): []byte("100 10 f\n")},
			want: "[] []"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := bundlebuild.NewHost()
			h.Entries = tc.entries
			b := openBundle(t, h)
			end := int64(b.Bundle.Manifest.End.Realtime)
			got := ""
			find := func(q *JITQuery) JITCode {
				list := func(files []BundledFile) []string {
					texts := []string{}
					for _, f := range files {
						f.Use()
						written := fmt.Sprint(f.Written)
						if f.Written == end {
							written = "end"
						}
						texts = append(texts, fmt.Sprintf("%d %d %s %#x", f.Size, f.Began, written, uint64(f.VDSO)))
					}
					return texts
				}
				got = fmt.Sprint(list(q.PerfMaps), list(q.Dumps))
				if q.Host != h.Name || q.EndNanos != end {
					t.Errorf("host %q, end %d", q.Host, q.EndNanos)
				}
				return JITCode{Warnings: []ingest.Warning{{Text: "odd"}}}
			}
			sb := New()
			sb.AddBundle(b)
			sb.AddProcessMaps(pid, strings.NewReader("9000-a000 r-xp 00000000 00:00 0\n"))
			sb.AddJIT(find)
			sb.Build()
			if got != tc.want {
				t.Errorf("files %s, want %s", got, tc.want)
			}
			if n := sb.Contributions()[0].Compiled; n != strings.Count(tc.want, "0x") {
				t.Errorf("%d files are counted", n)
			}
			if w := warnings(sb); len(w) == 0 || w[len(w)-1] != "odd" {
				t.Errorf("warnings %q", w)
			}
		})
	}
}

// TestJITPrograms: the program of a process is the file that was mapped first since its exec, of a
// child that of its parent.
func TestJITPrograms(t *testing.T) {
	f := perfbuild.New()
	f.Mmap2(exe(7, "/bin/sh", 1), at(1))
	f.Comm(7, 7, "node", true, at(2))
	f.Mmap2(exe(7, "/usr/bin/node", 2), at(3))
	f.Mmap2(exe(7, "/usr/lib/libc.so.6", 3), at(3))
	f.Mmap2(anon(7), at(4))
	f.Fork(8, 7, 8, 7, at(5))
	f.Mmap2(anon(9), at(6))
	sb := scan(t, f, ScanOptions{JIT: func(q *JITQuery) JITCode {
		return JITCode{Map: jitID(byte(q.PID))}
	}})
	programs := make(map[int32]string)
	for _, o := range sb.Objects.List {
		if o.Kind == ingest.PerfMap {
			programs[o.PID] = o.Program
		}
	}
	want := map[int32]string{7: "/usr/bin/node", 8: "/usr/bin/node", 9: ""}
	if !reflect.DeepEqual(programs, want) {
		t.Errorf("%v, want %v", programs, want)
	}
}
