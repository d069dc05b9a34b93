package inspect

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

const fixtures = "../../fixtures/"

// TestFile describes files of all kinds, as text and as JSON.
func TestFile(t *testing.T) {
	whole := must.Read(t, fixtures+"captures/fixed.data")
	dir := t.TempDir()
	for name, b := range map[string][]byte{"cut.data": whole[:9000], "notes.txt": []byte("none\n")} {
		must.Write(t, filepath.Join(dir, name), b)
	}
	for _, c := range []struct {
		name, path, kind string
		text, json       string // parts of the output
		damaged          bool
		err              error
	}{
		{name: "executable", path: fixtures + "objects/bin/fixed",
			kind: "executable at a fixed address", text: "segment  ", json: `"machine": "x86_64"`},
		{name: "debug file", path: fixtures + "objects/bin/mixed.debug",
			kind: "separate debug file", text: "build ID", json: `"symbols": [`},
		{name: "perf.data", path: fixtures + "captures/fixed.data", kind: "perf.data",
			text: "cpu-clock:u", json: `"name": "cpu-clock:u"`},
		{name: "cut perf.data", path: filepath.Join(dir, "cut.data"), kind: "perf.data",
			text: "warning", json: `"warnings": [`, damaged: true},
		{name: "bundle", path: fixtures + "sampled/stacks.data", kind: "bundle",
			text: "boot  ", json: `"boot_id"`},
		{name: "text", path: filepath.Join(dir, "notes.txt"), err: input.ErrNotCapture},
		{name: "directory", path: dir, err: input.ErrNotCapture},
	} {
		t.Run(c.name, func(t *testing.T) {
			info, err := File(t.Context(), c.path, input.Options{})
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			var text, json bytes.Buffer
			if err := errors.Join(info.WriteText(&text), texts.WriteJSON(&json, "info/1", info)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), c.kind) || !strings.Contains(text.String(), c.text) {
				t.Errorf("text without %q or %q:\n%s", c.kind, c.text, &text)
			}
			if !strings.Contains(json.String(), c.json) {
				t.Errorf("JSON without %q:\n%s", c.json, &json)
			}
			if info.Damaged() != c.damaged {
				t.Errorf("damaged: %v", info.Damaged())
			}
		})
	}
}
