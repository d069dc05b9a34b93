package db

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"symbolize/ingest/files"
	"symbolize/store"
)

// trashGen begins the names of generations in trash/ that readers may have open.
const trashGen = "gen-"

// trashAge is how long files stay in trash/ where no lock tells that they are not in use.
const trashAge = 24 * time.Hour

func trashDir(root string, gen uint64) string {
	return filepath.Join(root, trashName, strconv.FormatUint(gen, 10))
}

// listTrash returns the numbers of trash/N and of trash/gen-N, largest first.
func listTrash(root string) (dirs, gens []uint64, err error) {
	if err := files.CheckDirs(root, trashName); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(filepath.Join(root, trashName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	return numbers(entries, ""), numbers(entries, trashGen), err
}

// findTrash returns the path of a file in trash/; "" if it is not there.
func findTrash(root, name string) string {
	dirs, _, err := listTrash(root)
	if err != nil {
		return ""
	}
	for _, n := range dirs {
		if files.CheckDirs(filepath.Join(root, trashName), strconv.FormatUint(n, 10)) != nil {
			continue
		}
		path := filepath.Join(trashDir(root, n), name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// removeOld removes all generations of a store but the newest. Those that readers have open are left in trash/.
func removeOld(root string, keep int) error {
	gens, err := generations(root)
	if err != nil {
		return err
	}
	old := gens[min(len(gens), keep):]
	if len(old) == 0 {
		return nil
	}
	if err := makeDir(filepath.Join(root, trashName)); err != nil {
		return err
	}
	var errs []error
	for _, g := range old {
		// Renamed first, so that no process begins to open it.
		to := filepath.Join(root, trashName, trashGen+strconv.FormatUint(g, 10))
		err := errors.Join(os.RemoveAll(to), os.Rename(genDir(root, g), to))
		if err == nil {
			_, err = removeUnused(to)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// makeDir makes a directory that may be there.
func makeDir(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// removeUnused removes a generation in trash/ unless a reader has it open.
func removeUnused(dir string) (removed bool, err error) {
	f, err := files.OpenDir(dir)
	if errors.Is(err, files.ErrUnsafe) {
		return true, os.Remove(dir) // another thing of that name
	}
	if err != nil {
		return false, err
	}
	held, err := lockFile(f)
	if err != nil { // no lock tells
		info, statErr := f.Stat()
		held, err = statErr != nil || time.Since(info.ModTime()) < trashAge, nil
	}
	if !held {
		err = os.RemoveAll(dir)
	}
	return !held, errors.Join(err, f.Close())
}

// emptyTrash deletes what no reader needs any more.
func (w *Writer) emptyTrash() error {
	dirs, gens, err := listTrash(w.path)
	if err != nil || len(dirs)+len(gens) == 0 {
		return err
	}
	published, err := generations(w.path)
	if err != nil {
		return err
	}
	oldest := uint64(1) << 63 // generation that may be in use
	if n := len(published); n > 0 {
		oldest = published[n-1]
	}
	for _, g := range gens {
		removed, err := removeUnused(filepath.Join(w.path, trashName, trashGen+strconv.FormatUint(g, 10)))
		if err != nil {
			return err
		}
		if !removed {
			oldest = min(oldest, g)
		}
	}
	for _, n := range dirs {
		dir := trashDir(w.path, n)
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if oldest < n || !w.locked && time.Since(info.ModTime()) < trashAge {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// discard moves files of a directory of a store to trash/N.
func discard(root string, gen uint64, from string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	to := trashDir(root, gen)
	if err := errors.Join(makeDir(filepath.Dir(to)), makeDir(to)); err != nil {
		return err
	}
	for _, name := range names {
		err := os.Rename(filepath.Join(root, from, name), filepath.Join(to, name))
		if err := skipMissing(err); err != nil {
			return err
		}
	}
	return nil
}

// restore moves the inputs in trash/ that the newest facts name back: another writer had them in use
// where the file system cannot lock, or facts were copied into the store. A file has both names
// until the first is on disk.
func (w *Writer) restore() error {
	dirs, _, err := listTrash(w.path)
	if err != nil || len(dirs) == 0 {
		return err
	}
	named, err := w.named()
	if err != nil {
		return err
	}
	for _, n := range dirs {
		var back []string
		err := eachName(trashDir(w.path, n), func(name string) error {
			if id, ok := store.ParseDigest(name); ok && named.has(prefixOf(id)) {
				if _, err := os.Lstat(filepath.Join(w.path, inputsName, name)); errors.Is(err, fs.ErrNotExist) {
					back = append(back, name)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := bringBack(w.path, trashDir(w.path, n), back); err != nil {
			return err
		}
	}
	return nil
}

// returnInput moves an input that is in trash/ back.
func (w *Writer) returnInput(id digest) error {
	if _, err := os.Lstat(filepath.Join(w.path, inputsName, id.String())); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	at := findTrash(w.path, id.String())
	if at == "" {
		return nil
	}
	return bringBack(w.path, filepath.Dir(at), []string{id.String()})
}

// bringBack gives files of a directory of a store their names in inputs/.
func bringBack(root, from string, list []string) error {
	if len(list) == 0 {
		return nil
	}
	inputs := filepath.Join(root, inputsName)
	for _, name := range list {
		old, to := filepath.Join(from, name), filepath.Join(inputs, name)
		if os.Link(old, to) != nil { // a file system without links
			if err := copyFile(old, to); err != nil {
				return err
			}
		}
	}
	if err := files.SyncDir(inputs); err != nil {
		return err
	}
	for _, name := range list {
		if err := os.Remove(filepath.Join(from, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file, and syncs it before it has its name.
func copyFile(from, to string) error {
	in, err := files.OpenPlain(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp := filepath.Join(filepath.Dir(to), tmpPrefix+filepath.Base(to))
	out, err := files.OpenPlain(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(spaceError(err), os.Remove(tmp))
	}
	return os.Rename(tmp, to)
}
