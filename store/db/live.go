package db

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"symbolize/store"
	"symbolize/store/db/files"
)

// vlogHeader is the size of the header of a Badger value log: key ID u64, base IV of 12 bytes; all
// zeros without encryption.
const vlogHeader = 20

// live is a db/ that is ready to be opened.
type live struct {
	journal *journal
	from    base
	shared  []fileSum // the files of from
}

// prepareLive makes db/ a clone of the newest sound generation, or an empty directory. warn
// receives the losses.
func prepareLive(root string, warn func(format string, args ...any)) (*live, error) {
	gens, err := generations(root)
	if err != nil {
		return nil, err
	}
	for _, g := range gens {
		dir := genDir(root, g)
		sums, err := checkGeneration(dir)
		if err == nil {
			return clone(root, g, sums)
		}
		// A generation of a newer schema is an error; a damaged one is passed over.
		if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		warn("generation %d is passed over: %v", g, err)
	}
	if len(gens) > 0 {
		return nil, store.Damagef("%s: no generation is sound", root)
	}
	return clone(root, 0, nil)
}

// clone makes db/ from a generation, empty if gen is 0: value logs are hard links, other files are
// copies, and the journal is new. db/ is made atomically.
func clone(root string, gen uint64, sums []fileSum) (l *live, err error) {
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
	if err := guardLog(tmp); err != nil {
		return nil, err
	}
	l = &live{shared: sums}
	if gen > 0 {
		text, err := files.ReadLimited(filepath.Join(dir, sumsName), maxSums)
		if err != nil {
			return nil, err
		}
		l.from = base{gen: gen, sum: crc32.Checksum(text, castagnoli)}
	}
	if l.journal, err = newJournal(filepath.Join(tmp, journalName), l.from); err != nil {
		return nil, err
	}
	err = errors.Join(files.SyncDir(tmp), os.Rename(tmp, filepath.Join(root, liveName)))
	if err != nil {
		l.journal.close()
		return nil, err
	}
	return l, nil
}

// guardLog puts an empty value log after the newest one of dir. Badger cuts the newest log
// at the first entry that it finds damaged, through every link to the file; and to find one
// it reads the whole log at every open. The guard has nothing to read and nothing to cut.
func guardLog(dir string) error {
	newest, err := newestFile(dir, ".vlog")
	if err != nil || newest == "" {
		return err
	}
	fid, err := strconv.ParseUint(strings.TrimSuffix(newest, ".vlog"), 10, 32)
	if err != nil {
		return store.Damagef("%s: name of a value log", filepath.Join(dir, newest))
	}
	guard := filepath.Join(dir, fmt.Sprintf("%06d.vlog", fid+1))
	return files.WriteSynced(guard, make([]byte, vlogHeader))
}

// newestFile returns the name with the highest number among the files of dir with this extension,
// "" if there is none.
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

// copyFile copies a file, sharing blocks where the file system can.
func copyFile(from, to string) error {
	in, err := files.Open(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := files.Open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
