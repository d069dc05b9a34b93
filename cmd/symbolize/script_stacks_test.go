package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// unpackStacks unpacks a directory of fixtures/stacks, and the kernel's list and notes.
func unpackStacks(to, name string) error {
	files, err := filepath.Glob(filepath.Join("../../fixtures/stacks", name, "*.gz"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, from := range append(files, "../../fixtures/stacks/kallsyms.gz") {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(z)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(from), ".gz")
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			return err
		}
	}
	notes, err := os.ReadFile("../../fixtures/kernel/notes")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "notes"), notes, 0o644)
}

// cmdStacks is `stacks NAME`: unpacks that directory of fixtures/stacks into one of the
// same name.
func cmdStacks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stacks NAME")
	}
	ts.Check(unpackStacks(ts.MkAbs(args[0]), args[0]))
}
