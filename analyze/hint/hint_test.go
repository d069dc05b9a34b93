package hint

import (
	"bytes"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
)

var sampleID = buildid.New(bytes.Repeat([]byte{1}, 20))

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
	for _, tt := range []struct {
		name string
		c    Case
		o    ingest.Object
		want string
	}{
		{"file at its path", Case{Reason: ingest.NotIndexed}, user, "symbolize index " + quoted},
		{"which is not the one", Case{Reason: ingest.NotIndexed, Searched: true}, user,
			"symbolize index $(debuginfod-find executable " + hex + ")"},
		{"deleted", Case{Reason: ingest.NotIndexed}, deleted,
			"symbolize index $(debuginfod-find executable " + hex + ")"},
		{"stripped", Case{Reason: ingest.Stripped}, deleted,
			"symbolize index $(debuginfod-find debuginfo " + hex + ")"},
		{"signal handlers return to it", Case{Reason: ingest.Stripped, SignalReturn: true}, user,
			"nothing is missing: signal handlers return to this code, which has no function"},
		{"another file", Case{Reason: ingest.Mismatch}, user,
			"symbolize index $(debuginfod-find executable " + hex + ")"},
		{"kernel", Case{Reason: ingest.NotIndexed}, kernel, "symbolize index --kernel"},
		{"which does not run here", Case{Reason: ingest.NotIndexed, Searched: true}, kernel,
			"on the host that recorded: symbolize capture -o capture.data -- true"},
		{"hidden kernel", Case{Reason: ingest.KernelHidden}, kernel,
			"echo 0 > /proc/sys/kernel/kptr_restrict"},
		{"vdso", Case{Reason: ingest.NoBuildID}, ingest.Object{Kind: ingest.VDSO},
			"symbolize index --kernel"},
		{"kernel without ID", Case{Reason: ingest.NoBuildID},
			ingest.Object{Kind: ingest.Kernel, File: kernel.File}, "perf record --buildid-mmap"},
		{"no build IDs recorded", Case{Reason: ingest.NoBuildID}, ingest.Object{},
			"perf record --buildid-mmap"},
		{"recorded, and the file has none",
			Case{Reason: ingest.NoBuildID, BuildIDs: true, Captures: []string{"a b"}},
			ingest.Object{File: hostile},
			"symbolize index " + quoted + " && symbolize resolve --trust-paths 'a b'"},
		{"the same, deleted", Case{Reason: ingest.NoBuildID, BuildIDs: true},
			ingest.Object{File: deleted.File}, "gcc -Wl,--build-id"},
		{"not seen by the kernel", Case{Reason: ingest.NoBuildID}, ingest.Object{Unseen: true},
			"symbolize resolve --trust-paths"},
		{"the same, with a path", Case{Reason: ingest.NoBuildID, Captures: []string{"x.data"}},
			ingest.Object{Unseen: true, File: hostile},
			"symbolize index " + quoted + " && symbolize resolve --trust-paths x.data"},
		{"the same, deleted", Case{Reason: ingest.NoBuildID},
			ingest.Object{Unseen: true, File: deleted.File}, "gcc -Wl,--build-id"},
		{"an ended process", Case{Reason: ingest.ProcessGone, BuildIDs: true}, unmapped,
			"perf record -a -g"},
		{"outside", Case{Reason: ingest.OutsideMapping}, unmapped,
			"code without frame pointers: gcc -fno-omit-frame-pointer, or perf record --call-graph dwarf"},
		{"outside, with stack memory", Case{Reason: ingest.OutsideMapping, StackMemory: true}, unmapped,
			"code without frame pointers: gcc -fno-omit-frame-pointer"},
		{"outside, kernel", Case{Reason: ingest.OutsideObject}, kernel, ""},
	} {
		tt.c.Object = &tt.o
		if got := tt.c.For(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestEveryReason has no reason without a step, but code that nothing can name.
func TestEveryReason(t *testing.T) {
	user := ingest.Object{ID: sampleID, File: ingest.FileRef{Path: "/bin/x"}}
	for why := ingest.NotIndexed; why.String() != "unknown reason"; why++ {
		c := Case{Reason: why, Object: &user}
		if c.For() == "" && why != ingest.HypervisorCode && why != ingest.ChainBroken &&
			why != ingest.StackNotCopied && why != ingest.CallersUncertain {
			t.Errorf("%s has no hint", why)
		}
	}
	if (&Case{Object: &user}).For() != "" || (&Case{Reason: 200, Object: &user}).For() != "" {
		t.Error("a step without a reason")
	}
}

// TestProgram advises no object file that is indexed.
func TestProgram(t *testing.T) {
	for _, tt := range []struct {
		p    Program
		want string
	}{
		{Program{Reason: ingest.Stripped, Name: "f"}, "`symbolize index FILE.bpf.o`"},
		{Program{Reason: ingest.Stripped, Name: "f", Lineless: true}, "compile FILE.bpf.o with -g"},
		{Program{Reason: ingest.Stripped, Name: "f", OtherTag: true}, "has another tag"},
		{Program{Reason: ingest.Stripped}, "its tag alone"},
		{Program{Reason: ingest.ImageNotCaptured}, "its tag alone"},
		{Program{Reason: ingest.ImageNotCaptured, Name: "f"}, "records BPF programs, and"},
		{Program{Reason: ingest.Ambiguous}, "different sources"},
	} {
		if got := tt.p.For(); !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %s, want %s", tt.p, got, tt.want)
		}
	}
}
