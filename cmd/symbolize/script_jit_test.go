package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/jitbuild"
	"symbolize/ingest/format/bundle"
)

// cmdJIT is `jit DIR FILE…`: writes the files of the process of jitbuild into a directory:
// perf.data, image.data (with the code in a file), perf-77.map, jit-77.dump. The lists of its code were written 10 s after it began;
// "stale" before a name makes that 10 s before. maps.tar is a bundle of the same boot with its
// perf map, lists.tar one with both lists; with "other" before it they are of another process.
func cmdJIT(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: jit DIR [stale] FILE…")
	}
	vdso := uint64(jitbuild.VDSO)
	dir, written := ts.MkAbs(args[0]), time.Unix(jitbuild.Start+10, 0)
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, name := range args[1:] {
		var b []byte
		switch name {
		case "stale":
			written = time.Unix(jitbuild.Start-10, 0)
			continue
		case "other":
			vdso += 0x1000
			continue
		case "maps.tar", "lists.tar":
			b = jitBundle(written, vdso, name == "lists.tar")
		case "perf.data":
			b = jitbuild.Recording(false)
		case "image.data":
			b = jitbuild.ImageRecording()
		case "perf-77.map":
			b = []byte(jitbuild.Map)
		case "jit-77.dump":
			b = jitbuild.Dump(false)
		default:
			ts.Fatalf("no file %s", name)
		}
		path := filepath.Join(dir, name)
		ts.Check(os.WriteFile(path, b, 0o644))
		ts.Check(os.Chtimes(path, written, written))
	}
}

// jitBundle is a bundle of the host and time of jitbuild.Recording, with the lists of code of a
// process that has its vdso at an address.
func jitBundle(written time.Time, vdso uint64, dump bool) []byte {
	h := bundlebuild.NewHost()
	h.Name, h.Release, h.Text = jitbuild.Host, jitbuild.Release, jitbuild.Text
	h.Monotonic, h.Realtime = 0, jitbuild.Start*1_000_000_000-jitbuild.Begin
	facts := fmt.Sprintf(`{"began": %d, "vdso": "%#x", "perf_map": {"path": "/tmp/perf-77.map", "written": %d}}`,
		jitbuild.Start*1_000_000_000, vdso, written.UnixNano())
	h.Entries = map[string][]byte{bundle.PerfMapName(jitbuild.PID): []byte(jitbuild.Map),
		bundle.CompiledName(jitbuild.PID): []byte(facts)}
	if dump {
		h.Entries[bundle.JITDumpName(jitbuild.PID)] = jitbuild.Dump(false)
	}
	return h.Bundle()
}
