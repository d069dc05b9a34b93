package main

import (
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// TestExplainPartial: a file that cannot be read makes the list partial, as text and as JSON.
func TestExplainPartial(t *testing.T) {
	dir := t.TempDir()
	must.Write(t, filepath.Join(dir, "cut.so"), []byte("\x7fELF"))
	for _, format := range []string{"text", "json"} {
		env, out, stderr := inProcess("index", "--explain", "--format", format, dir)
		if got := Main(t.Context(), env); got != cli.Partial ||
			!strings.Contains(out.String()+stderr.String(), "cut.so") {
			t.Errorf("%s: exit status %d\n%s%s", format, got, out, stderr)
		}
	}
}
