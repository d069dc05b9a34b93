package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"symbolize/store/db/files"
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

// publish turns the closed database in dir into the next generation. dir is gone when it returns
// without an error. Tables that the generation before has too are shared with it.
func publish(root, dir string) (gen uint64, err error) {
	gens, err := generations(root)
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
	before := "" // none
	if len(gens) > 0 {
		gen, before = gens[0]+1, genDir(root, gens[0])
	}
	if err := sumLogs(dir, before, sums); err != nil {
		return 0, err
	}
	if before != "" {
		if err := shareTables(dir, before, sums); err != nil {
			return 0, err
		}
	}
	// Badger syncs the pages of its files, and then cuts them to their size: a power failure
	// would bring the old size back.
	for _, s := range sums {
		if err := files.SyncFile(filepath.Join(dir, s.name)); err != nil {
			return 0, err
		}
	}
	if err := files.WriteSynced(filepath.Join(dir, sumsName), appendSums(nil, sums)); err != nil {
		return 0, err
	}
	if err := sameMode(dir, sums); err != nil {
		return 0, err
	}
	parent := filepath.Join(root, gensName)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return 0, err
	}
	if err := files.SyncDir(dir); err != nil {
		return 0, err
	}
	if err := os.Rename(dir, genDir(root, gen)); err != nil {
		return 0, err
	}
	err = errors.Join(files.SyncDir(parent), files.SyncDir(root))
	return gen, errors.Join(err, skipMissing(os.Remove(filepath.Join(genDir(root, gen), journalName))))
}

// sameMode gives all files the permissions that the umask gave SUMS. Badger makes some of
// them for their owner alone, and a store may have readers beside him. A file with another
// name has got them in the generation before, or is not ours to change.
func sameMode(dir string, sums []fileSum) error {
	info, err := os.Lstat(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	for _, s := range sums {
		path := filepath.Join(dir, s.name)
		have, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if have.Mode().Perm() == info.Mode().Perm() || files.HasNames(have) {
			continue
		}
		if err := os.Chmod(path, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// dropForeign removes files that are no part of a generation: the discard statistics,
// and value logs without a value, which a reader could not map.
func dropForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		keep := inGeneration(e.Name()) || e.Name() == pulledName ||
			e.Name() == journalName // until it is a generation
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

// shareTables replaces the tables of dir by links to equal ones of the generation before, so that
// two generations use the disk space of one.
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
