package advice

import (
	"strings"
	"testing"

	"symbolize/ingest"
)

const hex = "0101010101010101010101010101010101010101"

// TestSteps has a step for each case, which does not advise a step that was done; a path from a
// capture cannot become another command.
func TestSteps(t *testing.T) {
	hostile := ingest.FileRef{Path: "/opt/my app/x'; rm -rf ~"}
	quoted := `'/opt/my app/x'\''; rm -rf ~'`
	user := ingest.Object{ID: sampleID, File: hostile}
	kernel := ingest.Object{Kind: ingest.Kernel, ID: sampleID,
		File: ingest.FileRef{Path: "[kernel.kallsyms]"}}
	deleted := ingest.Object{ID: sampleID, File: ingest.FileRef{Path: "/bin/x", Deleted: true}}
	unmapped := ingest.Object{Kind: ingest.Unmapped}
	memory := ingest.Object{Kind: ingest.Anonymous, File: ingest.FileRef{Path: "/memfd:sealed"}}
	for _, tt := range []struct {
		name string
		c    Case
		o    ingest.Object
		want string
	}{
		{name: "file at its path", c: Case{Reason: ingest.NotIndexed}, o: user,
			want: "symbolize index " + quoted},
		{name: "which is not the one", c: Case{Reason: ingest.NotIndexed, Searched: true},
			o:    user,
			want: "symbolize fetch --build-id " + hex},
		{name: "deleted", c: Case{Reason: ingest.NotIndexed}, o: deleted,
			want: "symbolize fetch --build-id " + hex},
		{name: "stripped", c: Case{Reason: ingest.Stripped}, o: deleted,
			want: "symbolize fetch --build-id " + hex},
		{name: "signal handlers return to it",
			c: Case{Reason: ingest.Stripped, SignalReturn: true}, o: user,
			want: "nothing is missing: signal handlers return to this code, which has no function"},
		{name: "another file", c: Case{Reason: ingest.Mismatch}, o: user,
			want: "symbolize fetch --build-id " + hex},
		{name: "kernel", c: Case{Reason: ingest.NotIndexed}, o: kernel,
			want: "symbolize index --kernel"},
		{name: "which does not run here", c: Case{Reason: ingest.NotIndexed, Searched: true},
			o:    kernel,
			want: "on the host that recorded: symbolize capture -o capture.data -- true"},
		{name: "hidden kernel", c: Case{Reason: ingest.KernelHidden}, o: kernel,
			want: "as root: echo 0 > /proc/sys/kernel/kptr_restrict && perf record --buildid-mmap -a -g"},
		{name: "vdso", c: Case{Reason: ingest.NoBuildID}, o: ingest.Object{Kind: ingest.VDSO},
			want: "symbolize index --kernel"},
		{name: "kernel without ID", c: Case{Reason: ingest.NoBuildID},
			o:    ingest.Object{Kind: ingest.Kernel, File: kernel.File},
			want: "perf record --buildid-mmap"},
		{name: "no build IDs recorded", c: Case{Reason: ingest.NoBuildID}, o: ingest.Object{},
			want: "perf record --buildid-mmap"},
		{name: "recorded, and the file has none",
			c:    Case{Reason: ingest.NoBuildID, BuildIDs: true, Captures: []string{"a b"}},
			o:    ingest.Object{File: hostile},
			want: "symbolize index " + quoted + " && symbolize resolve --trust-paths 'a b'"},
		{name: "the same, deleted", c: Case{Reason: ingest.NoBuildID, BuildIDs: true},
			o: ingest.Object{File: deleted.File}, want: "gcc -Wl,--build-id"},
		{name: "an image of .NET", c: Case{Reason: ingest.NoBuildID, Runtime: "libcoreclr.so"},
			o:    ingest.Object{File: ingest.FileRef{Path: "/srv/app/App.DLL"}},
			want: "DOTNET_PerfMapEnabled=1 perf record -g dotnet"},
		{name: "shared memory with code", c: Case{Reason: ingest.NoBuildID, BuildIDs: true},
			o: ingest.Object{File: ingest.FileRef{Path: "/dev/shm/code", Deleted: true}},
			want: "the program that makes this code has to list it: in /tmp/perf-PID.map, or in a jitdump " +
				"file with perf record -k mono"},
		{name: "not seen by the kernel", c: Case{Reason: ingest.NoBuildID},
			o:    ingest.Object{Unseen: true},
			want: "symbolize resolve --trust-paths"},
		{name: "the same, with a path",
			c:    Case{Reason: ingest.NoBuildID, Captures: []string{"x.data"}},
			o:    ingest.Object{Unseen: true, File: hostile},
			want: "symbolize index " + quoted + " && symbolize resolve --trust-paths x.data"},
		{name: "the same, deleted", c: Case{Reason: ingest.NoBuildID},
			o: ingest.Object{Unseen: true, File: deleted.File}, want: "gcc -Wl,--build-id"},
		{name: "an ended process", c: Case{Reason: ingest.ProcessGone, BuildIDs: true},
			o:    unmapped,
			want: "perf record -a -g"},
		{name: "mappings that a recorder could not read",
			c: Case{Reason: ingest.MapsNotRead, BuildIDs: true}, o: unmapped,
			want: "perf record -a -g"},
		{name: "outside", c: Case{Reason: ingest.OutsideMapping}, o: unmapped,
			want: "code without frame pointers: gcc -fno-omit-frame-pointer, or perf record --call-graph dwarf"},
		{name: "outside, with stack memory",
			c: Case{Reason: ingest.OutsideMapping, Copied: 8192}, o: unmapped,
			want: "code without frame pointers: gcc -fno-omit-frame-pointer"},
		{name: "a copy that is too small, as of clang's 8 KB",
			c: Case{Reason: ingest.StackTruncated, Copied: 8192, OtherCode: true}, o: user,
			want: "perf record --call-graph dwarf,65528"},
		{name: "the largest copy", c: Case{Reason: ingest.StackTruncated, Copied: 65280,
			OtherCode: true}, o: user,
			want: "gcc -fno-omit-frame-pointer; as root: echo 1024 > " +
				"/proc/sys/kernel/perf_event_max_stack && perf record --call-graph fp"},
		{name: "of Go", c: Case{Reason: ingest.StackTruncated, Copied: 8192,
			GoPrograms: []string{"gofmt"}}, o: user, want: "perf record --call-graph fp"},
		{name: "of Go and others", c: Case{Reason: ingest.StackTruncated, Copied: 8192,
			GoPrograms: []string{"gofmt", "a\x1b"}, OtherCode: true}, o: user,
			want: "perf record --call-graph dwarf,65528; of gofmt, a?, written in Go: " +
				"perf record --call-graph fp"},
		{name: "broken in Go", c: Case{Reason: ingest.ChainBroken,
			GoPrograms: []string{"gofmt"}}, o: user, want: "perf record --call-graph fp"},
		{name: "broken in Go and elsewhere", c: Case{Reason: ingest.ChainBroken,
			GoPrograms: []string{"gofmt"}, OtherCode: true}, o: user,
			want: "of gofmt, written in Go: perf record --call-graph fp"},
		{name: "no room in a stack map", c: Case{Reason: ingest.StackLost}, o: unmapped,
			want: "symbolize capture -o stacks.data --stacks"},
		{name: "no room in ours", c: Case{Reason: ingest.StackLost, Counted: true, BuildIDs: true},
			o: unmapped, want: "perf record -a -g"},
		{name: "node", c: Case{Reason: ingest.AnonymousMemory, Runtime: "node"}, o: unmapped,
			want: "perf record -k mono -g node --perf-prof"},
		{name: "python", c: Case{Reason: ingest.AnonymousMemory, Runtime: "python"}, o: unmapped,
			want: "from Python 3.12 on: perf record -g python3 -X perf"},
		{name: "a program that is no known compiler",
			c: Case{Reason: ingest.AnonymousMemory}, o: unmapped,
			want: "the program that makes this code has to list it: in /tmp/perf-PID.map, or in a jitdump " +
				"file with perf record -k mono"},
		{name: "a memory file, which may be a program",
			c: Case{Reason: ingest.AnonymousMemory, Runtime: "node"}, o: memory,
			want: "perf record --buildid-mmap"},
		{name: "a memory file without a build ID",
			c: Case{Reason: ingest.AnonymousMemory, Runtime: "node", BuildIDs: true}, o: memory,
			want: "perf record -k mono -g node --perf-prof"},
		{name: "an address of several functions of a run-time compiler",
			c:    Case{Reason: ingest.AddressReused, Counted: true, BuildIDs: true},
			o:    ingest.Object{Kind: ingest.Unmapped, File: ingest.FileRef{Path: ingest.AmbiguousJITPath}},
			want: "perf record -k mono -a -g"},
		{name: "an address of several BPF programs", c: Case{Reason: ingest.AddressReused}, o: kernel,
			want: "symbolize capture -o capture.data -- perf record -a -g"},
		{name: "outside, kernel", c: Case{Reason: ingest.OutsideObject}, o: kernel},
	} {
		tt.c.Object = &tt.o
		if got := tt.c.Step(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestRuntime: the program that has most samples decides, and one that hosts run for other reasons
// only where there is no other.
func TestRuntime(t *testing.T) {
	for _, tt := range []struct {
		name, main string
		objects    []string
		want       string
	}{
		{name: "main program", main: "/usr/bin/node", objects: []string{"/x/libjvm.so"}, want: "node"},
		{name: "a library alone", objects: []string{"/bin/python3.11", "/x/server/libjvm.so"},
			want: "libjvm.so"},
		{name: "another program", main: "/srv/app", objects: []string{"/lib/libc.so.6"}},
	} {
		p := &ingest.Profile{Meta: ingest.Meta{MainProgram: tt.main}}
		for _, path := range tt.objects {
			p.Objects = append(p.Objects, ingest.Object{File: ingest.FileRef{Path: path}})
		}
		if got := Runtime(p); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestEveryReason has no reason without a step, but code that nothing can name.
func TestEveryReason(t *testing.T) {
	user := ingest.Object{ID: sampleID, File: ingest.FileRef{Path: "/bin/x"}}
	for why := ingest.NotIndexed; why.String() != "unknown reason"; why++ {
		c := Case{Reason: why, Object: &user}
		if c.Step() == "" && why != ingest.HypervisorCode && why != ingest.ChainBroken &&
			why != ingest.StackNotCopied && why < ingest.CallersUncertain {
			t.Errorf("%s has no hint", why)
		}
	}
	if (&Case{Object: &user}).Step() != "" || (&Case{Reason: 200, Object: &user}).Step() != "" {
		t.Error("a step without a reason")
	}
}

// TestProgram advises no object file that is indexed.
func TestProgram(t *testing.T) {
	for _, tt := range []struct {
		p    Program
		want string
	}{
		{p: Program{Reason: ingest.Stripped, Name: "f"}, want: "`symbolize index FILE.bpf.o`"},
		{p: Program{Reason: ingest.Stripped, Name: "f", Lineless: true},
			want: "compile FILE.bpf.o with -g"},
		{p: Program{Reason: ingest.Stripped, Name: "f", OtherTag: true}, want: "has another tag"},
		{p: Program{Reason: ingest.Stripped}, want: "its tag alone"},
		{p: Program{Reason: ingest.ImageNotCaptured}, want: "its tag alone"},
		{p: Program{Reason: ingest.ImageNotCaptured, Name: "f"},
			want: "records BPF programs, and"},
		{p: Program{Reason: ingest.Ambiguous}, want: "different sources"},
	} {
		if got := tt.p.Step(); !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %s, want %s", tt.p, got, tt.want)
		}
	}
}
