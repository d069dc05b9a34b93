package db

import (
	"path/filepath"
	"strconv"

	"symbolize/store/db/files"
)

// notePulled marks the closed db/ as a generation that differs from the newest one by tables that a
// Writer with WriterOptions.Pulled has written.
func (w *Writer) notePulled(live string) error {
	text := strconv.FormatUint(indexedGeneration(w.path, w.gen), 10)
	return files.WriteSynced(filepath.Join(live, pulledName), []byte(text))
}

// indexedGeneration returns the number of the generation on which one and those before it, which
// only pulled objects, were built; that of gen itself for another.
func indexedGeneration(root string, gen uint64) uint64 {
	text, err := files.ReadLimited(filepath.Join(genDir(root, gen), pulledName), 32)
	if err != nil {
		return gen
	}
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil || n > gen {
		return gen
	}
	return n
}
