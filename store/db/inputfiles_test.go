package db

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"symbolize/store"
)

// TestPutAtATime has several goroutines write one input: objects have inputs in common. Each
// succeeds, and what one of them is writing is not mistaken for damage.
func TestPutAtATime(t *testing.T) {
	const rounds, writers = 20, 8
	for round := range rounds {
		path := t.TempDir()
		dir := filepath.Join(path, inputsName)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		content := bytes.Repeat([]byte{byte(round), 'x'}, 1<<20)
		in := &store.NewInput{ID: sha256.Sum256(content), Size: int64(len(content))}
		for part := range slices.Chunk(content, 1<<12) { // in many writes
			in.Parts = append(in.Parts, part)
		}
		c := &inputFiles{path: path}
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				if err := c.put(in); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got, err := os.ReadFile(filepath.Join(dir, in.ID.String())); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d of %d bytes: %v", len(got), len(content), err)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%d files, want 1: %v", len(all), err)
		}
		if err := c.close(); err != nil || t.Failed() {
			t.Fatal(err)
		}
	}
}
