//go:build unix

package files_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"symbolize/ingest/files"
)

// place makes a directory with one of each kind of file.
func place(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.WriteFile(at("file"), []byte("text"), 0o644))
	check(syscall.Mkfifo(at("pipe"), 0o644))
	l, err := net.Listen("unix", at("socket"))
	check(err)
	t.Cleanup(func() { l.Close() })
	check(os.Mkdir(at("dir"), 0o755))
	check(os.Symlink("file", at("to-file")))
	check(os.Symlink("pipe", at("to-pipe")))
	check(os.Symlink("/dev/zero", at("to-device")))
	return dir
}

func TestOpen(t *testing.T) {
	dir := place(t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	openers := map[string]func(name string) (*os.File, error){
		"Open":       func(n string) (*os.File, error) { return files.Open(filepath.Join(dir, n)) },
		"OpenIn":     func(n string) (*os.File, error) { return files.OpenIn(root, n) },
		"OpenNoLink": func(n string) (*os.File, error) { return files.OpenNoLink(filepath.Join(dir, n)) },
	}
	for _, c := range []struct {
		name, kind string
		not        string // the one that answers otherwise: it does not leave, or does not follow
	}{
		{name: "file"},
		{name: "to-file", not: "OpenNoLink"},
		{name: "pipe", kind: "a pipe"},
		{name: "to-pipe", kind: "a pipe", not: "OpenNoLink"},
		{name: "to-device", kind: "a device", not: "OpenNoLink OpenIn"},
		{name: "socket", kind: "a socket"},
		{name: "dir", kind: "a directory"},
	} {
		for how, open := range openers {
			f, err := open(c.name)
			if f != nil {
				f.Close()
			}
			switch {
			case slices.Contains(strings.Fields(c.not), how):
				if err == nil {
					t.Errorf("%s %s: opened", how, c.name)
				}
			case c.kind == "" && err != nil:
				t.Errorf("%s %s: %v", how, c.name, err)
			case c.kind != "" && (!errors.Is(err, files.ErrNotRegular) ||
				!strings.HasSuffix(err.Error(), "it is "+c.kind)):
				t.Errorf("%s %s: %v, want %s", how, c.name, err, c.kind)
			}
		}
	}
	_, err = files.Open(filepath.Join(dir, "nowhere"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "open ") {
		t.Errorf("no file: %v", err)
	}
}
