package db

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/store"
	"symbolize/store/db/files"
)

// fileSum is one line of SUMS.
type fileSum struct {
	name string
	size int64
	sum  uint32 // CRC-32C; 0 for value logs, whose values have their own
	// whole is the CRC-32C of a value log, which only Verify reads through; 0 if not known,
	// as in generations of programs before it was kept.
	whole uint32
}

// sumFiles describes the files of a closed database, sorted by name.
func sumFiles(dir string) ([]fileSum, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var sums []fileSum
	for _, e := range entries {
		if !inGeneration(e.Name()) {
			continue
		}
		s := fileSum{name: e.Name()}
		if s.size, s.sum, err = sumFile(filepath.Join(dir, s.name)); err != nil {
			return nil, err
		}
		sums = append(sums, s)
	}
	return sums, nil
}

// sumFile returns a file's size and, but for value logs, its checksum.
func sumFile(path string) (size int64, sum uint32, err error) {
	if !isLog(path) {
		return sumWhole(path)
	}
	f, err := files.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), 0, nil
}

// sumWhole returns a file's size and checksum.
func sumWhole(path string) (size int64, sum uint32, err error) {
	f, err := files.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	size, err = io.Copy(h, f)
	return size, h.Sum32(), err
}

// sumLogs adds the checksums of the value logs in dir. One that the generation before has
// too is not read again, if there is one: its checksum when it was written counts.
func sumLogs(dir, before string, sums []fileSum) error {
	var old []fileSum
	if before != "" {
		old, _ = readSums(before) // damaged or newer: nothing to keep
	}
	for i := range sums {
		s := &sums[i]
		if !isLog(s.name) {
			continue
		}
		path := filepath.Join(dir, s.name)
		at := slices.IndexFunc(old, func(o fileSum) bool {
			return o.name == s.name && o.size == s.size && o.whole != 0
		})
		if at >= 0 && sameFile(path, filepath.Join(before, s.name)) {
			s.whole = old[at].whole
			continue
		}
		var err error
		if _, s.whole, err = sumWhole(path); err != nil {
			return err
		}
	}
	return nil
}

// sameFile reports whether two paths are names of one file.
func sameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
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
		if !isLog(s.name) || s.whole == 0 {
			continue
		}
		size, sum, err := sumWhole(filepath.Join(dir, s.name))
		switch {
		case err != nil:
			bad(s.name, err.Error())
		case size != s.size || sum != s.whole:
			bad(s.name, fmt.Sprintf("%d bytes, checksum %08x; were %d, %08x", size, sum, s.size,
				s.whole))
		}
	}
	return nil
}

// appendSums returns the text of SUMS: a line per file, and last the checksum of all lines before.
func appendSums(b []byte, sums []fileSum) []byte {
	b = fmt.Appendf(b, "symbolize generation\nschema %d\n", store.SchemaVersion)
	for _, s := range sums {
		b = fmt.Appendf(b, "file %s %d %08x", s.name, s.size, s.sum)
		if s.whole != 0 {
			b = fmt.Appendf(b, " %08x", s.whole) // older programs do not look further
		}
		b = append(b, '\n')
	}
	return fmt.Appendf(b, "end %08x\n", crc32.Checksum(b, castagnoli))
}

// maxSums bounds SUMS: 64 bytes a file, and a million files.
const maxSums = 64 << 20

// readSums reads and checks SUMS. Its errors wrap ErrVersion, ErrDamaged or the file system's.
func readSums(dir string) ([]fileSum, error) {
	path := filepath.Join(dir, sumsName)
	b, err := files.ReadLimited(path, maxSums)
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
		if err == nil && strings.Count(line, " ") > 3 {
			_, err = fmt.Sscanf(line, "file %s %d %x %x", &s.name, &s.size, &s.sum, &s.whole)
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
		size, sum, err := sumFile(filepath.Join(dir, s.name))
		if err != nil {
			return nil, asDamage(err)
		}
		if size != s.size || sum != s.sum {
			return nil, store.Damagef("%s: %d bytes, checksum %08x; were %d, %08x",
				filepath.Join(dir, s.name), size, sum, s.size, s.sum)
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
