package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SchemaVersion is the version of keys and values, and of the directory. A store
// of a newer one is refused with ErrVersion; those of older ones are read, and become
// ones of this version with the next generation. 2 brought sources of kind JIT,
// variants and blobs, which programs of version 1 would take for damage and drop.
const SchemaVersion = 2

// Names in the store's directory.
const (
	formatName = "FORMAT"
	lockName   = "lock"
	liveName   = "db"
	gensName   = "gen"
	sumsName   = "SUMS" // in a generation
	triesName  = "TRIES"
	tmpPrefix  = ".tmp-"
)

// keptGenerations is how many generations stay: the newest, and the one that a
// reader may be about to open.
const keptGenerations = 2

// fileSum is one line of SUMS.
type fileSum struct {
	name string
	size int64
	sum  uint32 // CRC-32C; 0 for value logs, whose values have their own
}

// isLog reports whether a file is a value log: large, append-only, and safe to
// share by hard links.
func isLog(name string) bool { return strings.HasSuffix(name, ".vlog") }

// isMemLog reports whether a file is the write-ahead log of a memtable.
func isMemLog(name string) bool { return strings.HasSuffix(name, ".mem") }

// isTable reports whether a file is one of Badger's table files.
func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// inGeneration reports whether a file of a closed database belongs into a
// generation. DISCARD serves only value-log collection, which is never run.
func inGeneration(name string) bool {
	return isLog(name) || isTable(name) || name == "MANIFEST" || name == "KEYREGISTRY"
}

// generations returns the numbers of a store's generations, newest first.
func generations(store string) ([]uint64, error) {
	entries, err := os.ReadDir(filepath.Join(store, gensName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("generations: %w", err)
	}
	var gens []uint64
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 63)
		if err == nil && e.Name() == strconv.FormatUint(n, 10) {
			gens = append(gens, n)
		}
	}
	slices.Sort(gens)
	slices.Reverse(gens)
	return gens, nil
}

func genDir(store string, gen uint64) string {
	return filepath.Join(store, gensName, strconv.FormatUint(gen, 10))
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
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if isLog(path) {
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

// appendSums returns the text of SUMS: a line per file, and last the checksum of
// all that stands before.
func appendSums(b []byte, sums []fileSum) []byte {
	b = fmt.Appendf(b, "symbolize generation\nschema %d\n", SchemaVersion)
	for _, s := range sums {
		b = fmt.Appendf(b, "file %s %d %08x\n", s.name, s.size, s.sum)
	}
	return fmt.Appendf(b, "end %08x\n", crc32.Checksum(b, castagnoli))
}

// maxSums bounds SUMS: 64 bytes a file, and a million files.
const maxSums = 64 << 20

// readSums reads and checks SUMS. Its errors wrap ErrVersion, ErrDamaged or the
// file system's.
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
		return nil, damaged("%s: no generation", path)
	}
	if schema > SchemaVersion {
		return nil, versionError(path, schema)
	}
	at := strings.LastIndex(string(b), "end ")
	if at < 0 || string(b[at:]) != fmt.Sprintf("end %08x\n", crc32.Checksum(b[:at], castagnoli)) {
		return nil, damaged("%s: checksum", path)
	}
	lines := strings.Split(strings.TrimSuffix(string(b[:at]), "\n"), "\n")
	var sums []fileSum
	for _, line := range lines[2:] {
		var s fileSum
		if _, err := fmt.Sscanf(line, "file %s %d %x", &s.name, &s.size, &s.sum); err != nil ||
			!inGeneration(s.name) || s.name != filepath.Base(s.name) {
			return nil, damaged("%s: line %q", path, line)
		}
		sums = append(sums, s)
	}
	return sums, nil
}

func versionError(path string, schema int) error {
	return fmt.Errorf("%s: %w: schema %d, this program knows %d", path, ErrVersion, schema,
		SchemaVersion)
}

// readLimited reads a small file.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, damaged("%s: over %d bytes", path, limit)
	}
	return b, nil
}

// checkGeneration compares a generation's files with its SUMS. Badger ends the
// process on some damage to its tables, so they are read through before it sees
// them; they are small, for large values lie in the logs.
func checkGeneration(dir string) ([]fileSum, error) {
	sums, err := readSums(dir)
	if err != nil {
		return nil, err
	}
	for _, s := range sums {
		size, sum, err := sumFile(filepath.Join(dir, s.name))
		if err != nil {
			return nil, err
		}
		if size != s.size || sum != s.sum {
			return nil, damaged("%s: %d bytes, checksum %08x; were %d, %08x",
				filepath.Join(dir, s.name), size, sum, s.size, s.sum)
		}
	}
	return sums, nil
}

// publish turns the closed database in dir into the next generation. dir is gone
// when it returns without an error. Tables that the generation before has too
// are shared with it.
func publish(store, dir string) (gen uint64, err error) {
	gens, err := generations(store)
	if err != nil {
		return 0, err
	}
	if err := dropForeign(dir); err != nil {
		return 0, err
	}
	sums, err := sumFiles(dir)
	if err != nil {
		return 0, err
	}
	gen = 1
	if len(gens) > 0 {
		gen = gens[0] + 1
		if err := shareTables(dir, genDir(store, gens[0]), sums); err != nil {
			return 0, err
		}
	}
	if err := writeSynced(filepath.Join(dir, sumsName), appendSums(nil, sums)); err != nil {
		return 0, err
	}
	if err := sameMode(dir, sums); err != nil {
		return 0, err
	}
	parent := filepath.Join(store, gensName)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return 0, err
	}
	if err := syncDir(dir); err != nil {
		return 0, err
	}
	if err := os.Rename(dir, genDir(store, gen)); err != nil {
		return 0, err
	}
	return gen, errors.Join(syncDir(parent), syncDir(store))
}

// sameMode gives all files the permissions that the umask gave SUMS. Badger makes
// some of them for their owner alone, and a store may have readers beside him.
func sameMode(dir string, sums []fileSum) error {
	info, err := os.Stat(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	for _, s := range sums {
		path := filepath.Join(dir, s.name)
		have, err := os.Stat(path)
		if err != nil {
			return err
		}
		if have.Mode().Perm() == info.Mode().Perm() {
			continue
		}
		if err := os.Chmod(path, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// dropForeign removes what is no part of a generation: the discard statistics,
// and value logs without a value, which a reader could not map.
func dropForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		keep := inGeneration(e.Name())
		if keep && isLog(e.Name()) {
			info, err := e.Info()
			if err != nil {
				return err
			}
			keep = info.Size() > vlogHeader
		}
		if !keep {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// shareTables replaces the tables of dir by links to equal ones of the
// generation before, so that two generations take the room of one.
func shareTables(dir, before string, sums []fileSum) error {
	old, err := readSums(before)
	if err != nil {
		return nil // damaged or newer: nothing to share with
	}
	for _, s := range sums {
		if !isTable(s.name) || !slices.Contains(old, s) {
			continue
		}
		size, sum, err := sumFile(filepath.Join(before, s.name))
		if err != nil || size != s.size || sum != s.sum {
			continue // damaged since: ours is the only whole one
		}
		tmp := filepath.Join(dir, tmpPrefix+s.name)
		if err := os.Link(filepath.Join(before, s.name), tmp); err != nil {
			return nil // another file system's limit: two copies do no harm
		}
		if err := os.Rename(tmp, filepath.Join(dir, s.name)); err != nil {
			return err
		}
	}
	return nil
}

// removeOld removes all generations but the newest. Readers that have one of them
// open keep its files, and one that is about to open it looks again.
func removeOld(store string, keep int) error {
	gens, err := generations(store)
	if err != nil {
		return err
	}
	var errs []error
	for _, g := range gens[min(len(gens), keep):] {
		errs = append(errs, removeTree(genDir(store, g)))
	}
	return errors.Join(errs...)
}

// removeTree removes a directory under another name, so that nobody opens a half
// of it.
func removeTree(dir string) error {
	tmp := filepath.Join(filepath.Dir(dir), tmpPrefix+filepath.Base(dir))
	if err := os.Rename(dir, tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(tmp)
}

// removeLeftovers removes temporary directories of runs that were killed. Only
// the holder of the lock may.
func removeLeftovers(store string) error {
	var errs []error
	for _, dir := range []string{store, filepath.Join(store, gensName)} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), tmpPrefix) {
				errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// writeSynced writes a small file that is whole on disk when it returns.
func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
