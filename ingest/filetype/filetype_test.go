package filetype

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestHead(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       Type
	}{
		{name: "empty", want: Unknown},
		{name: "text", head: "#!/bin/sh\n", want: Unknown},
		{name: "perf.data", head: "PERFILE2", want: PerfData},
		{name: "perf.data, big endian", head: "2ELIFREP", want: PerfData},
		{name: "perf.data of 2009", head: "PERFFILE", want: PerfData},
		{name: "cut magic", head: "PERFILE", want: Unknown},
		{name: "ELF", head: "\x7fELF\x02\x01\x01", want: ELF},
		{name: "cut ELF", head: "\x7fEL", want: Unknown},
		{name: "gzip", head: "\x1f\x8b\x08", want: Gzip},
		{name: "xz", head: "\xfd7zXZ\x00.", want: XZ},
		{name: "zstd", head: "\x28\xb5\x2f\xfd.", want: Zstd},
		{name: "kallsyms", head: "ffffffff81000000 T _text\n", want: Kallsyms},
		{name: "pprof", head: "\x0a\x04\x08\x01\x10\x02", want: Pprof},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Head([]byte(c.head)); got != c.want {
				t.Errorf("type %d, want %d", got, c.want)
			}
		})
	}
}

// TestFixtures identifies recorded files, and gets the same type from their heads where these
// are enough.
func TestFixtures(t *testing.T) {
	const root = "../../fixtures"
	for _, c := range []struct {
		pattern    string
		head, file Type
	}{
		{pattern: "captures/*.data", head: PerfData, file: PerfData},
		{pattern: "objects/bin/*", head: ELF, file: ELF},
		{pattern: "sampled/*.data", head: Zstd, file: Bundle},
		{pattern: "drops/*.raw", head: Unknown, file: Stacks},
		{pattern: "drops/*.json", head: Unknown, file: Stacks},
		{pattern: "kernel/kallsyms", head: Kallsyms, file: Kallsyms},
		{pattern: "stacks/*.gz", head: Gzip, file: Gzip},
	} {
		paths, err := filepath.Glob(filepath.Join(root, c.pattern))
		if err != nil || len(paths) == 0 {
			t.Errorf("%s: %d files, %v", c.pattern, len(paths), err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := Head(data[:min(len(data), HeadBytes)]); got != c.head && got != c.file {
				t.Errorf("%s: head of type %d, want %d", path, got, c.head)
			}
			if got := OfPath(path); got != c.file {
				t.Errorf("%s: type %d, want %d", path, got, c.file)
			}
			of, err := Of(path, bytes.NewReader(data), int64(len(data)))
			if err != nil || of != c.file {
				t.Errorf("%s: type %d, %v", path, of, err)
			}
		}
	}
	if got := OfPath(filepath.Join(root, "captures")); got != Unknown {
		t.Errorf("a directory is of type %d", got)
	}
}
