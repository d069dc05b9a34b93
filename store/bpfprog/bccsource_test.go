package bpfprog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestDefinedAt finds the line of a function's definition, not of its mention.
func TestDefinedAt(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   uint32
	}{
		"the first line":    {"int probe(void *ctx) { return 0; }", 1},
		"name below type":   {"static int\nprobe(void *ctx)\n{\n}\n", 2},
		"behind a comment":  {"/* int probe(x) {\n */\n// probe() {\nint probe(void) {}", 4},
		"behind its use":    {"int probe(void);\nint a(void) { return probe(); }\nint probe() {}", 3},
		"in a string":       {"char s[] = \"probe() {\\\"\n\";\nint probe(void) {}", 3},
		"in a macro":        {"#define p \\\n probe() {}\nint probe(void) {}", 3},
		"with attributes":   {"\nint probe(void) __attribute__((noinline)) {}", 2},
		"with line breaks":  {"\r\n\r\nint probe (int a,\r\n\tint (*b)(int)) {}", 3},
		"part of a name":    {"int probed() {}\nint a_probe() {}\nint probe() {}", 3},
		"absent":            {"KFUNC_PROBE(x) { return 0; }", 0},
		"without end":       {"int probe(void *ctx", 0},
		"an open comment":   {"/* int probe() {}", 0},
		"an open string":    {"\"int probe() {}\\", 0},
		"nothing":           {"", 0},
		"only a call of it": {"int a(void) { probe(1); }", 0},
	} {
		path := filepath.Join(t.TempDir(), "probe.c")
		if err := os.WriteFile(path, []byte(test.source), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := definedAt(path, "probe"); got != test.want || err != nil {
			t.Errorf("%s: line %d, %v, want %d", name, got, err, test.want)
		}
	}
	if _, err := definedAt(t.TempDir(), "probe"); !errors.Is(err, errSource) {
		t.Errorf("a directory: %v", err)
	}
}
