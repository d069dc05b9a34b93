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
		{name: "terminal", terminal: true, env: map[string]string{"TERM": "xterm"}, color: true},
		{name: "NO_COLOR", terminal: true,
			env: map[string]string{"TERM": "xterm", "NO_COLOR": "1"}},
		{name: "dumb", terminal: true, env: map[string]string{"TERM": "dumb"}},
		{name: "pipe", env: map[string]string{"TERM": "xterm"}},
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

// TestTablesFit: the lists of the other commands fit a terminal, too, as far as their numbers leave
// room; build IDs and commands to copy are whole. In pipes all is whole.
func TestTablesFit(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("a-long-directory/", 8))
	data, err := os.ReadFile("../../fixtures/objects/bin/fixed")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(long, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(long, "fixed"), data, 0o755); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store")
	for _, tt := range []struct {
		args  []string
		width int
		whole string
	}{
		{args: []string{"index", "--quality", dir}, width: 90,
			whole: "25d5bede07880a4717e27339b881f99c414460ba"},
		{args: []string{"store", "ls"}, width: 80,
			whole: "25d5bede07880a4717e27339b881f99c414460ba"},
		{args: []string{"store", "rm", "--dry-run", "25d5bede"}, width: 90,
			whole: "25d5bede07880a4717e27339b881f99c414460ba"},
		{args: []string{"missing", "../../fixtures/captures/mixed-buildid.data"}, width: 80,
			whole: "symbolize index /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\n"},
	} {
		for _, terminal := range []bool{true, false} {
			env, stdout, stderr := inProcess(append([]string{"--store", store, "-q"}, tt.args...)...)
			env.StdoutTerminal, env.StdoutWidth = terminal, tt.width
			env.Getenv = func(name string) string { return map[string]string{localEnv: "0"}[name] }
			if code := Main(t.Context(), env); code != exit.OK {
				t.Fatalf("%v: status %d: %s", tt.args, code, stderr)
			}
			text := stdout.String()
			if !strings.Contains(text, tt.whole) {
				t.Errorf("%v: no %q in\n%s", tt.args, tt.whole, text)
			}
			if cut := strings.Contains(text, "…"); cut != terminal {
				t.Errorf("%v, terminal %v: cut %v\n%s", tt.args, terminal, cut, text)
			}
			for line := range strings.Lines(text) {
				hint := strings.HasPrefix(strings.TrimSpace(line), "symbolize ") ||
					strings.Contains(line, "perf record")
				n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
				if terminal && n > tt.width && !hint {
					t.Errorf("%v: %d columns: %s", tt.args, n, line)
				}
			}
		}
	}
}
