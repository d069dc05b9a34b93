package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
)

// TestStorePathOfAnyBytes has a store in a directory with spaces, newlines, quotes and an escape
// sequence in its name. All commands work there, and no raw control byte is printed.
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
		{store: path, args: []string{"store", "ls"}, code: cli.Failed},
		{store: path, args: []string{"index", filepath.Join(fixtures, "objects")}, code: cli.OK},
		{store: path, args: []string{"store", "ls"}, code: cli.OK},
		{store: path, args: []string{"store", "stats"}, code: cli.OK},
		{store: path, args: []string{"store", "stats", "--format", "json"}, code: cli.OK},
		{store: path, args: []string{"resolve", "--format", "folded", captured}, code: cli.OK},
		{store: path, args: []string{"store", "gc"}, code: cli.OK},
		{store: path, args: []string{"store", "rebuild"}, code: cli.OK},
		{store: path, args: []string{"store", "export", "-o", archive}, code: cli.OK},
		{store: other, args: []string{"store", "import", archive}, code: cli.OK},
		{store: path, args: []string{"store", "verify"}, code: cli.OK},
		{store: other, args: []string{"store", "verify"}, code: cli.OK},
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
	if code := Main(t.Context(), env); code != cli.Failed {
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
