package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"symbolize/cmd/symbolize/internal/exit"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/format/pprof"
)

// writeProfile writes a profile as pprof into a temporary directory.
func writeProfile(t *testing.T, name string, p *ingest.Profile) string {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Write(&b, p, pprof.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTerminal: on a terminal tables fit its width and are coloured, unless the environment
// forbids it; in a pipe they are plain and whole.
func TestTerminal(t *testing.T) {
	const width = 80
	path := writeProfile(t, "every.pb.gz", profilebuild.EveryKind())
	for _, tt := range []struct {
		name     string
		terminal bool
		env      map[string]string
		color    bool
	}{
		{"terminal", true, map[string]string{"TERM": "xterm"}, true},
		{"NO_COLOR", true, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		{"dumb", true, map[string]string{"TERM": "dumb"}, false},
		{"pipe", false, map[string]string{"TERM": "xterm"}, false},
	} {
		for _, command := range [][]string{{"top", path}, {"tree", path}, {"peek", "main", path},
			{"top", "--by", "line", path}} {
			env, stdout, stderr := inProcess(append([]string{"--store", t.TempDir(), "-q"},
				command...)...)
			env.StdoutTerminal, env.StdoutWidth = tt.terminal, width
			env.Getenv = func(name string) string { return tt.env[name] }
			if code := Main(t.Context(), env); code != exit.OK {
				t.Fatalf("%s, %v: status %d: %s", tt.name, command, code, stderr)
			}
			if got := strings.Contains(stdout.String(), "\x1b["); got != tt.color {
				t.Errorf("%s, %v: colours: %v", tt.name, command, got)
			}
			longest := 0
			for line := range strings.Lines(plainText(stdout.String())) {
				longest = max(longest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
			}
			cut := strings.Contains(stdout.String(), "…")
			if tt.terminal && longest > width || !tt.terminal && cut {
				t.Errorf("%s, %v: longest line %d, cut %v", tt.name, command, longest, cut)
			}
		}
	}
}

// plainText takes the colours out of a text, and nothing else.
func plainText(s string) string {
	for _, code := range []string{"0", "1", "2", "31", "32"} {
		s = strings.ReplaceAll(s, "\x1b["+code+"m", "")
	}
	return s
}
