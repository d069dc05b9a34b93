package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLookupManyAnswers: answers that several goroutines print come in the order of the
// questions, in each style.
func TestLookupManyAnswers(t *testing.T) {
	const questions = 5*answersAtOnce + 3
	for _, style := range lookupStyles {
		args := []string{"-e", fixedObject, "--style", style, "--addresses"}
		var once [16]string
		for i := range once {
			once[i] = lookup(t, fmt.Sprintf("%x\n", 0x401200+i), args...)
		}
		var in, want strings.Builder
		for i := range questions {
			at := i * 7 % len(once)
			fmt.Fprintf(&in, "%x\n", 0x401200+at)
			want.WriteString(once[at])
		}
		if got := lookup(t, in.String(), args...); got != want.String() {
			t.Errorf("%s: %d bytes, want %d, or in another order", style, len(got), want.Len())
		}
	}
}

// TestLookupManyFiles: more files than are kept open, each asked for again and again.
func TestLookupManyFiles(t *testing.T) {
	data, err := os.ReadFile(fixedObject)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var in, want strings.Builder
	once := lookup(t, "", "-e", fixedObject, "401200")
	for round := range 2 {
		for i := range maxLookups + 2 {
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
	if got := lookup(t, in.String()); got != want.String() {
		t.Errorf("got %d bytes, want %d: %.200s", len(got), want.Len(), got)
	}
}

func TestSplitQuery(t *testing.T) {
	for line, want := range map[string]string{
		"a 1": "a|1", "  a   0x1  x": "a|0x1", `"a b" 1`: "a b|1", "'a\"b' 1": `a"b|1`,
		"CODE a 1": "a|1", `CODE  "a" 1`: "a|1", "CODE 1": "", "CODE": "", "a": "", "": "",
		`"a 1`: "", `"" 1`: "", `"a"`: "",
	} {
		file, address, ok := splitQuery([]byte(line))
		got := ""
		if ok {
			got = file + "|" + string(address)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestLookupListOfJSON: arguments give one list, with commas between its objects.
func TestLookupListOfJSON(t *testing.T) {
	env, stdout, stderr := inProcess("lookup", "-e", fixedObject, "--style", "json", "401200", "x",
		"401050")
	if status := Main(t.Context(), env); status != exitOK {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	got := stdout.String()
	if !strings.HasPrefix(got, "[{") || !strings.HasSuffix(got, "}]\n") ||
		strings.Count(got, "},{\"Address\"")+strings.Count(got, "},{\"Error\"") != 2 {
		t.Errorf("no list of three: %s", got)
	}
}
