package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/exit"
)

// TestStorePathOfAnyBytes has a store in a directory whose name has spaces, newlines, quotes
// and an escape sequence. All commands work there, and no raw control byte comes out.
func TestStorePathOfAnyBytes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, " a b\nc;d\t'\"\x1b[31m\xff", "store ")
	fixtures := filepath.Join("..", "..", "fixtures")
	archive, other := filepath.Join(dir, "archive"), filepath.Join(dir, "\n")
	captured := filepath.Join(fixtures, "captures", "mixed.data")
	for _, tc := range []struct {
		store string
		args  []string
		code  int
	}{
		{path, []string{"store", "ls"}, exit.Failed},
		{path, []string{"index", filepath.Join(fixtures, "objects")}, exit.OK},
		{path, []string{"store", "ls"}, exit.OK},
		{path, []string{"store", "stats"}, exit.OK},
		{path, []string{"store", "stats", "--format", "json"}, exit.OK},
		{path, []string{"resolve", "--format", "folded", captured}, exit.OK},
		{path, []string{"store", "gc"}, exit.OK},
		{path, []string{"store", "rebuild"}, exit.OK},
		{path, []string{"store", "export", "-o", archive}, exit.OK},
		{other, []string{"store", "import", archive}, exit.OK},
		{path, []string{"store", "verify"}, exit.OK},
		{other, []string{"store", "verify"}, exit.OK},
	} {
		env, stdout, stderr := inProcess(append([]string{"--store", tc.store}, tc.args...)...)
		if code := Main(t.Context(), env); code != tc.code {
			t.Errorf("%q: status %d\n%s", tc.args, code, stderr)
		}
		checkPlainText(t, tc.args, stdout.String()+stderr.String())
	}
	newest, _ := filepath.Glob(filepath.Join(dir, "*", "store ", "gen", "*", "MANIFEST"))
	if len(newest) == 0 {
		t.Fatal("no generation where the store was to be")
	}
	for _, name := range newest {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	env, stdout, stderr := inProcess("--store", path, "store", "verify")
	if code := Main(t.Context(), env); code != exit.Failed {
		t.Errorf("damaged: status %d", code)
	}
	checkPlainText(t, []string{"verify"}, stdout.String()+stderr.String())
}

// checkPlainText fails if a text has bytes that a terminal would act on.
func checkPlainText(t *testing.T, args []string, text string) {
	t.Helper()
	for _, r := range strings.ReplaceAll(text, "\n", "") {
		if r < ' ' && r != '\t' || r == 0x7f || r == '\uFFFD' {
			t.Errorf("%q prints %q", args, text)
			return
		}
	}
}
