package indexer

import (
	"bytes"
	"path/filepath"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/must"
)

// TestAliases: an indexed file is found by its htlhash, also after it became its stripped copy; a
// store of an older program gains the aliases of unchanged files.
func TestAliases(t *testing.T) {
	settle()
	m := newMemory()
	path := filepath.Join(t.TempDir(), "prog")
	data := fixture(t, "bin/fixed")
	must.Write(t, path, data)
	first, _ := buildid.HTLHash(bytes.NewReader(data), int64(len(data)))
	settle()
	m.index(t, Options{}, path)
	object := func(id buildid.ID) buildid.ID {
		t.Helper()
		return m.object(t, id).ID
	}
	id := object(first)
	if id.Space() != buildid.GNU {
		t.Fatalf("found %s", id)
	}
	longer := append(bytes.Clone(data), make([]byte, 100)...)
	second, _ := buildid.HTLHash(bytes.NewReader(longer), int64(len(longer)))
	must.Write(t, path, longer)
	settle()
	m.index(t, Options{}, path)
	if object(first) != id || object(second) != id {
		t.Error("an older copy is forgotten")
	}
	// An older program made neither the aliases nor the mark in the row.
	for key, o := range m.Objects {
		if o.IsAlias() {
			delete(m.Objects, key)
		}
	}
	rows, _, _ := m.Dir(filepath.Dir(path))
	if !rows[0].Aliased {
		t.Error("the row has no mark")
	}
	rows[0].Aliased = false
	m.PutDir(filepath.Dir(path), rows)
	for _, want := range []int{1, 0} { // rows written
		m.puts = nil
		if sum := m.index(t, Options{}, path); sum.Unchanged != 1 || len(m.puts) != want {
			t.Errorf("%d unchanged, rows of %v written", sum.Unchanged, m.puts)
		}
		if object(second) != id {
			t.Error("no alias")
		}
	}
}
