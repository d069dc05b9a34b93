package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// TestAnnotateRecordedSource has source text without a flag from where the compiler found it,
// unless that was changed after the program was written, or the search on this host is off.
func TestAnnotateRecordedSource(t *testing.T) {
	const recorded = "/srv/app/src"                   // in the program's debug information
	src := fmt.Sprintf("/tmp/s%06d", os.Getpid()%1e6) // of the same length
	if err := os.Mkdir(src, 0o700); err != nil {
		t.Skip("SKIPPED: needs a directory in /tmp: ", err)
	}
	defer os.RemoveAll(src)
	data := must.Read(t, "../../fixtures/objects/bin/fixed")
	dir := t.TempDir()
	bin := filepath.Join(dir, "fixed")
	if err := os.WriteFile(bin, bytes.ReplaceAll(data, []byte(recorded), []byte(src)),
		0o755); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i := range 60 {
		fmt.Fprintf(&lines, "text of line %d;\n", i+1)
	}
	source := filepath.Join(src, "fixed.c")
	if err := os.WriteFile(source, []byte(lines.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	built := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(bin, built, built); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		changed time.Time
		local   string // SYMBOLIZE_LOCAL
		args    []string
		text    bool
		warning string
	}{
		{name: "older", changed: built.Add(-time.Hour), text: true},
		{name: "younger", changed: built.Add(time.Hour),
			warning: "it was changed at 2026-01-02 04:04:05"},
		{name: "off by a flag", changed: built.Add(-time.Hour), args: []string{"--no-local"}},
		{name: "off by the environment", changed: built.Add(-time.Hour), local: "0"},
	} {
		if err := os.Chtimes(source, tt.changed, tt.changed); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		env := &cli.Env{Stdout: &stdout, Stderr: &stderr, Getenv: func(name string) string {
			return map[string]string{"SYMBOLIZE_STORE": filepath.Join(dir, "store"),
				localEnv: tt.local}[name]
		}, Args: append([]string{"annotate", "--with", bin,
			"../../fixtures/captures/fixed.data", "collatz"}, tt.args...)}
		if status := Main(t.Context(), env); status != cli.OK {
			t.Fatalf("%s: status %d: %s", tt.name, status, &stderr)
		}
		if got := strings.Contains(stdout.String(), "text of line 14;"); got != tt.text {
			t.Errorf("%s: has the source: %v\n%s", tt.name, got, &stdout)
		}
		if has := strings.Contains(stderr.String(), "no source of"); has != (tt.warning != "") ||
			!strings.Contains(stderr.String(), tt.warning) {
			t.Errorf("%s: %s", tt.name, &stderr)
		}
	}
}
