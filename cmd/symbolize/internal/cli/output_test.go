package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRefusesTerminal(t *testing.T) {
	env, stdout, _ := inProcess()
	env.StdoutTerminal = true
	a := &App{Env: env}
	write := func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }
	for _, path := range []string{"", "-"} {
		err := a.WriteOutput(path, true, write)
		var coded *ExitError
		if !errors.As(err, &coded) || coded.Code != Usage || Hint(err) == "" {
			t.Errorf("binary to %q: %v", path, err)
		}
	}
	if err := a.WriteOutput("", false, write); err != nil || stdout.String() != "x" {
		t.Errorf("text: %v, %q", err, stdout)
	}
}

func TestOutputFileIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	env, _, _ := inProcess()
	a := &App{Env: env}
	path := filepath.Join(dir, "out.txt")
	good := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	bad := errors.New("half-way")
	fail := func(w io.Writer) error { io.WriteString(w, "half"); return bad }

	if err := a.WriteOutput(path, false, fail); !errors.Is(err, bad) {
		t.Fatal(err)
	}
	wantDir(t, dir)
	if err := a.WriteOutput(path, false, good("one")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.WriteOutput(path, false, fail); !errors.Is(err, bad) {
		t.Fatal(err)
	}
	wantFile(t, path, "one")
	if err := a.WriteOutput(path, false, good("two")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "two")
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("permissions changed: %v %v", fi.Mode(), err)
	}
	wantDir(t, dir, "out.txt")

	link := filepath.Join(dir, "link")
	if err := os.Symlink("out.txt", link); err != nil {
		t.Fatal(err)
	}
	if err := a.WriteOutput(link, false, good("three")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "three")
	wantDir(t, dir, "link", "out.txt")

	if err := a.WriteOutput(dir, false, good("x")); err == nil {
		t.Error("a directory was written to")
	}
	err := a.WriteOutput(filepath.Join(dir, "no", "x"), false, good("x"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if err := a.WriteOutput(os.DevNull, false, good("x")); err != nil {
		t.Errorf("a device: %v", err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

// wantDir checks the names in a directory: nothing temporary is left.
func wantDir(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// TestOutputOf: a result with what is in captures is not readable by users who may not read these.
func TestOutputOf(t *testing.T) {
	dir := t.TempDir()
	env, _, _ := inProcess()
	a := &App{Env: env}
	capture, path := filepath.Join(dir, "perf.data"), filepath.Join(dir, "out.txt")
	if err := os.WriteFile(capture, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := a.WriteOutputOf([]string{"-", capture}, path, false, func(w io.Writer) error { return nil })
	if fi, statErr := os.Stat(path); err != nil || statErr != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v %v", fi, err, statErr)
	}
}
