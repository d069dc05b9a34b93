package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// vlogHeader is the size of the header of a Badger value log: key ID u64, base
// IV of 12 bytes; all zeros without encryption.
const vlogHeader = 20

// maxTries is how often a database that an interrupted writer left is opened
// before it is given up: damage there ends the process inside Badger.
const maxTries = 3

// prepareLive makes db/ ready to be opened for writing. Where an interrupted
// writer left one it is taken up again; else it is cloned from the newest sound
// generation, or will be new. warn is told what had to be given up.
func prepareLive(store string, warn func(format string, args ...any)) error {
	live := filepath.Join(store, liveName)
	_, err := os.Lstat(live)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cloneNewest(store, live, warn)
	case err != nil:
		return err
	}
	tries := filepath.Join(live, triesName)
	b, _ := readLimited(tries, 16)
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	if n >= maxTries {
		warn("work that an interrupted run left unpublished cannot be opened and was dropped")
		if err := removeTree(live); err != nil {
			return err
		}
		return cloneNewest(store, live, warn)
	}
	err = os.Remove(filepath.Join(live, sumsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(dropEmptyLogs(live), unshare(live)); err != nil {
		return err
	}
	return writeSynced(tries, []byte(strconv.Itoa(n+1)))
}

// dropEmptyLogs removes log files without a byte. Badger leaves one if it is
// killed between making a log and giving it its size, or between truncating and
// removing it, and refuses to open a database that has one. It truncates logs without an
// entry before it removes them: only our name of such a file goes if it has others.
func dropEmptyLogs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isLog(e.Name()) && !isMemLog(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err == nil && (info.Size() == 0 || info.Size() <= vlogHeader && hasNames(info)) {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// liveOpened notes that Badger has opened db/.
func liveOpened(store string) error {
	err := os.Remove(filepath.Join(store, liveName, triesName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// cloneNewest makes live a copy of the newest generation that is sound. A
// generation of a newer schema is an error; a damaged one is passed over.
func cloneNewest(store, live string, warn func(format string, args ...any)) error {
	gens, err := generations(store)
	if err != nil {
		return err
	}
	for _, g := range gens {
		dir := genDir(store, g)
		sums, err := checkGeneration(dir)
		if err == nil {
			return clone(store, dir, live, sums)
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		warn("generation %d is passed over: %v", g, err)
	}
	if len(gens) > 0 {
		return damaged("%s: no generation is sound", store)
	}
	return os.Mkdir(live, 0o755)
}

// clone makes live from a generation: value logs by hard links, all else by
// copies.
func clone(store, gen, live string, sums []fileSum) error {
	tmp := filepath.Join(store, tmpPrefix+liveName)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	for _, s := range sums {
		from, to := filepath.Join(gen, s.name), filepath.Join(tmp, s.name)
		if isLog(s.name) && os.Link(from, to) == nil {
			continue
		}
		if err := copyFile(from, to); err != nil {
			return err
		}
	}
	if err := guardLog(tmp); err != nil {
		return err
	}
	if err := syncDir(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, live)
}

// unshare replaces by copies all files of dir that another directory links to
// and that Badger would change: it truncates tables before it removes them, and
// appends to its manifest.
func unshare(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isLog(e.Name()) || !inGeneration(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if shared, err := isShared(path); err != nil || !shared {
			if err != nil {
				return err
			}
			continue
		}
		tmp := filepath.Join(dir, tmpPrefix+e.Name())
		if err := copyFile(path, tmp); err != nil {
			return err
		}
		if err := os.Rename(tmp, path); err != nil {
			return err
		}
	}
	return guardLog(dir)
}

// guardLog puts an empty value log behind the newest one of dir, if that is
// shared. Badger cuts the newest log at the first entry that it finds damaged,
// through every link to the file; and to find one it reads the whole log at
// every open. The guard has nothing to read and nothing to cut.
func guardLog(dir string) error {
	newest, err := newestFile(dir, ".vlog")
	if err != nil || newest == "" {
		return err
	}
	shared, err := isShared(filepath.Join(dir, newest))
	if err != nil || !shared {
		return err
	}
	fid, err := strconv.ParseUint(strings.TrimSuffix(newest, ".vlog"), 10, 32)
	if err != nil {
		return damaged("%s: name of a value log", filepath.Join(dir, newest))
	}
	guard := filepath.Join(dir, fmt.Sprintf("%06d.vlog", fid+1))
	return writeSynced(guard, make([]byte, vlogHeader))
}

// newestFile returns the name with the highest number among the files of dir
// with this extension, "" if there is none.
func newestFile(dir, ext string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	newest, number := "", uint64(0)
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), ext)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(stem, 10, 64); err == nil && (newest == "" || n > number) {
			newest, number = e.Name(), n
		}
	}
	return newest, nil
}

// isShared reports whether a file has more than one name.
func isShared(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	return hasNames(info), nil
}

// hasNames reports whether a file has more than one name.
func hasNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// copyFile copies a file, sharing blocks where the file system can.
func copyFile(from, to string) error {
	in, err := openPlain(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := openPlain(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
