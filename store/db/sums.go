package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/ingest/files"
	"symbolize/store"
)

// fileSum is one line of SUMS.
type fileSum struct {
	name string
	size int64
	// sum is the CRC-32C. That of a value log, whose values have their own, is compared by Verify
	// alone; 0 if it is not known, as in generations of programs before it was kept.
	sum uint32
}

// sumFile returns a file's size, and its checksum if content is set.
func sumFile(path string, content bool) (size int64, sum uint32, err error) {
	f, err := files.OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if !content {
		info, err := f.Stat()
		if err != nil {
			return 0, 0, err
		}
		return info.Size(), 0, nil
	}
	h := crc32.New(castagnoli)
	size, err = io.Copy(h, f)
	return size, h.Sum32(), err
}

// check returns how a file of a generation differs from its line, "" if it does not.
func (s *fileSum) check(dir string, content bool) (text string, err error) {
	size, sum, err := sumFile(filepath.Join(dir, s.name), content)
	switch {
	case err != nil:
	case size != s.size:
		text = fmt.Sprintf("%d bytes, were %d", size, s.size)
	case content && sum != s.sum:
		text = fmt.Sprintf("checksum %08x, was %08x", sum, s.sum)
	}
	return text, err
}

// checkLogs compares the value logs of a generation with its SUMS, every byte: values have
// checksums of their own, but the logs also contain other bytes and deleted values. bad is called
// for each changed log.
func checkLogs(ctx context.Context, dir string, bad func(name, text string)) error {
	sums, err := readSums(dir)
	if err != nil {
		return err
	}
	for _, s := range sums {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !isLog(s.name) || s.sum == 0 {
			continue
		}
		text, err := s.check(dir, true)
		if err != nil {
			text = err.Error()
		}
		if text != "" {
			bad(s.name, text)
		}
	}
	return nil
}

// appendSums returns the text of SUMS: a line per file, and last the checksum of all lines before.
func appendSums(b []byte, sums []fileSum) []byte {
	b = fmt.Appendf(b, "symbolize generation\nschema %d\n", store.SchemaVersion)
	for _, s := range sums {
		sum := fmt.Sprintf("%08x", s.sum)
		if isLog(s.name) {
			sum = "00000000 " + sum // older programs do not look further
		}
		b = fmt.Appendf(b, "file %s %d %s\n", s.name, s.size, sum)
	}
	return fmt.Appendf(b, "end %08x\n", crc32.Checksum(b, castagnoli))
}

// maxSums bounds SUMS: 64 bytes a file, and a million files.
const maxSums = 64 << 20

// readSums reads and checks SUMS. Its errors wrap ErrVersion, ErrDamaged or the file system's.
func readSums(dir string) ([]fileSum, error) {
	path := filepath.Join(dir, sumsName)
	b, err := readLimited(path, maxSums)
	if err != nil {
		return nil, err
	}
	return parseSums(path, b)
}

// parseSums is readSums of text that was read.
func parseSums(path string, b []byte) ([]fileSum, error) {
	var schema int
	if _, err := fmt.Sscanf(string(b[:min(len(b), 64)]), "symbolize generation\nschema %d\n",
		&schema); err != nil {
		return nil, store.Damagef("%s: no generation", path)
	}
	if err := store.CheckSchema(path, schema); err != nil {
		return nil, err
	}
	at := strings.LastIndex(string(b), "end ")
	if at < 0 || string(b[at:]) != fmt.Sprintf("end %08x\n", crc32.Checksum(b[:at], castagnoli)) {
		return nil, store.Damagef("%s: checksum", path)
	}
	lines := strings.Split(strings.TrimSuffix(string(b[:at]), "\n"), "\n")
	var sums []fileSum
	for _, line := range lines[2:] {
		var s fileSum
		_, err := fmt.Sscanf(line, "file %s %d %x", &s.name, &s.size, &s.sum)
		if err == nil && strings.Count(line, " ") > 3 { // of a value log
			_, err = fmt.Sscanf(line, "file %s %d 00000000 %x", &s.name, &s.size, &s.sum)
		}
		if err != nil || !inGeneration(s.name) || s.name != filepath.Base(s.name) {
			return nil, store.Damagef("%s: line %q", path, line)
		}
		sums = append(sums, s)
	}
	return sums, nil
}

// checkGeneration compares a generation's files with its SUMS. Badger ends the process on some
// damage to its tables, so they are read through before it sees them; they are small, because large
// values are in the logs.
func checkGeneration(dir string) ([]fileSum, error) {
	if err := files.CheckDirs(filepath.Dir(dir), filepath.Base(dir)); err != nil {
		return nil, asDamage(err)
	}
	sums, err := readSums(dir)
	if err == nil {
		err = noOthers(dir, sums)
	}
	if err != nil {
		return nil, asDamage(err)
	}
	for _, s := range sums {
		text, err := s.check(dir, !isLog(s.name))
		if err != nil {
			return nil, asDamage(err)
		}
		if text != "" {
			return nil, store.Damagef("%s: %s", filepath.Join(dir, s.name), text)
		}
	}
	return sums, nil
}

// noOthers refuses a generation with files that are not in its SUMS and that Badger
// would open all the same.
func noOthers(dir string, sums []fileSum) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if (inGeneration(name) || isMemLog(name)) &&
			!slices.ContainsFunc(sums, func(s fileSum) bool { return s.name == name }) {
			return store.Damagef("%s is no part of the generation", filepath.Join(dir, name))
		}
	}
	return nil
}

// asDamage makes a wrong type of a generation's file damage to the generation.
func asDamage(err error) error {
	if errors.Is(err, store.ErrUnsafe) {
		return store.Damagef("%v", err)
	}
	return err
}

// readLimited reads a file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := files.OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = store.Damagef("%s: over %d bytes", path, limit)
	}
	return b, err
}

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
	text, err := readLimited(filepath.Join(dir, pulledName), 2*identitySize)
	if err == nil && len(text) == 2*identitySize {
		return string(text)
	}
	sums, err := readLimited(filepath.Join(dir, sumsName), maxSums)
	if err != nil { // no generation yet: whatever was pulled into it
		sums = nil
	}
	digest := sha256.Sum256(sums)
	return hex.EncodeToString(digest[:identitySize])
}
