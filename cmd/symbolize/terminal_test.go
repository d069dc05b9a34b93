package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/input/pprof"
)

// writeProfile writes a profile as pprof into a temporary directory.
func writeProfile(t *testing.T, name string, p *ingest.Profile) string {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Write(&b, p, pprof.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	must.Write(t, path, b.Bytes())
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
			if code := Main(t.Context(), env); code != cli.OK {
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

// plainText removes the colours of a text, and nothing else.
func plainText(s string) string {
	for _, code := range []string{"0", "1", "2", "31", "32", "34"} {
		s = strings.ReplaceAll(s, "\x1b["+code+"m", "")
	}
	return s
}

// TestTablesFit: the lists of the other commands fit a terminal, too, as far as their numbers
// permit; build IDs and commands to copy are whole. In pipes all is whole.
func TestTablesFit(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("a-long-directory/", 8))
	data := must.Read(t, "../../fixtures/objects/bin/fixed")
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
			if code := Main(t.Context(), env); code != cli.OK {
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

// atWidths runs a command for a pipe, and for terminals of a width without colours. The texts are
// checked to be those with colours, but for these, and a pipe's to be plain and whole.
func atWidths(t *testing.T, args []string) (pipe string, terminal func(width int) string) {
	t.Helper()
	run := func(width int, env map[string]string) string {
		e, stdout, stderr := inProcess(append([]string{"--store", t.TempDir(), "-q"}, args...)...)
		e.StdoutTerminal, e.StdoutWidth = width > 0, width
		e.Getenv = func(name string) string {
			return cmp.Or(env[name], map[string]string{localEnv: "0", "TERM": "xterm"}[name])
		}
		if code := Main(t.Context(), e); code != cli.OK {
			t.Fatalf("%v: status %d: %s", args, code, stderr)
		}
		return stdout.String()
	}
	plain := map[string]string{"NO_COLOR": "1"}
	pipe = run(0, nil)
	if strings.ContainsAny(pipe, "\x1b…") || pipe != run(0, plain) {
		t.Errorf("%v: in a pipe it is coloured or cut:\n%s", args, pipe)
	}
	return pipe, func(width int) string {
		text := run(width, plain)
		if strings.Contains(text, "\x1b") || text != plainText(run(width, nil)) {
			t.Errorf("%v, %d columns: NO_COLOR is not the same without colours", args, width)
		}
		return text
	}
}

// TestWidths: rows of tables are as wide as the terminal, or as their numbers need (most). Numbers
// are as in a pipe, where all is whole, plain, and the same whatever the environment; terminals of
// less than 80 columns may have fewer columns of them.
func TestWidths(t *testing.T) {
	const most = 78
	path := writeProfile(t, "every.pb.gz", profilebuild.EveryKind())
	other := writeProfile(t, "calls.pb.gz", profilebuild.Calls(1, true))
	mixed := "../../fixtures/captures/mixed.data"
	number := regexp.MustCompile(`^([+-]?[0-9][0-9.,]*(%|[a-zµ]+)?|new|gone|-|±)$`)
	// The numbers that rows of tables begin with, and these rows. Sentences are none.
	numbers := func(text string) (list, rows []string) {
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			end := slices.IndexFunc(fields, func(f string) bool { return !number.MatchString(f) })
			if end >= 2 && len(fields[0]) < 20 { // no build ID
				list = append(list, strings.Join(fields[:end], " "))
				rows = append(rows, strings.TrimSuffix(line, "\n"))
			}
		}
		return list, rows
	}
	for _, args := range [][]string{{"top", path}, {"top", "--by", "line", path},
		{"top", "--by", "comm,function", path}, {"top", mixed}, {"tree", path}, {"tree", mixed},
		{"peek", "main", path}, {"diff", path, path}, {"diff", other, other}, {"missing", path},
		{"missing", mixed}} {
		pipe, terminal := atWidths(t, args)
		for _, width := range []int{40, 80, 200} {
			plain := terminal(width)
			got, rows := numbers(plain)
			for _, row := range rows {
				if n := utf8.RuneCountInString(row); n > max(width, most) {
					t.Errorf("%v, %d columns: %d in %q", args, width, n, row)
				}
			}
			want, _ := numbers(pipe)
			if width < 80 && len(got) == len(want) {
				for i := range got {
					if within(strings.Fields(got[i]), strings.Fields(want[i])) {
						want[i] = got[i]
					}
				}
			}
			if len(got) == 0 || !slices.Equal(got, want) {
				t.Errorf("%v, %d columns: numbers %q, in a pipe %q", args, width, got, want)
			}
		}
	}
}

// within reports whether all of some words are among others, in their order.
func within(words, others []string) bool {
	for _, w := range others {
		if len(words) > 0 && words[0] == w {
			words = words[1:]
		}
	}
	return len(words) == 0
}

// TestWidthsOfInfo: on a terminal, info breaks its sentences at words and leaves columns out; all its
// words are those of a pipe, in their order. Build IDs are whole (most).
func TestWidthsOfInfo(t *testing.T) {
	const most = 91
	for _, file := range []string{"captures/mixed.data", "captures/bpf.data", "sampled/stacks.data"} {
		pipe, terminal := atWidths(t, []string{"info", "../../fixtures/" + file})
		for _, width := range []int{40, 80, 100} {
			words := strings.Fields(pipe)
			for line := range strings.Lines(terminal(width)) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > max(width, most) {
					t.Errorf("%s, %d columns: %d in %q", file, width, n, line)
				}
				for _, w := range strings.Fields(line) {
					same := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(w), "…", ".*") + "$")
					at := slices.IndexFunc(words, same.MatchString)
					if at < 0 {
						t.Fatalf("%s, %d columns: %q is not in a pipe, or before", file, width, w)
					}
					words = words[at+1:]
				}
			}
		}
	}
}

// TestWidthsOfLists: on a terminal, lines are as in a pipe with names cut in the middle, at most as
// wide as the terminal or, if cut, as the numbers and build IDs need (most). Code, text to be
// copied and sentences are never cut.
func TestWidthsOfLists(t *testing.T) {
	const captures, most = "../../fixtures/captures/", 91
	number := regexp.MustCompile(`^[0-9a-f.:]*…[0-9a-f.:%]*$`)
	for _, args := range [][]string{{"annotate", "--limit", "0", "--with", "../../fixtures/objects", captures + "mixed.data"},
		{"map", "--symbols", "key", "--kallsyms", "../../fixtures/drops/kallsyms",
			"../../fixtures/drops/locations.raw"},
		{"map", "../../fixtures/maps/ints.json"}} {
		pipe, terminal := atWidths(t, args)
		whole := slices.Collect(strings.Lines(pipe))
		for _, width := range []int{40, 80, 200} {
			plain := terminal(width)
			lines := slices.Collect(strings.Lines(plain))
			if len(lines) != len(whole) {
				t.Fatalf("%v, %d columns: %d lines, in a pipe %d", args, width, len(lines), len(whole))
			}
			for i, line := range lines {
				var words []string
				for _, w := range strings.Fields(line) {
					if number.MatchString(w) {
						t.Errorf("%v, %d columns: a number is cut: %q", args, width, line)
					}
					words = append(words, strings.ReplaceAll(regexp.QuoteMeta(w), "…", ".*"))
				}
				same := regexp.MustCompile(`^\s*` + strings.Join(words, `\s+`) + `\s*$`)
				n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
				if !same.MatchString(whole[i]) || strings.Contains(line, "…") && n > max(width, most) {
					t.Errorf("%v, %d columns: %d in %q, in a pipe %q", args, width, n, line, whole[i])
				}
			}
		}
	}
}
