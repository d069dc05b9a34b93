package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"symbolize/fixtures/jitbuild"
)

// cmdJIT is `jit DIR FILE…`: writes the files of the process of jitbuild into a directory:
// perf.data, perf-77.map, jit-77.dump. The lists of its code were written 10 s after it began;
// "stale" before a name makes that 10 s before.
func cmdJIT(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: jit DIR [stale] FILE…")
	}
	dir, written := ts.MkAbs(args[0]), time.Unix(jitbuild.Start+10, 0)
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, name := range args[1:] {
		var b []byte
		switch name {
		case "stale":
			written = time.Unix(jitbuild.Start-10, 0)
			continue
		case "perf.data":
			b = jitbuild.Recording(false)
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
