package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// TestLookupManyAnswers: answers that several goroutines print come in the order of the
// questions, in each style.
func TestLookupManyAnswers(t *testing.T) {
	const questions = 5*2048 + 3 // several goroutines print them
	for _, style := range []string{"llvm", "gnu", "json"} {
		args := []string{"-e", fixedObject, "--style", style, "--addresses"}
		var once [16]string
		for i := range once {
			once[i] = runLookupText(t, fmt.Sprintf("%x\n", 0x401200+i), args...)
		}
		var in, want strings.Builder
		for i := range questions {
			at := i * 7 % len(once)
			fmt.Fprintf(&in, "%x\n", 0x401200+at)
			want.WriteString(once[at])
		}
		if got := runLookupText(t, in.String(), args...); got != want.String() {
			t.Errorf("%s: %d bytes, want %d, or in another order", style, len(got), want.Len())
		}
	}
}

// TestLookupManyFiles: more files than are kept open, each asked for again and again.
func TestLookupManyFiles(t *testing.T) {
	data := must.Read(t, fixedObject)
	dir := t.TempDir()
	var in, want strings.Builder
	once := runLookupText(t, "", "-e", fixedObject, "401200")
	for round := range 2 {
		for i := range 34 {
			file := filepath.Join(dir, fmt.Sprint("a file ", i))
			if round == 0 {
				if err := os.WriteFile(file, data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			fmt.Fprintf(&in, "CODE \"%s\" 0x401200\n\"%[1]s\" 401200\n", file)
			want.WriteString(once + once)
		}
	}
	if got := runLookupText(t, in.String()); got != want.String() {
		t.Errorf("got %d bytes, want %d: %.200s", len(got), want.Len(), got)
	}
}

// TestLookupListOfJSON: arguments give one list, with commas between its objects.
func TestLookupListOfJSON(t *testing.T) {
	env, stdout, stderr := inProcess("lookup", "-e", fixedObject, "--style", "json", "401200", "x",
		"401050")
	if status := Main(t.Context(), env); status != cli.OK {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	got := stdout.String()
	if !strings.HasPrefix(got, "[{") || !strings.HasSuffix(got, "}]\n") ||
		strings.Count(got, "},{\"Address\"")+strings.Count(got, "},{\"Error\"") != 2 {
		t.Errorf("no list of three: %s", got)
	}
}
