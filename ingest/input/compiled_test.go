package input

import (
	"bytes"
	"path/filepath"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/jitbuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/sideband"
)

// Where a process has memory for compiled code, and three functions in it: "once", and at one
// address "before" from compiledAt on and "after" from replacedAt on.
const (
	compiledCode = 0x7f0000000000
	compiledAt   = 1_000_000_000
	replacedAt   = 2_000_000_000
)

// compiledDump is the jitdump file of that process; its code has its own offsets.
func compiledDump(t *testing.T, flags uint64) *jitdump.File {
	t.Helper()
	d := jitbuild.New(false, bundlebuild.Process, 62, 1, flags)
	d.Load(compiledAt, compiledCode, 1, "once", make([]byte, 16))
	d.Load(compiledAt, compiledCode+0x100, 2, "before", make([]byte, 16))
	d.Load(replacedAt, compiledCode+0x100, 3, "after", make([]byte, 16))
	f, err := jitdump.Open("jit.dump", bytes.NewReader(d.Bytes()), int64(len(d.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// compiledNames returns by comm the function, or the path, of the innermost frame.
func compiledNames(p *ingest.Profile, f *jitdump.File) map[string]string {
	names := make(map[string]string)
	for _, s := range p.Samples {
		l := p.Locations[p.Stack(nil, s.Stack)[0]]
		name := p.Objects[l.Object].File.Path
		if p.Objects[l.Object].Kind == ingest.JITDump {
			name = f.At(addr.Offset(l.Offset)).Name
		}
		names[p.Strings[s.Comm]] = name
	}
	return names
}

// TestCompiledTimes: an address of several functions of a run-time compiler belongs to the function
// at the time of its stack, if the time is known and there was only one.
func TestCompiledTimes(t *testing.T) {
	const none, ip, span = -14, 2, bundle.UserTimeSpan
	stacks := stackDump(t, [][]byte{stackRecord(ip, "", compiledCode+4)},
		[][]byte{stackRecord(ip, "", compiledCode+0x104)})
	for _, tt := range []struct {
		name  string
		flags uint64 // of the jitdump file
		reuse []addr.Range
		want  map[string]string
	}{
		{name: "with times", want: map[string]string{"once": "once", "once, timed": "once",
			"no time": ingest.AmbiguousJITPath, "before": "before", "before, late": "before",
			"in between": ingest.AmbiguousJITPath, "just after": ingest.AmbiguousJITPath, "after": "after",
			"none yet": ingest.AmbiguousJITPath}},
		{name: "times of another clock", flags: 1, want: map[string]string{"once": "once",
			"once, timed": "once", "no time": ingest.AmbiguousJITPath, "before": ingest.AmbiguousJITPath,
			"before, late": ingest.AmbiguousJITPath, "in between": ingest.AmbiguousJITPath,
			"just after": ingest.AmbiguousJITPath, "after": ingest.AmbiguousJITPath,
			"none yet": ingest.AmbiguousJITPath}},
	} {
		h := bundlebuild.NewHost()
		h.Entries = map[string][]byte{bundle.MapsName(bundlebuild.Process): []byte(
			"7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n")}
		path := timedBundle(t, h, stacks, stackDump(t), []timedCount{
			{user: 0, kernel: none, comm: "once"},
			{user: 0, kernel: none, comm: "once, timed", userTime: replacedAt},
			{user: 1, kernel: none, comm: "no time"},
			{user: 1, kernel: none, comm: "before", userTime: compiledAt + 2*compileLag},
			{user: 1, kernel: none, comm: "before, late", userTime: replacedAt - span - 2*compileLag},
			{user: 1, kernel: none, comm: "in between", userTime: replacedAt - span/2},
			{user: 1, kernel: none, comm: "just after", userTime: replacedAt + compileLag/2},
			{user: 1, kernel: none, comm: "after", userTime: replacedAt + 2*compileLag},
			{user: 1, kernel: none, comm: "none yet", userTime: compiledAt - span/2},
		})
		f := compiledDump(t, tt.flags)
		_, p := foldPath(t, path, Options{JIT: func(*sideband.JITQuery) sideband.JITCode {
			return sideband.JITCode{File: f, Dump: buildid.Make(buildid.JIT, []byte("dump"))}
		}})
		for comm, got := range compiledNames(p, f) {
			if got != tt.want[comm] {
				t.Errorf("%s, %s: %q, want %q", tt.name, comm, got, tt.want[comm])
			}
		}
		if len(p.Samples) != len(tt.want) {
			t.Errorf("%s: %d samples", tt.name, len(p.Samples))
		}
	}
}

// TestCompiledWithoutTimes: in a recording of another clock, and by a perf map, addresses of
// several functions are ambiguous; later changes of the memory's protection do not matter.
func TestCompiledWithoutTimes(t *testing.T) {
	b := perfbuild.New()
	at := perfbuild.At{PID: 7, TID: 7, Time: 10}
	b.Comm(7, 7, "once", true, at)
	for _, time := range []uint64{20, 50} {
		b.Mmap2(perfbuild.Mmap{PID: 7, TID: 7, Addr: compiledCode, Len: 0x1000, Prot: 5, Filename: "//anon"},
			perfbuild.At{PID: 7, TID: 7, Time: time})
	}
	b.Sample(perfbuild.Sample{PID: 7, TID: 7, Time: 60, IP: compiledCode + 4})
	b.Comm(7, 7, "reused", false, perfbuild.At{PID: 7, TID: 7, Time: 65})
	b.Sample(perfbuild.Sample{PID: 7, TID: 7, Time: 70, IP: compiledCode + 0x104})
	path := filepath.Join(t.TempDir(), "perf.data")
	must.Write(t, path, b.Bytes())
	f := compiledDump(t, 0)
	id := buildid.Make(buildid.JIT, []byte("list"))
	for _, tt := range []struct {
		name string
		code sideband.JITCode
		once string
	}{
		{name: "jitdump", code: sideband.JITCode{File: f, Dump: id}, once: "once"},
		{name: "perf map", code: sideband.JITCode{Map: id, Reused: f.Reused()}, once: ingest.PerfMapPath(7)},
	} {
		_, p := foldPath(t, path, Options{JIT: func(*sideband.JITQuery) sideband.JITCode { return tt.code }})
		got := compiledNames(p, f)
		if got["once"] != tt.once || got["reused"] != ingest.AmbiguousJITPath {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
