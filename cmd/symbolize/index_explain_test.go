package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
)

// TestExplainPartial: a file that cannot be read makes the list partial, as text and as JSON.
func TestExplainPartial(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cut.so"), []byte("\x7fELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "json"} {
		env, out, stderr := inProcess("index", "--explain", "--format", format, dir)
		if got := Main(t.Context(), env); got != cli.Partial ||
			!strings.Contains(out.String()+stderr.String(), "cut.so") {
			t.Errorf("%s: exit status %d\n%s%s", format, got, out, stderr)
		}
	}
}
