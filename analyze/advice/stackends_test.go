package advice

import (
	"fmt"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// TestHintsOfStackEnds has copied stacks that end early in programs of Go, known by their files or,
// indexed with --names-only, by the runtime's names, and in others.
func TestHintsOfStackEnds(t *testing.T) {
	const larger, fp = "perf record --call-graph dwarf,65528", "perf record --call-graph fp"
	gofmt := profilebuild.Frame{Name: "main.main", File: "/src/cmd/gofmt/gofmt.go"}
	stripped := profilebuild.Frame{Name: "runtime.mallocgc"}
	clang := profilebuild.Frame{Name: "_ZN5clang4Sema", File: "/src/clang/lib/Sema/Sema.cpp"}
	for _, c := range []struct {
		name   string
		reason ingest.Reason
		copied uint64
		ends   []profilebuild.Frame // of stacks, outermost
		want   string
	}{
		{name: "clang with 8 KB", reason: ingest.StackTruncated, copied: 8192,
			ends: []profilebuild.Frame{clang}, want: larger},
		{name: "clang with all that can be copied", reason: ingest.StackTruncated, copied: 65280,
			ends: []profilebuild.Frame{clang},
			want: "gcc -fno-omit-frame-pointer; as root: echo 1024 > " +
				"/proc/sys/kernel/perf_event_max_stack && " + fp},
		{name: "Go", reason: ingest.StackTruncated, copied: 8192,
			ends: []profilebuild.Frame{gofmt}, want: fp},
		{name: "Go without lines", reason: ingest.StackTruncated, copied: 8192,
			ends: []profilebuild.Frame{stripped}, want: fp},
		{name: "both", reason: ingest.StackTruncated, copied: 8192,
			ends: []profilebuild.Frame{clang, gofmt, stripped},
			want: larger + "; of prog1, prog2, written in Go: " + fp},
		{name: "broken", reason: ingest.ChainBroken, copied: 8192,
			ends: []profilebuild.Frame{clang}},
		{name: "broken in Go", reason: ingest.ChainBroken, copied: 8192,
			ends: []profilebuild.Frame{gofmt}, want: fp},
	} {
		b := profilebuild.New(profilebuild.Clock())
		end := profilebuild.Place{Object: b.Object(ingest.Object{Kind: ingest.NoStack, Reason: c.reason,
			File: ingest.FileRef{Path: "[" + c.reason.String() + "]"}})}
		b.Unresolved(end, c.reason)
		for i, f := range c.ends {
			at := profilebuild.Place{Object: b.Object(ingest.Object{
				File: ingest.FileRef{Path: fmt.Sprint("/bin/prog", i)}}), Offset: addr.Offset(16 * (i + 1))}
			b.Name(at, 1, f)
			b.Row(profilebuild.Row{Count: 1, Weight: 1, Stack: []profilebuild.Place{at, end}})
		}
		p := b.Profile()
		p.Stats.Copied = ingest.CopiedStats{Samples: uint64(len(c.ends)), Bytes: c.copied}
		missing := NewCoverage(p, CoverageOptions{}).Missing
		if len(missing) != 1 || missing[0].Reason != c.reason.String() || missing[0].Hint != c.want {
			t.Errorf("%s: %+v, want the hint %q", c.name, missing, c.want)
		}
	}
}

// TestHintWithoutBuildID: the kernel was asked for build IDs and could not read the ID of the only
// program, as with Go's programs: asking again is no advice.
func TestHintWithoutBuildID(t *testing.T) {
	for _, c := range []struct {
		name  string
		asked bool
		want  string
	}{
		{name: "asked", asked: true,
			want: "symbolize index /bin/a && symbolize resolve --trust-paths go.data"},
		{name: "not asked", want: "perf record --buildid-mmap"},
	} {
		b := profilebuild.New(profilebuild.Clock())
		at := profilebuild.Place{Object: b.Object(ingest.Object{Kind: ingest.ELF,
			File: ingest.FileRef{Path: "/bin/a"}, Reason: ingest.NoBuildID})}
		b.Unresolved(at, ingest.NoBuildID)
		b.Row(profilebuild.Row{Count: 1, Weight: 1, Stack: []profilebuild.Place{at}})
		p := b.Profile()
		p.Meta.Captures, p.Meta.MapsIDs = []string{"go.data"}, c.asked
		if got := NewCoverage(p, CoverageOptions{}).Missing[0].Hint; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
