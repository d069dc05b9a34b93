package db

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

	"symbolize/ingest/files"
	"symbolize/store"
)

// Names in the store's directory.
const (
	formatName = "FORMAT"
	lockName   = "lock"
	liveName   = "db"
	gensName   = "gen"
	leftName   = "left"   // an interrupted writer's work, while it is resumed
	asideName  = "aside"  // work that could not be resumed; the next GC drops it
	sumsName   = "SUMS"   // in a generation
	usesName   = "used"   // days of last use
	remoteName = "remote" // notes, see RemoteNotes
	tmpPrefix  = ".tmp-"

	journalName = "JOURNAL" // in db/
	pulledName  = "PULLED"  // in a generation, see identity
)

// keptGenerations is how many generations stay: the newest, and the one that a reader may be about
// to open.
const keptGenerations = 2

// isLog reports whether a file is a value log: large, append-only, and safe to share by hard links.
func isLog(name string) bool { return strings.HasSuffix(name, ".vlog") }

// isMemLog reports whether a file is the write-ahead log of a memtable.
func isMemLog(name string) bool { return strings.HasSuffix(name, ".mem") }

// isTable reports whether a file is one of Badger's table files.
func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// inGeneration reports whether a file of a closed database belongs into a generation. DISCARD
// serves only value-log collection, which is never run.
func inGeneration(name string) bool {
	return isLog(name) || isTable(name) || name == "MANIFEST" || name == "KEYREGISTRY"
}

// generations returns the numbers of a store's generations, newest first.
func generations(root string) ([]uint64, error) {
	if err := files.CheckDirs(root, gensName); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(root, gensName))
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

func genDir(root string, gen uint64) string {
	return filepath.Join(root, gensName, strconv.FormatUint(gen, 10))
}

// removeOld removes all generations but the newest. Readers that have one of them open keep its
// files, and one that is about to open it looks again.
func removeOld(root string, keep int) error {
	gens, err := generations(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, g := range gens[min(len(gens), keep):] {
		errs = append(errs, removeTree(genDir(root, g)))
	}
	return errors.Join(errs...)
}

// removeTree removes a directory under another name, so that no process opens a half of it.
func removeTree(dir string) error {
	tmp := filepath.Join(filepath.Dir(dir), tmpPrefix+filepath.Base(dir))
	if err := os.Rename(dir, tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(tmp)
}

// removeLeftovers removes temporary directories of runs that were killed. Only the holder of the
// lock may.
func removeLeftovers(root string) error {
	var errs []error
	for _, dir := range []string{root, filepath.Join(root, gensName), filepath.Join(root, usesName)} {
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

// vlogHeader is the size of the header of a Badger value log: key ID u64, base IV of 12 bytes; all
// zeros without encryption.
const vlogHeader = 20

// prepareLive makes db/ a clone of the newest sound generation, or an empty directory, and returns
// the files of that generation. warn receives the losses.
func prepareLive(root string, warn func(format string, args ...any)) (*journal, []fileSum, error) {
	gens, err := generations(root)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range gens {
		dir := genDir(root, g)
		sums, err := checkGeneration(dir)
		if err == nil {
			j, err := clone(root, g, sums)
			return j, sums, err
		}
		// A generation of a newer schema is an error; a damaged one is passed over.
		if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		warn("generation %d is passed over: %v", g, err)
	}
	if len(gens) > 0 {
		return nil, nil, store.Damagef("%s: no generation is sound", root)
	}
	j, err := clone(root, 0, nil)
	return j, nil, err
}

// clone makes db/ from a generation, empty if gen is 0: value logs are hard links, other files are
// copies, and the journal is new. db/ is made atomically, and nothing of it is synced: after a power
// failure only its journal is read, and publish syncs all.
func clone(root string, gen uint64, sums []fileSum) (j *journal, err error) {
	tmp := filepath.Join(root, tmpPrefix+liveName)
	if err := os.RemoveAll(tmp); err != nil {
		return nil, err
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return nil, err
	}
	dir := genDir(root, gen)
	for _, s := range sums {
		from, to := filepath.Join(dir, s.name), filepath.Join(tmp, s.name)
		if isLog(s.name) && os.Link(from, to) == nil {
			continue
		}
		if err := copyFile(from, to); err != nil {
			return nil, err
		}
	}
	if err := guardLog(tmp, sums); err != nil {
		return nil, err
	}
	from := base{gen: gen}
	if gen > 0 {
		text, err := readLimited(filepath.Join(dir, sumsName), maxSums)
		if err != nil {
			return nil, err
		}
		from.sum = crc32.Checksum(text, castagnoli)
	}
	if j, err = newJournal(filepath.Join(tmp, journalName), from); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, filepath.Join(root, liveName)); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// guardLog puts an empty value log after the newest one of a clone. Badger cuts the newest log
// at the first entry that it finds damaged, through every link to the file; and to find one
// it reads the whole log at every open. The guard has nothing to read and nothing to cut.
func guardLog(dir string, sums []fileSum) error {
	newest := uint64(0)
	for _, s := range sums {
		n, err := strconv.ParseUint(strings.TrimSuffix(s.name, ".vlog"), 10, 32)
		if err == nil && isLog(s.name) {
			newest = max(newest, n)
		}
	}
	if newest == 0 {
		return nil
	}
	guard := filepath.Join(dir, fmt.Sprintf("%06d.vlog", newest+1))
	return os.WriteFile(guard, make([]byte, vlogHeader), 0o644)
}

// copyFile copies a file, sharing blocks where the file system can.
func copyFile(from, to string) error {
	in, err := files.OpenPlain(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := files.OpenPlain(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
