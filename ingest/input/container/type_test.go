package container

import (
	"bytes"
	"path/filepath"
	"testing"

	"symbolize/fixtures/must"
)

func TestHead(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       Type
	}{
		{name: "empty", want: TypeUnknown},
		{name: "text", head: "#!/bin/sh\n", want: TypeUnknown},
		{name: "perf.data", head: "PERFILE2", want: TypePerfData},
		{name: "perf.data, big endian", head: "2ELIFREP", want: TypePerfData},
		{name: "perf.data of 2009", head: "PERFFILE", want: TypePerfData},
		{name: "cut magic", head: "PERFILE", want: TypeUnknown},
		{name: "ELF", head: "\x7fELF\x02\x01\x01", want: TypeELF},
		{name: "cut ELF", head: "\x7fEL", want: TypeUnknown},
		{name: "gzip", head: "\x1f\x8b\x08", want: TypeGzip},
		{name: "xz", head: "\xfd7zXZ\x00.", want: TypeXZ},
		{name: "zstd", head: "\x28\xb5\x2f\xfd.", want: TypeZstd},
		{name: "kallsyms", head: "ffffffff81000000 T _text\n", want: TypeKallsyms},
		{name: "pprof", head: "\x0a\x04\x08\x01\x10\x02", want: TypePprof},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := TypeOfHead([]byte(c.head)); got != c.want {
				t.Errorf("type %d, want %d", got, c.want)
			}
		})
	}
}

// TestFixtures identifies recorded files, and gets the same type from their heads where these
// are enough.
func TestFixtures(t *testing.T) {
	const root = "../../../fixtures"
	for _, c := range []struct {
		pattern    string
		head, file Type
	}{
		{pattern: "captures/*.data", head: TypePerfData, file: TypePerfData},
		{pattern: "objects/bin/*", head: TypeELF, file: TypeELF},
		{pattern: "sampled/*.data", head: TypeZstd, file: TypeBundle},
		{pattern: "drops/*.raw", head: TypeUnknown, file: TypeStacks},
		{pattern: "drops/*.json", head: TypeUnknown, file: TypeStacks},
		{pattern: "kernel/kallsyms", head: TypeKallsyms, file: TypeKallsyms},
		{pattern: "stacks/*.gz", head: TypeGzip, file: TypeGzip},
	} {
		paths, err := filepath.Glob(filepath.Join(root, c.pattern))
		if err != nil || len(paths) == 0 {
			t.Errorf("%s: %d files, %v", c.pattern, len(paths), err)
		}
		for _, path := range paths {
			data := must.Read(t, path)
			if got := TypeOfHead(data[:min(len(data), HeadBytes)]); got != c.head && got != c.file {
				t.Errorf("%s: head of type %d, want %d", path, got, c.head)
			}
			if got := TypeOfPath(path); got != c.file {
				t.Errorf("%s: type %d, want %d", path, got, c.file)
			}
			of, err := TypeOf(path, bytes.NewReader(data), int64(len(data)))
			if err != nil || of != c.file {
				t.Errorf("%s: type %d, %v", path, of, err)
			}
		}
	}
	if got := TypeOfPath(filepath.Join(root, "captures")); got != TypeUnknown {
		t.Errorf("a directory is of type %d", got)
	}
}
