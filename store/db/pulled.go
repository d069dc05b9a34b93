package db

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"symbolize/store/db/files"
)

// notePulled marks the closed db/ as a generation that differs from the newest one by tables that a
// Writer with WriterOptions.Pulled has written.
func (w *Writer) notePulled(live string) error {
	return files.WriteSynced(filepath.Join(live, pulledName), []byte(identity(w.path, w.gen)))
}

// identitySize is the number of bytes of an identity, before it is written in hexadecimal.
const identitySize = 16

// identity returns a digest of a generation's content, from the sums of its files. A generation
// that differs from an earlier one only by pulled objects has the identity of that one.
func identity(root string, gen uint64) string {
	dir := genDir(root, gen)
	text, err := files.ReadLimited(filepath.Join(dir, pulledName), 2*identitySize)
	if err == nil && len(text) == 2*identitySize {
		return string(text)
	}
	sums, err := files.ReadLimited(filepath.Join(dir, sumsName), maxSums)
	if err != nil { // no generation yet: whatever was pulled into it
		sums = nil
	}
	digest := sha256.Sum256(sums)
	return hex.EncodeToString(digest[:identitySize])
}
