package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/elfbuild"
	"symbolize/fixtures/must"
)

// TestAmbiguousFollowed: the hint for a padded build ID that two objects have lists both, and the
// path in it for --with names the code.
func TestAmbiguousFollowed(t *testing.T) {
	dir := t.TempDir()
	id := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for name, id := range map[string][]byte{"a.so": id, "b.so": append(id[:8:8], 0, 0)} {
		lib := elfbuild.Lib(id, 0x1000, elfbuild.Func{Name: "work_of_" + name[:1], Size: 0x400})
		must.Write(t, filepath.Join(dir, name), lib.Bytes())
	}
	capture := filepath.Join(dir, "stacks.txt")
	if err := os.WriteFile(capture, []byte("@[\n0102030405060708"+strings.Repeat("0", 24)+
		" 0x1150\n, 12, app]: 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) string {
		t.Helper()
		env, stdout, stderr := inProcess(append([]string{"--store", filepath.Join(dir, "store"), "-q"},
			args...)...)
		env.Getenv = func(name string) string { return map[string]string{localEnv: "0"}[name] }
		if code := Main(t.Context(), env); code != cli.OK {
			t.Fatalf("%v: status %d: %s", args, code, stderr)
		}
		return stdout.String()
	}
	call("index", dir)
	var missing struct {
		Missing []struct{ Reason, Hint string }
	}
	if err := json.Unmarshal([]byte(call("missing", "--format", "json", capture)), &missing); err != nil {
		t.Fatal(err)
	}
	const want = "`symbolize store ls 0102030405060708` lists them; --with FILE names the one that ran"
	if len(missing.Missing) != 1 || missing.Missing[0].Reason != "ambiguous" ||
		missing.Missing[0].Hint != want {
		t.Fatalf("missing: %+v", missing)
	}
	if list := call("store", "ls", "0102030405060708"); !strings.Contains(list, "a.so") ||
		!strings.Contains(list, "b.so") {
		t.Errorf("the list has not both:\n%s", list)
	}
	for _, name := range []string{"a", "b"} {
		got := call("resolve", "--format", "folded", "--with", filepath.Join(dir, name+".so"), capture)
		if got != "app;work_of_"+name+" 3\n" {
			t.Errorf("with %s.so: %s", name, got)
		}
	}
}
