package main

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// TestAmbiguousPrefix: digits with which the build IDs of several objects begin are an error that
// lists them.
func TestAmbiguousPrefix(t *testing.T) {
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	b := must.Read(t, "../../fixtures/objects/bin/fixed")
	id := mustHex(t, "25d5bede07880a4717e27339b881f99c414460ba")
	fixed, other := id, bytes.Clone(id)
	other[19]++
	for name, id := range map[string][]byte{"one": id, "two": other} {
		data := bytes.Replace(b, fixed, id, 1)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env, _, stderr := inProcess("--store", store, "-q", "index", "--no-debug-root", dir)
	if code := Main(t.Context(), env); code != cli.OK {
		t.Fatalf("index: exit status %d: %s", code, stderr)
	}
	env, _, stderr = inProcess("--store", store, "lookup", "--build-id", "25d5bede", "0x401200")
	code := Main(t.Context(), env)
	for _, want := range []string{
		"error: 2 objects have a build ID that begins with 25d5bede\n",
		"hint: " + hex.EncodeToString(id) + " " + filepath.Join(dir, "one") + ", " +
			hex.EncodeToString(other) + " " + filepath.Join(dir, "two") + "\n",
	} {
		if code != cli.Failed || !strings.Contains(stderr.String(), want) {
			t.Errorf("exit status %d, %q is not in:\n%s", code, want, stderr)
		}
	}
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
