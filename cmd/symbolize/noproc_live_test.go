//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"symbolize/fixtures/must"
)

// TestLiveNoProc: in a root without /proc, as of an image of one file that is unpacked, commands
// that write the store work, though they cannot start themselves again.
func TestLiveNoProc(t *testing.T) {
	needLive(t)
	root := filepath.Dir(liveBinary(t))
	for name, from := range map[string]string{"fixed": "objects/bin/fixed",
		"plain.archive": "archives/plain.archive", "fixed.data": "captures/fixed.data"} {
		b := must.Read(t, filepath.Join("../../fixtures", from))
		must.Write(t, filepath.Join(root, name), b)
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{args: "index /fixed", want: "found  1 object"},
		{args: "store import /plain.archive", want: "1 object, 4 tables"},
		{args: "index --for /fixed.data", want: "the captures need 1 object"},
		{args: "-v store gc", want: "1 object kept"},
		{args: "store verify", want: "sound: 1 objects"},
		{args: "store export -o /x.archive", want: "1 object"},
		{args: "-v batch run -o /out /fixed.data", want: "captures   1, 0 failed"},
		{args: "top /fixed.data", want: "collatz"},
	} {
		cmd := exec.CommandContext(t.Context(), "/symbolize",
			append([]string{"--store", "/store"}, strings.Fields(tt.args)...)...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %v\n%s", tt.args, err, out)
		}
	}
}
