package main

import (
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// TestAnnotateWarns: of a damaged capture annotate does not end with 0, and prints why.
func TestAnnotateWarns(t *testing.T) {
	b := must.Read(t, filepath.Join("..", "..", "fixtures", "captures", "bpf.data"))
	path := filepath.Join(t.TempDir(), "cut.data")
	must.Write(t, path, b[:len(b)-100])
	status, _, messages := sweepRun(t, "--store", filepath.Join(t.TempDir(), "store"), "annotate",
		path)
	if status == cli.OK || !strings.Contains(messages, "symbolize: warning: "+path+": ") {
		t.Errorf("status %d\n%s", status, messages)
	}
}
