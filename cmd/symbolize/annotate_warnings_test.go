package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
)

// TestAnnotateWarns: of a damaged capture annotate does not end with 0, and prints why.
func TestAnnotateWarns(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "captures", "bpf.data"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.data")
	if err := os.WriteFile(path, b[:len(b)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, messages := sweepRun(t, "--store", filepath.Join(t.TempDir(), "store"), "annotate",
		path)
	if status == cli.OK || !strings.Contains(messages, "symbolize: warning: "+path+": ") {
		t.Errorf("status %d\n%s", status, messages)
	}
}
