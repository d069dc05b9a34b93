package bpfprog

import (
	"errors"
	"path/filepath"
	"testing"

	"symbolize/fixtures/must"
)

// TestDefinedAt finds the line of a function's definition, not of its mention.
func TestDefinedAt(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   uint32
	}{
		"the first line":  {source: "int probe(void *ctx) { return 0; }", want: 1},
		"name below type": {source: "static int\nprobe(void *ctx)\n{\n}\n", want: 2},
		"behind a comment": {source: "/* int probe(x) {\n */\n// probe() {\nint probe(void) {}",
			want: 4},
		"behind its use": {source: "int probe(void);\nint a(void) { return probe(); }\nint probe() {}",
			want: 3},
		"in a string": {source: "char s[] = \"probe() {\\\"\n\";\nint probe(void) {}",
			want: 3},
		"in a macro":       {source: "#define p \\\n probe() {}\nint probe(void) {}", want: 3},
		"with attributes":  {source: "\nint probe(void) __attribute__((noinline)) {}", want: 2},
		"with line breaks": {source: "\r\n\r\nint probe (int a,\r\n\tint (*b)(int)) {}", want: 3},
		"part of a name": {source: "int probed() {}\nint a_probe() {}\nint probe() {}",
			want: 3},
		"absent":            {source: "KFUNC_PROBE(x) { return 0; }", want: 0},
		"without end":       {source: "int probe(void *ctx", want: 0},
		"an open comment":   {source: "/* int probe() {}", want: 0},
		"an open string":    {source: "\"int probe() {}\\", want: 0},
		"nothing":           {want: 0},
		"only a call of it": {source: "int a(void) { probe(1); }", want: 0},
	} {
		path := filepath.Join(t.TempDir(), "probe.c")
		must.Write(t, path, []byte(test.source))
		if got, err := definedAt(path, "probe"); got != test.want || err != nil {
			t.Errorf("%s: line %d, %v, want %d", name, got, err, test.want)
		}
	}
	if _, err := definedAt(t.TempDir(), "probe"); !errors.Is(err, errSource) {
		t.Errorf("a directory: %v", err)
	}
}
