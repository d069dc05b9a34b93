package main

import (
	"fmt"
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
