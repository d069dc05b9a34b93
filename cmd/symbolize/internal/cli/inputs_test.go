package cli

import (
	"os"
	"strings"
	"testing"
)

// TestCaptureArgs: the first argument is a capture, and so are those behind it that are
// files, up to the first that is none.
func TestCaptureArgs(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.data", "b.data"} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("main", 0o777); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{"": 0, "x": 1, "x a.data": 2, "a.data b.data main": 2,
		"a.data main b.data": 1, "a.data": 1} {
		if got := CaptureArgs(strings.Fields(args)); got != want {
			t.Errorf("%q: %d captures, want %d", args, got, want)
		}
	}
}
